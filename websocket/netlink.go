package websocket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/exec"
	"github.com/chert-http/chert/internal/link"
	"github.com/chert-http/chert/internal/outbox"
	"github.com/chert-http/chert/internal/sched"
	"github.com/chert-http/chert/internal/takeover"
)

// This file is takeover.Link on a net.Conn, for servers other than chert's: one
// goroutine reads and calls the session, and while something is queued another
// writes.

const (
	// readSize is the buffer for one read.
	readSize = 4 << 10
	// lingerFor bounds the time between FIN and close, lingerBytes what is read in it; a client
	// that goes on is not read any more.
	lingerFor   = 2 * time.Second
	lingerBytes = 1 << 20
)

// longAgo is a deadline that ends a Read immediately.
var longAgo = time.Unix(1, 0)

type netLink struct {
	nc    net.Conn
	h     *Handler
	start time.Time // Now counts from here
	// Used by the goroutine that reads.
	s        takeover.Session
	in       *buf.Buf
	deadline int64

	out   outbox.Box
	clock outbox.Clock // of a write

	mu    sync.Mutex
	posts link.Posts
	wake  chan struct{} // ends a pause; nil if there is none
}

func newNetLink(nc net.Conn, c *Conn) *netLink {
	l := &netLink{nc: nc, h: c.h, start: time.Now(), s: (*session)(c)}
	l.out.InitCarried((*netSink)(l))
	l.clock.After, l.clock.Cut = writeStall, func() { nc.SetWriteDeadline(longAgo) }
	return l
}

// hijack takes the connection of w over.
func hijack(w http.ResponseWriter, c *Conn) error {
	w.WriteHeader(http.StatusSwitchingProtocols)
	// gin delays WriteHeader until something is written.
	if g, ok := w.(interface{ WriteHeaderNow() }); ok {
		g.WriteHeaderNow()
	}
	nc, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return err
	}
	nc.SetDeadline(time.Time{}) // those of the server
	l := newNetLink(nc, c)
	p, _ := rw.Reader.Peek(rw.Reader.Buffered())
	l.in = l.in.Prepend(p)
	c.link = l
	return nil
}

// run drives the session until the connection ends.
func (l *netLink) run() {
	next := link.Close
	exec.Finish(func() { next = l.drive(context.Background()) }, func(bool) { l.end(next) })
}

// drive calls the session until it requests the connection's end. It returns
// Elsewhere when the session does, for Read, and when ctx has ended, which something
// posted must say.
func (l *netLink) drive(ctx context.Context) link.Next {
	next := l.s.Data(false)
	for eof := false; ; {
		if next = l.posts.Deliver(&l.mu, next); next >= link.Close {
			return next
		}
		if ctx.Err() != nil {
			return link.Elsewhere
		}
		switch next {
		case link.Pause:
			switch posted, err := l.pause(); {
			case posted:
				continue
			case err != nil:
				return link.Close
			}
			if n := l.expired(); n >= link.Close {
				return n
			}
		case link.More:
			switch err := l.fill(); {
			case err == nil:
			case errors.Is(err, os.ErrDeadlineExceeded):
				next = l.expired()
				continue
			case err == io.EOF:
				eof = true
			default:
				return link.Close
			}
		}
		if next = l.s.Data(eof); eof && next == link.More {
			return link.Close
		}
	}
}

// expired calls the session if its deadline has passed.
func (l *netLink) expired() link.Next {
	if l.deadline == 0 || l.Now() < l.deadline {
		return link.More
	}
	l.deadline = 0
	return l.s.Expired()
}

// pause waits while much is queued. It reports whether something was posted meanwhile.
func (l *netLink) pause() (posted bool, _ error) {
	l.mu.Lock()
	for !l.out.Low() && !l.posts.Any() && (l.deadline == 0 || l.Now() < l.deadline) {
		wake := make(chan struct{})
		l.wake = wake
		l.mu.Unlock()
		l.await(wake)
		l.point(0)
		l.mu.Lock()
		l.wake = nil
	}
	defer l.mu.Unlock()
	return l.posts.Any(), l.out.Err()
}

// await waits for wake or the deadline.
func (l *netLink) await(wake chan struct{}) {
	var late <-chan time.Time
	if l.deadline != 0 {
		t := time.NewTimer(time.Duration(l.deadline - l.Now()))
		defer t.Stop()
		late = t.C
	}
	select {
	case <-wake:
	case <-late:
	}
}

// point lets a simulation choose when one of l's goroutines goes on, which has waited or begins.
func (l *netLink) point(n uint64) {
	if sched.On() {
		sched.Point(l.nc.RemoteAddr().String(), n)
	}
}

// rouse ends a pause. mu is held.
func (l *netLink) rouse() {
	if l.wake != nil {
		close(l.wake)
		l.wake = nil
	}
}

// fill reads once.
func (l *netLink) fill() error {
	l.mu.Lock()
	until := time.Time{}
	if l.deadline != 0 {
		until = l.start.Add(time.Duration(l.deadline))
	}
	if l.posts.Any() {
		until = longAgo
	}
	l.nc.SetReadDeadline(until) // Post sets it with mu held
	l.mu.Unlock()
	in, err := l.in.ReadMore(readSize, math.MaxInt32, l.nc.Read)
	l.in = in
	return err
}

// end ends the connection as next requests, after sending what is queued.
func (l *netLink) end(next link.Next) {
	l.out.Close(true)
	l.mu.Lock()
	l.posts.Close()
	l.mu.Unlock()
	if next == link.Reset {
		socket := l.below()
		if t, ok := socket.(interface{ SetLinger(int) error }); ok {
			t.SetLinger(0)
		}
		socket.Close()
	}
	l.out.Carried()
	l.point(0)
	l.clock.End()
	unread := l.in != nil
	l.in = l.in.Drop()
	if next == link.Linger || next == link.Close && unread {
		l.linger()
	}
	l.nc.Close()
	l.s.Closed(false)
}

// below is the socket below a TLS connection, or nc. A Close of TLS would send close_notify first,
// and wait for room for it, 5 seconds, where the client accepts nothing.
func (l *netLink) below() net.Conn {
	nc := l.nc
	for {
		t, ok := nc.(interface{ NetConn() net.Conn })
		if !ok {
			return nc
		}
		nc = t.NetConn()
	}
}

// linger sends FIN and reads until the client has closed too, for a short time:
// closing with unread bytes resets the connection, and the client may lose what it
// has not read yet.
func (l *netLink) linger() {
	half, ok := l.nc.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	by := time.Now().Add(lingerFor)
	l.nc.SetReadDeadline(by)
	if n, _ := io.CopyN(io.Discard, l.nc, lingerBytes); n == lingerBytes {
		time.Sleep(time.Until(by)) // closing now could take the Close frame from the client
	}
}

// Buffered, Discard and the following implement takeover.Link.
func (l *netLink) Buffered() []byte     { return l.in.Bytes() }
func (l *netLink) Discard(n int)        { l.in = l.in.Consume(n) }
func (l *netLink) OnLoop() bool         { return false }
func (l *netLink) Quick() bool          { return true }
func (l *netLink) SetDeadline(ns int64) { l.deadline = ns }
func (l *netLink) Now() int64           { return int64(time.Since(l.start)) + 1 } // 0 is no time
func (l *netLink) LocalAddr() net.Addr  { return l.nc.LocalAddr() }
func (l *netLink) RemoteAddr() net.Addr { return l.nc.RemoteAddr() }

func (l *netLink) Post(f func() link.Next) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.posts.Add(f) {
		l.nc.SetReadDeadline(longAgo)
		l.rouse()
	}
}

func (l *netLink) Run() (ok bool) {
	return exec.Call(l.s.Run, func(e exec.End) { l.h.logEnd(l.RemoteAddr(), e) })
}

// logEnd logs a panic of user code with its stack.
func (h *Handler) logEnd(peer net.Addr, e exec.End) {
	e.Log(h.logger, "websocket: panic", "peer", fmt.Sprint(peer))
}
