//go:build linux

package sim

import (
	"cmp"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"iter"
	"math/big"
	"net"
	"os"
	"strings"
	"time"

	"github.com/chert-http/chert/internal/sim"
)

// line is a connection as a client has it: a *sim.Socket, or TLS over one.
type line interface {
	Send(p []byte) bool
	CloseWrite()
	Close()
	Reset()
	Arrive(n int) (more bool)
	Unarrived() bool
	Receive(p []byte) (int, error)
}

// secure is a client's connection with TLS by crypto/tls, in memory. The handshake is a
// coroutine that goes on when something has been received; afterwards nothing waits, as in
// internal/tlsio. So no goroutine of a client has to be scheduled.
//
// Randomness is the seed's too (see inBubble), but in the order in which the server's
// goroutines ask for it, so keys and ciphertext may differ between two runs of a seed. What
// is chosen depends on lengths only, and these are the same: the certificate's key is of
// Ed25519, whose signatures have one length (those of ECDSA have several), and so have all
// key shares and tickets.
type secure struct {
	*sim.Socket
	tc    *tls.Conn
	raw   []byte // received, and not read by tc
	plain []byte // opened, and not received
	end   error  // of what is received, after raw
	over  error  // of plain, after it
	moved bool   // the last Receive has received something, of any kind

	shake  func() (struct{}, bool) // goes on with the handshake; nil afterwards
	cancel func()
	yield  func(struct{}) bool // nil after the handshake
	shaken error               // its result
	early  []byte              // to be sent after it
	fin    bool                // so is the end
	buf    []byte
}

var (
	errTruncated = errors.New("the end came without close_notify")
	errLeft      = errors.New("the client has left")
)

func newSecure(s *sim.Socket, cfg *tls.Config) *secure {
	t := &secure{Socket: s, buf: make([]byte, 16<<10)}
	t.tc = tls.Client(below{t}, cfg)
	t.shake, t.cancel = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		t.shaken = t.tc.Handshake()
		t.yield = nil
	})
	t.advance()
	return t
}

// below is what the *tls.Conn of a secure reads from and writes to.
type below struct{ *secure }

// Read implements net.Conn.
func (b below) Read(p []byte) (int, error) {
	for len(b.raw) == 0 {
		switch {
		case b.end != nil:
			return 0, b.end
		case b.yield == nil:
			return 0, os.ErrDeadlineExceeded // a temporary error
		case !b.yield(struct{}{}):
			b.end = errLeft
		}
	}
	n := copy(p, b.raw)
	if b.raw = b.raw[n:]; len(b.raw) == 0 {
		b.raw = nil
	}
	return n, nil
}

// Write implements net.Conn. That the connection is dead is found by reading.
func (b below) Write(p []byte) (int, error) {
	b.Socket.Send(p)
	return len(p), nil
}

// Close and the following methods implement net.Conn.
func (below) Close() error                     { return nil }
func (below) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (below) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (below) SetDeadline(time.Time) error      { return nil }
func (below) SetReadDeadline(time.Time) error  { return nil }
func (below) SetWriteDeadline(time.Time) error { return nil }

// advance does what can be done with what has been received.
func (t *secure) advance() {
	if t.shake != nil {
		if _, waits := t.shake(); waits {
			return
		}
		t.shake, t.over = nil, t.shaken
		if t.over == nil && len(t.early) > 0 {
			t.tc.Write(t.early)
		}
		if t.early = nil; t.over == nil && t.fin {
			t.CloseWrite()
		}
	}
	for t.over == nil {
		n, err := t.tc.Read(t.buf)
		t.plain = append(t.plain, t.buf[:n]...)
		if err == os.ErrDeadlineExceeded {
			return
		}
		t.over = err
	}
}

// truncated reports whether err ends TLS without close_notify, which each side must send before it
// closes (RFC 8446 section 6.1): without it the other cannot know that nothing was cut off.
func truncated(l line, err error) bool {
	t, ok := l.(*secure)
	return ok && t.shake == nil && t.shaken == nil && err == errTruncated
}

// unshaken reports whether err ends a connection because the server has waited too long for the handshake.
// A client of TLS 1.3 has done its own when it has sent its last message, which may still be on its way
// while the clock jumps.
func (p *peer) unshaken(err error) bool {
	return err == errTruncated && p.v.setup.faults[sim.Jump] > 0 &&
		strings.Contains(p.v.logged(), "TLS handshake error from "+p.at+": ")
}

// Receive is Socket.Receive's, of plaintext. The error is io.EOF only after close_notify.
func (t *secure) Receive(p []byte) (int, error) {
	t.moved = false
	if len(t.plain) == 0 && t.over == nil {
		n, err := t.Socket.Receive(p)
		if n == 0 && err == nil {
			return 0, nil
		}
		t.moved = true
		t.raw = append(t.raw, p[:n]...)
		if t.end = err; err == io.EOF {
			t.end = errTruncated
		}
		t.advance()
	}
	if len(t.plain) == 0 {
		return 0, t.over
	}
	n := copy(p, t.plain)
	if t.plain = t.plain[n:]; len(t.plain) == 0 {
		t.plain = nil
	}
	return n, nil
}

// Send is Socket.Send's, of plaintext, which waits for the end of the handshake.
func (t *secure) Send(p []byte) bool {
	if t.shake != nil {
		t.early = append(t.early, p...)
		return true
	}
	_, err := t.tc.Write(p)
	return t.over == nil && err == nil
}

// CloseWrite ends the client's direction by close_notify, after the handshake, and leaves
// the connection below open: nothing may depend on the end of that.
func (t *secure) CloseWrite() {
	if t.fin = true; t.shake == nil {
		t.tc.CloseWrite()
	}
}

// Close is Socket.Close. A client that has received the end says nothing any more, others leave
// without close_notify.
func (t *secure) Close() {
	t.leave()
	t.Socket.Close()
}

// Reset is Socket.Reset.
func (t *secure) Reset() {
	t.leave()
	t.Socket.Reset()
}

// leave ends the handshake.
func (t *secure) leave() {
	if t.shake != nil {
		t.cancel()
		t.shake = nil
	}
}

// config is the handshake that the client wants for its next connection.
func (p *peer) config() *tls.Config {
	cfg := &tls.Config{RootCAs: roots, ServerName: "sim", Certificates: []tls.Certificate{identity}, NextProtos: p.protos}
	if p.d.OneIn(3) {
		cfg.MaxVersion = tls.VersionTLS12
	}
	if !p.d.OneIn(8) { // with the default a hello takes longer to answer, and has more bytes
		cfg.CurvePreferences = []tls.CurveID{tls.X25519, tls.CurveP256}
	}
	if p.d.OneIn(2) {
		if p.cache == nil {
			p.cache = tls.NewLRUClientSessionCache(1)
		}
		cfg.ClientSessionCache = p.cache
	}
	return cfg
}

// spoil sends now and then, over TLS, bytes that are no record, after which only an alert may
// come.
func (p *peer) spoil() bool {
	t, ok := p.s.(*secure)
	if !ok || p.calm || p.civil || p.half || p.closing || t.shake != nil || !p.d.OneIn(4000) {
		return false
	}
	p.note("bad record", 0, 0)
	bad := []byte("\x17\x03\x03\x00\x20 not what a key has made of it..")
	if p.d.IntN(2) == 0 {
		bad = []byte("GET / HTTP/1.1\r\n\r\n")
	}
	t.Socket.Send(bad)
	p.excused = cmp.Or(p.excused, "a bad record") // the end of its silence may be found first
	p.closing, p.out, p.half = true, nil, true
	return true
}

// identity is what the server proves to be.
var identity = func() tls.Certificate {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "sim"},
		DNSNames:     []string{"sim"},
		NotBefore:    time.Unix(0, 0),
		NotAfter:     time.Unix(1<<32, 0),
		IsCA:         true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(nil, c, c, key.Public(), key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}()

// roots are the authorities that clients trust: identity alone.
var roots = func() *x509.CertPool {
	c, err := x509.ParseCertificate(identity.Certificate[0])
	if err != nil {
		panic(err)
	}
	p := x509.NewCertPool()
	p.AddCert(c)
	return p
}()
