package handler

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// WithEvents is New with another handler for streams of events, and another publish.
func WithEvents(open http.Handler, publish func(data string)) http.Handler {
	mux := withoutEvents()
	mux.Handle("GET /debug/events", open)
	publishes(mux, publish)
	return mux
}

// WithSockets is New with WebSockets instead of events: those at /echo echo what comes, those at /debug/room also get what is
// published.
func WithSockets(echo, room http.Handler, publish func(data string)) http.Handler {
	mux := withoutEvents()
	mux.Handle("GET /echo", echo)
	mux.Handle("GET /debug/room", room)
	publishes(mux, publish)
	return mux
}

func publishes(mux *http.ServeMux, publish func(data string)) {
	mux.HandleFunc("POST /debug/publish", func(w http.ResponseWriter, r *http.Request) {
		n, err1 := strconv.Atoi(r.URL.Query().Get("n"))
		size, err2 := strconv.Atoi(r.URL.Query().Get("size"))
		if err1 != nil || err2 != nil || n < 0 || size < 1 {
			http.Error(w, "n and size: how many, and how long?", http.StatusBadRequest)
			return
		}
		data := strings.Repeat("x", size)
		for range n {
			publish(data)
		}
	})
}

// events are streams as they are usually written: a goroutine and a channel for each client.
type events struct {
	mu      sync.Mutex
	clients map[chan []byte]bool
}

// queued is how many events may wait for one client. A client with more loses some.
const queued = 64

func (e *events) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	control := http.NewResponseController(w)
	if _, err := w.Write([]byte("retry: 3000\n\n")); err != nil || control.Flush() != nil {
		return
	}
	ch := make(chan []byte, queued)
	e.mu.Lock()
	e.clients[ch] = true
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		delete(e.clients, ch)
		e.mu.Unlock()
	}()
	for {
		select {
		case p := <-ch:
			if _, err := w.Write(p); err != nil || control.Flush() != nil {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

func (e *events) publish(data string) {
	p := []byte("data: " + data + "\n\n")
	e.mu.Lock()
	defer e.mu.Unlock()
	for ch := range e.clients {
		select {
		case ch <- p:
		default:
		}
	}
}
