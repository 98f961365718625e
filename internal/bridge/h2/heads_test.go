package h2

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/http2"
	"github.com/chert-http/chert/internal/outbox"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// roomLink is a countingLink whose peer accepts room bytes.
type roomLink struct {
	countingLink
	once sync.Once
	out  outbox.Box
	mu   sync.Mutex
	room int
	got  []byte
}

func (l *roomLink) OnLoop() bool { return false }
func (l *roomLink) Out() *outbox.Box {
	l.once.Do(func() { l.out.Init(l) })
	return &l.out
}

// Push implements outbox.Sink.
func (l *roomLink) Push(p, q []byte, _ bool) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	have := len(l.got)
	l.got = append(append(l.got, p...), q...)
	if len(l.got) > l.room {
		l.got = l.got[:max(l.room, have)]
		return len(l.got) - have, outbox.ErrWouldBlock
	}
	return len(l.got) - have, nil
}

// accept has the peer accept n bytes more.
func (l *roomLink) accept(n int) {
	l.mu.Lock()
	l.room = len(l.got) + n
	l.mu.Unlock()
	l.Out().Pull(false)
}

func (l *roomLink) unsent() int {
	n, _ := l.Out().Unsent()
	return int(n)
}

// A client that reads nothing has about 100 KiB kept for all of its streams, whatever the
// header blocks of their answers have. It gets all of them when it reads.
func TestHeadsWaitForRoom(t *testing.T) {
	t.Parallel()
	const streams, size, queue = 100, 64 << 10, 64 << 10 // more than that is full
	block := []byte(strings.Repeat("x", size))
	var made atomic.Int32 // blocks of fields
	for _, tt := range []struct {
		name string
		send func(st *stream) error
		data int
	}{
		{"the answer", func(st *stream) error { return st.commit(block, nil, nil, true, nil) }, 0},
		{"flushed", func(st *stream) error {
			if err := st.commit(block, nil, nil, false, nil); err != nil {
				return err
			}
			return st.commit(nil, []byte("y"), nil, true, nil)
		}, 1},
		{"fields", func(st *stream) error {
			st.Begin()
			defer st.End()
			st.writing.Status, st.writing.Length = 200, -1
			st.Head(200, map[string][]string{"X": {strings.Repeat("~", size)}})
			made.Add(1)
			st.Complete(nil)
			st.Finish(nil, false)
			return st.writing.Err
		}, 0},
		{"interim", func(st *stream) error {
			h := map[string][]string{"Link": {strings.Repeat("~", size)}}
			if err := st.Interim(103, h); err != nil {
				return err
			}
			return st.commit([]byte("x"), nil, nil, true, nil)
		}, 0},
		{"trailers", func(st *stream) error {
			tail := buf.Get(size)
			tail.B = append(tail.B, block...)
			return st.commit([]byte("x"), nil, []byte("y"), true, tail)
		}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, _, _ := quiet()
			l := new(roomLink)
			l.shard.Init(nil)
			s.Client.Link = l
			s.sendWindow = streams // of DATA: a byte each
			s.streams = nil
			ended := func() (n int) {
				for _, st := range s.streams {
					if st.state == stateAnswered {
						n++
					}
				}
				return n
			}
			settled := func(n int) {
				servertest.Eventually(t, "handlers that wait", func() bool {
					s.mu.Lock()
					defer s.mu.Unlock()
					return len(s.unsent)+ended() == n
				})
			}
			var wg sync.WaitGroup
			for i := range uint32(streams) {
				st := &stream{exchange: new(exchange), s: s, id: 2*i + 1, state: stateRunning, sendWindow: 1}
				s.mu.Lock()
				s.streams = append(s.streams, st)
				s.mu.Unlock()
				wg.Go(func() {
					if err := tt.send(st); err != nil {
						t.Errorf("%d: %v", st.id, err)
					}
				})
				// All that begin at once make their blocks before one of them waits, however
				// many the scheduler lets begin: so each begins alone until one waits.
				if tt.name == "fields" && s.heads.Load() == 0 {
					settled(int(i) + 1)
				}
			}
			settled(streams)
			s.mu.Lock()
			waiting := l.unsent()
			if s.out != nil {
				waiting += len(s.out.B)
			}
			if tt.name == "fields" { // and few blocks are made for those who wait
				waiting += size * (int(made.Load()) - ended())
			}
			s.mu.Unlock()
			if most := queue + maxOut + 2*(size+1024) + streams*64; waiting > most {
				t.Errorf("%d KiB are kept, %d at most", waiting>>10, most>>10)
			}
			// The client reads.
			servertest.Eventually(t, "the answers", func() bool {
				l.accept(4 * size)
				s.Writable()
				s.mu.Lock()
				defer s.mu.Unlock()
				return ended() == streams && (s.out == nil || len(s.out.B) == 0) && l.unsent() == 0
			})
			wg.Wait()
			blocks, data, ends := 0, 0, map[uint32]bool{}
			for b := l.got; len(b) > 0; {
				h := http2.ParseHeader(b)
				b = b[http2.HeaderLen+int(h.Length):]
				switch h.Type {
				case http2.FrameHeaders, http2.FrameContinuation:
					blocks += int(h.Length)
				case http2.FrameData:
					data += int(h.Length)
				}
				if h.Type != http2.FrameContinuation && h.Has(http2.FlagEndStream) {
					if ends[h.Stream] {
						t.Errorf("%d ends twice", h.Stream)
					}
					ends[h.Stream] = true
				}
			}
			if len(ends) != streams || blocks < streams*size || data != streams*tt.data {
				t.Errorf("%d streams have ended, with %d bytes of header blocks and %d of DATA", len(ends), blocks, data)
			}
		})
	}
}

// Who has waited for room and does not use it at once, or at all, lets the next one go on.
func TestHeadsPassTheTurnOn(t *testing.T) {
	t.Parallel()
	large := map[string][]string{"X": {strings.Repeat("~", 3*maxRest)}}
	for _, tt := range []struct {
		name string
		wait func(st *stream)
		over bool // its deadline passes meanwhile
	}{
		{"a handler before its answer", func(st *stream) { st.spare(large) }, false},
		{"a handler whose time is over before its answer", func(st *stream) { st.spare(large) }, true},
		{"an interim answer that is too late", func(st *stream) { st.Interim(103, nil) }, true},
	} {
		s, _, _ := quiet()
		l := new(roomLink)
		l.shard.Init(nil)
		s.Client.Link = l
		l.Out().Offer(make([]byte, outbox.QueueLimit), nil, -1)
		s.streams = nil
		s.mu.Lock()
		s.roomLocked(maxOut)
		s.out.B = append(s.out.B, make([]byte, maxOut)...)
		s.mu.Unlock()
		var ended [3]chan bool
		for i, wait := range []func(st *stream){
			func(st *stream) { st.commit(make([]byte, maxRest+1), nil, nil, true, nil) },
			tt.wait,
			func(st *stream) { st.commit(make([]byte, maxRest+1), nil, nil, true, nil) },
		} {
			st := &stream{exchange: new(exchange), s: s, id: uint32(2*i + 1), state: stateRunning}
			s.mu.Lock()
			s.streams = append(s.streams, st)
			s.mu.Unlock()
			ended[i] = make(chan bool)
			go func() {
				wait(st)
				close(ended[i])
			}()
			servertest.Eventually(t, "it waits", func() bool {
				s.mu.Lock()
				defer s.mu.Unlock()
				return len(s.unsent) == i+1
			})
		}
		s.mu.Lock()
		if tt.over {
			s.streamLocked(3).writeBy = 1
		}
		s.mu.Unlock()
		l.accept(1 << 20)
		s.Writable()
		for i := range ended {
			servertest.Await(t, ended[i], tt.name)
		}
		s.Writable()
	}
}
