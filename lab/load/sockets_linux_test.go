package load

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gorilla/websocket"
)

// echoing is a server of WebSockets that changes every so many'th message of all; 0 for none.
func echoing(t *testing.T, every int64, change func(c *websocket.Conn, kind int, p []byte)) (addr string, count *atomic.Int64) {
	t.Helper()
	count = new(atomic.Int64)
	var upgrader websocket.Upgrader
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer c.Close()
		for {
			kind, p, err := c.ReadMessage()
			if err != nil {
				return
			}
			if n := count.Add(1); every > 0 && n%every == 0 {
				change(c, kind, p)
				continue
			}
			if c.WriteMessage(kind, p) != nil {
				return
			}
		}
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String(), count
}

func TestSockets(t *testing.T) {
	t.Parallel()
	for _, s := range []Sockets{
		{Connections: 3, Burst: 1, Size: 64, Seconds: 0.1},
		{Connections: 2, Burst: 16, Size: 64, Seconds: 0.1},
		{Connections: 1, Burst: 2, Size: 300, Seconds: 0.1},
		{Connections: 1, Burst: 1, Size: 0, Seconds: 0.1},
	} {
		addr, count := echoing(t, 0, nil)
		s.Addr = addr
		res, err := s.Run(t.Context())
		if err != nil || res.Errors != 0 {
			t.Fatalf("%+v: %+v, %v", s, res, err)
		}
		if res.Messages != count.Load() || res.Messages < int64(s.Connections*s.Burst) || res.P50 <= 0 || res.P50 > res.P99 || res.PerSecond <= 0 {
			t.Errorf("%+v: %+v; the server counted %d", s, res, count.Load())
		}
	}
}

// Whatever is not the echo fails the connection and is no answer.
func TestSocketsFail(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(c *websocket.Conn, kind int, p []byte){
		"text":   func(c *websocket.Conn, _ int, p []byte) { c.WriteMessage(websocket.TextMessage, p) },
		"longer": func(c *websocket.Conn, kind int, p []byte) { c.WriteMessage(kind, append(p, 'x')) },
		"other":  func(c *websocket.Conn, kind int, p []byte) { c.WriteMessage(kind, append(p[1:], ^p[63])) },
		"twice":  func(c *websocket.Conn, _ int, p []byte) { c.NetConn().Write(slices.Repeat(binaryFrame(p, nil), 2)) },
		"closed": func(c *websocket.Conn, _ int, _ []byte) { c.NetConn().Close() },
	} {
		addr, _ := echoing(t, 5, change)
		res, err := Sockets{Addr: addr, Connections: 1, Burst: 1, Size: 64, Seconds: 60}.Run(t.Context())
		if err != nil || res.Errors != 1 || res.Fault == "" || res.Messages != 4 {
			t.Errorf("%s: %+v, %v; want an error after four messages", name, res, err)
		}
	}
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	res, err := Sockets{Addr: s.Listener.Addr().String(), Connections: 1, Burst: 1, Size: 64, Seconds: 1}.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("no WebSockets: %+v, %v", res, err)
	}
	if _, err := (Sockets{}).Run(t.Context()); err == nil {
		t.Error("no error without connections")
	}
}

// publishing is a room as servers have it. It publishes so many messages too many.
func publishing(t *testing.T, more int) (addr string) {
	t.Helper()
	var mu sync.Mutex
	var room []*websocket.Conn
	var upgrader websocket.Upgrader
	mux := http.NewServeMux()
	mux.HandleFunc(roomPath, func(w http.ResponseWriter, r *http.Request) {
		c, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer c.Close()
		mu.Lock()
		room = append(room, c)
		mu.Unlock()
		for {
			kind, p, err := c.ReadMessage()
			if err != nil || c.WriteMessage(kind, p) != nil {
				return
			}
		}
	})
	mux.HandleFunc("/debug/publish", func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.FormValue("n"))
		size, _ := strconv.Atoi(r.FormValue("size"))
		mu.Lock()
		defer mu.Unlock()
		for _, c := range room {
			for range n + more {
				c.NetConn().Write(binaryFrame([]byte(strings.Repeat("x", size)), nil))
			}
		}
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func TestRoom(t *testing.T) {
	t.Parallel()
	addr := publishing(t, 0)
	room, err := OpenRoom(t.Context(), addr, 20)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := room.Receive(t.Context(), addr, 2, 64); err != nil {
			t.Fatal(err)
		}
	}
	room.Close()

	addr = publishing(t, 1)
	if room, err = OpenRoom(t.Context(), addr, 1); err != nil {
		t.Fatal(err)
	}
	defer room.Close()
	if err := room.Receive(t.Context(), addr, 1, 64); err == nil {
		t.Error("no error with two messages instead of one")
	}
	if _, err := OpenRoom(t.Context(), addr[:strings.Index(addr, ":")]+":1", 1); err == nil {
		t.Error("no error without a server")
	}
}
