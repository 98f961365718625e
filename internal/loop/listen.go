package loop

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
)

const (
	// acceptBatch bounds the connections accepted in one turn, as does StepFor: so a flood
	// of newcomers gets a part of the loop's time, and the others go on.
	acceptBatch = 64
	// closeBatches is how many batches a listener accepts before it closes: enough for the
	// longest queue that Linux has by default, while clients may never stop coming.
	closeBatches = 256
	// pauseFor is how long connections wait in the kernel's queue before they are
	// refused, if there is no room or no descriptor. For room the listener tries
	// again every BarrenFor: some connection may be idle by then.
	pauseFor = int64(100 * time.Millisecond)
	// refuseBatch bounds the connections answered with 503 after a pause that
	// did not help, so that a flood costs a bounded share of the loop.
	refuseBatch = 16
)

// Accept defines what to do with new connections. It is shared by the listeners
// of a server; its exported fields are immutable once they run.
type Accept struct {
	Gate *Gate
	// Open takes over a new non-blocking socket on the loop's goroutine. On
	// an error the caller closes it.
	Open func(l *Loop, fd int, peer string, proxied bool) error
	// Proxied, if not nil, reports whether a peer is a proxy that tells its client's address.
	// Its connections do not count for an address before that is known: then the Session
	// calls Gate.Admit.
	Proxied func(peer string) bool
	// Seek makes connections give way elsewhere than on the loop that calls it,
	// and does not wait for that. Waiters are notified through the Gate. Nil:
	// nowhere.
	Seek func()
	// Refusal returns the response to a connection for which there is no room,
	// and Refused is called for it; share means that its address has too many.
	Refusal func() []byte
	Refused func(peer string, share bool)
	// Log reports a condition that an operator must know, in one line. Limit names what
	// Gate's limit comes from.
	Log   func(format string, args ...any)
	Limit func() string

	logged atomic.Int64 // when Complain last did
	filled atomic.Int64 // when Full last did

	// reserve is a descriptor to close at EMFILE, -1 if there is none. It is
	// opened before the first listener accepts, and the listeners share it.
	// files is held while it is closed, so that no other listener uses its
	// number for a connection that stays.
	files     sync.RWMutex
	reserve   int
	listeners int
}

// Listener accepts on a listening socket that is the loop's own.
type Listener struct {
	*Accept
	loop   *Loop
	fd     int
	handle Handle
	paused bool
	full   int64 // since when the gate has been full; 0 while it is not
	// awaiting: the gate will send a message when there is room.
	awaiting bool
	// closed, if not nil, is called at the end of a Close, at the latest after left batches.
	closed func()
	left   int
}

// resume is the message that a connection has ended, so that another may be
// accepted.
type resume struct{}

// Listen starts to accept on fd, which the listener then owns.
func (l *Loop) Listen(fd int, a *Accept) (*Listener, error) {
	ln := &Listener{Accept: a, loop: l, fd: fd}
	a.enlist(l.poller)
	var err error
	if ln.handle, err = l.Attach(ln, fd); err != nil {
		a.leave(l.poller)
		return nil, err
	}
	// Connections may have arrived before the poller watched.
	l.Requeue(ln.handle)
	return ln, nil
}

// Close accepts the connections that have already been established, in this turn and the
// next ones, then closes the socket and calls done. The kernel refuses later ones. It may be
// called once.
func (ln *Listener) Close(done func()) {
	ln.closed, ln.left = done, closeBatches
	ln.loop.Requeue(ln.handle)
}

// Dup duplicates the socket, for another process. Only the driver may call it.
func (ln *Listener) Dup() (int, error) {
	if ln.fd < 0 {
		return -1, net.ErrClosed
	}
	return sys.Dup(ln.fd)
}

// Ready implements Sock.
func (ln *Listener) Ready(poll.Ready) bool {
	more := !ln.paused && ln.accept()
	if ln.closed != nil {
		if ln.left--; !more || ln.left == 0 {
			ln.end()
			return true
		}
	}
	if more {
		ln.loop.Requeue(ln.handle)
	}
	return true
}

// end closes the socket.
func (ln *Listener) end() {
	ln.loop.Detach(ln.handle)
	ln.loop.poller.CloseFD(ln.fd)
	ln.fd = -1
	ln.leave(ln.loop.poller)
	ln.closed()
}

// Mail implements Sock. Broadcast messages are not meant for a Listener.
func (ln *Listener) Mail(message any) {
	if _, ok := message.(resume); ok {
		ln.awaiting = false
		ln.resume()
	}
}

// Expire implements Sock: the pause is over.
func (ln *Listener) Expire() {
	if ln.resume(); ln.fd >= 0 && ln.paused && ln.loop.Now()-ln.full >= pauseFor {
		ln.full = ln.loop.Now()
		ln.refuseSome()
	}
}

func (ln *Listener) resume() {
	if ln.paused {
		ln.paused = false
		// Only if a connection waits: the room reserved meanwhile may be the
		// last, and another listener's connection may wait for it.
		if ln.loop.poller.Pending(ln.fd) {
			ln.Ready(0)
		}
		if !ln.paused {
			ln.full = 0
		}
	}
}

// accept accepts a batch and reports whether there may be more.
func (ln *Listener) accept() bool {
	var accepting Step
	for range acceptBatch {
		if !accepting.Next() {
			break
		}
		if !ln.Gate.Enter() {
			if !ln.loop.poller.Pending(ln.fd) {
				return false // no connection waits; an event follows
			}
			if !ln.loop.GiveWay() || !ln.Gate.Enter() {
				ln.pause(BarrenFor)
				ln.Full()
				ln.await()
				ln.seek()
				return false
			}
		}
		ln.files.RLock()
		ln.loop.Tally.Add(true, tally.Accepts, 1)
		fd, peer, e := ln.loop.poller.Accept(ln.fd)
		ln.files.RUnlock()
		if e == 0 {
			ln.admit(ln.loop, fd, peer)
			continue
		}
		ln.Gate.Leave("")
		switch {
		case sys.TemporaryAccept(e):
		case sys.Again(e), sys.NoFiles(e) && !ln.loop.poller.Pending(ln.fd):
			// accept4 takes a descriptor before it looks for a connection. If none
			// waits, closing an idle connection would make room for no client; the
			// idle one may be the one just accepted.
			return false
		case sys.NoFiles(e) && ln.loop.GiveWay():
		default:
			// Out of descriptors or memory, or an unknown error: a pause is
			// right for all of them, spinning for none.
			ln.Complain(os.NewSyscallError("accept4", e))
			ln.pause(pauseFor)
			if sys.NoFiles(e) {
				ln.seek()
			}
			return false
		}
	}
	return true
}

func (ln *Listener) seek() {
	if ln.Seek != nil {
		ln.Seek()
	}
}

func (ln *Listener) pause(d int64) {
	now := ln.loop.Now()
	if ln.paused = true; ln.full == 0 {
		ln.full = now
	}
	ln.loop.Arm(ln.handle, now+d)
}

func (ln *Listener) await() {
	if !ln.awaiting {
		ln.awaiting = true
		l, h := ln.loop, ln.handle
		ln.Gate.Await(func() { l.Post(h, resume{}) })
	}
}

// refuseSome answers clients that wait in the kernel's queue if there is still
// no room. The reserve descriptor makes that possible at EMFILE too.
func (ln *Listener) refuseSome() {
	ln.files.Lock()
	defer ln.files.Unlock()
	for range refuseBatch {
		ln.giveUpReserve(ln.loop.poller)
		ln.loop.Tally.Add(true, tally.Accepts, 1)
		fd, peer, e := ln.loop.poller.Accept(ln.fd)
		if e == 0 {
			ln.loop.answerAndClose(fd, ln.Refusal())
			ln.Refused(peer, false)
		}
		ln.reserve, _ = ln.loop.poller.Reserve()
		if e != 0 && !sys.TemporaryAccept(e) {
			return
		}
	}
}

// enlist counts a listener; the first opens the reserve.
func (a *Accept) enlist(p poll.Poller) {
	a.files.Lock()
	defer a.files.Unlock()
	if a.listeners++; a.listeners == 1 {
		a.reserve, _ = p.Reserve()
	}
}

// leave ends what enlist began.
func (a *Accept) leave(p poll.Poller) {
	a.files.Lock()
	defer a.files.Unlock()
	if a.listeners--; a.listeners == 0 {
		a.giveUpReserve(p)
	}
}

// giveUpReserve is called with files held.
func (a *Accept) giveUpReserve(p poll.Poller) {
	if a.reserve >= 0 {
		p.CloseFD(a.reserve)
		a.reserve = -1
	}
}

// admit finishes what Enter began.
func (a *Accept) admit(l *Loop, fd int, peer string) {
	counted, proxied := a.Counted(peer)
	if !a.Gate.Admit(counted) {
		l.answerAndClose(fd, a.Refusal())
		a.Gate.Leave("")
		a.Refused(peer, true)
		return
	}
	if err := a.Open(l, fd, peer, proxied); err != nil {
		a.Log("chert: a new connection was dropped: %v", err)
		l.poller.CloseFD(fd)
		a.Gate.Leave(counted)
	}
}

// Counted returns the address that a connection of peer counts for at first, and whether it is
// a proxy's.
func (a *Accept) Counted(peer string) (counted string, proxied bool) {
	if a.Proxied != nil && a.Proxied(peer) {
		return "", true
	}
	return peer, false
}

// Complain logs that accepting failed, at most once a second for all listeners
// together. Any goroutine may call it.
func (a *Accept) Complain(err error) {
	now, last := sys.Nanotime(), a.logged.Load()
	if last != 0 && now-last < int64(time.Second) || !a.logged.CompareAndSwap(last, now) {
		return
	}
	hint := ""
	if e, ok := errors.AsType[syscall.Errno](err); ok && sys.NoFiles(e) {
		hint = fmt.Sprintf("; the limit is %v: raise it (ulimit -n, LimitNOFILE) or lower MaxConns", sys.Limits())
		if e == syscall.ENFILE {
			hint = "; the limit of all processes together is fs.file-max"
		}
	}
	a.Log("chert: accept: %v%s", err, hint)
}

// fullEvery is how often full logs.
const fullEvery = int64(time.Minute)

// Full logs, at most once a minute, that there are as many connections as there may be, of
// which none is idle. Safe for concurrent use.
func (a *Accept) Full() {
	now, last := sys.Nanotime(), a.filled.Load()
	if a.Limit == nil || last != 0 && now-last < fullEvery || !a.filled.CompareAndSwap(last, now) {
		return
	}
	a.Log("chert: %d connections are open, the maximum by %s, and none can give way: new ones wait, or are refused",
		a.Gate.open.Load(), a.Limit())
}

// answerAndClose refuses a connection. What the client has sent so far is read
// first: closing with unread bytes sends a reset, which can overtake the
// response.
func (l *Loop) answerAndClose(fd int, answer []byte) {
	l.poller.Write2(fd, answer, nil)
	l.poller.CloseWrite(fd)
	p := l.scratch.Whole()
	for range 4 {
		if n, e := l.poller.Read(fd, p); n < len(p) || e != 0 {
			break
		}
	}
	l.poller.CloseFD(fd)
}
