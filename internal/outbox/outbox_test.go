package outbox

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/chert-http/chert/internal/testing/servertest"
)

func TestMain(m *testing.M) { servertest.Main(m, servertest.UseTCP) }

// The rule of Offer, which all carriers share.
func TestRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		why            string
		held, n, limit int
		refused, much  bool
	}{
		{"nothing waits", 0, 1 << 30, HighWater, false, false},
		{"an event of 60 KiB after one of 10", 10 << 10, 60 << 10, HighWater, false, false},
		{"half waits", LowWater, HighWater, HighWater, false, false},
		{"more than half waits", LowWater + 1, HighWater, HighWater, true, true},
		{"and it fits", LowWater + 1, LowWater - 1, HighWater, false, true},
		{"full", HighWater, 1, HighWater, true, true},
		{"full, and nothing comes", HighWater, 0, HighWater, false, true},
		{"no limit", 1 << 40, 1 << 40, -1, false, false},
	} {
		if r, m := Refused(tt.held, tt.n, tt.limit), Much(tt.held, tt.limit); r != tt.refused || m != tt.much {
			t.Errorf("%s: refused %v, much %v", tt.why, r, m)
		}
	}
}

// full is a Sink that accepts nothing until it is opened.
type full struct {
	mu    sync.Mutex
	open  bool
	got   bytes.Buffer
	wakes chan bool
}

func (s *full) Push(p, q []byte, _ bool) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open {
		return 0, ErrWouldBlock
	}
	s.got.Write(p)
	s.got.Write(q)
	return len(p) + len(q), nil
}

func (s *full) Wake() {
	select {
	case s.wakes <- true:
	default:
	}
}

// locked is a Sink that accepts nothing, and calls a function meanwhile, once.
type locked struct {
	full
	meanwhile func()
}

func (s *locked) Push(p, q []byte, more bool) (int, error) {
	if f := s.meanwhile; f != nil {
		s.meanwhile = nil
		f()
	}
	return s.full.Push(p, q, more)
}

// An event that finds the lock held, by a goroutine that has met the full Sink before it, is
// passed on when the lock is released.
func TestMissed(t *testing.T) {
	t.Parallel()
	s := &locked{full: full{wakes: make(chan bool, 10)}}
	var b Box
	b.Init(s)
	b.Share()
	b.Offer([]byte("a"), nil, -1)
	<-s.wakes // since it has to wait
	s.meanwhile = func() {
		done := make(chan bool)
		go func() {
			b.PullBeside()
			b.Accepted()
			close(done)
		}()
		servertest.Await(t, done, "PullBeside waits for the lock")
	}
	b.Pull(false)
	servertest.Await(t, s.wakes, "the event is lost")
	b.Drop()
}

// The loop asks whether others send while an owner beside it says so.
func TestShareBeside(t *testing.T) {
	t.Parallel()
	var b Box
	b.Init(new(null))
	shared := make(chan bool)
	go func() {
		for !b.Shared() {
			runtime.Gosched()
		}
		close(shared)
	}()
	b.Share()
	servertest.Await(t, shared, "Share is not seen")
}

// A Holder may end the goroutine that calls Check.
type exiting struct{ released chan bool }

func (h exiting) Check() error { runtime.Goexit(); return nil }
func (h exiting) Release()     { close(h.released) }

func TestCarryExit(t *testing.T) {
	t.Parallel()
	s := &full{open: true, wakes: make(chan bool, 1)}
	var b Box
	b.InitCarried(s)
	h := exiting{make(chan bool)}
	w := &Write{A: []byte("head"), File: testFile(t, 3*CopySize), Len: 3 * CopySize, Holder: h}
	if err := b.SendCarried(w); err != nil {
		t.Fatal(err)
	}
	go func() {
		for b.Carry() {
		}
	}()
	servertest.Await(t, h.released, "Release")
	if err := b.Carried(); err == nil || b.Waits() {
		t.Error("it goes on", err)
	}
}

// ends is a Follower that ends its goroutine, as t.FailNow does in the user's.
type ends struct{}

func (ends) Sent(int64) { runtime.Goexit() }

// holds is a Holder that notes its release.
type holds struct{ released chan bool }

func (h holds) Check() error { return nil }
func (h holds) Release()     { close(h.released) }

// A Follower that ends its goroutine leaves the Box and the other Followers as they were.
func TestFollowerExits(t *testing.T) {
	t.Parallel()
	for _, carried := range []bool{false, true} {
		s := &full{open: true, wakes: make(chan bool, 10)}
		var b Box
		if carried {
			b.InitCarried(s)
		} else {
			s.open = false
			b.Init(s)
			b.Share()
		}
		told, h := make(once, 3), holds{make(chan bool)}
		b.Offer(bytes.Repeat([]byte("a"), 5000), nil, -1)
		b.Follow(told)
		b.Follow(ends{})
		b.Follow(told)
		b.Offer(bytes.Repeat([]byte("b"), 5000), nil, -1)
		b.Follow(told)
		w := &Write{A: []byte("held"), Holder: h}
		if carried {
			if err := b.SendCarried(w); err != nil {
				t.Fatal(err)
			}
		} else {
			seg := Of(w)
			b.Send(&seg, 0, true, nil, false)
			s.mu.Lock()
			s.open = true
			s.mu.Unlock()
		}
		work := func() {
			if !carried {
				b.Pull(false)
			}
			for carried && b.Carry() {
			}
		}
		for range 2 { // the first is ended
			if carried {
				servertest.Await(t, s.wakes, "Wake")
			}
			done := make(chan bool)
			go func() {
				defer close(done)
				work()
			}()
			servertest.Await(t, done, "the goroutine")
		}
		for range 3 {
			if lost := servertest.Await(t, told, "the Follower"); lost != 0 {
				t.Errorf("carried %v: %d are lost", carried, lost)
			}
		}
		servertest.Await(t, h.released, "Release")
		if b.Waits() || s.got.Len() != 10_004 {
			t.Errorf("carried %v: %d bytes were sent", carried, s.got.Len())
		}
		if carried {
			b.Carried()
		}
	}
}

// slow is a Follower that takes its time.
type slow struct{ in, leave chan bool }

func (f slow) Sent(int64) {
	close(f.in)
	<-f.leave
}

// What is held is released when it was sent, whatever a Follower does meanwhile.
func TestHoldersDoNotWait(t *testing.T) {
	t.Parallel()
	s := &full{wakes: make(chan bool, 10)}
	var b Box
	b.Init(s)
	b.Share()
	b.Offer([]byte("a"), nil, -1)
	f, h := slow{make(chan bool), make(chan bool)}, holds{make(chan bool)}
	b.Follow(f)
	s.mu.Lock()
	s.open = true
	s.mu.Unlock()
	done := make(chan bool)
	go func() {
		b.Pull(false)
		close(done)
	}()
	servertest.Await(t, f.in, "Sent")
	s.mu.Lock()
	s.open = false
	s.mu.Unlock()
	seg := Of(&Write{A: make([]byte, SmallWrite+1), Holder: h})
	b.Send(&seg, 0, false, nil, false)
	b.Drop()
	servertest.Await(t, h.released, "Release")
	close(f.leave)
	servertest.Await(t, done, "Pull")
}

// testFile has n bytes.
func testFile(t testing.TB, n int) *os.File {
	t.Helper()
	p := make([]byte, n)
	for i := range n / 8 {
		binary.BigEndian.PutUint64(p[8*i:], uint64(i))
	}
	return servertest.File(t, p)
}

// files is a FileSink that notes which parts it gets.
type files struct {
	full
	parts []int64
	err   error
}

func (s *files) PushFile(f *os.File, offset, n int64) (int64, error) {
	if s.err != nil {
		return 0, s.err
	}
	n = min(n, 1<<20)
	s.parts = append(s.parts, n)
	_, err := io.Copy(&s.got, io.NewSectionReader(f, offset, n))
	return n, err
}

type checks struct{ n, released int }

func (h *checks) Check() error { h.n++; return nil }
func (h *checks) Release()     { h.released++ }

// Files go out in turns, and their holders are asked in between.
func TestFiles(t *testing.T) {
	t.Parallel()
	const size = 5 << 20
	f := testFile(t, size)
	want, _ := io.ReadAll(io.NewSectionReader(f, 0, size))
	for _, tt := range []struct {
		why   string
		err   error
		turns int
	}{{"sendfile", nil, size/FileTurn + 1}, {"no sendfile", ErrCopy, size/copyTurn + 1}} {
		for _, carried := range []bool{false, true} {
			s := &files{full: full{open: true, wakes: make(chan bool, 1)}, err: tt.err}
			var b Box
			h := new(checks)
			w := &Write{A: []byte("head"), File: f, Len: size, Holder: h}
			if carried {
				b.InitCarried(s)
				if err := b.Through(w); err != nil {
					t.Fatal(err)
				}
			} else {
				b.Init(s)
				seg := Of(w)
				_, err := b.Send(&seg, 0, false, nil, false)
				for ; err == nil && b.Waits(); err = b.Pull(false) {
					if file, check := b.FileNext(); b.Stalled() || !b.Blocked() || !file || check != h {
						t.Error("it is not a turn that is over")
					}
					h.Check()
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if got := s.got.Bytes(); !bytes.Equal(got[:4], w.A) || !bytes.Equal(got[4:], want) {
				t.Errorf("%s: %d bytes, or others", tt.why, len(got))
			}
			if h.released != 1 || h.n < tt.turns/2 || h.n > tt.turns {
				t.Errorf("%s: %d checks, released %d times", tt.why, h.n, h.released)
			}
		}
	}
}

// A file that has become shorter is an error.
func TestFileShrinks(t *testing.T) {
	t.Parallel()
	s := &full{open: true, wakes: make(chan bool, 1)}
	var b Box
	b.InitCarried(s)
	err := b.Through(&Write{File: testFile(t, 100), Len: 101, Holder: new(checks)})
	if _, lost := b.Unsent(); err != io.ErrUnexpectedEOF || lost != 1 || s.got.Len() != 100 {
		t.Error(err, lost, s.got.Len())
	}
}

// Frames of a few bytes share a Segment: each would cost a hundred times its size, and a
// call of its own.
func TestJoins(t *testing.T) {
	t.Parallel()
	for _, carried := range []bool{false, true} {
		var b Box
		if s := (&full{wakes: make(chan bool, 1)}); carried {
			b.InitCarried(s)
		} else {
			b.Init(s)
		}
		for range 10_000 {
			b.Offer([]byte("a"), []byte("b"), -1)
		}
		if n := len(b.segments); n != 1 || b.held != 20_000 {
			t.Errorf("%d bytes in %d segments", b.held, n)
		}
		b.Drop()
	}
}

// Followers do not make each of a few bytes a Segment of its own.
func TestFollowersJoin(t *testing.T) {
	t.Parallel()
	for _, carried := range []bool{false, true} {
		var b Box
		if s := (&full{wakes: make(chan bool, 1)}); carried {
			b.InitCarried(s)
		} else {
			b.Init(s)
		}
		told := make(once, 10_000)
		for range 10_000 {
			b.Offer([]byte("a"), []byte("b"), -1)
			b.Follow(told)
		}
		if n := len(b.segments); n > 20_000/readSize+1 || b.held != 20_000 {
			t.Errorf("%d bytes in %d segments", b.held, n)
		}
		b.Drop()
		if len(told) != 10_000 {
			t.Errorf("%d Followers were told", len(told))
		}
	}
}

// keeps is a Sink that accepts everything and sends nothing, as a layer of TLS does whose record waits.
type keeps struct{ *full }

func (keeps) Push(p, q []byte, _ bool) (int, error) { return len(p) + len(q), ErrKept }

// What the Sink itself has to send needs one place in the queue, however often a peer asks for it.
func TestNudges(t *testing.T) {
	t.Parallel()
	var b Box
	b.Init(keeps{&full{wakes: make(chan bool, 1)}})
	b.Share()
	b.Offer([]byte("a"), nil, -1)
	for range 1000 {
		if !b.Nudge(false) {
			t.Fatal("nothing is unsent")
		}
	}
	if n := len(b.segments); n > 2 {
		t.Errorf("%d segments", n)
	}
	b.Drop()
}

// What the Sink has kept is unsent, and its Follower is told whether it was sent.
func TestKept(t *testing.T) {
	t.Parallel()
	for _, sent := range []bool{true, false} {
		var b Box
		s := &keepsOnce{}
		b.Init(s)
		b.Offer([]byte("abc"), nil, -1)
		if waiting, lost := b.Unsent(); waiting == 0 || lost != 0 {
			t.Errorf("%d bytes wait and %d are lost", waiting, lost)
		}
		f := make(once, 1)
		b.Follow(f)
		if len(f) > 0 {
			t.Error("told before it is known")
		}
		if sent {
			b.Pull(true)
		} else {
			b.Drop()
		}
		if lost := <-f; (lost == 0) != sent {
			t.Errorf("sent %v: %d bytes are lost", sent, lost)
		}
		if waiting, _ := b.Unsent(); waiting != 0 {
			t.Errorf("sent %v: %d bytes wait in the end", sent, waiting)
		}
	}
}

// keepsOnce is a Sink that keeps what it first accepts until it is called again.
type keepsOnce struct{ called bool }

func (s *keepsOnce) Push(p, q []byte, _ bool) (int, error) {
	if s.called = !s.called; s.called {
		return len(p) + len(q), ErrKept
	}
	return len(p) + len(q), nil
}

func (*keepsOnce) Wake() {}

// once is a Follower.
type once chan int64

func (f once) Sent(lost int64) { f <- lost }

// Many goroutines offer while another sends, on either kind of Box.
func TestStress(t *testing.T) {
	t.Parallel()
	for _, carried := range []bool{false, true} {
		const producers, pieces = 8, 400
		r, w := io.Pipe()
		s := &piped{w: w, pull: make(chan bool, 1)}
		var b Box
		if s.b = &b; carried {
			b.InitCarried(s)
		} else {
			b.Init(s)
		}
		b.Share()
		s.carried = carried
		var all sync.WaitGroup
		stop := make(chan bool)
		for id := range producers {
			all.Go(func() {
				for i := range pieces {
					p := binary.BigEndian.AppendUint32(nil, uint32(1+i*7%900))
					p = binary.BigEndian.AppendUint32(p, uint32(id))
					p = binary.BigEndian.AppendUint32(p, uint32(i))
					for {
						if _, err := b.Offer(p, make([]byte, i*7%900), 4<<10); err == nil {
							break
						} else if err != ErrFull {
							t.Error(err)
							return
						}
						f := make(once, 1)
						b.Follow(f)
						<-f
					}
				}
			})
		}
		if !carried {
			go func() { // its loop
				for {
					select {
					case <-s.pull:
						b.PullBeside()
					case <-stop:
						return
					}
				}
			}()
		}
		read := make(chan bool)
		go func() {
			defer close(read)
			next := make([]uint32, producers)
			head := make([]byte, 12)
			for range producers * pieces {
				if _, err := io.ReadFull(r, head); err != nil {
					t.Error(err)
					return
				}
				n, id, i := binary.BigEndian.Uint32(head), binary.BigEndian.Uint32(head[4:]), binary.BigEndian.Uint32(head[8:])
				if id >= producers || i != next[id] {
					t.Errorf("piece %d of %d", i, id)
					return
				}
				next[id]++
				io.CopyN(io.Discard, r, int64(n-1))
			}
		}()
		all.Wait()
		servertest.Await(t, read, "all pieces")
		if carried {
			b.Carried()
		}
		close(stop)
	}
}

// piped is a Sink of either kind: one that waits, or one that accepts a little at a time,
// and tells its loop when it accepts more.
type piped struct {
	w       *io.PipeWriter
	b       *Box
	pull    chan bool
	carried bool
	n       int
}

func (s *piped) Push(p, q []byte, _ bool) (int, error) {
	if s.carried {
		n, err := s.w.Write(p[:min(len(p), 1000)])
		return n, err
	}
	if s.n++; s.n%3 == 0 {
		s.event()
		return 0, ErrWouldBlock
	}
	k := min(len(p), 500)
	return s.w.Write(p[:k])
}

func (s *piped) event() {
	select {
	case s.pull <- true:
	default:
	}
}

func (s *piped) Wake() {
	if !s.carried {
		s.event()
		return
	}
	go func() {
		for s.b.Carry() {
		}
	}()
}

// What is sent at once allocates nothing, and what waits only its buffers.
func TestAllocations(t *testing.T) {
	s := &null{}
	var b Box
	b.Init(s)
	b.Share()
	p, q := []byte("head"), make([]byte, 1000)
	for _, tt := range []struct {
		name string
		max  float64
		f    func()
	}{
		{"Offer", 0, func() { b.Offer(p, q, HighWater) }},
		{"a lone Segment", 0, func() {
			seg := Of(&Write{A: p, B: q})
			seg.Push(s, false, true)
		}},
		{"waiting", 1, func() {
			s.full = true
			b.Offer(p, q, -1)
			b.Offer(p, q, -1)
			b.Offer(p, q, -1)
			s.full = false
			b.Pull(true)
		}},
	} {
		tt.f()
		if n := testing.AllocsPerRun(100, tt.f); n > tt.max {
			t.Errorf("%s: %v allocations", tt.name, n)
		}
	}
	if b.Waits() {
		t.Error("something is left")
	}
}

type null struct{ full bool }

func (s *null) Wake() {}
func (s *null) Push(p, q []byte, _ bool) (int, error) {
	if s.full {
		return 0, ErrWouldBlock
	}
	return len(p) + len(q), nil
}

func BenchmarkOffer(b *testing.B) {
	var box Box
	box.Init(new(null))
	box.Share()
	p, q := []byte("head"), make([]byte, 100)
	b.ReportAllocs()
	for b.Loop() {
		box.Offer(p, q, HighWater)
	}
}

// A push that makes no progress is cut, and one that does is not.
func TestClock(t *testing.T) {
	t.Parallel()
	cut := make(chan bool, 1)
	c := &Clock{After: 20 * time.Millisecond, Cut: func() { cut <- true }}
	c.Progress()
	servertest.Await(t, cut, "Cut")
	c.Done()
	c.End()
	never := &Clock{Cut: func() { t.Error("cut") }}
	never.Progress()
	never.Done()
	never.End()
	if never.timer != nil {
		t.Error("a timer of a clock that does not run")
	}
}

// A push that begins long after the last one is cut as the first would be.
func TestClockAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var cuts []time.Duration
		begun := time.Now()
		c := &Clock{After: time.Minute, Cut: func() { cuts = append(cuts, time.Since(begun)) }}
		for range 2 {
			c.Progress()
			c.Done()
			time.Sleep(time.Hour)
		}
		c.Progress()
		time.Sleep(time.Minute - 1)
		c.Progress()
		time.Sleep(time.Minute)
		synctest.Wait()
		c.Done()
		c.End()
		if want := []time.Duration{2*time.Hour + 2*time.Minute - 1}; !slices.Equal(cuts, want) {
			t.Errorf("cut after %v, want %v", cuts, want)
		}
	})
}

// An idle connection that others send on keeps a Box.
func TestBoxSize(t *testing.T) {
	t.Parallel()
	if n := unsafe.Sizeof(Box{}); n > 40 {
		t.Errorf("%d bytes", n)
	}
}
