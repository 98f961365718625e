package conn

import "github.com/chert-http/chert/stats"

// This file shows what a connection does to those who look from outside.

// A Speaker is a Session with a name of its protocol, as in stats.Connection; it is always the same.
type Speaker interface{ Speaks() string }

// An Inspected is a Speaker with requests that can be looked at.
type Inspected interface {
	Speaker
	// Running calls f for each request in progress that has come before a time of
	// sys.Nanotime, with when it came. It is safe for concurrent use: owner says that the
	// caller is the Link's owner, and may see what belongs to it.
	Running(owner bool, before int64, f func(r stats.Request, since int64))
}

// Running calls f for the requests of the connection as Inspected.Running does. Only the
// loop may call it.
func (c *Conn) Running(before int64, f func(r stats.Request, since int64)) {
	s, ok := c.sessionOf().(Inspected)
	if !ok {
		return
	}
	state := c.state.Load()
	s.Running(state&owned == 0, before, func(r stats.Request, since int64) {
		if state&waitWrite != 0 {
			r.Stage = "write"
		}
		f(r, since)
	})
}

// Inspect returns what the connection does, and since when, as a time of sys.Nanotime; 0
// if that is not known. Only the loop may call it.
func (c *Conn) Inspect() (out stats.Connection, since int64) {
	out = stats.Connection{Peer: c.Peer().RemoteAddr, State: "active"}
	if local := c.localAddr(); local != nil {
		out.Local = local.String()
	}
	session := c.sessionOf()
	if s, ok := session.(Speaker); ok {
		out.Protocol = s.Speaks()
	}
	if l := c.layer(); l != nil {
		if s, ok := l.Layer.(Secured); ok {
			out.TLS = VersionName(s.TLS().Version)
		}
	}
	out.Unsent, _ = c.Out().Unsent()
	if c.state.Load()&owned != 0 || c.phase != reading {
		return out, 0
	}
	if since = session.Since(c.loop.Now()); since < 0 {
		return out, 0
	}
	if !c.Active() {
		out.State = "idle"
		if n, ok := session.(interface{ New() bool }); ok && n.New() {
			out.State = "new"
		}
	}
	return out, since
}
