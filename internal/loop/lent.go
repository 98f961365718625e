package loop

import (
	"crypto/tls"
	"net"
	"syscall"
	"weak"
)

// This file is how connections count that user code has taken over.

// A loan is a hijacked connection, which keeps its place until it is closed. What
// the hijacker has is the *net.TCPConn itself, so nobody says when that is: it is
// asked when places run low. The reference is weak: a connection that the hijacker
// loses is closed by the garbage collector, as with package net.
type loan struct {
	open func() bool
	peer string // as for Leave
}

const (
	// lentLooks is how many loans are looked at when there is no place, some 50 us.
	lentLooks = 512
	// lentSteps is how many are with each new one, so that those which have ended
	// are few beside the others.
	lentSteps = 2
)

// Lend keeps the place of a connection that nc is now, for user code, until that
// has been closed. The caller does not call Leave. Of types that cannot be asked,
// which are all but package net's and crypto/tls's over them, the place is given
// back at once.
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

// asker is how to ask whether nc is open; nil if that cannot be.
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

// collect takes the places of loans back that have ended, of the next so many, and
// reports whether there was one. mu is held.
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
			g.forget(host)
		}
		g.open.Add(-1)
		freed = true
	}
	return freed
}
