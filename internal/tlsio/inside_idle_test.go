//go:build !go1.28 && !chert_copytls

package tlsio

import (
	"bytes"
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/testing/servertest"
)

// gathering keeps what is written, once it is told to.
type gathering struct {
	net.Conn
	to *bytes.Buffer
}

func (g *gathering) Write(p []byte) (int, error) {
	if g.to != nil {
		return g.to.Write(p)
	}
	return g.Conn.Write(p)
}

// Idle reports whether Read has something to return without another byte from the peer, and
// leaves no buffers.
func TestIdleConn(t *testing.T) {
	t.Parallel()
	nc, peer := servertest.TCPConns(t)
	defer nc.Close()
	defer peer.Close()
	nc.SetDeadline(time.Now().Add(servertest.Patience))
	g := &gathering{Conn: peer}
	client := tls.Client(g, &tls.Config{InsecureSkipVerify: true})
	server := tls.Server(nc, &tls.Config{Certificates: []tls.Certificate{certificate(t)}})
	shaken := make(chan error, 1)
	go func() { shaken <- server.Handshake() }()
	if err := client.Handshake(); err != nil {
		t.Fatal(err)
	}
	if err := servertest.Await(t, shaken, "the handshake"); err != nil {
		t.Fatal(err)
	}
	g.to = new(bytes.Buffer)
	record := func(s string) string {
		g.to.Reset()
		client.Write([]byte(s))
		return g.to.String()
	}
	idle := func(when string, want bool) {
		t.Helper()
		if ready, ok := Idle(server); ready != want || !ok {
			t.Errorf("%s: got %v, %v, want %v", when, ready, ok, want)
		}
	}
	read := func(want string) {
		t.Helper()
		b := make([]byte, len(want))
		if n, err := server.Read(b); string(b[:n]) != want || err != nil {
			t.Fatalf("Read returned %q, %v, want %q", b[:n], err, want)
		}
	}
	idle("after the handshake", false)
	if raw, _, hand := buffers(server); raw.Cap() > 0 || hand.Cap() > 0 {
		t.Errorf("buffers of %d and %d bytes are left", raw.Cap(), hand.Cap())
	}
	// One write, one segment, one read from the socket.
	start, third := record("first")+record("second"), record("third")
	peer.Write([]byte(start + third[:7]))
	read("first")
	idle("with a whole record", true)
	read("sec")
	idle("in the middle of a record", true)
	read("ond")
	idle("with a part of one", false)
	peer.Write([]byte(third[7:]))
	read("third")
	idle("at the end", false)
}
