//go:build linux

package sim

import (
	"crypto/tls"
	"io"
	"net"
	"strings"
	"time"

	"github.com/chert-http/chert/internal/poll"
)

// tlsClient plays a client of HTTP/1 over TLS.
type tlsClient struct {
	*client
	odd   string // the connection has no requests: what it does instead
	oddTo int64  // until when
}

func (c *tlsClient) state() string {
	if c.odd != "" {
		return c.odd
	}
	return c.client.state()
}

// speakTLS sets the server's side of the handshakes.
func speakTLS(v *served) {
	d := v.dice
	v.TLSConfig = &tls.Config{Certificates: []tls.Certificate{identity}}
	if d.OneIn(4) { // asks most clients for another key share: HelloRetryRequest
		v.TLSConfig.CurvePreferences = []tls.CurveID{tls.CurveP256}
	}
	if d.OneIn(4) {
		v.TLSConfig.ClientAuth = tls.RequireAnyClientCert
	}
	if d.OneIn(4) {
		v.TLSConfig.SessionTicketsDisabled = true
	}
	if d.OneIn(3) { // user code in a handshake that waits
		v.TLSConfig.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			v.world.Point(uint64(hello.Conn.RemoteAddr().(*net.TCPAddr).Port))
			return &identity, nil
		}
	}
}

// Next implements sim.Actor.
func (c *tlsClient) Next() int64 {
	if next := c.client.Next(); next != poll.Never || c.over || c.s == nil || c.odd == "" {
		return next
	}
	return c.oddTo
}

// Step implements sim.Actor.
func (c *tlsClient) Step() (did bool) {
	switch {
	case c.over || c.paused():
		return false
	case c.s == nil:
		return c.connect()
	case c.odd != "":
		return c.stepOdd()
	}
	return c.client.Step()
}

func (c *tlsClient) connect() bool {
	c.odd = ""
	c.plain = !c.calm && !c.stays && c.d.OneIn(20)
	did := c.client.connect()
	if c.s != nil && c.plain {
		c.beginOdd()
	}
	return did
}

// oddFor is how long a connection without a handshake may last: more than the server gives it.
const oddFor = time.Minute

// beginOdd begins a connection that has no TLS, or no end of a handshake.
func (c *tlsClient) beginOdd() {
	c.oddTo = c.v.world.Now() + int64(oddFor)
	switch c.d.IntN(3) {
	case 0:
		c.odd, c.out = "speaks no TLS", []byte("GET / HTTP/1.1\r\nHost: sim\r\n\r\n")
	case 1:
		c.odd, c.out = "is silent in the handshake", helloOf(c.config())
		c.out = c.out[:c.d.IntN(len(c.out)+1)]
	case 2:
		c.odd, c.out = "breaks the handshake", append(helloOf(c.config()), "\x16\x03\x03\x00\x08 no end.."...)
	}
	c.note(c.odd, len(c.out), 0)
}

// stepOdd goes on with it, until the server ends the connection.
func (c *tlsClient) stepOdd() (did bool) {
	if c.v.world.Now() >= c.oddTo {
		c.fail("it %s, and the server waits for ever", c.odd)
		return true
	}
	if c.d.OneIn(2000) {
		c.leave()
		c.s = nil
		return true
	}
	if c.push() {
		did = true
	}
	if c.arrive() {
		did = true
	}
	more, err := c.pull()
	if err != nil {
		c.endedOdd(err)
	}
	return did || more
}

func (c *tlsClient) endedOdd(err error) {
	c.noteEnd("ended", err, len(c.in), 0)
	c.s.Close()
	c.s = nil
	switch in := string(c.in); {
	case c.odd != "speaks no TLS" || err != io.EOF || c.v.cutsAllowed():
	case strings.HasPrefix(in, "HTTP/1.0 400 Bad Request\r\n") && strings.HasSuffix(in, "HTTPS server.\n"):
	default:
		c.fail("it speaks no TLS, and has received %q", in)
	}
}

// recorder has what a client of TLS sends first.
type recorder struct {
	below
	b []byte
}

func (r *recorder) Read([]byte) (int, error) { return 0, io.EOF }

func (r *recorder) Write(p []byte) (int, error) {
	r.b = append(r.b, p...)
	return len(p), nil
}

// helloOf returns a ClientHello.
func helloOf(cfg *tls.Config) []byte {
	r := &recorder{}
	tls.Client(r, cfg).Handshake()
	return r.b
}
