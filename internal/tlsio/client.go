package tlsio

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/exec"
	"github.com/chert-http/chert/internal/sys"
)

// Connect is the session of a connection that the server has opened, until TLS is negotiated. Whoever
// switches to it returns conn.Elsewhere: it needs a goroutine for as long as the handshake takes. Then it
// switches to Upper, whose Data is called on the loop, without an end of the stream, also if the
// handshake has failed.
type Connect struct {
	conn.Quiet
	Link conn.Link
	// TLS must have a ServerName. Its functions run on the goroutine, but for those of a
	// ClientSessionCache, which run on the loop when a server of TLS 1.3 sends a ticket.
	TLS   *tls.Config
	By    int64 // it must be done, of sys.Nanotime; 0 for any time
	Upper conn.Session
	// Err is why the handshake has failed, nil if it has not. It is Upper's to read, from its first
	// call on.
	Err error
}

// errConnecting is the error of a handshake whose connection has ended.
var errConnecting = errors.New("tlsio: the connection ended during the handshake")

// Data implements conn.Session: it runs the handshake.
func (h *Connect) Data(bool) conn.Next {
	h.Err = errConnecting
	h.Link.Do((*connecting)(h))
	h.Link.Switch(h.Upper)
	return conn.Requeue
}

// connecting is a handshake that runs, as conn.UserCode.
type connecting Connect

func (c *connecting) Run() { c.Err = (*Connect)(c).shake() }

// Ended is called if a function of the tls.Config has not returned.
func (c *connecting) Ended(e exec.End) {
	if v, ok := e.Panic(); ok {
		c.Err = fmt.Errorf("tlsio: panic in a function of the tls.Config: %v\n%s", v, exec.Stack())
	}
}

func (h *Connect) shake() error {
	lent := h.Link.Lent()
	by := conn.TimeAt(h.By)
	lent.SetReadDeadline(by)
	lent.SetWriteDeadline(by)
	w := &wire{link: h.Link, below: &below{fill: h.fill}, many: true}
	w.tc = tls.Client(w, h.TLS)
	if err := w.tc.HandshakeContext(context.Background()); err != nil {
		return err
	}
	return lent.SetLayer(w.asLayer())
}

// fill waits for more of the handshake. The Link's own limit for a wait is that of a body.
func (h *Connect) fill() error {
	for {
		err := h.Link.Lent().Fill()
		if !errors.Is(err, os.ErrDeadlineExceeded) || h.By != 0 && sys.Nanotime() >= h.By {
			return err
		}
	}
}

// Closed implements conn.Session.
func (h *Connect) Closed(hijacked bool) { h.Upper.Closed(hijacked) }
