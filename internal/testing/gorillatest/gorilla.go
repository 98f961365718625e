package gorillatest

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// Received returns gorilla's connection of a server that has received b, and then the
// end.
func Received(t testing.TB, b []byte) *websocket.Conn {
	t.Helper()
	r := httptest.NewRequest("GET", "/", nil)
	r.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"},
		"Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}}
	c, err := new(websocket.Upgrader).Upgrade(hijacker{httptest.NewRecorder(), wire{bytes.NewReader(b)}}, r, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// wire is a connection that has received what its Reader gives.
type wire struct{ io.Reader }

func (wire) Write(p []byte) (int, error)      { return len(p), nil }
func (wire) Close() error                     { return nil }
func (wire) LocalAddr() net.Addr              { return nil }
func (wire) RemoteAddr() net.Addr             { return nil }
func (wire) SetDeadline(time.Time) error      { return nil }
func (wire) SetReadDeadline(time.Time) error  { return nil }
func (wire) SetWriteDeadline(time.Time) error { return nil }

type hijacker struct {
	*httptest.ResponseRecorder
	c wire
}

func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return h.c, bufio.NewReadWriter(bufio.NewReader(h.c), bufio.NewWriter(h.c)), nil
}
