// Command sse serves Server-Sent Events with chert: events posted to /publish
// are sent to all clients of /events.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"
	"sync"

	"github.com/chert-http/chert"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "where to listen")
	flag.Parse()
	srv := &chert.Server{Handler: newBroker().handler()}
	l, err := srv.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s/\n", l.Addr())
	if err := chert.Run(context.Background(), srv, 0, func() error { return srv.Serve(l) }); err != nil {
		log.Fatal(err)
	}
}

// broker passes events to subscribers.
type broker struct {
	mu   sync.Mutex
	subs map[chan string]struct{}
}

func newBroker() *broker { return &broker{subs: make(map[chan string]struct{})} }

func (b *broker) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		io.WriteString(w, page)
	})
	mux.HandleFunc("GET /events", b.events)
	mux.HandleFunc("POST /publish", b.publish)
	return mux
}

const page = `<!doctype html><title>events</title><pre id=log></pre><script>
new EventSource("/events").onmessage = e => log.textContent += e.data + "\n"
</script>
`

// dataLines makes a field of each line: all of these end one, and the next would be a field of
// the publisher's choice.
var dataLines = strings.NewReplacer("\r\n", "\ndata: ", "\r", "\ndata: ", "\n", "\ndata: ")

func (b *broker) events(w http.ResponseWriter, r *http.Request) {
	ch := make(chan string, 16)
	b.mu.Lock()
	b.subs[ch] = struct{}{}
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.subs, ch)
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	rc := http.NewResponseController(w)
	if err := rc.Flush(); err != nil { // triggers the client's onopen
		return
	}
	for {
		select {
		case text := <-ch:
			if _, err := fmt.Fprintf(w, "data: %s\n\n", dataLines.Replace(text)); err != nil {
				return
			}
			if err := rc.Flush(); err != nil {
				return
			}
		case <-r.Context().Done():
			return
		case <-chert.Stopping(r.Context()): // nil on other servers
			return
		}
	}
}

// publish skips subscribers that are too slow instead of waiting for them.
func (b *broker) publish(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for ch := range b.subs {
		select {
		case ch <- string(text):
			n++
		default:
		}
	}
	fmt.Fprintf(w, "sent to %d\n", n)
}
