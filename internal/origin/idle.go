package origin

import (
	"slices"
	"sync"
	"time"
)

// Idle are the connections to one server that wait for a request, the newest last. It is
// safe for concurrent use. Times are nanoseconds of the caller's clock.
type Idle struct {
	mu     sync.Mutex
	conns  []*Conn
	closed bool
}

// Put adds a connection, or closes it: if there are most, or after Close.
func (p *Idle) Put(c *Conn, now int64, most int) {
	c.release()
	c.nc.SetDeadline(time.Time{})
	c.idle = now
	p.mu.Lock()
	if p.closed || len(p.conns) >= most {
		p.mu.Unlock()
		c.Close()
		return
	}
	p.conns = append(p.conns, c)
	p.mu.Unlock()
}

// Get returns the newest connection that the server has not closed, and how long it was
// idle; nil if there is none. may reports whether one of an age may be used: older ones are
// then left to Sweep. gone is called for those that the server has closed.
func (p *Idle) Get(now int64, may func(age int64) bool, gone func(age int64)) (*Conn, int64) {
	for {
		p.mu.Lock()
		n := len(p.conns)
		if n == 0 || !may(now-p.conns[n-1].idle) {
			p.mu.Unlock()
			return nil, 0
		}
		c := p.conns[n-1]
		p.conns[n-1] = nil
		p.conns = p.conns[:n-1]
		p.mu.Unlock()
		quiet, ended := c.quiet()
		if quiet {
			return c, now - c.idle
		}
		if ended {
			gone(now - c.idle)
		}
		c.Close()
	}
}

// Sweep closes connections that the server has closed or that have become too old, and
// reports whether there are others.
func (p *Idle) Sweep(now int64, may func(age int64) bool, gone func(age int64)) bool {
	var ages []int64
	p.mu.Lock()
	p.conns = slices.DeleteFunc(p.conns, func(c *Conn) bool {
		quiet, ended := c.quiet()
		if quiet && may(now-c.idle) {
			return false
		}
		if ended {
			ages = append(ages, now-c.idle)
		}
		c.Close()
		return true
	})
	left := len(p.conns) > 0
	p.mu.Unlock()
	for _, age := range ages {
		gone(age)
	}
	return left
}

// Len returns the number of connections.
func (p *Idle) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

// Close closes all, and those that come later.
func (p *Idle) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}
