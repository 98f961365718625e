package behave

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/router"
	"github.com/chert-http/chert/stats"
)

var _ stats.Source = (*chert.Server)(nil)

// finished returns how many requests of a class have ended, of all with class -1.
func finished(sn *stats.Snapshot, class int) (n uint64) {
	for _, r := range sn.Requests {
		if class < 0 || r.Class == class {
			n += r.N
		}
	}
	return n
}

// A server that has not served has empty statistics.
func TestStatsBefore(t *testing.T) {
	t.Parallel()
	sn := new(chert.Server).Stats()
	if sn.At.IsZero() || sn.Since.IsZero() || len(sn.Requests)+len(sn.Loops)+len(sn.Routes) > 0 || sn.Connections.Open != 0 {
		t.Errorf("%+v", sn)
	}
}

// A kept connection costs one read and one write for each request that runs on its loop.
func TestStatsSyscalls(t *testing.T) {
	if !sys.HavePoller || engines.Layered {
		t.Skip("no loops, or bytes are not what is sent")
	}
	t.Parallel()
	for way, h := range map[stats.Way]http.Handler{
		stats.Inline: hf(func(w http.ResponseWriter, r *http.Request) { put(w, "hello") }),
		stats.Direct: direct.NewResponse(200, http.Header{"Content-Type": {"text/plain"}}, []byte("hello")),
	} {
		for !countsSyscalls(t, way, h) {
			t.Logf("%s: once more: a handler had no processor for so long that its loop went on without it", way)
		}
	}
}

// countsSyscalls reports whether all requests ran on their loop, of which it then checks what is counted.
func countsSyscalls(t *testing.T, way stats.Way, h http.Handler) bool {
	s := engines.Start(t, &chert.Server{Engine: chert.EngineLoops, Placement: chert.PlacementInline, Handler: h})
	c := s.Dial()
	for range 3 { // which the accept belongs to, and that there is no other to accept
		c.Get("/")
	}
	before := engines.UpToDate(t, s)
	const n = 20
	sent, got := 0, 0
	for range n {
		req := ask("GET /")
		c.Send(req)
		head := c.Head()
		c.Want("hello")
		sent, got = sent+len(req), got+len(head)+len("hello")
	}
	after := engines.UpToDate(t, s)
	if slices.ContainsFunc(after.Loops, func(l stats.Loop) bool { return l.Handovers > 0 }) {
		return false
	}
	for call, want := range map[string]uint64{"read": n, "write": n, "accept": 0, "close": 0, "sendfile": 0, "other": 0} {
		made := stats.Get(after.Syscalls, call) - stats.Get(before.Syscalls, call)
		if call == "accept" && made <= uint64(runtime.GOMAXPROCS(0)) {
			continue // another loop may have looked for the connection as well, later
		}
		if made != want {
			t.Errorf("%s: %d calls of %s, want %d", way, made, call, want)
		}
	}
	if waits := stats.Get(after.Syscalls, "wait") - stats.Get(before.Syscalls, "wait"); waits < n {
		t.Errorf("%s: %d waits", way, waits)
	}
	if r, w := after.BytesRead-before.BytesRead, after.BytesWritten-before.BytesWritten; r != uint64(sent) || w != uint64(got) {
		t.Errorf("%s: %d bytes read and %d written, want %d and %d", way, r, w, sent, got)
	}
	if r := after.Requests; len(r) != 1 || r[0] != (stats.Requests{Protocol: "HTTP/1.1", Class: 2, Way: way, N: n + 3}) {
		t.Errorf("%s: %+v", way, r)
	}
	if len(after.Loops) != runtime.GOMAXPROCS(0) || after.Connections.Accepted != 1 || after.Connections.Open != 1 || after.Connections.Loops != 1 {
		t.Errorf("%s: %+v", way, after)
	}
	c.Close()
	servertest.Eventually(t, "the connection's end is counted", func() bool {
		sn := s.Stats()
		return sn.Connections.Closed == 1 && sn.Connections.Open == 0 && stats.Get(sn.Syscalls, "close") == 1
	})
	return true
}

// Every request is counted once, however it ends.
func TestStatsEnds(t *testing.T) {
	engines.EachPlacement(t, func(t *testing.T, fresh func() *chert.Server) {
		srv := fresh()
		mux := http.NewServeMux()
		mux.HandleFunc("GET /ok", func(w http.ResponseWriter, r *http.Request) { put(w, "ok") })
		mux.HandleFunc("GET /fails", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500) })
		mux.HandleFunc("GET /panics", func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) })
		mux.HandleFunc("GET /late-panic", func(w http.ResponseWriter, r *http.Request) {
			put(w, "begun")
			flush(w)
			panic(http.ErrAbortHandler)
		})
		mux.HandleFunc("GET /exits", func(w http.ResponseWriter, r *http.Request) { runtime.Goexit() })
		mux.HandleFunc("GET /hijacks", func(w http.ResponseWriter, r *http.Request) {
			nc, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			put(nc, "mine")
			nc.Close()
		})
		srv.Handler = mux
		s := engines.Start(t, srv)
		for _, tt := range []struct {
			sends string
			class int
			more  int // further requests, of class 2
		}{
			{ask("GET /ok", "Connection: close"), 2, 0},
			{ask10("GET /ok"), 2, 0},
			{ask("GET /missing", "Connection: close"), 4, 0},
			{ask("POST /ok", "Connection: close"), 4, 0},
			{ask("GET /fails", "Connection: close"), 5, 0},
			{ask("GET /panics"), 0, 0},
			{ask("GET /late-panic"), 2, 0},
			{ask("GET /exits"), 0, 0},
			{ask("GET /hijacks"), 0, 0},
			{ask("GET /hijacks", "Connection: Upgrade", "Upgrade: x"), 1, 0},
			{"nonsense\r\n\r\n", 4, 0},
			{ask("GET /ok", "Expect: x"), 4, 0},
			{strings.Repeat(ask("GET /ok"), 7) + ask("GET /fails", "Connection: close"), 5, 7},
		} {
			before := engines.UpToDate(t, s)
			s.Exchange(tt.sends, false)
			servertest.Eventually(t, "a request is counted: "+servertest.Brief(tt.sends), func() bool {
				sn := s.Stats()
				return finished(&sn, -1) == finished(&before, -1)+1+uint64(tt.more)
			})
			after := engines.UpToDate(t, s)
			for class := range 6 {
				want := finished(&before, class)
				if class == tt.class {
					want++
				}
				if class == 2 {
					want += uint64(tt.more)
				}
				if got := finished(&after, class); got != want {
					t.Errorf("%q: %d of class %d, want %d", servertest.Brief(tt.sends), got, class, want)
				}
			}
		}
		sn := engines.UpToDate(t, s)
		if sn.Connections.Hijacked != 2 || stats.Get(sn.Malformed, "malformed method") != 1 || stats.Get(sn.Malformed, "unknown expectation") != 1 {
			t.Errorf("hijacked %d, malformed %v", sn.Connections.Hijacked, sn.Malformed)
		}
	})
}

// What runs, and what is open, can be seen while it lasts.
func TestStatsInspect(t *testing.T) {
	engines.EachPlacement(t, func(t *testing.T, fresh func() *chert.Server) {
		srv := fresh()
		srv.MaxHandlers = 2
		began, release := make(chan bool, 2), make(chan bool)
		mux := http.NewServeMux()
		mux.HandleFunc("/waits/{id}", func(w http.ResponseWriter, r *http.Request) {
			began <- true
			<-release
		})
		srv.Handler = mux
		s := engines.Start(t, srv)
		idle := s.Dial()
		idle.Get("/missing")
		servertest.Eventually(t, "the connection is idle", func() bool {
			all := s.OpenConnections(1)
			return len(all) == 1 && all[0].State == "idle" && len(s.RunningRequests(1)) == 0
		})
		fresh1 := s.Dial()
		var cs []*servertest.Client
		for _, path := range []string{"/waits/1?q", "/waits/2"} {
			c := s.Dial()
			c.Send(ask("GET " + path))
			servertest.Await(t, began, "the handler")
			cs = append(cs, c)
		}
		waiting := s.Dial()
		waiting.Send(ask("DELETE /waits/3"))
		var got []stats.Request
		servertest.Eventually(t, "all requests are seen", func() bool {
			got = s.RunningRequests(10)
			return len(got) >= 2 && (len(got) == 3 || srv.Engine == chert.EngineGoroutines) && s.Stats().Waiting == 1
		})
		want := map[string]*servertest.Client{"GET /waits/1?q handler": cs[0], "GET /waits/2 handler": cs[1]}
		if srv.Engine != chert.EngineGoroutines { // there its connection does nothing yet
			want["DELETE /waits/3 waiting"] = waiting
		}
		for _, r := range got {
			c := want[r.Method+" "+r.Target+" "+r.Stage]
			if c == nil || r.Protocol != "HTTP/1.1" || r.ID == 0 || r.Began.IsZero() || !engines.Layered && r.Peer != c.LocalAddr().String() {
				t.Errorf("got %+v, want %v", r, want)
			}
		}
		servertest.Eventually(t, "one request of each loop that answers in time is seen", func() bool {
			n := len(s.RunningRequests(1))
			if n > 3 {
				t.Fatalf("%d requests, want 1 of each loop", n)
			}
			return n > 0
		})
		sn := engines.UpToDate(t, s)
		if sn.Running != 2 || sn.Waiting != 1 || sn.Connections.Open != 5 || sn.Connections.HTTP1 != 5 || sn.Connections.Active < 3 {
			t.Errorf("running %d, waiting %d, %+v", sn.Running, sn.Waiting, sn.Connections)
		}
		states := make(map[string]string)
		var open []stats.Connection
		servertest.Eventually(t, "all connections are seen", func() bool {
			open = s.OpenConnections(10)
			return len(open) == 5
		})
		for _, c := range open {
			states[c.Peer] = c.State
			if c.Protocol != "HTTP/1" && c.Protocol != "" || c.TLS != "" || c.State == "idle" && c.Since.IsZero() {
				t.Errorf("%+v", c)
			}
		}
		for name, c := range map[string]*servertest.Client{"idle": idle, "active": cs[0]} {
			if got := states[c.LocalAddr().String()]; got != name && !engines.Layered {
				t.Errorf("%s: got %q of %v", name, got, states)
			}
		}
		close(release)
		for _, c := range append(cs, waiting) {
			c.Status(200)
		}
		servertest.Eventually(t, "nothing runs", func() bool { return len(s.RunningRequests(10)) == 0 })
		fresh1.Close()
	})
}

// A direct handler that has lost its loop can be seen too.
func TestStatsInspectDirect(t *testing.T) {
	if !sys.HavePoller {
		t.Skip("no loops")
	}
	t.Parallel()
	release := make(chan bool)
	s := engines.Start(t, &chert.Server{Engine: chert.EngineLoops, Handler: direct.HandlerFunc(func(x *direct.Exchange) { <-release })})
	c := s.Dial()
	c.Send(ask("GET /stuck"))
	servertest.Eventually(t, "the request is seen", func() bool {
		got := s.RunningRequests(1)
		return len(got) == 1 && got[0].Target == "/stuck" && got[0].Way == stats.Direct && got[0].Stage == "handler"
	})
	close(release)
	c.Status(200)
	servertest.Eventually(t, "nothing is seen, and its end is counted", func() bool {
		sn := s.Stats()
		handovers := uint64(0)
		for _, l := range sn.Loops {
			handovers += l.Handovers
		}
		return len(s.RunningRequests(1)) == 0 && sn.Total.N() == 1 && sn.Handler.N() == 1 && handovers == 1
	})
}

// A handler that runs for long is logged once, with its age, and its route where the
// placement has asked for that.
func TestSlowHandler(t *testing.T) {
	engines.EachPlacement(t, func(t *testing.T, fresh func() *chert.Server) {
		for name, h := range map[string]func(release <-chan bool) http.Handler{
			"plain": func(release <-chan bool) http.Handler {
				return hf(func(http.ResponseWriter, *http.Request) { <-release })
			},
			"routed": func(release <-chan bool) http.Handler {
				r := router.New()
				r.HandleFunc("GET /sleeps", func(http.ResponseWriter, *http.Request) { <-release })
				return r
			},
			"direct": func(release <-chan bool) http.Handler {
				return direct.HandlerFunc(func(*direct.Exchange) { <-release })
			},
		} {
			srv := fresh()
			if name == "direct" && srv.Engine == chert.EngineGoroutines {
				continue // it is not seen there
			}
			release := make(chan bool)
			srv.Handler, srv.SlowHandler = h(release), 20*time.Millisecond
			s := engines.Start(t, srv)
			for range 2 {
				c := s.Dial()
				c.Send(ask("GET /sleeps?all=day"))
				defer c.Close()
			}
			servertest.Eventually(t, name+" is logged", func() bool { return strings.Contains(s.Log.String(), "has been running") })
			log := s.Log.String()
			line := regexp.MustCompile(`(?m)^chert: GET "/sleeps\?all=day" from 127\.0\.0\.1:\d+ has been running for [\d.]+m?s ` +
				`\((inline|pooled|goroutine|direct), handler` + map[string]string{"routed": `(, route "GET /sleeps")?`}[name] + `\)$`)
			if !line.MatchString(log) {
				t.Errorf("%s: %s", name, log)
			}
			servertest.Eventually(t, "the other request is seen", func() bool { return len(s.RunningRequests(4)) == 2 })
			if n := strings.Count(s.Log.String(), "has been running"); n != 1 {
				t.Errorf("%s: it is logged %d times", name, n)
			}
			close(release)
		}
	})
}

// A log that panics on that line does not end the process, and gets the next one.
func TestSlowHandlerLogPanics(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		lines, release := make(chan string, 16), make(chan bool)
		s := engines.Start(t, &chert.Server{Engine: e, SlowHandler: 20 * time.Millisecond, Handler: hf(func(http.ResponseWriter, *http.Request) { <-release }),
			ErrorLog: log.New(writerFunc(func(p []byte) (int, error) {
				if strings.Contains(string(p), "has been running") {
					lines <- string(p)
				}
				panic("the log fails")
			}), "", 0)})
		defer close(release)
		for _, path := range []string{"/one", "/two"} {
			c := s.Dial()
			defer c.Close()
			c.Send(ask("GET " + path))
			if line := servertest.Await(t, lines, path); !strings.Contains(line, path) {
				t.Errorf("logged %q", line)
			}
		}
	})
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// What the placement learns is recorded, and bounded.
func TestStatsPlacement(t *testing.T) {
	if !sys.HavePoller {
		t.Skip("no loops")
	}
	t.Parallel()
	var slow atomic.Bool
	s := engines.Start(t, &chert.Server{Engine: chert.EngineLoops, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
		for began := time.Now(); slow.Load() && time.Since(began) < 20*time.Millisecond; {
		}
	})})
	c := s.Dial()
	servertest.Eventually(t, "the path is proven", func() bool {
		c.Get("/quick?x=1")
		sn := s.Stats()
		return sn.Placement.Proofs > 0 && sn.Loops[0].Inline+sn.Loops[len(sn.Loops)-1].Inline > 0
	})
	slow.Store(true)
	servertest.Eventually(t, "the path is demoted", func() bool {
		c.Get("/quick?x=2")
		return s.Stats().Placement.Demotions > 0
	})
	kinds := make(map[string]bool)
	sn := s.Stats()
	for _, e := range sn.Placement.Recent {
		if kinds[e.Kind] = true; e.Method != "GET" || e.Target != "/quick" || e.At.IsZero() || e.Kind == "handover" && e.Held < time.Millisecond {
			t.Errorf("%+v", e)
		}
	}
	if !kinds["proven"] || !kinds["demoted"] {
		t.Errorf("%+v", sn.Placement)
	}
}

// Clients that invent paths and methods do not make a server keep more.
func TestStatsAreBounded(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		mux := http.NewServeMux()
		mux.HandleFunc("/known/", func(w http.ResponseWriter, r *http.Request) {})
		mux.HandleFunc("/named/", func(w http.ResponseWriter, r *http.Request) { r.Pattern = r.URL.Path }) // which no handler should
		s := engines.Start(t, &chert.Server{Engine: e, Handler: mux})
		c := s.Dial()
		const n = 3 * tally.MaxRoutes
		for i := range n {
			for _, folder := range []string{"known", "named", "unknown"} {
				c.Send(ask(fmt.Sprintf("METHOD%d /%s/%d", i, folder, i)))
				c.Response("GET")
			}
		}
		var sn stats.Snapshot
		servertest.Eventually(t, "all are counted", func() bool {
			sn = s.Stats()
			return finished(&sn, -1) == 3*n
		})
		for _, r := range sn.Routes {
			switch want := map[string]uint64{"/known/": n, stats.NoRoute: n, stats.Other: n - (tally.MaxRoutes - 1)}[r.Pattern]; {
			case want == 0 && r.N() != 1, want != 0 && r.N() != want:
				t.Errorf("%q: %d requests, want %d", r.Pattern, r.N(), want)
			}
		}
		if len(sn.Routes) != tally.MaxRoutes+2 || len(sn.Requests) > 8 || len(sn.Placement.Recent) > 64 {
			t.Errorf("%d routes, %d kinds of requests, %d events", len(sn.Routes), len(sn.Requests), len(sn.Placement.Recent))
		}
	})
}

// Each limit of time that is exceeded is counted under its name.
func TestStatsTimeouts(t *testing.T) {
	if engines.Layered {
		t.Skip("a relay has connections of its own")
	}
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		const soon = 50 * time.Millisecond
		for _, tt := range []struct {
			kind, sends string
			s           *chert.Server
		}{
			{"head", "", &chert.Server{ReadHeaderTimeout: soon}},
			{"head", "GET / HT", &chert.Server{ReadHeaderTimeout: soon}},
			{"idle", ask("GET /"), &chert.Server{IdleTimeout: soon}},
			{"read", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n", &chert.Server{ReadTimeout: servertest.Soon}}, // it counts from the connection's begin, and the head must not be late
			{"stall", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n", &chert.Server{ReadStallTimeout: soon}},
			{"stall", ask("GET /large"), &chert.Server{WriteStallTimeout: soon}},
			{"write", ask("GET /large"), &chert.Server{WriteTimeout: soon}},
			{"write", ask("GET /slow"), &chert.Server{WriteTimeout: soon}},
			{"write", ask("GET /deadline"), &chert.Server{}},
			{"stall", ask("GET /none"), &chert.Server{WriteTimeout: servertest.Soon, WriteStallTimeout: servertest.Soon + soon}},
		} {
			srv := tt.s
			srv.Engine = e
			srv.Handler = hf(func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				switch rc := http.NewResponseController(w); r.URL.Path {
				case "/large":
					w.Write(make([]byte, 16<<20))
				case "/deadline":
					rc.SetWriteDeadline(time.Now().Add(soon))
					w.Write(make([]byte, 16<<20))
				case "/none":
					rc.SetWriteDeadline(time.Time{})
					w.Write(make([]byte, 16<<20))
				case "/slow":
					time.Sleep(2 * soon) // a handler that is late is what is tested
					io.WriteString(w, "late")
				}
			})
			s := engines.StartOn(t, srv, servertest.ListenSmall(t, 4<<10))
			c := s.DialSmall(4 << 10)
			c.Send(tt.sends)
			servertest.Eventually(t, "the timeout is counted: "+tt.kind, func() bool { return stats.Get(s.Stats().Timeouts, tt.kind) > 0 })
			if got := s.Stats().Timeouts; len(got) != 1 || got[0].N != 1 {
				t.Errorf("%s %q: %v", tt.kind, servertest.Brief(tt.sends), got)
			}
			c.Close()
		}
	})
}

// A loop that does not answer makes its part of the snapshot stale, and no more.
func TestStatsOfAStuckLoop(t *testing.T) {
	if !sys.HavePoller || engines.Layered {
		t.Skip("no loops")
	}
	t.Parallel()
	stuck, release := make(chan bool), make(chan bool)
	s := engines.Start(t, &chert.Server{Engine: chert.EngineLoops, ConnState: func(_ net.Conn, state http.ConnState) {
		if state == http.StateActive { // which must not block on a loop, and does
			stuck <- true
			<-release
		}
	}, Handler: http.NotFoundHandler()})
	c := s.Dial()
	servertest.Eventually(t, "the connection is counted", func() bool { return s.Stats().Connections.Accepted == 1 })
	c.Send(ask("GET /"))
	servertest.Await(t, stuck, "the loop")
	var sn stats.Snapshot
	var stale []stats.Loop
	servertest.Eventually(t, "all loops but one answer in time", func() bool {
		sn = s.Stats()
		stale = slices.DeleteFunc(slices.Clone(sn.Loops), func(l stats.Loop) bool { return !l.Stale })
		if len(stale) == 0 {
			t.Fatal("the loop has answered")
		}
		return len(stale) == 1
	})
	if l := stale[0]; l.Connections != 1 || l.Lag < 50*time.Millisecond {
		t.Errorf("%+v", l)
	}
	if sn.Connections.Accepted != 1 || len(s.RunningRequests(1)) != 0 {
		t.Errorf("one of %d loops is stale, %+v", len(sn.Loops), sn.Connections)
	}
	// It is asked once, however often and by however many the server is.
	var asking sync.WaitGroup
	for range 10 {
		asking.Go(func() { s.Stats() })
		asking.Go(func() { s.RunningRequests(1) })
	}
	asking.Wait()
	for i, l := range s.Stats().Loops {
		if l.Mail > 2 { // of either kind
			t.Errorf("%d messages wait for loop %d", l.Mail, i)
		}
	}
	close(release)
	c.Status(404)
	servertest.Eventually(t, "the request is counted", func() bool {
		sn := s.Stats()
		return finished(&sn, 4) == 1
	})
}
