package stream_test

import (
	"crypto/tls"
	"net"
	"testing"

	"github.com/chert-http/chert/internal/conn/conntest"
	"github.com/chert-http/chert/internal/testing/servertest"
)

func TestMain(m *testing.M) { servertest.Main(m, servertest.UseTCP) }

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, pair := range map[string]func(testing.TB) (nc, peer net.Conn){
		"tcp": func(t testing.TB) (nc, peer net.Conn) { return servertest.TCPConns(t) },
		// It has no buffers and no half-close, and its reads and writes meet.
		"pipe": func(testing.TB) (nc, peer net.Conn) { return net.Pipe() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conntest.Test(t, conntest.OnGoroutine(pair))
		})
	}
	t.Run("tls", func(t *testing.T) { // as a listener of crypto/tls has them
		cert, _ := servertest.Certificate(t)
		open := conntest.OnGoroutine(func(t testing.TB) (nc, peer net.Conn) { return secure(t, cert) })
		conntest.TestThrough(t, open, nil)
	})
}

// secure shakes hands.
func secure(t testing.TB, cert tls.Certificate) (nc, peer net.Conn) {
	t.Helper()
	a, b := servertest.TCPConns(t)
	server := tls.Server(a, &tls.Config{Certificates: []tls.Certificate{cert}})
	client := tls.Client(b, &tls.Config{InsecureSkipVerify: true})
	done := make(chan error, 1)
	go func() { done <- server.Handshake() }()
	if err := client.Handshake(); err != nil {
		t.Fatal(err)
	}
	if err := servertest.Await(t, done, "the handshake"); err != nil {
		t.Fatal(err)
	}
	return server, conntest.TLSClient(client, b)
}
