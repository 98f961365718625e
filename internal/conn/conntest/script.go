package conntest

import (
	"bytes"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/exec"
	"github.com/chert-http/chert/internal/outbox"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// script is a Session whose requests are lines. It checks that its methods run one
// after another.
type script struct {
	conn.Link
	t testing.TB
	// line is called in Data for each line, or only for one that is the same as this; others are echoed.
	line server
	only string
	// The rest is what the methods of the same name do; nil is nothing, or the end.
	onEOF, onExpired, onWritable func(s *script) conn.Next
	onDrain                      func(s *script, since int64) conn.Next
	onGone                       func(reset bool)

	owner  *atomic.Int32    // shared by sessions that follow each other on a Link
	first  func() conn.Next // what the next call of Data begins with, once; nil is nothing
	paused bool             // Data consumes nothing
	waits  bool             // Data has returned Wait, and neither it nor Expired is to be called
	called bool             // Data was called, on a loop if home
	home   bool
	away   bool  // and is to be called on a goroutine that may block
	opened int64 // before the link, of sys.Nanotime
	shared bool  // Share was called, so Writable may be
	layer  bool  // the link has one

	expired, writables, drains, closes atomic.Int32
	closed                             chan bool // gets hijacked, once
}

// A server serves a line.
type server func(s *script, line string) conn.Next

// inUser has f run as user code: on a goroutine that does not drive a loop, or where Data is called.
func inUser(pooled bool, f server) server {
	return func(s *script, line string) conn.Next {
		return s.either(pooled, func() conn.Next { return f(s, line) })
	}
}

// beside has f run beside the session, on a link that is shared.
func beside(f func(s *script)) server {
	return func(s *script, _ string) conn.Next {
		s.Share()
		s.start(func() { f(s) }, nil)
		return conn.More
	}
}

func (s *script) init(t testing.TB) {
	s.t = t
	if s.owner == nil {
		s.owner = new(atomic.Int32)
	}
	s.closed, s.opened = make(chan bool, 1), sys.Nanotime()
}

// On implements Session.
func (s *script) On(l conn.Link) { s.Link = l }

// Share is the Link's, which calls Writable only then.
func (s *script) Share() {
	s.shared = true
	s.Link.Share()
}

// shareIf is Share for cases on links of both kinds.
func (s *script) shareIf(shared bool) {
	if shared {
		s.Share()
	}
}

// ended checks that the connection has ended, once.
func (s *script) ended() {
	s.t.Helper()
	servertest.Eventually(s.t, "the session is closed", func() bool { return s.closes.Load() > 0 })
	if n := s.closes.Load(); n != 1 {
		s.t.Errorf("Closed was called %d times", n)
	}
}

// isClosed waits until the session is closed, and checks that its connection was not hijacked.
func (s *script) isClosed() {
	s.t.Helper()
	if servertest.Await(s.t, s.closed, "Closed") {
		s.t.Error("hijacked")
	}
}

// isHijacked waits until the session is closed, and checks that its connection was hijacked.
func (s *script) isHijacked() {
	s.t.Helper()
	if !servertest.Await(s.t, s.closed, "Closed") {
		s.t.Error("closed, and not hijacked")
	}
}

// enter and leave are around everything that only the owner may do.
func (s *script) enter(who string) {
	if !s.owner.CompareAndSwap(0, 1) {
		s.t.Errorf("%s beside another method", who)
	}
}

func (s *script) leave() { s.owner.Store(0) }

// Data implements conn.Session.
func (s *script) Data(eof bool) (next conn.Next) {
	s.enter("Data")
	if s.waits {
		s.t.Error("Data while it waits")
	}
	if on := s.OnLoop(); !s.called {
		s.called, s.home = true, on
	} else if on != (s.home && !s.away) {
		s.t.Errorf("Data is on a loop: %v", on)
	}
	s.away = false
	owner := s.owner
	defer func() {
		if next != conn.Lost {
			s.goes(next)
			owner.Store(0)
		}
	}()
	if first := s.first; first != nil {
		s.first = nil
		if next := first(); next != conn.More {
			return next
		} else if s.Out().Blocked() {
			return conn.Requeue
		}
	}
	for {
		if s.paused {
			return conn.More
		}
		b := s.Buffered()
		i := bytes.IndexByte(b, '\n')
		switch {
		case i >= 0:
		case eof && s.onEOF != nil:
			return s.onEOF(s)
		case eof:
			return conn.Close
		default:
			return conn.More
		}
		line := string(b[:i])
		s.Discard(i + 1)
		switch next = s.serveLine(line); {
		case next != conn.More:
			return next
		case s.Out().Blocked() && len(s.Buffered()) > 0:
			return conn.Requeue
		}
	}
}

// goes records that Data is to be called on a goroutine that may block, if next says so.
func (s *script) goes(next conn.Next) {
	if next == conn.Elsewhere { // otherwise the caller may be no owner any more, after Goexit
		s.away = true
	}
}

func (s *script) serveLine(line string) conn.Next {
	if s.line == nil || s.only != "" && s.only != line {
		return s.send(line + "\n")
	}
	return s.line(s, line)
}

// waits is a server whose line waits for release, which held announces.
func waits(held chan<- bool) server {
	return func(s *script, line string) conn.Next {
		s.first = func() conn.Next { return s.send(line + "\n") }
		s.waits = true
		if held != nil {
			held <- true
		}
		return conn.Wait
	}
}

// release has the line served that waits, and others.
func (s *script) release() { s.post(func() conn.Next { s.waits = false; return conn.Requeue }) }

// send is Send of what may wait for the next answer.
func (s *script) send(text string) conn.Next {
	return s.give(&conn.Write{A: []byte(text), Cork: len(s.Buffered()) > 0})
}

// give is Send, after which the link goes on unless it has failed.
func (s *script) give(w *conn.Write) conn.Next { return unless(s.Send(w)) }

func unless(err error) conn.Next {
	if err != nil {
		return conn.Close
	}
	return conn.More
}

// user runs user code here: on the loop, if it is one.
func (s *script) user(f func() conn.Next) conn.Next {
	next := conn.Close
	s.Do(userCode(func() { next = f() }))
	return next
}

// userCode must not panic.
type userCode func()

func (c userCode) Run() { c() }

func (c userCode) Ended(e exec.End) {
	if v, ok := e.Panic(); ok {
		panic(v)
	}
}

// pool runs user code on a goroutine that does not drive a loop.
func (s *script) pool(f func() conn.Next) conn.Next {
	s.first = func() conn.Next { return s.user(f) }
	return conn.Elsewhere
}

// either is user or pool.
func (s *script) either(pooled bool, f func() conn.Next) conn.Next {
	if pooled {
		return s.pool(f)
	}
	return s.user(f)
}

// at is user, pool, or f itself, in "data".
func (s *script) at(where string, f func() conn.Next) conn.Next {
	if where == "data" {
		return f()
	}
	return s.either(where == "pool", f)
}

// post is Post of what checks as a method does.
func (s *script) post(f func() conn.Next) {
	s.Post(func() conn.Next {
		s.enter("a posted function")
		defer s.leave()
		next := f()
		s.goes(next)
		return next
	})
}

// Writable implements conn.Session.
func (s *script) Writable() conn.Next {
	s.enter("Writable")
	defer s.leave()
	s.writables.Add(1)
	switch {
	case s.onWritable != nil:
		return s.onWritable(s)
	case !s.shared:
		s.t.Error("Writable was not to be called")
	}
	return conn.More
}

// Expired implements conn.Session.
func (s *script) Expired() conn.Next {
	s.enter("Expired")
	defer s.leave()
	if s.expired.Add(1); s.waits {
		s.t.Error("Expired while it waits")
	}
	if s.onExpired == nil {
		s.t.Error("Expired was not to be called")
		return conn.Close
	}
	return s.onExpired(s)
}

// Drain implements conn.Session.
func (s *script) Drain(since int64) conn.Next {
	s.enter("Drain")
	defer s.leave()
	s.drains.Add(1)
	if now := sys.Nanotime(); since < s.opened || since > now {
		s.t.Errorf("Drain since %v before the link, or %v from now", s.opened-since, since-now)
	}
	switch {
	case s.onDrain != nil:
		return s.onDrain(s, since)
	case len(s.Buffered()) > 0:
		return conn.More
	}
	return conn.Close
}

// Since implements conn.Session.
func (s *script) Since(now int64) int64 { return now }

// Late implements conn.Session.
func (s *script) Late(time.Duration) {}

// PeerGone implements conn.Session.
func (s *script) PeerGone(reset bool) {
	if s.onGone != nil {
		s.onGone(reset)
	}
}

// Closed implements conn.Session.
func (s *script) Closed(hijacked bool) {
	if s.closes.Add(1) == 1 {
		s.closed <- hijacked
	}
}

// aRun is a conn.Run made of functions. Its Done checks as a method of s does; done may be nil.
type aRun struct {
	s    *script
	run  func()
	done func() conn.Next
	left atomic.Int32
}

func (r *aRun) Run()           { r.run() }
func (r *aRun) Ended(exec.End) {}

// Left implements conn.Leaver.
func (r *aRun) Left() { r.left.Add(1) }

func (r *aRun) Done() conn.Next {
	r.s.enter("Done")
	defer r.s.leave()
	if n := r.left.Load(); n != 1 {
		r.s.t.Errorf("Left was called %d times before Done", n)
	}
	if r.done == nil {
		return conn.More
	}
	return r.done()
}

// start starts a Run beside others.
func (s *script) start(run func(), done func() conn.Next) {
	s.Start(&aRun{s: s, run: run, done: done}, nil)
}

// startHere starts a Run on the loop, if this is one, else as start does.
func (s *script) startHere(run func(h *conn.Here), done func() conn.Next) conn.Next {
	h := new(conn.Here)
	if !s.OnLoop() {
		s.start(func() { run(h) }, done)
		return conn.More
	}
	s.leave() // another Data may begin before this one returns
	r := &aRun{s: s, run: func() { run(h) }, done: done}
	if kept := s.Start(r, h); !kept {
		return conn.Lost
	}
	if r.left.Load() > 0 {
		s.t.Error("Left was called on the loop")
	}
	s.enter("Data")
	return done()
}

// Write sends a and then b, and waits for room.
func (s *script) Write(a, b []byte) error {
	return s.Send(&conn.Write{A: a, B: b, Wait: outbox.ForRoom})
}

// queue offers p, to a limit of which half is more than a pause waits for.
func (s *script) queue(p []byte) (full bool, err error) {
	return s.Out().Offer(p, nil, outbox.QueueLimit)
}

// push is queue, tried until there is room.
func (s *script) push(p []byte) error {
	for {
		if _, err := s.queue(p); err != conn.ErrFull {
			return err
		}
		runtime.Gosched()
	}
}

// holder is a conn.Holder, which is released once.
type holder struct {
	t        testing.TB
	check    func() error
	use      func() // what Release does with the link; nil is nothing
	released atomic.Int32
}

func (h *holder) Check() error {
	if h.released.Load() > 0 {
		h.t.Error("Check after Release")
	}
	if h.check != nil {
		return h.check()
	}
	return nil
}

func (h *holder) Release() {
	if h.released.Add(1) > 1 {
		h.t.Error("released twice")
	}
	if h.use != nil {
		h.use()
	}
}

// gone checks that the holder is released, soon.
func (h *holder) gone() {
	h.t.Helper()
	servertest.Eventually(h.t, "the holder is released", func() bool { return h.released.Load() == 1 })
}
