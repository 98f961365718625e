package http3

import (
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/net/ipv4"

	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
)

// relay is a UDP socket that processes share, as quic-go reads it. One process at a time reads the
// socket: the last one. Packets for the connections of those before it go to them over a socket
// that each has for that purpose, which no other process can write to. All of them write to the UDP
// socket.
//
// Without a process before this one it is the socket, with a load of a pointer and a counter for each batch.
type relay struct {
	*net.UDPConn
	batch *ipv4.PacketConn
	tally *tally.Shard // set before quic-go has the relay
	ids   *connIDs
	// alone is called when this process reads the socket again, as those that followed it have ended.
	alone func()

	older atomic.Pointer[[]way]        // nil: none; replaced with the lock held
	from  atomic.Pointer[net.UnixConn] // where packets come from; nil: the UDP socket
	out   [maxEnvelope]byte            // of the goroutine that reads, as the next
	in    [maxEnvelope + 1]byte
	left  func()        // the goroutine that reads does not read the UDP socket
	away  chan struct{} // closed by that

	mu       sync.Mutex
	deadline time.Time // of whichever socket is read
	closed   bool
}

// way leads to a process before this one.
type way struct {
	generation byte
	conn       *net.UnixConn
	raw        syscall.RawConn
}

func newRelay(c *net.UDPConn, ids *connIDs, older []way, alone func()) *relay {
	r := &relay{UDPConn: c, batch: ipv4.NewPacketConn(c), ids: ids, alone: alone, away: make(chan struct{})}
	r.left = sync.OnceFunc(func() { close(r.away) })
	if len(older) > 0 {
		r.older.Store(&older)
	}
	for _, w := range older {
		go r.watch(w)
	}
	return r
}

// newWay returns the way to a process, by a socket. It is the caller's if there is an error.
func newWay(generation byte, c *net.UnixConn) (way, error) {
	raw, err := c.SyscallConn()
	// What the other process has not read yet is in this one's buffer. The system may allow less.
	c.SetWriteBuffer(1 << 20)
	return way{generation, c, raw}, err
}

// ReadBatch implements an interface of quic-go, which calls it instead of the socket's methods, on
// one goroutine.
func (r *relay) ReadBatch(ms []ipv4.Message, flags int) (int, error) {
	for {
		n, err := 0, error(nil)
		if c := r.from.Load(); c != nil {
			r.left()
			if n, err = r.receive(c, ms); err == io.EOF {
				r.resume(c)
				continue
			}
		} else if n, err = r.batch.ReadBatch(ms, flags); err != nil && r.from.Load() != nil {
			continue // leave has ended the wait
		}
		if err != nil {
			if t, ok := err.(interface{ Temporary() bool }); !ok || !t.Temporary() {
				r.left() // quic-go will not read any more
			}
			return n, err
		}
		if older := r.older.Load(); older != nil {
			n = r.keep(ms[:n], *older)
		}
		if n > 0 {
			size := 0
			for i := range ms[:n] {
				size += ms[i].N
			}
			r.tally.Add(false, tally.BytesRead, uint64(size))
			return n, nil
		}
	}
}

// WriteMsgUDP is what quic-go writes with where it reads by ReadBatch.
func (r *relay) WriteMsgUDP(b, oob []byte, to *net.UDPAddr) (n, oobn int, err error) {
	n, oobn, err = r.UDPConn.WriteMsgUDP(b, oob, to)
	r.tally.Add(false, tally.BytesWritten, uint64(n))
	return n, oobn, err
}

// ReadFrom and WriteTo implement net.PacketConn, for quic-go on systems where it reads no batches.
func (r *relay) ReadFrom(p []byte) (n int, from net.Addr, err error) {
	n, from, err = r.UDPConn.ReadFrom(p)
	r.tally.Add(false, tally.BytesRead, uint64(n))
	return n, from, err
}

func (r *relay) WriteTo(p []byte, to net.Addr) (n int, err error) {
	n, err = r.UDPConn.WriteTo(p, to)
	r.tally.Add(false, tally.BytesWritten, uint64(n))
	return n, err
}

// keep passes on what is for other processes. It returns how many messages are left, which are the
// first ones then.
func (r *relay) keep(ms []ipv4.Message, older []way) (kept int) {
	for i := range ms {
		m := &ms[i]
		if g, ok := r.ids.of(destination(m.Buffers[0][:m.N])); ok && g != r.ids.generation {
			at := slices.IndexFunc(older, func(w way) bool { return w.generation == g })
			if at >= 0 && r.pass(older[at], m) {
				continue
			}
		}
		if kept != i {
			move(&ms[kept], m)
		}
		kept++
	}
	return kept
}

// pass passes a message on, or drops it if the other process cannot keep up, as a full UDP socket does.
// False: that process has ended. The message is this one's then, whose transport tells the client
// by a stateless reset, as they have the same key, that the connection is gone.
func (r *relay) pass(w way, m *ipv4.Message) bool {
	b := appendEnvelope(r.out[:0], m)
	if b == nil {
		return true
	}
	var e sys.Errno
	err := w.raw.Write(func(fd uintptr) bool {
		_, e = sys.Write(int(fd), b)
		return true
	})
	if err == nil && (e == 0 || sys.Again(e) || e == syscall.ENOBUFS || e == syscall.EMSGSIZE) {
		return true
	}
	r.drop(w)
	return false
}

// watch drops a way when its process has ended. It is a goroutine of its own: nothing comes this way
// but its end, where a system reports that.
func (r *relay) watch(w way) {
	var b [1]byte
	w.conn.Read(b[:])
	r.drop(w)
}

func (r *relay) drop(w way) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.conn.Close()
	var rest []way
	for _, o := range r.ways() {
		if o.conn != w.conn {
			rest = append(rest, o)
		}
	}
	if rest == nil {
		r.older.Store(nil)
		return
	}
	r.older.Store(&rest)
}

// receive reads what the process that reads the UDP socket has passed on. io.EOF: there is none any
// more.
func (r *relay) receive(c *net.UnixConn, ms []ipv4.Message) (n int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	ended := false
	err = raw.Read(func(fd uintptr) bool {
		for n < len(ms) {
			got, e := sys.Read(int(fd), r.in[:])
			if sys.Again(e) {
				return n > 0
			}
			if ended = e != 0 || got == 0; ended {
				return true
			}
			if open(&ms[n], r.in[:got]) {
				n++
			}
		}
		return true
	})
	if n > 0 {
		return n, nil // an end is found again
	}
	if ended {
		err = io.EOF
	}
	return 0, err
}

// leave has packets come from c, to which another process writes those that it reads, and returns
// when this one does not read the UDP socket any more. It is called once.
func (r *relay) leave(c *net.UnixConn) {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		c.Close()
		return
	}
	r.from.Store(c)
	c.SetReadDeadline(r.deadline)
	r.UDPConn.SetReadDeadline(time.Unix(1, 0))
	r.mu.Unlock()
	<-r.away
}

// resume reads the UDP socket again. Two processes never do so: of those that have written to c all
// have ended, and one before this one reads when this one has ended too.
func (r *relay) resume(c *net.UnixConn) {
	r.mu.Lock()
	r.from.Store(nil)
	r.UDPConn.SetReadDeadline(r.deadline)
	r.mu.Unlock()
	c.Close()
	r.alone()
}

// SetReadDeadline implements net.PacketConn. quic-go ends a read by it.
func (r *relay) SetReadDeadline(t time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deadline = t
	if c := r.from.Load(); c != nil {
		return c.SetReadDeadline(t)
	}
	return r.UDPConn.SetReadDeadline(t)
}

// ways returns the ways that there are.
func (r *relay) ways() []way {
	if older := r.older.Load(); older != nil {
		return *older
	}
	return nil
}

// Close implements net.PacketConn.
func (r *relay) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.left()
	for _, w := range r.ways() {
		w.conn.Close()
	}
	if c := r.from.Load(); c != nil {
		c.Close()
	}
	return r.UDPConn.Close()
}
