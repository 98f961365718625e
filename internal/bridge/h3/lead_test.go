package h3

import (
	"fmt"
	"math"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/tally"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/stats"
)

// The lead passes on from handlers that stay, wait for the client, panic or end their goroutines, and each request is
// answered or reset. The handlers are quick before, so that the leader runs them.
func TestLeaders(t *testing.T) {
	t.Parallel()
	large := make([]byte, 2*maxKept)
	var n atomic.Int64
	unruly := func(w func([]byte)) {
		switch n.Add(1) % 40 {
		case 7:
			time.Sleep(3 * time.Millisecond) // it overstays
		case 17:
			panic(http.ErrAbortHandler)
		case 27:
			runtime.Goexit()
		case 33:
			time.Sleep(3 * time.Millisecond)
			runtime.Goexit()
		case 37:
			w(large)
			return
		}
		w(hello)
	}
	for _, tt := range []struct {
		name string
		h    http.Handler
	}{
		{"plain", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { unruly(func(p []byte) { w.Write(p) }) })},
		{"direct", direct.HandlerFunc(func(x *direct.Exchange) { unruly(func(p []byte) { x.Write(p) }) })},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := served(t, tt.h)
			var id atomic.Uint64
			var answered atomic.Int64
			var clients sync.WaitGroup
			for range 8 {
				clients.Go(func() {
					for range 250 {
						str := c.get(4 * id.Add(1))
						c.streams <- str
						if servertest.Await(t, str.done, "the end of a stream") > 0 {
							answered.Add(1)
						}
					}
				})
			}
			clients.Wait()
			servertest.Eventually(t, "none is running", func() bool { return c.running() == 0 })
			if k := answered.Load(); k < 1800 || k >= 2000 {
				t.Errorf("%d of 2000 requests were answered", k)
			}
		})
	}
}

// running is how many handlers are counted.
func (c *inMemory) running() int64 {
	var all tally.Counts
	all.ReadBeside(c.session.tally)
	return all.Gauge(tally.HandlersBegun, tally.HandlersEnded)
}

// inParts is a request that comes byte by byte: the leader does not wait for it.
type inParts struct{ *memoryStream }

func (s inParts) Read(p []byte) (int, error) { return s.memoryStream.Read(p[:1]) }

// slow is a request that has come when the leader has overstayed.
type slow struct{ *memoryStream }

func (s slow) Read(p []byte) (int, error) {
	for s.c.session.lead.began.Load() != 0 {
		runtime.Gosched()
	}
	return s.memoryStream.Read(p)
}

// A handler that keeps its goroutine counts as running, and is shown, until it ends, however that is.
func TestRunning(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"plain", "direct"} {
		for _, comes := range []string{"at once", "in parts", "slowly"} {
			for name, end := range map[string]func(){
				"return": func() {}, "panic": func() { panic(http.ErrAbortHandler) }, "Goexit": runtime.Goexit,
			} {
				t.Run(fmt.Sprint(kind, " ", comes, " ", name), func(t *testing.T) {
					t.Parallel()
					begun, stay := make(chan bool, 1), make(chan bool)
					release := sync.OnceFunc(func() { close(stay) })
					defer release()
					stays := func() {
						begun <- true
						<-stay
						end()
					}
					var h http.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { stays() })
					want := stats.Request{Method: "GET", Target: "/stays", Protocol: "HTTP/3.0", Peer: client.String(), Way: stats.Inline, Stage: "handler"}
					if kind == "direct" {
						h, want.Way = direct.HandlerFunc(func(*direct.Exchange) { stays() }), stats.Direct
					}
					c := served(t, h)
					c.session.cfg.Placement = bridge.Inline
					str := c.ask(0, want.Target)
					switch comes {
					case "in parts":
						want.Way = stats.Goroutine
						c.streams <- inParts{str}
					case "slowly":
						c.streams <- slow{str}
					default:
						c.streams <- str
					}
					servertest.Await(t, begun, "the handler")
					servertest.Eventually(t, "it is running", func() bool { return c.running() == 1 })
					var got []stats.Request
					c.session.Running(math.MaxInt64, func(r stats.Request, since int64) {
						if r.ID == 0 || since == 0 {
							t.Errorf("%+v, since %d", r, since)
						}
						r.ID = 0
						got = append(got, r)
					})
					if len(got) != 1 || got[0] != want {
						t.Errorf("%+v, want %+v", got, want)
					}
					release()
					servertest.Await(t, str.done, "the end of the stream")
					servertest.Eventually(t, "none is running", func() bool {
						n := c.running()
						c.session.Running(math.MaxInt64, func(stats.Request, int64) { n++ })
						return n == 0
					})
				})
			}
		}
	}
}
