package websocket

import (
	"net"
	"sync"

	"github.com/chert-http/chert/internal/exec"
	"github.com/chert-http/chert/internal/roster"
	"github.com/chert-http/chert/internal/wsdeflate"
	"github.com/chert-http/chert/internal/wsframe"
)

// A Room is a set of connections that receive the same messages. The zero Room is
// empty and ready to use. All methods are safe for concurrent use. A Room must not be
// copied.
type Room struct {
	// OnLeave, if not nil, is called when a connection that was in the room has left it or has
	// ended, by the goroutine that has made it leave. It must not wait, and is set before the
	// first Join. A panic for a connection that has ended is logged, one in Leave is the caller's.
	OnLeave func(c *Conn)

	mu      sync.Mutex
	members map[*Conn]int // the index of each in all
	// all has the members in the order of Join, as far as none has left: connections that
	// were opened one after another, and what the kernel has for them, are likely to be
	// neighbours in memory, which makes a broadcast faster.
	all roster.Roster[Conn]
}

// membership is an entry of the rooms that a connection is in. Guarded by its mu.
type membership struct {
	room *Room
	next *membership
}

// Join adds c, until it leaves or ends, and reports whether it is in the room then: a connection
// that is in it stays where it is; one that has ended is not added.
func (r *Room) Join(c *Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	// After c.mu, c.Closed may run and lock r.mu, so it finds c in the room.
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return false
	}
	if r.members == nil {
		r.members = make(map[*Conn]int)
	}
	if _, ok := r.members[c]; !ok {
		r.members[c] = r.all.Add(c)
		c.rooms = &membership{room: r, next: c.rooms}
	}
	return true
}

// Leave ends what Join has begun.
func (r *Room) Leave(c *Conn) {
	if r.drop(c) && r.OnLeave != nil {
		r.OnLeave(c)
	}
}

func (r *Room) drop(c *Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	i, ok := r.members[c]
	if !ok {
		return false
	}
	delete(r.members, c)
	if moved, _ := r.all.Remove(i, c); moved != nil {
		r.members[moved] = i
	}
	// With both locks, as in Join: what a Join after this adds is not for this to remove.
	c.mu.Lock()
	defer c.mu.Unlock()
	for m := &c.rooms; *m != nil; m = &(*m).next {
		if (*m).room == r {
			*m = (*m).next
			break
		}
	}
	return true
}

// ended is Leave for a connection that has ended: user code must not end the event loop, nor keep the
// connection in other rooms.
func (r *Room) ended(c *Conn) {
	exec.Call(func() { r.Leave(c) }, func(e exec.End) { c.h.logEnd(c.RemoteAddr(), e) })
}

// Has reports whether a connection is in the room.
func (r *Room) Has(c *Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.members[c]
	return ok
}

// Len returns how many connections are in the room.
func (r *Room) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all.Len()
}

// snapshot returns the members for a broadcast, which must not hold mu: a loop may wait for it
// to remove a connection.
func (r *Room) snapshot() roster.Snapshot[Conn] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all.Snapshot()
}

// Broadcast sends a message to all connections in the room, as Conn.Send would, on the
// caller's goroutine, and returns for how many of them that was an error. The message is
// encoded once, and compressed once for each size of window that its receivers have. It
// reaches each receiver in the order of the calls of one goroutine.
func (r *Room) Broadcast(t Type, p []byte) (dropped int) {
	m := message{t: t, p: p}
	for c := range r.snapshot().All() {
		if m.send(c) != nil {
			dropped++
		}
	}
	return dropped
}

// message is one that many connections receive. A message that was compressed without
// a window is valid for all that have one of the same size: it refers to nothing
// before it.
type message struct {
	t          Type
	p          []byte
	plain      []byte // the frame
	compressed [wsdeflate.MaxBits + 1][]byte
}

func (m *message) frame(d *deflate, threshold int) []byte {
	if d == nil || len(m.p) < threshold {
		if m.plain == nil {
			m.plain = wsframe.AppendFrame(make([]byte, 0, len(m.p)+wsframe.MaxHeader), m.t.opcode(), false, m.p)
		}
		return m.plain
	}
	f := &m.compressed[d.params.Bits]
	if *f == nil {
		*f = wsframe.AppendFrame(nil, m.t.opcode(), true, wsdeflate.Deflate(nil, m.p, nil, d.params.Bits))
	}
	return *f
}

func (m *message) send(c *Conn) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Load() {
		return net.ErrClosed
	}
	err := c.put(m.frame(c.deflate, c.h.threshold), c.h.maxUnsent)
	if d := c.deflate; d != nil && err == nil && !d.params.NoTakeover && len(m.p) >= c.h.threshold {
		d.out.Add(m.p, d.params.Bits)
	}
	if err == ErrSlow {
		c.tooSlow()
	}
	return err
}
