package stream

import (
	"crypto/tls"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/stats"
)

// SetTLS sets the version of TLS, once it is known.
func (c *Conn) SetTLS(version uint16) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version = version
}

func (c *Conn) Running(before int64, f func(r stats.Request, since int64)) {
	c.mu.Lock()
	session := c.session
	c.mu.Unlock()
	if s, ok := session.(conn.Inspected); ok {
		s.Running(false, before, f)
	}
}

func (c *Conn) Inspect() (out stats.Connection, since int64) {
	c.mu.Lock()
	session, phase, version, waits := c.session, c.phase, c.version, c.waits
	shared := c.out.Shared() // which the session has called Share for
	out = stats.Connection{Peer: c.Peer().RemoteAddr, State: "active", TLS: conn.VersionName(version), Loop: -1}
	c.mu.Unlock()
	if shared {
		out.Unsent, _ = c.out.Unsent()
	}
	if a := c.base.LocalAddr(); a != nil {
		out.Local = a.String()
	}
	switch s, ok := session.(conn.Speaker); {
	case ok:
		out.Protocol = s.Speaks()
	case phase == lent:
	default: // it shakes hands
		out.State = "new"
		if _, ok := c.base.(*tls.Conn); ok && out.Peer != "" && out.TLS == "" {
			out.Protocol = "TLS handshake"
		}
		return out, waits
	}
	if shared {
		if waits = session.Since(sys.Nanotime()); waits >= 0 {
			out.State = "idle"
		}
		return out, max(waits, 0)
	}
	if phase == idle {
		out.State = "idle"
	}
	return out, waits
}
