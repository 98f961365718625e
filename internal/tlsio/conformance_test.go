//go:build linux || darwin

package tlsio

import (
	"crypto/tls"
	"net"
	"testing"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/conn/conntest"
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
			return conntest.TLSClient(client.tc, nc)
		}
	}
}

// A link with TLS keeps the contract as one without.
func TestConformance(t *testing.T) {
	t.Parallel()
	openers := map[string]conntest.Opener{
		"tcp": conntest.OnLoop(servertest.TCP), "unix": conntest.OnLoop(servertest.Unix),
		"stream": conntest.OnGoroutine(func(t testing.TB) (nc, peer net.Conn) { return servertest.TCPConns(t) }),
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
