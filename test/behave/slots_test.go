package behave

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// slotted is a server with MaxHandlers whose handlers wait at /wait, and which
// counts those that run.
type slotted struct {
	*engines.Server
	running, release chan string
	now, most        atomic.Int64
	served           sync.Map
}

func startSlotted(t *testing.T, s *chert.Server) *slotted {
	sl := &slotted{running: make(chan string, 1000), release: make(chan string)}
	s.Handler = hf(func(w http.ResponseWriter, r *http.Request) {
		n := sl.now.Add(1)
		counted := true
		defer func() {
			if counted {
				sl.now.Add(-1)
			}
		}()
		for most := sl.most.Load(); n > most && !sl.most.CompareAndSwap(most, n); most = sl.most.Load() {
		}
		sl.served.Store(r.URL.RequestURI(), true)
		switch path := r.URL.Path; {
		case path == "/wait":
			sl.running <- r.URL.RawQuery
			<-sl.release
		case path == "/panic":
			panic(http.ErrAbortHandler)
		case path == "/goexit":
			runtime.Goexit()
		case path == "/hijack":
			nc, rw, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer nc.Close()
			// The slot is free from here on: this handler must not be counted
			// again, not even for the moment of its return.
			counted = false
			sl.now.Add(-1)
			put(nc, "mine")
			rw.ReadByte()
			return
		}
		put(w, "served "+r.URL.RawQuery)
	})
	sl.Server = engines.Start(t, s)
	return sl
}

func (sl *slotted) check(max int64) {
	sl.T.Helper()
	if n := sl.most.Load(); n > max {
		sl.T.Errorf("%d handlers ran at once, of %d", n, max)
	}
}

// At most MaxHandlers run, and the others wait in order.
func TestSlotsOrder(t *testing.T) {
	engines.EachPlacement(t, func(t *testing.T, fresh func() *chert.Server) {
		s := fresh()
		s.MaxHandlers, s.QueueLength = 2, 20
		sl := startSlotted(t, s)
		var all []*servertest.Client
		for i := range 22 {
			c := sl.Dial()
			c.Send(ask(fmt.Sprintf("GET /wait?%d", i)))
			all = append(all, c)
			if i < 2 {
				servertest.Await(t, sl.running, "a handler")
			} else {
				servertest.Eventually(t, "it waits", func() bool { return sl.Inside().Waiting() == i-1 })
			}
		}
		late := sl.Dial()
		if res, body := late.Get("/late"); res.StatusCode != 503 || res.Header.Get("Retry-After") != "1" || res.Close || body != "503 Service Unavailable\n" || res.ContentLength != int64(len(body)) {
			t.Errorf("got %v %q", res, body)
		}
		// A browser's EventSource would never come back after a 503.
		if res, body := late.Get("/late", "Accept: text/event-stream"); res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" || !strings.HasPrefix(body, "retry: ") {
			t.Errorf("got %v %q", res, body)
		}
		for i := range 20 {
			sl.release <- ""
			if got, want := servertest.Await(t, sl.running, "the next handler"), fmt.Sprint(i+2); got != want {
				t.Errorf("request %s came before %s", got, want)
			}
		}
		close(sl.release)
		for i, c := range all {
			if _, body := c.Response("GET"); body != fmt.Sprint("served ", i) {
				t.Errorf("got %q", body)
			}
		}
		servertest.Eventually(t, "there is a place", func() bool {
			res, _ := late.Get("/kept")
			return res.StatusCode == 200
		})
		if _, ok := sl.served.Load("/late"); ok {
			t.Error("the refused request was served")
		}
		sl.check(2)
	})
}

// QueueLength is as documented: 0 as many as may run, negative none.
func TestSlotsQueueLength(t *testing.T) {
	engines.EachPlacement(t, func(t *testing.T, fresh func() *chert.Server) {
		for _, tt := range []struct{ length, want int }{{0, 3}, {-1, 0}, {5, 5}, {1, 1}} {
			s := fresh()
			s.MaxHandlers, s.QueueLength = 3, tt.length
			sl := startSlotted(t, s)
			for range 3 {
				sl.Dial().Send(ask("GET /wait"))
				servertest.Await(t, sl.running, "a handler")
			}
			for i := range tt.want {
				sl.Dial().Send(ask("GET /"))
				servertest.Eventually(t, "it waits", func() bool { return sl.Inside().Waiting() == i+1 })
			}
			for range 3 {
				if res, _ := sl.Dial().Get("/"); res.StatusCode != 503 {
					t.Errorf("QueueLength %d: got %v", tt.length, res.Status)
				}
			}
			close(sl.release)
			sl.check(3)
		}
	})
}

// The rest of a refused request is drained, and its connection continues.
func TestSlotsRefusedBody(t *testing.T) {
	engines.EachPlacement(t, func(t *testing.T, fresh func() *chert.Server) {
		s := fresh()
		s.MaxHandlers, s.QueueLength = 1, -1
		sl := startSlotted(t, s)
		blocker := sl.Dial()
		blocker.Send(ask("GET /wait"))
		servertest.Await(t, sl.running, "the handler")
		c := sl.Dial()
		for _, script := range []string{
			post("/", "hello"), post("/", string(servertest.Pattern(100_000))), postChunks("/", servertest.Chunks(string(servertest.Pattern(10000)), 999)), ask("HEAD /"), ask("POST /"), ask("OPTIONS /"),
		} {
			go c.Send(script)
			method, _, _ := strings.Cut(script, " ")
			if res, _ := c.Response(method); res.StatusCode != 503 || res.Close || res.ContentLength != 24 {
				t.Errorf("%s: got %v", servertest.Brief(script), res)
			}
		}
		slow := sl.Dial()
		slow.Send(ask("POST /", "Content-Length: 10") + "hello")
		// As with every response, the body is drained first if it is small.
		sl.Dial().Get("/")
		slow.Send("world")
		if res, _ := slow.Response("POST"); res.StatusCode != 503 || res.Close {
			t.Errorf("got %v", res)
		}
		expects := sl.Dial()
		expects.Send(ask("POST /", "Content-Length: 10", "Expect: 100-continue"))
		if res, _ := expects.Response("POST"); res.StatusCode != 503 || !res.Close {
			t.Errorf("got %v", res)
		}
		closes := sl.Dial()
		if res, _ := closes.Get("/", "Connection: close"); res.StatusCode != 503 || !res.Close {
			t.Errorf("got %v", res)
		}
		closes.Ended()
		old := sl.Dial()
		old.Send(ask10("GET /"))
		if got := old.Rest(); !strings.HasPrefix(got, "HTTP/1.") || !strings.Contains(got, " 503 ") {
			t.Errorf("got %q", got)
		}
		close(sl.release)
		blocker.Response("GET")
		servertest.Eventually(t, "there is a place", func() bool {
			res, _ := c.Get("/")
			return res.StatusCode == 200
		})
		sl.check(1)
	})
}

// A handler's slot is free again however it ends.
func TestSlotsFreed(t *testing.T) {
	engines.EachPlacement(t, func(t *testing.T, fresh func() *chert.Server) {
		s := fresh()
		s.MaxHandlers, s.QueueLength = 1, 100
		sl := startSlotted(t, s)
		for range 3 {
			for _, path := range []string{"/panic", "/goexit"} {
				c := sl.Dial()
				c.Send(ask("GET " + path))
				c.Ended()
			}
			c := sl.Dial()
			c.Send(ask("GET /hijack"))
			c.Want("mine") // and it continues
			c = sl.Dial()
			c.Send("nonsense\r\n\r\n")
			c.Rest()
			c.Close()
			c = sl.Dial()
			c.Send(ask("POST /", "Content-Length: 100") + "leaves")
			c.Reset()
			if _, body := sl.Dial().Get("/?q"); body != "served q" {
				t.Errorf("got %q", body)
			}
		}
		sl.check(1)
	})
}

// If a client leaves while its request waits, no handler runs for it, once the
// server has noticed; and the next one in the queue advances.
func TestSlotsClientLeaves(t *testing.T) {
	engines.EachPlacement(t, func(t *testing.T, fresh func() *chert.Server) {
		s := fresh()
		s.MaxHandlers, s.QueueLength = 1, 10
		fs := &engines.Counting{}
		fs.Count(s)
		sl := startSlotted(t, s)
		fs.Server = sl.Server
		blocker := sl.Dial()
		blocker.Send(ask("GET /wait"))
		servertest.Await(t, sl.running, "the handler")
		gone := sl.Dial()
		gone.Send(ask("GET /gone"))
		servertest.Eventually(t, "it waits", func() bool { return sl.Inside().Waiting() == 1 })
		stays := sl.Dial()
		stays.Send(ask("GET /stays"))
		servertest.Eventually(t, "it waits too", func() bool { return sl.Inside().Waiting() == 2 })
		gone.Reset()
		if s.Engine == chert.EngineLoops {
			// On the goroutine engine a connection is not watched while it
			// waits. This one's loop has noticed when it has served others
			// since.
			for range 16 * runtime.GOMAXPROCS(0) {
				c := sl.Dial()
				c.Send("nonsense\r\n\r\n")
				c.Rest()
				c.Close()
			}
		}
		close(sl.release)
		if _, body := stays.Response("GET"); body != "served " {
			t.Errorf("got %q", body)
		}
		if _, ok := sl.served.Load("/gone"); ok && s.Engine == chert.EngineLoops {
			t.Error("the handler of a client that has gone ran")
		}
		blocker.Close()
		stays.Close()
		fs.Settled(3)
		sl.check(1)
	})
}

// Shutdown serves those that wait; Close does not.
func TestSlotsShutdown(t *testing.T) {
	engines.EachPlacement(t, func(t *testing.T, fresh func() *chert.Server) {
		for _, closes := range []bool{false, true} {
			s := fresh()
			s.MaxHandlers, s.QueueLength = 1, 10
			sl := startSlotted(t, s)
			blocker := sl.Dial()
			blocker.Send(ask("GET /wait"))
			servertest.Await(t, sl.running, "the handler")
			var waiting []*servertest.Client
			for i := range 5 {
				c := sl.Dial()
				c.Send(ask(fmt.Sprintf("GET /waited?%d", i)))
				servertest.Eventually(t, "it waits", func() bool { return sl.Inside().Waiting() == i+1 })
				waiting = append(waiting, c)
			}
			if closes {
				sl.Close()
				for _, c := range append(waiting, blocker) {
					if got := c.UpToEnd(); got != "" {
						t.Errorf("got %q", got)
					}
				}
				close(sl.release)
				continue
			}
			ended := make(chan error, 1)
			go func() { ended <- sl.Shutdown(context.Background()) }()
			sl.Refuses()
			close(sl.release)
			if res, _ := blocker.Response("GET"); !res.Close {
				t.Errorf("got %v", res)
			}
			for i, c := range waiting {
				if res, body := c.Response("GET"); body != fmt.Sprint("served ", i) || !res.Close {
					t.Errorf("got %v %q", res, body)
				}
			}
			if err := servertest.Await(t, ended, "Shutdown"); err != nil {
				t.Error(err)
			}
			sl.check(1)
		}
	})
}

// A client that sends without end does not make the others wait.
func TestSlotsPipelining(t *testing.T) {
	engines.EachPlacement(t, func(t *testing.T, fresh func() *chert.Server) {
		s := fresh()
		s.MaxHandlers, s.QueueLength = 1, 10
		sl := startSlotted(t, s)
		greedy := sl.Dial()
		stop := make(chan struct{})
		var busy sync.WaitGroup
		busy.Go(func() {
			script := strings.Repeat(ask("GET /greedy"), 50)
			for {
				if _, err := greedy.Write([]byte(script)); err != nil {
					return
				}
			}
		})
		busy.Go(func() {
			for {
				select {
				case <-stop:
					greedy.Close()
					return
				default:
				}
				if _, err := greedy.R.Discard(1000); err != nil {
					return
				}
			}
		})
		for i := range 20 {
			c := sl.Dial()
			if _, body := c.Get(fmt.Sprintf("/?%d", i)); body != fmt.Sprint("served ", i) {
				t.Errorf("got %q", body)
			}
			c.Close()
		}
		close(stop)
		busy.Wait()
		sl.check(1)
	})
}

// Many clients at once, on few slots: all are served or refused, none is lost,
// and never do more run than may.
func TestSlotsCrowd(t *testing.T) {
	engines.EachPlacement(t, func(t *testing.T, fresh func() *chert.Server) {
		for _, length := range []int{1000, 3} {
			s := fresh()
			s.MaxHandlers, s.QueueLength = 3, length
			sl := startSlotted(t, s)
			var all sync.WaitGroup
			for i := range 30 {
				all.Go(func() {
					c := sl.Dial()
					for j := range 20 {
						want := fmt.Sprintf("%d-%d", i, j)
						res, body := c.Get("/?" + want)
						if (length == 1000 || res.StatusCode != 503) && (res.StatusCode != 200 || body != "served "+want) {
							t.Errorf("got %v %q", res.Status, body)
						}
					}
				})
			}
			all.Wait()
			sl.check(3)
		}
	})
}

// Direct handlers count like the others.
func TestSlotsDirect(t *testing.T) {
	eachDirect(t, func(t *testing.T, way directWay) {
		var now, most atomic.Int64
		running, release := make(chan struct{}, 10), make(chan struct{})
		s := &chert.Server{QueueLength: 2, Handler: direct.HandlerFunc(func(x *direct.Exchange) {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			running <- struct{}{}
			<-release
			x.WriteString("served")
		})}
		way.set(s)
		s.MaxHandlers = 2
		ts := engines.Start(t, s)
		var all []*servertest.Client
		for i := range 4 {
			c := ts.Dial()
			c.Send(post("/", "body"))
			all = append(all, c)
			if i < 2 {
				servertest.Await(t, running, "the handler")
				continue
			}
			servertest.Eventually(t, "it waits", func() bool { return ts.Inside().Waiting() == i-1 })
		}
		c := ts.Dial()
		for range 3 {
			c.Send(post("/", "body"))
			if res, body := c.Response("POST"); res.StatusCode != 503 || res.Header.Get("Retry-After") != "1" || res.Close || body != "503 Service Unavailable\n" {
				t.Errorf("got %v %q", res, body)
			}
		}
		if res, body := c.Get("/", "Accept: text/event-stream"); res.StatusCode != 200 || !strings.HasPrefix(body, "retry: ") {
			t.Errorf("got %v %q", res, body) // see TestSlotsOrder
		}
		close(release)
		for _, c := range all {
			if _, body := c.Response("POST"); body != "served" {
				t.Errorf("got %q", body)
			}
		}
		if n := most.Load(); n != 2 {
			t.Errorf("%d ran at once", n)
		}
	})
}

// A direct request that waits for one of MaxHandlers does not stay in the loop's read
// buffer, where the requests of other connections would replace it.
func TestSlotsDirectRequestIsKept(t *testing.T) {
	t.Parallel()
	running, release := make(chan struct{}, 16), make(chan struct{})
	ts := engines.Start(t, &chert.Server{Engine: chert.EngineLoops, MaxHandlers: 1, QueueLength: 100, Handler: direct.HandlerFunc(func(x *direct.Exchange) {
		if string(x.Path()) == "/block" {
			running <- struct{}{}
			<-release
		}
		x.WriteString(string(x.Wire().Target()) + " " + string(x.RequestHeader("X-Own")))
	})})
	blocker := ts.Dial()
	blocker.Send("GET /block HTTP/1.1\r\nHost: h\r\n\r\n")
	servertest.Await(t, running, "the blocking handler")
	paths := []string{"/aaaa", "/bbbb", "/cccc", "/dddd", "/eeee", "/ffff", "/gggg", "/hhhh"}
	var all []*servertest.Client
	for _, path := range paths {
		c := ts.Dial()
		c.Send("GET " + path + " HTTP/1.1\r\nHost: h\r\nX-Own: " + path + "\r\n\r\n")
		all = append(all, c)
	}
	servertest.Eventually(t, "all wait", func() bool { return ts.Inside().Waiting() == len(paths) })
	close(release)
	for i, c := range all {
		if _, body := c.Response("GET"); body != paths[i]+" "+paths[i] {
			t.Errorf("%s got %q", paths[i], body)
		}
	}
}

// A request after a refused one on the same connection needs one of MaxHandlers
// too.
func TestSlotsPipelinedAfterRefusal(t *testing.T) {
	t.Parallel()
	for _, placement := range []chert.Placement{chert.PlacementInline, chert.PlacementPooled} {
		running, release, served := make(chan struct{}, 16), make(chan struct{}), make(chan struct{}, 16)
		ts := engines.Start(t, &chert.Server{Engine: chert.EngineLoops, Placement: placement, MaxHandlers: 1, QueueLength: -1, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/block" {
				running <- struct{}{}
				<-release
				return
			}
			served <- struct{}{}
		})})
		blocker := ts.Dial()
		blocker.Send("GET /block HTTP/1.1\r\nHost: h\r\n\r\n")
		servertest.Await(t, running, "the blocking handler")
		c := ts.Dial()
		c.Send("GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\n\r\nGET /3 HTTP/1.1\r\nHost: h\r\n\r\n")
		for range 3 {
			if res, _ := c.Response("GET"); res.StatusCode != 503 {
				t.Errorf("placement %d: got %s", placement, res.Status)
			}
		}
		if n := len(served); n != 0 {
			t.Errorf("placement %d: %d handlers ran beside the only one that may", placement, n)
		}
		close(release)
	}
}

// A client that has sent FIN gets its response although its request had to wait
// for a slot.
func TestSlotsHalfClosed(t *testing.T) {
	engines.EachPlacement(t, func(t *testing.T, fresh func() *chert.Server) {
		s := fresh()
		s.MaxHandlers, s.QueueLength = 1, 10
		sl := startSlotted(t, s)
		sl.Dial().Send(ask("GET /wait"))
		servertest.Await(t, sl.running, "the handler")
		c := sl.Dial()
		c.Send(ask("GET /?half"))
		servertest.Eventually(t, "it waits", func() bool { return sl.Inside().Waiting() == 1 })
		c.CloseWrite()
		for range 16 * runtime.GOMAXPROCS(0) { // by then its loop has seen the FIN
			c := sl.Dial()
			c.Send("nonsense\r\n\r\n")
			c.Rest()
			c.Close()
		}
		close(sl.release)
		if got := c.UpToEnd(); !strings.HasSuffix(got, "served half") {
			t.Errorf("got %q", got)
		}
	})
}
