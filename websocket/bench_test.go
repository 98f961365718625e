package websocket

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/chert-http/chert/internal/wsframe"
)

// BenchmarkNetHTTP is an echo of a small message on net/http's server, client and server in one process.
func BenchmarkNetHTTP(b *testing.B) {
	h, err := New(&Options{OnMessage: func(c *Conn, t Type, p []byte) { c.Send(t, p) }})
	if err != nil {
		b.Fatal(err)
	}
	ts := httptest.NewServer(h)
	defer ts.Close()
	nc, err := net.Dial("tcp", ts.Listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close()
	io.WriteString(nc, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	r := bufio.NewReader(nc)
	if res, err := http.ReadResponse(r, nil); err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		b.Fatal(res, err)
	}
	p := fromClient(wsframe.Text, false, "hello world")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := nc.Write(p); err != nil {
			b.Fatal(err)
		}
		if _, err := r.Discard(2 + len("hello world")); err != nil {
			b.Fatal(err)
		}
	}
}
