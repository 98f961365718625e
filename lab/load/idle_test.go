package load

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

func TestIdle(t *testing.T) {
	var open, asked atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Write([]byte("Hello, World!"))
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			open.Add(1)
		}
	}
	s.Start()
	defer s.Close()

	const n = 50
	idle, err := OpenIdle(t.Context(), s.Listener.Addr().String(), n, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	if open.Load() != n || asked.Load() != n {
		t.Errorf("%d connections, %d requests, want %d of each", open.Load(), asked.Load(), n)
	}
	if err := idle.Ask(t.Context()); err != nil || open.Load() != n || asked.Load() != 2*n {
		t.Errorf("asked again: %v; %d connections, %d requests", err, open.Load(), asked.Load())
	}
	s.CloseClientConnections()
	if err := idle.Ask(t.Context()); err == nil {
		t.Error("no error although the server closed all connections")
	}
}

func TestIdleRefusesErrors(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	if _, err := OpenIdle(t.Context(), s.Listener.Addr().String(), 3, nil); err == nil {
		t.Error("no error although every answer is a 404")
	}
}
