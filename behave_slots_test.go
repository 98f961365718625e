package chert

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/sys"
)

// waiting is how many requests wait for one of MaxHandlers. Nothing that can be
// seen from outside tells; so it looks inside.
func (ts *testServer) waiting() int {
	ts.lock()
	v := reflect.ValueOf(ts.slots).Elem()
	ts.mu.Unlock()
	mu := (*sync.Mutex)(unsafe.Pointer(v.FieldByName("mu").UnsafeAddr()))
	mu.Lock()
	defer mu.Unlock()
	return v.FieldByName("waiting").Len() - int(v.FieldByName("head").Int())
}

// slotted is a server with MaxHandlers whose handlers wait at /wait, and which
// counts those that run.
type slotted struct {
	*testServer
	running, release chan string
	now, most        atomic.Int64
	served           sync.Map
}

func startSlotted(t *testing.T, s *Server) *slotted {
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
			// The place is free from here on: this one must not be counted again,
			// not even for the moment of its return.
			counted = false
			sl.now.Add(-1)
			put(nc, "mine")
			rw.ReadByte()
			return
		}
		put(w, "served "+r.URL.RawQuery)
	})
	sl.testServer = start(t, s)
	return sl
}

func (sl *slotted) check(max int64) {
	sl.t.Helper()
	if n := sl.most.Load(); n > max {
		sl.t.Errorf("%d handlers ran at once, of %d", n, max)
	}
}

// slottedWays runs f for both engines and all placements.
func slottedWays(t *testing.T, f func(t *testing.T, fresh func() *Server)) {
	t.Helper()
	t.Parallel()
	run := func(name string, e Engine, p Placement) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, func() *Server { return &Server{Engine: e, Placement: p} })
		})
	}
	run("goroutines", EngineGoroutines, Adaptive)
	if sys.HavePoller {
		run("adaptive", EngineLoops, Adaptive)
		run("inline", EngineLoops, Inline)
		run("pooled", EngineLoops, Pooled)
	}
}

// No more than MaxHandlers run, and those that wait do so in their order.
func TestSlotsOrder(t *testing.T) {
	slottedWays(t, func(t *testing.T, fresh func() *Server) {
		s := fresh()
		s.MaxHandlers, s.QueueLength = 2, 20
		sl := startSlotted(t, s)
		var all []*rawConn
		for i := range 22 {
			c := sl.dial()
			c.send(ask(fmt.Sprintf("GET /wait?%d", i)))
			all = append(all, c)
			if i < 2 {
				await(t, sl.running, "a handler")
			} else {
				eventually(t, "it waits", func() bool { return sl.waiting() == i-1 })
			}
		}
		late := sl.dial()
		if res, body := late.get("/late"); res.StatusCode != 503 || res.Header.Get("Retry-After") != "1" || res.Close || body != "503 Service Unavailable\n" || res.ContentLength != int64(len(body)) {
			t.Errorf("got %v %q", res, body)
		}
		for i := range 20 {
			sl.release <- ""
			if got, want := await(t, sl.running, "the next handler"), fmt.Sprint(i+2); got != want {
				t.Errorf("request %s came before %s", got, want)
			}
		}
		close(sl.release)
		for i, c := range all {
			if _, body := c.response("GET"); body != fmt.Sprint("served ", i) {
				t.Errorf("got %q", body)
			}
		}
		eventually(t, "there is a place", func() bool {
			res, _ := late.get("/kept")
			return res.StatusCode == 200
		})
		if _, ok := sl.served.Load("/late"); ok {
			t.Error("the refused request was served")
		}
		sl.check(2)
	})
}

// QueueLength is what is documented: 0 as many as may run, negative none.
func TestSlotsQueueLength(t *testing.T) {
	slottedWays(t, func(t *testing.T, fresh func() *Server) {
		for _, tt := range []struct{ length, want int }{{0, 3}, {-1, 0}, {5, 5}, {1, 1}} {
			s := fresh()
			s.MaxHandlers, s.QueueLength = 3, tt.length
			sl := startSlotted(t, s)
			for range 3 {
				sl.dial().send(ask("GET /wait"))
				await(t, sl.running, "a handler")
			}
			for i := range tt.want {
				sl.dial().send(ask("GET /"))
				eventually(t, "it waits", func() bool { return sl.waiting() == i+1 })
			}
			for range 3 {
				if res, _ := sl.dial().get("/"); res.StatusCode != 503 {
					t.Errorf("QueueLength %d: got %v", tt.length, res.Status)
				}
			}
			close(sl.release)
			sl.check(3)
		}
	})
}

// What was refused is read over, and its connection goes on.
func TestSlotsRefusedBody(t *testing.T) {
	slottedWays(t, func(t *testing.T, fresh func() *Server) {
		s := fresh()
		s.MaxHandlers, s.QueueLength = 1, -1
		sl := startSlotted(t, s)
		blocker := sl.dial()
		blocker.send(ask("GET /wait"))
		await(t, sl.running, "the handler")
		c := sl.dial()
		for _, script := range []string{
			post("/", "hello"), post("/", string(pattern(100_000))), postChunks("/", chunks(string(pattern(10000)), 999)), ask("HEAD /"), ask("POST /"), ask("OPTIONS /"),
		} {
			go c.send(script)
			method, _, _ := strings.Cut(script, " ")
			if res, _ := c.response(method); res.StatusCode != 503 || res.Close || res.ContentLength != 24 {
				t.Errorf("%s: got %v", brief(script), res)
			}
		}
		slow := sl.dial()
		slow.send(ask("POST /", "Content-Length: 10") + "hello")
		// As with every answer, the body comes first if it is small.
		sl.dial().get("/")
		slow.send("world")
		if res, _ := slow.response("POST"); res.StatusCode != 503 || res.Close {
			t.Errorf("got %v", res)
		}
		expects := sl.dial()
		expects.send(ask("POST /", "Content-Length: 10", "Expect: 100-continue"))
		if res, _ := expects.response("POST"); res.StatusCode != 503 || !res.Close {
			t.Errorf("got %v", res)
		}
		closes := sl.dial()
		if res, _ := closes.get("/", "Connection: close"); res.StatusCode != 503 || !res.Close {
			t.Errorf("got %v", res)
		}
		closes.closed()
		old := sl.dial()
		old.send(ask10("GET /"))
		if got := old.rest(); !strings.HasPrefix(got, "HTTP/1.") || !strings.Contains(got, " 503 ") {
			t.Errorf("got %q", got)
		}
		close(sl.release)
		blocker.response("GET")
		eventually(t, "there is a place", func() bool {
			res, _ := c.get("/")
			return res.StatusCode == 200
		})
		sl.check(1)
	})
}

// A handler's place is free again however it ends.
func TestSlotsFreed(t *testing.T) {
	slottedWays(t, func(t *testing.T, fresh func() *Server) {
		s := fresh()
		s.MaxHandlers, s.QueueLength = 1, 100
		sl := startSlotted(t, s)
		for range 3 {
			for _, path := range []string{"/panic", "/goexit"} {
				c := sl.dial()
				c.send(ask("GET " + path))
				c.closed()
			}
			c := sl.dial()
			c.send(ask("GET /hijack"))
			c.expect("mine") // and it goes on
			c = sl.dial()
			c.send("nonsense\r\n\r\n")
			c.rest()
			c.Close()
			c = sl.dial()
			c.send(ask("POST /", "Content-Length: 100") + "leaves")
			c.reset()
			if _, body := sl.dial().get("/?q"); body != "served q" {
				t.Errorf("got %q", body)
			}
		}
		sl.check(1)
	})
}

// A client that leaves while its request waits has nothing done for it, as far
// as the server knows that it left; and its place in the queue goes on.
func TestSlotsClientLeaves(t *testing.T) {
	slottedWays(t, func(t *testing.T, fresh func() *Server) {
		s := fresh()
		s.MaxHandlers, s.QueueLength = 1, 10
		fs := &faultServer{}
		fs.count(s)
		sl := startSlotted(t, s)
		fs.testServer = sl.testServer
		blocker := sl.dial()
		blocker.send(ask("GET /wait"))
		await(t, sl.running, "the handler")
		gone := sl.dial()
		gone.send(ask("GET /gone"))
		eventually(t, "it waits", func() bool { return sl.waiting() == 1 })
		stays := sl.dial()
		stays.send(ask("GET /stays"))
		eventually(t, "it waits too", func() bool { return sl.waiting() == 2 })
		gone.reset()
		if s.Engine == EngineLoops {
			// A goroutine's connection is not looked at while it waits. This
			// one's loop has seen it when it has served others since.
			for range 16 * runtime.GOMAXPROCS(0) {
				c := sl.dial()
				c.send("nonsense\r\n\r\n")
				c.rest()
				c.Close()
			}
		}
		close(sl.release)
		if _, body := stays.response("GET"); body != "served " {
			t.Errorf("got %q", body)
		}
		if _, ok := sl.served.Load("/gone"); ok && s.Engine == EngineLoops {
			t.Error("the handler of a client that has gone ran")
		}
		blocker.Close()
		stays.Close()
		fs.settled(3)
		sl.check(1)
	})
}

// Shutdown serves those that wait; Close does not.
func TestSlotsShutdown(t *testing.T) {
	slottedWays(t, func(t *testing.T, fresh func() *Server) {
		for _, closes := range []bool{false, true} {
			s := fresh()
			s.MaxHandlers, s.QueueLength = 1, 10
			sl := startSlotted(t, s)
			blocker := sl.dial()
			blocker.send(ask("GET /wait"))
			await(t, sl.running, "the handler")
			var waiting []*rawConn
			for i := range 5 {
				c := sl.dial()
				c.send(ask(fmt.Sprintf("GET /waited?%d", i)))
				eventually(t, "it waits", func() bool { return sl.waiting() == i+1 })
				waiting = append(waiting, c)
			}
			if closes {
				sl.Close()
				for _, c := range append(waiting, blocker) {
					if got := c.upToEnd(); got != "" {
						t.Errorf("got %q", got)
					}
				}
				close(sl.release)
				continue
			}
			ended := make(chan error, 1)
			go func() { ended <- sl.Shutdown(context.Background()) }()
			sl.refused()
			close(sl.release)
			if res, _ := blocker.response("GET"); !res.Close {
				t.Errorf("got %v", res)
			}
			for i, c := range waiting {
				if res, body := c.response("GET"); body != fmt.Sprint("served ", i) || !res.Close {
					t.Errorf("got %v %q", res, body)
				}
			}
			if err := await(t, ended, "Shutdown"); err != nil {
				t.Error(err)
			}
			sl.check(1)
		}
	})
}

// A client that sends without end does not keep the others waiting.
func TestSlotsPipelining(t *testing.T) {
	slottedWays(t, func(t *testing.T, fresh func() *Server) {
		s := fresh()
		s.MaxHandlers, s.QueueLength = 1, 10
		sl := startSlotted(t, s)
		greedy := sl.dial()
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
				if _, err := greedy.r.Discard(1000); err != nil {
					return
				}
			}
		})
		for i := range 20 {
			c := sl.dial()
			if _, body := c.get(fmt.Sprintf("/?%d", i)); body != fmt.Sprint("served ", i) {
				t.Errorf("got %q", body)
			}
			c.Close()
		}
		close(stop)
		busy.Wait()
		sl.check(1)
	})
}

// Many clients at once, on few places: all are served or refused, none is lost,
// and never do more run than may.
func TestSlotsCrowd(t *testing.T) {
	slottedWays(t, func(t *testing.T, fresh func() *Server) {
		for _, length := range []int{1000, 3} {
			s := fresh()
			s.MaxHandlers, s.QueueLength = 3, length
			sl := startSlotted(t, s)
			var all sync.WaitGroup
			for i := range 30 {
				all.Go(func() {
					c := sl.dial()
					for j := range 20 {
						want := fmt.Sprintf("%d-%d", i, j)
						res, body := c.get("/?" + want)
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
		s := &Server{QueueLength: 2, Handler: direct.HandlerFunc(func(x *direct.Exchange) {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			running <- struct{}{}
			<-release
			x.WriteString("served")
		})}
		way.set(s)
		s.MaxHandlers = 2
		ts := start(t, s)
		var all []*rawConn
		for i := range 4 {
			c := ts.dial()
			c.send(post("/", "body"))
			all = append(all, c)
			if i < 2 {
				await(t, running, "the handler")
				continue
			}
			eventually(t, "it waits", func() bool { return ts.waiting() == i-1 })
		}
		c := ts.dial()
		for range 3 {
			c.send(post("/", "body"))
			if res, body := c.response("POST"); res.StatusCode != 503 || res.Header.Get("Retry-After") != "1" || res.Close || body != "503 Service Unavailable\n" {
				t.Errorf("got %v %q", res, body)
			}
		}
		close(release)
		for _, c := range all {
			if _, body := c.response("POST"); body != "served" {
				t.Errorf("got %q", body)
			}
		}
		if n := most.Load(); n != 2 {
			t.Errorf("%d ran at once", n)
		}
	})
}
