package h2

import (
	"sync"
	"testing"

	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/bridge/section"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/outbox"
	"github.com/chert-http/chert/internal/tally"
)

// deadLink is a Link whose connection has ended.
type deadLink struct{ conn.Link }

func (deadLink) Out() *outbox.Box      { return nil }
func (deadLink) Tally() *tally.Shard   { return new(tally.Shard) }
func (deadLink) OnLoop() bool          { return false }
func (deadLink) Post(func() conn.Next) {}
func (deadLink) Now() int64            { return 1 }

type follower struct{ told []int64 }

func (f *follower) Sent(lost int64) { f.told = append(f.told, lost) }

func sessionOf(slots *loop.Semaphore) (*Session, *stream) {
	cfg := &bridge.Config{Slots: slots}
	s := &Session{cfg: &Config{Config: cfg}}
	s.Client.Config, s.Client.Link = cfg, deadLink{}
	st := &stream{exchange: new(exchange), s: s, id: 1, state: stateRunning}
	s.streams = append(s.streams, st)
	return s, st
}

// Who follows an answer is told of its end once, also if the connection has ended
// before the end of the answer's handler has been seen, or before it followed.
func TestFollowersOfAClosedConnection(t *testing.T) {
	t.Parallel()
	s, st := sessionOf(nil)
	before, after := new(follower), new(follower)
	st.keepRestLocked([]byte("kept"), nil)
	st.Stream().Follow(before)
	s.Closed(false)
	st.Stream().Follow(after)
	for _, f := range []*follower{before, after} {
		if len(f.told) != 1 || f.told[0] == 0 {
			t.Errorf("told %d", f.told)
		}
	}
}

// An answer that is cut off notifies its Follower of what was lost, also if the client has reset the stream between
// Unsent and Follow.
func TestFollowAfterReset(t *testing.T) {
	t.Parallel()
	s, st, _ := quiet()
	st.keepRestLocked([]byte("kept"), nil)
	if waiting, lost := st.Stream().Unsent(); waiting == 0 || lost != 0 {
		t.Fatalf("%d wait, %d are lost", waiting, lost)
	}
	s.mu.Lock()
	st.closeLocked(&resetError{StreamID: st.id})
	s.mu.Unlock()
	f := new(follower)
	if st.Stream().Follow(f); len(f.told) != 1 || f.told[0] != int64(len("kept")) {
		t.Errorf("told %d", f.told)
	}
	s.Closed(false)
}

// What has not been passed to the Link when the connection ends was not sent: of an answer that is whole in out, and of
// one of which more is to follow.
func TestDroppedFramesAreNotSent(t *testing.T) {
	t.Parallel()
	s, st, _ := quiet()
	f := new(follower)
	s.mu.Lock()
	s.putDataLocked(st, []byte("sent"), nil, 4, false)
	s.pass(nil)
	s.putDataLocked(st, []byte("dropped"), nil, 7, false)
	s.followers = append(s.followers, f)
	s.mu.Unlock()
	s.Closed(false)
	if st.sent != 4 {
		t.Errorf("%d bytes were sent", st.sent)
	}
	if len(f.told) != 1 || f.told[0] < 7 {
		t.Errorf("told %d", f.told)
	}
}

// The same with what the Link refuses.
func TestRefusedFramesAreNotSent(t *testing.T) {
	t.Parallel()
	s, st, l := quiet()
	l.Out().Close(true)
	s.mu.Lock()
	s.putDataLocked(st, []byte("refused"), nil, 7, false)
	s.pass(nil)
	if s.mu.Unlock(); s.over == nil || st.sent != 0 {
		t.Errorf("%v, %d bytes were sent", s.over, st.sent)
	}
	s.Closed(false)
}

// An answer that outlives its handler is not complete if its end was in what is dropped.
func TestDroppedEndIsNotComplete(t *testing.T) {
	t.Parallel()
	s, st, _ := quiet()
	told := make(delivered, 1)
	l := &lasting{offers: offers{st: st}, source: new(silent)}
	l.Pass(&s.Client, told)
	s.mu.Lock()
	st.lasting = l
	s.putDataLocked(st, []byte("dropped"), nil, 7, false)
	l.Given(7)
	l.endLocked()
	s.mu.Unlock()
	s.Closed(false)
	if d := <-told; d.Complete || d.Body != 0 {
		t.Errorf("%+v", d)
	}
}

type delivered chan wire.Delivery

func (c delivered) Keep()                {}
func (c delivered) Sent(d wire.Delivery) { c <- d }

// A connection that is ended by another goroutine while a slot is being acquired gives
// back no slot that it has not got.
func TestEndWhileASlotIsAcquired(t *testing.T) {
	t.Parallel()
	slots := loop.NewSemaphore(1, 1)
	slots.Acquire(nil) // another's
	s, st := sessionOf(slots)
	st.state = stateNew
	s.PeerGone(true)
	if st.acquire() {
		t.Error("there is a slot")
	}
	if s.Closed(false); slots.Acquire(nil) != loop.Queued {
		t.Error("a slot was given back")
	}
}

// A slot that a stream was given while its connection ended is given back.
func TestEndWhenASlotWasGiven(t *testing.T) {
	t.Parallel()
	slots := loop.NewSemaphore(1, 1)
	slots.Acquire(nil)
	s, st := sessionOf(slots)
	st.state = stateNew
	st.acquire()
	slots.Release() // Post does not come
	if s.Closed(false); slots.Acquire(nil) != loop.Admitted {
		t.Error("the slot was not given back")
	}
	if st.state != stateClosed {
		t.Error(st.state)
	}
}

// quietLink is a Link that accepts everything, at a time of the test's own.
type quietLink struct {
	conn.Link
	now    int64
	queued func()
	once   sync.Once
	out    outbox.Box
}

func (l *quietLink) Tally() *tally.Shard    { return new(tally.Shard) }
func (l *quietLink) OnLoop() bool           { return true }
func (l *quietLink) Now() int64             { return l.now }
func (l *quietLink) Send(*conn.Write) error { return nil }
func (l *quietLink) SetDeadline(int64)      {}
func (l *quietLink) Post(func() conn.Next)  {}

// Push and Wake implement outbox.Sink.
func (l *quietLink) Push(p, q []byte, _ bool) (int, error) {
	if l.queued != nil {
		l.queued()
	}
	return len(p) + len(q), nil
}

func (l *quietLink) Wake() {}

func (l *quietLink) Out() *outbox.Box {
	l.once.Do(func() { l.out.Init(l) })
	return &l.out
}

func quiet() (*Session, *stream, *quietLink) {
	s, st := sessionOf(nil)
	l := new(quietLink)
	s.Client.Link = l
	return s, st, l
}

// What follows an answer is handed on without another answer, also if it comes while
// another goroutine sends the answer's end.
func TestFollowWhileSending(t *testing.T) {
	t.Parallel()
	s, st, l := quiet()
	f := new(follower)
	l.queued = func() {
		s.mu.Lock()
		st.become(stateAnswered)
		s.mu.Unlock()
		if waiting, _ := st.Stream().Unsent(); waiting == 0 {
			t.Error("the answer does not wait")
		}
		st.Stream().Follow(f)
	}
	s.mu.Lock()
	s.roomLocked(1)
	s.out.B = append(s.out.B, 0)
	s.mu.Unlock()
	s.flush()
	if len(f.told) != 1 {
		t.Errorf("told %d times", len(f.told))
	}
	st.Stream().Follow(f)
	if len(f.told) != 2 {
		t.Errorf("told %d times afterwards", len(f.told))
	}
}

// A connection of which nothing is left does not end while another goroutine passes the
// last frames on, but soon after that.
func TestEndWhileSending(t *testing.T) {
	t.Parallel()
	s, st, l, _, _ := outliving(10)
	st.become(stateSending)
	st.closeLocked(nil)
	s.leaving = true
	l.queued = func() {
		if next := s.settle(conn.More); next != conn.More {
			t.Errorf("while sending: %d", next)
		}
	}
	s.mu.Lock()
	s.roomLocked(1)
	s.out.B = append(s.out.B, 0)
	s.mu.Unlock()
	s.flush()
	if l.posts != 1 {
		t.Errorf("%d posts", l.posts)
	}
	if next := s.settle(conn.More); next < conn.Close {
		t.Errorf("afterwards: %d", next)
	}
}

// Each answer has the whole of WriteStallTimeout, also one that begins to wait while
// another does.
func TestStallOfEachAnswer(t *testing.T) {
	t.Parallel()
	const stall = 1000
	s, a, l := quiet()
	section.InitBudgets(&s.resets, &s.useless, false, 0)
	s.cfg.Shared.Limits.WriteStall = stall
	b := &stream{exchange: new(exchange), s: s, id: 3, state: stateRunning}
	s.streams = append(s.streams, b)
	wait := func(st *stream) {
		s.mu.Lock()
		st.become(stateSending)
		st.keepRestLocked([]byte("kept"), nil)
		st.endLocked(nil, false)
		s.mu.Unlock()
		s.settle(conn.More)
	}
	for _, step := range []struct {
		at   int64
		do   func()
		a, b bool // whether they are still there
	}{
		{1, func() { wait(a) }, true, true},
		{stall - 1, func() { wait(b) }, true, true},
		{1 + stall, func() { s.Expired() }, false, true},
		{1 + 2*stall, func() { s.Expired() }, false, false},
	} {
		l.now = step.at
		step.do()
		if ok := s.streamLocked(1) != nil; ok != step.a {
			t.Errorf("at %d: the first: %t", step.at, ok)
		}
		if ok := s.streamLocked(3) != nil; ok != step.b {
			t.Errorf("at %d: the second: %t", step.at, ok)
		}
	}
}
