package behave

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testhook"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// A handler that has returned, or whose response waits until the unread body
// has arrived, occupies none of MaxHandlers meanwhile: no client can keep
// others out by not sending.
func TestSlotsDuringDrain(t *testing.T) {
	large := strings.Repeat("x", 100_000)
	for _, tt := range []struct {
		name, head, first, rest string
		n                       int // of bytes that the handler writes
	}{
		{"length, small answer", "Content-Length: 100", "a", strings.Repeat("b", 99), 10},
		{"length, large answer", "Content-Length: 100", "a", strings.Repeat("b", 99), len(large)},
		{"chunked, small answer", "Transfer-Encoding: chunked", "5\r\nab", "cde\r\n0\r\n\r\n", 10},
		{"chunked, large answer", "Transfer-Encoding: chunked", "5\r\nab", "cde\r\n0\r\n\r\n", len(large)},
		{"at hand", "Content-Length: 5", "abcde", "", len(large)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			engines.EachPlacement(t, func(t *testing.T, fresh func() *chert.Server) {
				s := fresh()
				s.MaxHandlers, s.QueueLength = 2, 100
				testhook.Of(s).DrainFor(time.Hour)
				sl := &slotted{running: make(chan string, 1000), release: make(chan string)}
				s.Handler = hf(func(w http.ResponseWriter, r *http.Request) {
					switch r.Method {
					case "POST":
						sl.running <- ""
						put(w, large[:tt.n])
						n := sl.now.Add(1) // beside those at /wait
						defer sl.now.Add(-1)
						sl.most.Store(max(n, sl.most.Load()))
					default:
						sl.now.Add(1)
						sl.running <- ""
						<-sl.release
						sl.now.Add(-1)
						put(w, "served")
					}
				})
				sl.Server = engines.Start(t, s)
				var slow []*servertest.Client
				for range 8 {
					c := sl.Dial()
					c.Send(ask("POST /", tt.head) + tt.first)
					slow = append(slow, c)
					servertest.Await(t, sl.running, "the handler")
				}
				if tt.rest == "" {
					for _, c := range slow {
						c.Response("POST")
					}
				}
				// Both slots are free, and no more than they.
				var quick []*servertest.Client
				for range 3 {
					c := sl.Dial()
					c.Send(ask("GET /"))
					quick = append(quick, c)
				}
				servertest.Await(t, sl.running, "a handler")
				servertest.Await(t, sl.running, "another handler")
				servertest.Eventually(t, "a third waits", func() bool { return sl.Inside().Waiting() == 1 })
				for _, c := range slow {
					c.Send(tt.rest)
				}
				close(sl.release)
				for _, c := range quick {
					if _, body := c.Response("GET"); body != "served" {
						t.Errorf("got %q", body)
					}
				}
				if tt.rest != "" {
					for _, c := range slow {
						if _, body := c.Response("POST"); body != large[:tt.n] {
							t.Errorf("got %d bytes", len(body))
						}
					}
				}
				sl.check(2)
				for _, c := range append(quick, slow...) {
					c.Close()
				}
			})
		})
	}
}
