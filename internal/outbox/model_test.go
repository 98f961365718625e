package outbox

import (
	"bytes"
	"errors"
	"net"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// sink accepts what there is room for, and notes it.
type sink struct {
	room  int
	got   []byte
	err   error
	kept  int // bytes that it has accepted and not sent
	wakes int
	keeps bool // it keeps some of what does not fit
}

func (s *sink) Push(p, q []byte, _ bool) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	all := append(bytes.Clone(p), q...)
	k := min(s.room, s.kept)
	s.kept, s.room = s.kept-k, s.room-k
	if s.kept > 0 {
		return 0, ErrKept
	}
	n := min(s.room, len(all))
	s.room -= n
	if s.keeps && n < len(all) {
		s.kept = min(len(all)-n, 100)
		n += s.kept
	}
	s.got = append(s.got, all[:n]...)
	switch {
	case s.kept > 0:
		return n, ErrKept
	case n < len(all):
		return n, ErrWouldBlock
	}
	return n, nil
}

func (s *sink) Wake() { s.wakes++ }

// spoiler is a Holder that spoils what it held.
type spoiler struct {
	p        []byte
	released int
}

func (h *spoiler) Check() error { return nil }
func (h *spoiler) Release() {
	h.released++
	clear(h.p)
}

// told is a Follower.
type told struct {
	m    *model
	at   int   // in the order of Follow
	pos  int   // bytes that had been sent or queued, or lost, before it
	lost int64 // what was told; -1 before
}

func (f *told) Sent(lost int64) {
	if f.lost >= 0 {
		f.m.t.Error("told twice")
	}
	f.lost = lost
	if f.at != f.m.toldNext {
		f.m.t.Errorf("%d is told before %d", f.at, f.m.toldNext)
	}
	f.m.toldNext++
}

// model is a Box, and what it should have.
type model struct {
	t        *rapid.T
	b        Box
	s        sink
	carried  bool
	all      []byte // accepted
	lost     int64
	next     byte
	holders  []*spoiler
	marks    []*told
	toldNext int
	closed   bool
	owed     bool
}

func (m *model) bytes(name string) []byte {
	p := make([]byte, rapid.OneOf(rapid.IntRange(0, 300), rapid.IntRange(0, 70_000)).Draw(m.t, name))
	for i := range p {
		m.next++
		p[i] = m.next
	}
	return p
}

// waiting is what has been accepted by the Box and not by the sink.
func (m *model) waiting() int { return len(m.all) - len(m.s.got) }

// offer offers p, and checks what comes of it.
func (m *model) offer(limit int) {
	p := m.bytes("offered")
	k := rapid.IntRange(0, len(p)).Draw(m.t, "cut")
	a, b := bytes.Clone(p[:k]), bytes.Clone(p[k:])
	held := m.waiting()
	much, err := m.b.Offer(a, b, limit)
	clear(a)
	clear(b)
	switch {
	case m.s.err != nil && m.b.Err() != nil:
		if err == nil {
			m.t.Fatal("Offer to a carrier that has failed")
		}
		m.lost += int64(len(p)) - 0
	case m.closed:
		if !errors.Is(err, net.ErrClosed) {
			m.t.Fatal(err)
		}
	case Refused(held, len(p), limit):
		if err != ErrFull || !much {
			m.t.Fatalf("%d bytes to %d of %d: %v, %v", len(p), held, limit, much, err)
		}
		m.owed = true
	case err != nil:
		m.t.Fatalf("%d bytes to %d of %d: %v", len(p), held, limit, err)
	default:
		m.all = append(m.all, p...)
		if want := Much(m.waiting(), limit); much != want {
			m.t.Fatalf("%d of %d wait, much is %v", m.waiting(), limit, much)
		}
		m.owed = m.owed || much
	}
}

func (m *model) send(t *rapid.T) {
	if m.s.err != nil || m.closed {
		return
	}
	p := m.bytes("sent")
	w := &Write{A: p[:len(p)/2], B: p[len(p)/2:], Cork: rapid.Bool().Draw(t, "cork")}
	want := bytes.Clone(p)
	if rapid.Bool().Draw(t, "held") {
		h := &spoiler{p: p}
		m.holders = append(m.holders, h)
		w.Holder = h
	}
	var err error
	switch {
	case m.carried:
		err = m.b.SendCarried(w)
	case w.Cork && m.b.Join(w):
		Release(w.Holder)
	default:
		s := Of(w)
		_, err = m.b.Send(&s, 0, w.Cork && len(p) <= SmallWrite, nil, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	if w.Holder == nil {
		clear(p)
	}
	m.all = append(m.all, want...)
}

func (m *model) follow(*rapid.T) {
	f := &told{m: m, at: len(m.marks), pos: len(m.all), lost: -1}
	m.marks = append(m.marks, f)
	m.b.Follow(f)
}

// pull makes room and has it used.
func (m *model) pull(t *rapid.T) {
	m.s.room += rapid.OneOf(rapid.IntRange(0, 500), rapid.IntRange(0, 100_000)).Draw(t, "room")
	switch {
	case m.carried:
		for m.s.room > 0 && m.b.Carry() {
		}
	case rapid.Bool().Draw(t, "beside"):
		m.b.PullBeside()
	default:
		if err := m.b.Pull(false); err != nil && m.s.err == nil {
			t.Fatal(err)
		}
	}
}

// check is after each step.
func (m *model) check(t *rapid.T) {
	if !bytes.Equal(m.s.got, m.all[:len(m.s.got)]) {
		t.Fatal("other bytes were sent, or in another order")
	}
	if m.s.err != nil || m.closed {
		return
	}
	waiting, lost := m.b.Unsent()
	want := m.waiting()
	if want == 0 && m.s.kept > 0 {
		want = 1
	}
	if int(waiting) != want || lost != 0 || m.b.held != m.waiting() {
		t.Fatalf("%d wait, %d are held, %d lost; want %d", waiting, m.b.held, lost, want)
	}
	for _, f := range m.marks {
		past := f.pos <= len(m.s.got) && (m.s.kept == 0 || m.s.room > 0)
		if f.lost > 0 || f.lost == 0 && f.pos > len(m.s.got) || f.lost < 0 && past && m.waiting() == 0 && m.s.kept == 0 && !m.b.Waits() {
			t.Fatalf("a Follower at %d is told %d while %d are sent", f.pos, f.lost, len(m.s.got))
		}
	}
	if m.b.HasRoom() {
		if !m.owed || m.waiting() > LowWater {
			t.Fatalf("there is room, while %d wait", m.waiting())
		}
		m.owed = false
	} else if m.owed && m.waiting() == 0 && m.b.held < int(m.b.owed) {
		t.Fatal("the room is not reported")
	}
	if i := slices.IndexFunc(m.holders, func(h *spoiler) bool { return h.released > 1 }); i >= 0 {
		t.Fatal("released twice")
	}
}

// end ends the Box, and checks that nothing is left.
func (m *model) end() {
	m.b.Drop()
	for m.carried && m.b.Carry() {
	}
	for i, f := range m.marks {
		if f.lost < 0 {
			m.t.Fatalf("Follower %d is not told", i)
		}
	}
	for _, h := range m.holders {
		if h.released != 1 {
			m.t.Fatalf("a Holder is released %d times", h.released)
		}
	}
	if waiting, lost := m.b.Unsent(); waiting != 0 || m.s.err == nil && int(lost) != m.waiting() {
		m.t.Fatalf("%d wait, %d are lost, want %d", waiting, lost, m.waiting())
	}
	m.b.HasRoom() // or it stays until that is asked
	if m.b.queued != &nothing && m.b.err == nil && m.b.lost == 0 {
		m.t.Fatalf("an empty Box keeps %+v", *m.b.queued)
	}
	if !reflect.DeepEqual(nothing, queued{}) {
		m.t.Fatalf("what Boxes share has changed: %+v", nothing)
	}
}

// TestModel: any sequence of calls on either kind of Box.
func TestModel(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*model){
		"pulled": func(m *model) { m.b.Init(&m.s) },
		"layer":  func(m *model) { m.b.Init(&m.s); m.s.keeps = true },
		"carried": func(m *model) {
			m.b.InitCarried(&m.s)
			m.carried = true
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				m := &model{t: t}
				prepare(m)
				m.b.Share()
				t.Repeat(map[string]func(*rapid.T){
					"offer": func(t *rapid.T) {
						m.offer(rapid.SampledFrom([]int{HighWater, 2 * HighWater, 1 << 20, -1}).Draw(t, "limit"))
					},
					"send":   m.send,
					"follow": m.follow,
					"pull":   m.pull,
					"uncork": func(*rapid.T) { m.b.Uncork() },
					"fail": func(t *rapid.T) {
						if rapid.IntRange(0, 20).Draw(t, "fail") == 0 {
							m.s.err = net.ErrClosed
							m.b.Fail(m.s.err)
						}
					},
					"close": func(t *rapid.T) {
						if rapid.IntRange(0, 20).Draw(t, "close") == 0 {
							m.closed = true
							m.b.Close(true)
						}
					},
					"": m.check,
				})
				m.end()
			})
		})
	}
}
