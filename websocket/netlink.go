package websocket

import (
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/exec"
	"github.com/chert-http/chert/internal/link"
	"github.com/chert-http/chert/internal/outbox"
	"github.com/chert-http/chert/internal/stream"
)

// This file is WebSockets on servers other than chert's, and those of Options.Serve.

// netLimits ends a connection whose client accepts nothing for 30 seconds.
var netLimits = conn.Limits{WriteStall: int64(30 * time.Second)}

// netLink is a net.Conn as a takeover.Link: one goroutine reads and calls the session, and
// while something is queued another writes.
type netLink struct {
	*stream.Conn
	s    *session
	left int64 // when Conn.Read returned last, of Now
}

func newNetLink(nc net.Conn, c *Conn) *netLink {
	l := &netLink{Conn: stream.New(nc, &netLimits, nil, nil), s: (*session)(c)}
	l.Share()
	l.Switch(l.s)
	return l
}

// hijackable reports whether w can be hijacked, as far as that is known before the 101. A
// writer around another has a Hijack for the other's, which need not exist.
func hijackable(w http.ResponseWriter) bool {
	for {
		u, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			_, ok = w.(http.Hijacker)
			return ok
		}
		w = u.Unwrap()
	}
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
	l.Unread(p)
	c.link = l
	return nil
}

// run drives the session until the connection ends.
func (l *netLink) run() {
	l.Post(func() link.Next { return link.Requeue }) // the session begins even if the client sends nothing
	l.Conn.Run(l.s)
}

// Quick and the following implement what takeover.Link has besides a Conn's.
func (l *netLink) Quick() bool                                { return true }
func (l *netLink) Offer(a, b []byte, limit int) (bool, error) { return l.Out().Offer(a, b, limit) }
func (l *netLink) Follow(f func())                            { l.Out().Follow(outbox.FollowerFunc(f)) }
func (l *netLink) LocalAddr() net.Addr                        { return l.NetConn().LocalAddr() }
func (l *netLink) RemoteAddr() net.Addr                       { return l.NetConn().RemoteAddr() }

func (l *netLink) Run() (ok bool) {
	return exec.Call(l.s.Run, func(e exec.End) { l.s.h.logEnd(l.RemoteAddr(), e) })
}

// logEnd logs a panic of user code with its stack.
func (h *Handler) logEnd(peer net.Addr, e exec.End) {
	e.Log(h.o.Logger, "websocket: panic", "peer", fmt.Sprint(peer))
}
