//go:build linux || darwin

package tlsio

import (
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/conn/conntest"
	"github.com/chert-http/chert/internal/stream"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
	"github.com/chert-http/chert/internal/testing/servertest"
)

func TestMain(m *testing.M) { servertest.Main(m, servertest.UseTCP) }

// sides shakes hands in memory.
func sides(version uint16) conntest.Sides {
	return func(t testing.TB) (conn.Layer, func(net.Conn) net.Conn) {
		t.Helper()
		a, b := net.Pipe()
		defer a.Close()
		defer b.Close()
		server, client := new(wire), new(wire)
		server.over(a, nil)
		client.over(b, nil)
		server.tc = tls.Server(server, &tls.Config{Certificates: []tls.Certificate{certificate(t)}, SessionTicketsDisabled: true, MaxVersion: version})
		client.tc = tls.Client(client, &tls.Config{InsecureSkipVerify: true})
		done := make(chan error, 1)
		go func() { done <- server.tc.Handshake() }()
		if err := client.tc.Handshake(); err != nil {
			t.Fatal(err)
		}
		if err := servertest.Await(t, done, "the handshake"); err != nil {
			t.Fatal(err)
		}
		return server.asLayer(), func(nc net.Conn) net.Conn {
			client.over(nc, nil)
			return &tlsClient{client.tc, nc}
		}
	}
}

// tlsClient ends its side with close_notify and FIN.
type tlsClient struct {
	*tls.Conn
	nc net.Conn
}

func (c *tlsClient) CloseWrite() error {
	err := c.Conn.CloseWrite()
	if half, ok := c.nc.(interface{ CloseWrite() error }); ok && err == nil {
		err = half.CloseWrite()
	}
	return err
}

// Close does not wait for a peer that takes nothing, as tls.Conn's does.
func (c *tlsClient) Close() error {
	c.nc.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	return c.Conn.Close()
}

// A link with TLS keeps the contract as one without.
func TestConformance(t *testing.T) {
	t.Parallel()
	openers := map[string]conntest.Opener{
		"tcp": conntest.OnLoop(servertest.TCP), "unix": conntest.OnLoop(servertest.Unix), "stream": onStream,
	}
	for name, open := range openers {
		for version, v := range map[string]uint16{"1.3": tls.VersionTLS13, "1.2": tls.VersionTLS12} {
			if version == "1.2" && name != "tcp" {
				continue
			}
			t.Run(name+" "+version, func(t *testing.T) { conntest.TestThrough(t, open, sides(v)) })
		}
	}
}

// onStream opens connections on goroutines.
func onStream(t testing.TB, o conntest.Options, s conntest.Session) conntest.Peer {
	nc, peer := servertest.TCPConns(t)
	if o.Small {
		nc.SetWriteBuffer(servertest.Small(peer))
	}
	c := stream.New(nc, &o.Limits, new(tally.Shard), nil)
	c.SetLayer(o.Layer)
	if o.Deadline != 0 {
		c.SetDeadline(sys.Nanotime() + o.Deadline)
	}
	s.On(c)
	go func() {
		defer c.Gone() // also after runtime.Goexit
		c.Run(s)
	}()
	return conntest.Peer{Conn: peer, Command: func(m conn.Command) {
		map[conn.Command]func(){conn.Kill: c.Kill, conn.Drain: c.Drain, conn.CloseIdle: c.CloseIdle}[m]()
	}}
}
