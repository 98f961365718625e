package conntest

import (
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// Options are the properties of a link that a test needs.
type Options struct {
	// Limits that are 0 do not matter.
	conn.Limits
	// Layer, if not nil, is given to SetLayer before the first byte is read.
	Layer conn.Layer
	// Small asks for socket buffers as small as can be, where there are any.
	Small bool
	// Deadline is SetDeadline's, in nanoseconds from now, before the first byte is
	// read.
	Deadline int64
}

// A Session is a conn.Session that receives its Link.
type Session interface {
	conn.Session
	// On is called before the first byte is read.
	On(conn.Link)
}

// Peer is the other end of a link, and the commands of its server.
type Peer struct {
	net.Conn
	// Command calls first, which may be nil, and sends the link a command. No event reaches the link in between.
	// It returns when the command has been recorded.
	Command func(m conn.Command, first func())
}

// An Opener drives s on one end of a connection, until the connection ends.
type Opener func(t testing.TB, o Options, s Session) Peer

// Sides makes both ends of a layer: a server's, and what a client speaks through
// over its connection. The client's CloseWrite ends its side for good.
type Sides func(testing.TB) (server conn.Layer, client func(net.Conn) net.Conn)

// Test checks that the links of open keep the contract, each test in plain text
// and with a Layer.
func Test(t *testing.T, open Opener) {
	t.Run("plain", func(t *testing.T) { TestThrough(t, open, nil) })
	t.Run("layer", func(t *testing.T) {
		TestThrough(t, open, func(testing.TB) (conn.Layer, func(net.Conn) net.Conn) {
			return NewLayer(), func(nc net.Conn) net.Conn { return NewLayer().Over(nc, nil) }
		})
	})
}

// TestThrough is Test with layers of the given kind, or without one.
func TestThrough(t *testing.T, open Opener, sides Sides) {
	t.Parallel()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.f(&suite{T: t, opener: open, sides: sides})
		})
	}
}

// The contract, as cases.
var tests = []struct {
	name string
	f    func(*suite)
}{
	// What the session is given, and when its methods are called.
	{"lines", testLines},
	{"the peer's end", testEOF},
	{"unread", both(testUnread)},
	{"post", testPost},
	{"post from a session", testPostWithin},
	{"post while it waits", testPostWaiting},
	{"a pause", testPause},
	{"room after a pause", testPauseRoom},
	{"expired", testExpired},
	{"expired beside runs", testExpiredBeside},
	{"switch", testSwitch},
	{"layer at a line", testLayerAtLine},
	{"layer after a stall", testLayerStalled},

	// What is sent.
	{"order", func(x *suite) { x.order(3, false) }},
	{"order in user code", func(x *suite) { x.order(4, true) }},
	{"order of queues", testQueueOrder},
	{"file ends", testFileEnds},
	{"send file", both(testSendFile)},
	{"release", testRelease},
	{"write waits", both(testWriteWaits)},
	{"write for all", testForAll},
	{"the rule of offer", testOfferRule},
	{"offer again", testOfferAgain},
	{"offer ends", testOfferEnds},
	{"discard input", testDiscardInput},

	// User code, alone and beside others.
	{"do", testDo},
	{"do when killed", testDoKilled},
	{"goexit", testGoexit},
	{"watch the peer", both(testWatchPeer)},
	{"runs", testRuns},
	{"runs beside user code", both(testRunsBesideUser)},
	{"runs on the loop", testRunsHere},
	{"hijack", both(testHijack)},
	{"hijack with runs", both(testHijackRuns)},

	// Waits for the peer.
	{"read deadlines", both(testReadDeadlines)},
	{"write deadlines", both(testWriteDeadlines)},
	{"stalls", testStalls},
	{"slow but steady", testSteady},

	// The end.
	{"ends", testEnds},
	{"reset", testReset},
	{"linger", testLinger},
	{"linger_bytes", testLingerBytes},
	{"close with bytes unread", testCloseUnread},
	{"truncated", testTruncated},
	{"close idle", testCloseIdle},
	{"drain with bytes unread", testDrainUnread},
	{"half-close with runs", testRunsHalfClose},

	{"stress", testStress},
}

// both is a case of user code where Data is called, and on a goroutine that does not drive a loop.
func both(f func(x *suite, pooled bool)) func(*suite) {
	return func(x *suite) {
		f(x, false)
		f(x, true)
	}
}

// suite is one test on one kind of links.
type suite struct {
	*testing.T
	opener Opener
	sides  Sides // nil for plain text
}

// client is the peer of a link.
type client struct {
	*servertest.Client
	s   *script // the link's first session
	raw net.Conn
	// commandAfter is Peer's Command.
	commandAfter func(m conn.Command, first func())
}

// hour stands for a limit that does not matter.
const hour = int64(time.Hour)

// moment is a time that is to pass.
const moment = 20 * time.Millisecond

// open begins a link with session s.
func (x *suite) open(o Options, s *script) *client {
	x.Helper()
	for _, l := range []*int64{&o.ReadStall, &o.WriteStall} {
		if *l == 0 {
			*l = hour
		}
	}
	var through func(net.Conn) net.Conn
	if x.sides != nil {
		o.Layer, through = x.sides(x.T)
		s.layer = true
	}
	s.init(x.T)
	p := x.opener(x.T, o, s)
	nc := p.Conn
	if _, ok := nc.(interface{ CloseWrite() error }); !ok {
		nc = newPostConn(nc)
	}
	if through != nil {
		nc = through(nc)
	}
	x.Cleanup(func() {
		p.Close()
		p.Command(conn.Kill, nil)
		s.ended()
	})
	return &client{servertest.NewClient(x.T, nc), s, p.Conn, p.Command}
}

func (c *client) command(m conn.Command) { c.commandAfter(m, nil) }

// begin is open, and sends a line.
func (x *suite) begin(o Options, s *script) *client {
	x.Helper()
	c := x.open(o, s)
	c.Send("go\n")
	return c
}

// ends waits for the end of the connection, that closes closes, and checks that it was not hijacked.
func (c *client) ends() {
	c.s.t.Helper()
	c.Ended()
	c.s.isClosed()
}

func (c *client) closes() {
	c.s.t.Helper()
	c.Close()
	c.s.isClosed()
}

// postConn is a net.Conn whose writes are made by a goroutine of its own: for a
// net.Pipe, where a client that writes must not wait for a server that does.
type postConn struct {
	net.Conn
	mu      sync.Mutex
	pending []byte
	writing bool
}

func newPostConn(nc net.Conn) *postConn { return &postConn{Conn: nc} }

func (l *postConn) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = append(l.pending, p...)
	if !l.writing {
		l.writing = true
		go l.write()
	}
	return len(p), nil
}

func (l *postConn) write() {
	for {
		l.mu.Lock()
		p := l.pending
		if l.pending = nil; len(p) == 0 {
			l.writing = false
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		if _, err := l.Conn.Write(p); err != nil {
			return // and all that follows is lost, as on the way
		}
	}
}

// canHalfClose reports whether the peer may close its side alone.
func (c *client) canHalfClose() bool {
	_, ok := c.raw.(interface{ CloseWrite() error })
	return ok
}

// canBreak reports whether the peer may send what the link's layer does not open. A pipe would wait for its reader.
func (c *client) canBreak() bool { return c.s.layer && c.canHalfClose() }

// canReset reports whether the peer may end the connection by a reset.
func (c *client) canReset() bool {
	_, ok := c.raw.(*net.TCPConn)
	return ok
}

func (c *client) reset() {
	c.raw.(*net.TCPConn).SetLinger(0)
	c.raw.Close()
}

// arrived waits until the link's socket has all that was sent.
func (c *client) arrived() {
	tcp, ok := socket(c.raw)
	if !ok {
		return // there is no way between sockets of a system
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		c.s.t.Fatal(err)
	}
	servertest.Eventually(c.s.t, "all has arrived", func() bool {
		n := 0
		raw.Control(func(fd uintptr) { n = sys.Queued(int(fd)) })
		return n == 0
	})
}

// vanish closes the peer's socket without closing the layer.
func (c *client) vanish() { c.raw.Close() }

// slowly reads n bytes in pieces of odd sizes.
func (c *client) slowly(n int) []byte {
	c.s.t.Helper()
	b := make([]byte, n)
	for have, k := 0, 1; have < n; k = k*7%8191 + 1 {
		m, err := c.R.Read(b[have:min(have+k, n)])
		if have += m; err != nil {
			c.s.t.Fatalf("%d of %d bytes, %v", have, n, err)
		}
	}
	return b
}

// gets checks that want comes, read slowly.
func (c *client) gets(want []byte) {
	c.s.t.Helper()
	same(c.s.t, c.slowly(len(want)), want)
}

// sendLines sends the numbers below n, a line for each, while the test goes on.
func (c *client) sendLines(n int) {
	go func() {
		for i := range n {
			fmt.Fprintf(c.Conn, "%d\n", i)
		}
	}()
}

// rest reads up to the end, however that comes.
func (c *client) rest() []byte {
	b, _ := io.ReadAll(c.R)
	return b
}

// reading is rest, on another goroutine.
func (c *client) reading() <-chan string {
	got := make(chan string, 1)
	go func() { got <- string(c.rest()) }()
	return got
}
