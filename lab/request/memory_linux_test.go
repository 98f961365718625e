package request

import (
	"bytes"
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/sys"
)

// Descriptors that no kernel has given out.
const (
	listenFD = 1<<24 + iota
	connFD
	reserveFD
)

// memory is a poller with one listener, one connection and no kernel. Its client sends a request when it has received
// the response to the one before, and all that the loop does is the server's.
type memory struct {
	client *Client
	// What the loop alone uses.
	keys   [2]poll.Key // of the listener and the connection
	dialed bool
	opened bool
	in     []byte // sent by the client, and not read
	tail   []byte // how the response that is awaited ends

	left    atomic.Int64 // requests to be sent
	running atomic.Bool  // until they are answered
	done    chan struct{}
	busy    atomic.Bool // a response is awaited
	asleep  atomic.Bool
	wake    chan struct{}
	waits   atomic.Uint64
	lost    atomic.Bool // the server has closed the connection
}

var hello = []byte(Hello)

func newMemory(c *Client) *memory {
	return &memory{client: c, done: make(chan struct{}, 1), wake: make(chan struct{}, 1)}
}

// run has n requests served.
func (m *memory) run(n int) {
	m.left.Store(int64(n))
	m.running.Store(true)
	m.Wake()
	<-m.done
}

// ask sends the next bytes of the client, and reports whether there are some.
func (m *memory) ask() bool {
	if m.busy.Load() {
		return false
	}
	if !m.opened {
		m.opened = true
		if send, end := m.client.Open(); send != nil {
			m.in, m.tail = send, end
			m.busy.Store(true)
			return true
		}
	}
	left := m.left.Load()
	if left == 0 {
		if m.running.Swap(false) {
			m.done <- struct{}{}
		}
		return false
	}
	m.left.Store(left - 1)
	m.in, m.tail = m.client.Next(), hello
	m.busy.Store(true)
	return true
}

func (m *memory) Wait(events []poll.Event, until int64) (int, error) {
	m.waits.Add(1)
	if !m.dialed && m.keys[0] != 0 {
		events[0] = poll.Event{Key: m.keys[0], Ready: poll.Readable}
		return 1, nil
	}
	if m.dialed && m.keys[1] != 0 && m.ask() {
		events[0] = poll.Event{Key: m.keys[1], Ready: poll.Readable}
		return 1, nil
	}
	if until == poll.Now {
		return 0, nil
	}
	m.asleep.Store(true)
	defer m.asleep.Store(false)
	var timer <-chan time.Time
	if until != poll.Never {
		timer = time.After(time.Duration(until - sys.Nanotime()))
	}
	select {
	case <-m.wake:
	case <-timer:
	}
	return 0, nil
}

func (m *memory) Add(fd int, key poll.Key) error {
	m.keys[fd-listenFD] = key
	return nil
}

func (m *memory) Wake() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (*memory) Connect(*sys.Remote) (int, sys.Errno) { return -1, syscall.ECONNREFUSED }
func (*memory) SocketError(int) sys.Errno            { return 0 }
func (m *memory) Accept(int) (int, string, sys.Errno) {
	if m.dialed {
		return -1, "", syscall.EAGAIN
	}
	m.dialed = true
	return connFD, "127.0.0.1:1", 0
}

func (m *memory) Read(_ int, p []byte) (int, sys.Errno) {
	if len(m.in) == 0 {
		return 0, syscall.EAGAIN
	}
	n := copy(p, m.in)
	m.in = m.in[n:]
	return n, 0
}

func (m *memory) Write2(_ int, a, b []byte) (int, sys.Errno) {
	if bytes.HasSuffix(a, m.tail) || bytes.HasSuffix(b, m.tail) {
		if m.busy.Store(false); m.asleep.Load() {
			m.Wake()
		}
	}
	return len(a) + len(b), 0
}

func (m *memory) CloseFD(fd int) {
	if fd == connFD {
		m.lost.Store(true)
	}
}

func (m *memory) WriteMore(fd int, p []byte) (int, sys.Errno)    { return m.Write2(fd, p, nil) }
func (m *memory) Sendfile(int, int, int64, int) (int, sys.Errno) { return 0, syscall.EINVAL }
func (m *memory) Peek(int) (int, sys.Errno)                      { return 0, syscall.EAGAIN }
func (m *memory) Waits() uint64                                  { return m.waits.Load() }
func (m *memory) Conn(int) (net.Conn, error)                     { return nil, errors.New("no socket") }
func (m *memory) Reserve() (int, error)                          { return reserveFD, nil }
func (m *memory) Pending(int) bool                               { return !m.dialed }
func (*memory) Remove(int)                                       {}
func (*memory) Share(bool)                                       {}
func (*memory) Close() error                                     { return nil }
func (*memory) Queued(int) int                                   { return 0 }
func (*memory) CloseWrite(int)                                   {}
func (*memory) CloseBoth(int)                                    {}
func (*memory) SetReset(int)                                     {}

var _ poll.Poller = (*memory)(nil)
