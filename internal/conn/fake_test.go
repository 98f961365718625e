//go:build linux || darwin

package conn

import (
	"bytes"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/exec"
	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/outbox"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// batch bounds how many lines a fake serves in one go on a loop.
const batch = 64

// fake is a Session whose requests are lines. It checks that there is one owner
// at a time.
type fake struct {
	Conn
	t     testing.TB
	quick bool // lines are served on the loop
	// quickly, when not nil, says in place of quick whether a line is.
	quickly func(line string) bool
	// whole: a quick line is served with its bytes where they lie, raw, and
	// consumed afterwards.
	whole bool
	// The times of a connection, in nanoseconds: to its first request, of a
	// partial line, and between lines.
	first, partly, idle int64
	slots               *loop.Semaphore
	duplex              bool // see Duplex
	// serve is the user code for a line.
	serve func(f *fake, line string) Next
	// reply, when not nil, may answer a line on the loop, without user code.
	reply func(line string) (answer []byte, next Next, ok bool)
	// fed, when not nil, is called when a line has been found.
	fed func(f *fake, line string)

	line           string
	raw            []byte // of a whole line that is being served
	begun, partial bool
	waiting, slot  bool
	pending        bool // a line waits for Data on a goroutine
	owner          atomic.Int32
	runs, lates    counter
	gone           chan bool    // gets reset
	closed         chan bool    // closed by Closed
	age            atomic.Int64 // for Since
}

// Duplex implements Duplex.
func (f *fake) Duplex() bool { return f.duplex }

// enter and leave are around everything that only the owner may do.
func (f *fake) enter(who string) {
	if !f.owner.CompareAndSwap(0, 1) {
		f.t.Errorf("%s while another goroutine is the owner", who)
	}
}

func (f *fake) leave() { f.owner.Store(0) }

// Write sends a and then b, and waits for room.
func (f *fake) Write(a, b []byte) error {
	return f.Send(&Write{A: a, B: b, Wait: outbox.ForRoom})
}

// Data implements Session.
func (f *fake) Data(eof bool) (next Next) {
	f.enter("Data")
	defer f.leave()
	if f.pending {
		f.pending = false
		if next := f.run(); next != More {
			return next
		} else if f.Out().Blocked() {
			return Requeue
		}
	}
	for n := 1; ; n++ {
		next, served := f.request(eof)
		switch {
		case !served || next != More:
			return next
		case len(f.Buffered()) == 0:
		case f.Out().Blocked() || f.OnLoop() && n >= batch:
			return Requeue
		}
	}
}

// request serves the line at hand, if it has come whole.
func (f *fake) request(eof bool) (next Next, served bool) {
	b := f.Buffered()
	i := bytes.IndexByte(b, '\n')
	switch {
	case i < 0 && eof && len(b) > 0:
		f.Send(&Write{A: []byte("cut\n")})
		return Linger, false
	case i < 0 && eof:
		return Close, false
	case i < 0:
		f.awaits(len(b) > 0)
		return More, false
	}
	f.line = string(b[:i])
	if f.fed != nil && !f.waiting {
		f.fed(f, f.line)
	}
	if f.reply != nil {
		if answer, next, ok := f.reply(f.line); ok {
			f.Discard(i + 1)
			f.Send(&Write{A: answer})
			return next, true
		}
	}
	switch f.acquire() {
	case loop.Queued:
		f.SetDeadline(0)
		return Wait, false
	case loop.Refused:
		f.Discard(i + 1)
		return f.answer("busy\n"), true
	}
	f.begun, f.partial = true, false
	if f.isQuick(f.line) && f.whole {
		f.raw = b[:i+1]
		next := f.run()
		f.Discard(len(f.raw)) // unless the user code has
		f.raw = nil
		return next, true
	}
	f.Discard(i + 1)
	if f.OnLoop() && !f.isQuick(f.line) {
		f.pending = true
		return Elsewhere, true
	}
	return f.run(), true
}

// awaits sets the deadline for the next line or the rest of this one.
func (f *fake) awaits(partial bool) {
	d := f.idle
	if partial {
		if f.partial {
			return
		}
		d = f.partly
	}
	f.partial = partial
	switch {
	case !f.begun: // that for the first counts from the accept
	case d > 0:
		f.SetDeadline(f.Now() + d)
	default:
		f.SetDeadline(0)
	}
}

func (f *fake) isQuick(line string) bool {
	if f.quickly != nil {
		return f.quickly(line)
	}
	return f.quick
}

// run runs the user code.
func (f *fake) run() Next {
	u := &fakeCode{f: f, next: Close}
	f.Do(u)
	f.release()
	return u.next
}

// fakeCode is f's user code.
type fakeCode struct {
	f    *fake
	next Next
}

func (u *fakeCode) Run() {
	u.f.runs.Add(1)
	u.next = u.f.serve(u.f, u.f.line)
}

func (u *fakeCode) Ended(e exec.End) {
	if v, ok := e.Panic(); ok {
		panic(v)
	}
	u.f.release()
}

// Acquired implements loop.Waiter.
func (f *fake) Acquired() { f.Post(func() Next { return Requeue }) }

func (f *fake) acquire() loop.Admission {
	if f.slots == nil {
		return loop.Admitted
	}
	if f.waiting {
		f.waiting, f.slot = false, true
		return loop.Admitted
	}
	a := f.slots.Acquire(f)
	f.waiting, f.slot = a == loop.Queued, a == loop.Admitted
	return a
}

func (f *fake) release() {
	if f.slot {
		f.slot = false
		f.slots.Release()
	}
}

// onLoop runs do on the loop, for user code.
func (f *fake) onLoop(do func()) {
	done := make(chan bool)
	f.loop.Do(func() { do(); close(done) })
	servertest.Await(f.t, done, "the loop")
}

// Writable implements Session.
func (f *fake) Writable() Next {
	f.enter("Writable")
	defer f.leave()
	f.t.Error("Writable of a link that is not shared")
	return More
}

// Expired implements Session.
func (f *fake) Expired() Next {
	f.enter("Expired")
	defer f.leave()
	if f.partial {
		f.Send(&Write{A: []byte("late\n")})
		return Linger
	}
	return Close
}

// waited reports whether the user code that runs has waited for the peer.
func (f *fake) waited() bool {
	w := f.waits.Load()
	return w != nil && w.waited.Load()
}

// Drain implements Session.
func (f *fake) Drain(since int64) Next {
	f.enter("Drain")
	defer f.leave()
	switch {
	case len(f.Buffered()) > 0:
		return More
	case f.begun:
		return Close
	}
	f.SetDeadline(since + int64(DrainNew))
	return More
}

// Since implements Session.
func (f *fake) Since(now int64) int64 { return now - f.age.Load() }

// Late implements Session.
func (f *fake) Late(held time.Duration) {
	if held >= loop.Overstay {
		f.lates.Add(1)
	}
}

// PeerGone implements Session.
func (f *fake) PeerGone(reset bool) {
	select {
	case f.gone <- reset:
	default:
	}
}

// Closed implements Session.
func (f *fake) Closed(bool) {
	if f.waiting {
		if !f.slots.Withdraw(f) {
			f.slots.Release()
		}
	}
	close(f.closed)
}

// echo answers a line with itself.
func echo(f *fake, line string) Next {
	if f.Write([]byte(line), []byte("\n")) != nil {
		return Close
	}
	return More
}

// last is echo in one piece that may wait for the next answer.
func last(f *fake, line string) Next { return f.answer(line + "\n") }

func (f *fake) answer(s string) Next {
	if f.Send(&Write{A: []byte(s), Cork: len(f.Buffered()) > len(f.raw)}) != nil {
		return Close
	}
	return More
}
