package websocket

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/chert-http/chert/internal/exec"
	"github.com/chert-http/chert/internal/link"
)

// This file is the face for code that wants a goroutine of its own: the caller of
// Read drives the connection.

// CloseError is why a connection has ended: the code and the reason are as for
// Options.OnClose.
type CloseError struct {
	Code   Code
	Reason string
}

func (e *CloseError) Error() string {
	return fmt.Sprintf("websocket: closed with code %d %s", e.Code, e.Reason)
}

var errNotServe = errors.New("websocket: Read is for Options.Serve only")

// Read waits for the next message. p is valid until the next call. After the end of
// the connection the error is a *CloseError. If ctx ends first, it is ctx's, and the
// connection can still be used. Read also answers Pings and Close frames and sends
// Pings, so it must be called again and again. Only Options.Serve may call it, and
// one goroutine at a time.
func (c *Conn) Read(ctx context.Context) (t Type, p []byte, err error) {
	l, ok := c.link.(*netLink)
	if !ok || !c.alone {
		return 0, nil, errNotServe
	}
	s := (*session)(c)
	// As after OnMessage. The time between short Reads counts, or a silent client would get no Pings.
	if now := l.Now(); s.pending || s.h.idle > 0 && now-l.left >= s.h.idle {
		s.heard = now
	}
	defer func() { l.left = l.Now() }()
	s.finish()
	if c.ended {
		return 0, nil, s.closeError()
	}
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, func() { l.Post(func() link.Next { return link.More }) })
		defer stop()
	}
	switch next := l.Drive(ctx, link.Elsewhere); {
	case s.pending:
		return s.typ, s.message(), nil
	case next == link.Elsewhere:
		return 0, nil, ctx.Err()
	default:
		l.End(next)
		return 0, nil, s.closeError()
	}
}

// finish ends the use of the message that Read has returned.
func (s *session) finish() {
	if s.pending {
		s.pending = false
		s.drop()
	}
}

func (s *session) closeError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &CloseError{Code(s.rare.why.Code), s.rare.why.Reason}
}

// serveAlone calls Options.Serve, and then drives the connection to its end.
func (h *Handler) serveAlone(c *Conn, r *http.Request) {
	l := c.link.(*netLink)
	s := (*session)(c)
	c.mu.Lock()
	c.alone, c.serves = true, true
	c.mu.Unlock()
	exec.Finish(func() { h.o.Serve(c, r) }, func(returned bool) {
		s.finish()
		c.alone = false
		switch {
		case c.ended:
		case returned:
			c.Close(CodeNormal, "")
			l.run()
		default:
			l.End(c.failed(errInternal)) // the server logs the panic
		}
	})
}
