package loop

import (
	"crypto/tls"
	"net"
	"syscall"
	"weak"
)

// This file counts connections that user code has taken over.

// A loan is a hijacked connection, which counts until it is closed. The hijacker
// has the *net.TCPConn itself, so its Close is not reported: the gate checks it
// when room runs low. The reference is weak: a connection that the hijacker drops
// is closed by the garbage collector, as with package net.
type loan struct {
	open func() bool
	peer string // as for Leave
}

const (
	// lentLooks is how many loans are checked when there is no room, about 50 us.
	lentLooks = 512
	// lentSteps is how many are checked with each new loan, so that ended ones
	// stay few in proportion.
	lentSteps = 2
)

// Lend keeps counting a connection that user code now has as nc, until nc has
// been closed. The caller does not call Leave. For types that cannot be checked,
// which are all but package net's and crypto/tls's over them, the room is
// released immediately.
func (g *Gate) Lend(nc net.Conn, peer string) {
	open := asker(nc)
	if open == nil {
		g.Leave(peer)
		return
	}
	g.mu.Lock()
	freed := g.collect(lentSteps)
	g.lent = append(g.lent, loan{open, peer})
	g.mu.Unlock()
	if freed && g.waiting.Load() {
		g.wakeAll()
	}
}

// asker returns a function that reports whether nc is open; nil if that cannot be determined.
func asker(nc net.Conn) func() bool {
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	switch c := nc.(type) {
	case *net.TCPConn:
		p := weak.Make(c)
		return func() bool { c := p.Value(); return c != nil && isOpen(c) }
	case *net.UnixConn:
		p := weak.Make(c)
		return func() bool { c := p.Value(); return c != nil && isOpen(c) }
	}
	return nil
}

func isOpen(c syscall.Conn) bool {
	raw, err := c.SyscallConn()
	return err == nil && raw.Control(func(uintptr) {}) == nil
}

// collect checks the next so many loans, releases the room of those that have
// ended, and reports whether there was one. mu is held.
func (g *Gate) collect(looks int) (freed bool) {
	for range min(looks, len(g.lent)) {
		if g.hand++; g.hand >= len(g.lent) {
			g.hand = 0
		}
		l := g.lent[g.hand]
		if l.open() {
			continue
		}
		last := len(g.lent) - 1
		g.lent[g.hand], g.lent[last] = g.lent[last], loan{}
		g.lent = g.lent[:last]
		if host := g.host(l.peer); host != "" {
			g.addrs.remove(host)
		}
		g.open.Add(-1)
		freed = true
	}
	return freed
}
