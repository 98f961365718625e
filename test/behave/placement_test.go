package behave

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// loopsOnly runs f where there are event loops.
func loopsOnly(t *testing.T) {
	t.Helper()
	if !sys.HavePoller {
		t.Skip("there are no event loops here")
	}
	t.Parallel()
}

// placed is a server whose handlers report where they run, "inline" or
// "pooled", and then do what the path's handler does.
type placed struct {
	*engines.Server
	handlers sync.Map // path to http.HandlerFunc
	runs     atomic.Int64
}

func startPlaced(t *testing.T, s *chert.Server) *placed {
	p := new(placed)
	s.Engine, s.Handler = chert.EngineLoops, p
	// Connections wait while a route is proved, which a busy machine may need longer for than the defaults.
	s.ReadHeaderTimeout, s.IdleTimeout = time.Hour, time.Hour
	p.Server = engines.Start(t, s)
	return p
}

func (p *placed) handle(path string, h http.HandlerFunc) { p.handlers.Store(path, h) }

func (p *placed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.runs.Add(1)
	where := "pooled"
	if engines.OnDriver() {
		where = "inline"
	}
	w.Header().Set("X-Where", where)
	if h, ok := p.handlers.Load(r.URL.Path); ok {
		h.(http.HandlerFunc)(w, r)
		return
	}
	put(w, "quick")
}

// where requests a path and returns where its handler ran.
func where(c *servertest.Client, path string) string {
	c.T.Helper()
	res, _ := c.Get(path)
	return res.Header.Get("X-Where")
}

// prove requests a path until its handler runs inline.
func (p *placed) prove(path string) *servertest.Client {
	p.T.Helper()
	servertest.Eventually(p.T, path+" runs inline", func() bool {
		c := p.Dial()
		defer c.Close()
		return where(c, path) == "inline"
	})
	return p.Dial()
}

// inlineToo reports whether path's handler runs inline where proven's does. A busy
// machine makes single quick runs slow, so it tries some times, too few to prove path.
func (p *placed) inlineToo(proven, path string) bool {
	p.T.Helper()
	for range 10 {
		p.prove(proven)
		if where(p.Dial(), path) == "inline" {
			return true
		}
	}
	return false
}

// others returns connections on all loops, very probably.
func (p *placed) others() (all []*servertest.Client) {
	p.Dial().Get("/") // from now on each loop has its socket
	for range 16 * runtime.GOMAXPROCS(0) {
		all = append(all, p.Dial())
	}
	return all
}

func TestPlacementForced(t *testing.T) {
	loopsOnly(t)
	for _, tt := range []struct {
		placement chert.Placement
		want      string
	}{{chert.PlacementInline, "inline"}, {chert.PlacementPooled, "pooled"}} {
		p := startPlaced(t, &chert.Server{Placement: tt.placement})
		c := p.Dial()
		for i := range 100 {
			if got := where(c, "/"); got != tt.want {
				t.Fatalf("request %d ran %s, want %s", i, got, tt.want)
			}
		}
	}
}

// A new route is not tried on the loop before it has been quick for a while.
func TestPlacementProves(t *testing.T) {
	loopsOnly(t)
	p := startPlaced(t, &chert.Server{})
	c := p.Dial()
	for i := range 30 {
		if got := where(c, "/a/b/c"); got != "pooled" {
			t.Fatalf("request %d ran %s", i, got)
		}
	}
	// The whole prefix is proven, and for other connections too; another method
	// is not.
	if !p.inlineToo("/a/b/c", "/a/other?query") {
		t.Error("another path under the prefix runs pooled")
	}
	if got := where(p.Dial(), "/b"); got != "pooled" {
		t.Errorf("another path ran %s", got)
	}
	c.Send("POST /a/b/c HTTP/1.1\r\nHost: h\r\n\r\n")
	if res, _ := c.Response("POST"); res.Header.Get("X-Where") != "pooled" {
		t.Error("another method ran inline")
	}
}

// A handler that was quick and then waits or computes delays no other client on
// the loop, leaves it, and returns when it has been quick again.
func TestPlacementDemotes(t *testing.T) {
	loopsOnly(t)
	for _, how := range []string{"waits", "computes"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			p := startPlaced(t, &chert.Server{})
			var slow, spin atomic.Bool
			running, release := make(chan struct{}, 100), make(chan struct{})
			p.handle("/route", func(w http.ResponseWriter, r *http.Request) {
				if slow.Load() {
					running <- struct{}{}
					if how == "waits" {
						<-release
					}
					for how == "computes" && spin.Load() {
					}
				}
				put(w, "done")
			})
			others := p.others()
			// A run that a busy machine made slow may come between.
			c, ran := (*servertest.Client)(nil), ""
			for tries := 10; ran != "inline" && tries > 0; tries-- {
				slow.Store(false)
				c = p.prove("/route")
				slow.Store(true)
				spin.Store(true)
				c.Send(ask("GET /route"))
				servertest.Await(t, running, "the slow run")
				for _, o := range others {
					if _, body := o.Get("/quick"); body != "quick" {
						t.Errorf("got %q", body)
					}
				}
				spin.Store(false)
				if how == "waits" {
					release <- struct{}{}
				}
				res, body := c.Response("GET")
				if body != "done" {
					t.Errorf("got %v %q", res.Header, body)
				}
				ran = res.Header.Get("X-Where")
			}
			if ran != "inline" {
				t.Errorf("the slow run was %s", ran)
			}
			slow.Store(false)
			c.Get("/quick") // the slow run is over and known
			if got := where(p.Dial(), "/route"); got != "pooled" {
				t.Errorf("after the slow run it ran %s", got)
			}
			n := p.runs.Load()
			p.prove("/route")
			if n = p.runs.Load() - n; n < 50 {
				t.Errorf("it was proven again after %d runs", n)
			}
		})
	}
}

// However many handlers wait on a loop, other requests are served.
func TestPlacementManyBlock(t *testing.T) {
	loopsOnly(t)
	for _, placement := range []chert.Placement{chert.PlacementAdaptive, chert.PlacementInline, chert.PlacementPooled} {
		p := startPlaced(t, &chert.Server{Placement: placement})
		running, release := make(chan struct{}), make(chan struct{})
		p.handle("/block", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.RawQuery == "" {
				running <- struct{}{}
				<-release
			}
			put(w, "unblocked")
		})
		if placement == chert.PlacementAdaptive {
			c := p.Dial()
			servertest.Eventually(t, "it is proven", func() bool { return where(c, "/block?no") == "inline" })
		}
		others := p.others()
		var blocked []*servertest.Client
		for range 64 {
			c := p.Dial()
			c.Send(ask("GET /block") + ask("GET /behind"))
			servertest.Await(t, running, "a blocking handler")
			blocked = append(blocked, c)
			others[len(blocked)%len(others)].Get("/quick")
		}
		for _, o := range others {
			o.Get("/quick")
		}
		close(release)
		for _, c := range blocked {
			if _, body := c.Response("GET"); body != "unblocked" {
				t.Errorf("got %q", body)
			}
			if _, body := c.Response("GET"); body != "quick" {
				t.Errorf("got %q", body)
			}
		}
	}
}

// The responses before a request whose handler waits are not held back: the
// client may need them to end that wait.
func TestPlacementAnswersBeforeBlocked(t *testing.T) {
	loopsOnly(t)
	for _, placement := range []chert.Placement{chert.PlacementAdaptive, chert.PlacementInline, chert.PlacementPooled} {
		for _, how := range []string{"waits", "computes", "reads", "flushes"} {
			p := startPlaced(t, &chert.Server{Placement: placement})
			heard := make(chan struct{})
			var stop atomic.Bool
			p.handle("/block", func(w http.ResponseWriter, r *http.Request) {
				switch how {
				case "waits":
					<-heard
				case "computes":
					for !stop.Load() {
					}
				case "reads":
					io.Copy(io.Discard, r.Body)
				case "flushes":
					put(w, "unblocked")
					flush(w)
					<-heard
					return
				}
				put(w, "unblocked")
			})
			if placement == chert.PlacementAdaptive {
				c := p.Dial()
				servertest.Eventually(t, "it is proven", func() bool {
					c.Send("POST /proven HTTP/1.1\r\nHost: h\r\n\r\n")
					res, _ := c.Response("POST")
					return res.Header.Get("X-Where") == "inline"
				})
			}
			c := p.Dial()
			const first = "POST /proven HTTP/1.1\r\nHost: h\r\n\r\n"
			c.Send(first + first + "POST /block HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\n")
			for range 2 {
				if _, body := c.Response("POST"); body != "quick" {
					t.Errorf("got %q", body)
				}
			}
			close(heard)
			stop.Store(true)
			c.Send("body" + first)
			for _, want := range []string{"unblocked", "quick"} {
				if _, body := c.Response("POST"); body != want {
					t.Errorf("%s: got %q, want %q", how, body, want)
				}
			}
		}
	}
}

// A slow client, sending or reading, does not make its handler count as slow.
func TestPlacementSlowClient(t *testing.T) {
	loopsOnly(t)
	p := startPlaced(t, &chert.Server{})
	began := make(chan struct{}, 100)
	p.handle("/body", func(w http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		b, _ := io.ReadAll(r.Body)
		w.Write(b)
	})
	others := p.others()
	c := p.Dial()
	upload := func() *http.Response {
		c.Send(post("/body", "hello"))
		res, _ := c.Response("POST")
		<-began
		return res
	}
	servertest.Eventually(t, "/body runs inline", func() bool { return upload().Header.Get("X-Where") == "inline" })
	for range 5 {
		var slow []*servertest.Client
		for range 8 {
			s := p.Dial()
			s.Send("POST /body HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhe")
			servertest.Await(t, began, "the handler")
			slow = append(slow, s)
		}
		for _, o := range others {
			o.Get("/quick")
		}
		time.Sleep(5 * time.Millisecond) // makes the clients slow; nothing depends on how slow
		for _, s := range slow {
			s.Send("llo")
			if _, body := s.Response("POST"); body != "hello" {
				t.Errorf("got %q", body)
			}
		}
		// A pause of the machine may demote it. That does not happen each time.
	}
	servertest.Eventually(t, "/body runs inline", func() bool { return upload().Header.Get("X-Where") == "inline" })
}

// Random paths and methods change nothing for the others.
func TestPlacementAttack(t *testing.T) {
	loopsOnly(t)
	p := startPlaced(t, &chert.Server{})
	var slow atomic.Int64
	p.handle("/slow", func(w http.ResponseWriter, r *http.Request) {
		slow.Add(1)
		time.Sleep(time.Millisecond) // a slow handler
		put(w, "slow")
	})
	p.prove("/good")
	s := p.Dial()
	for range 3 {
		s.Get("/slow")
	}
	c := p.Dial()
	for i := range 60 {
		var b strings.Builder
		for j := range 100 {
			fmt.Fprint(&b, ask(fmt.Sprintf("GET /x%d/%d/%d", i*100+j, j, i)))
		}
		go c.Send(b.String())
		for range 100 {
			c.Response("GET")
		}
	}
	for _, method := range []string{"FOO", "GEST", "POST", "G", "HEAD", "T", "PROPFIND"} {
		for _, path := range []string{"/slow/x", "/good", "/other", "/slowly"} {
			var b strings.Builder
			for range 64 {
				b.WriteString(ask(method + " " + path))
			}
			go c.Send(b.String())
			for range 64 {
				c.Response(method)
			}
		}
	}
	// A pause of the machine may demote it; then it is proven again.
	p.prove("/good")
	for range 3 {
		if got := where(s, "/slow"); got != "pooled" {
			t.Errorf("the slow handler ran %s", got)
		}
	}
}

// Handlers may do the same on the loop as elsewhere.
func TestPlacementInlineMethods(t *testing.T) {
	loopsOnly(t)
	p := startPlaced(t, &chert.Server{Placement: chert.PlacementInline})
	client := make(chan struct{})
	p.handle("/flush", func(w http.ResponseWriter, r *http.Request) {
		put(w, "a")
		flush(w)
		<-client
		put(w, "b")
	})
	p.handle("/large", func(w http.ResponseWriter, r *http.Request) { w.Write(servertest.Pattern(8 << 20)) })
	p.handle("/echo", func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).EnableFullDuplex()
		io.Copy(w, r.Body)
	})
	p.handle("/deadline", func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).SetReadDeadline(time.Now().Add(5 * time.Millisecond))
		_, err := io.ReadAll(r.Body)
		fmt.Fprint(w, servertest.IsTimeout(err))
	})
	p.handle("/hijack", func(w http.ResponseWriter, r *http.Request) {
		nc, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer nc.Close()
		io.Copy(nc, rw)
	})
	over := make(chan struct{})
	defer close(over)
	p.handle("/timeout", http.TimeoutHandler(hf(func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		<-over // if it returned, TimeoutHandler might notice that first and send 200
	}), 5*time.Millisecond, "too late").ServeHTTP)
	p.handle("/intime", http.TimeoutHandler(hf(func(w http.ResponseWriter, r *http.Request) {
		put(w, "in time")
	}), servertest.Patience, "too late").ServeHTTP)
	p.handle("/early", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(103)
		put(w, "hinted")
	})
	others := p.others()
	alive := func() {
		t.Helper()
		for _, o := range others {
			o.Get("/quick")
		}
	}
	c := p.Dial()
	c.Send(ask("GET /flush"))
	if h := c.Head(); !strings.Contains(h, "X-Where: inline") || !strings.Contains(h, "chunked") {
		t.Errorf("got %q", h)
	}
	c.Want("1\r\na\r\n")
	alive()
	client <- struct{}{}
	c.Want("1\r\nb\r\n0\r\n\r\n")
	c.Send(ask("GET /large"))
	alive()
	if _, body := c.Response("GET"); body != string(servertest.Pattern(8<<20)) {
		t.Error("the large answer is wrong")
	}
	c.Send(ask("POST /echo", "Content-Length: 10") + "hello")
	alive()
	c.Send("world")
	if _, body := c.Response("POST"); body != "helloworld" {
		t.Errorf("got %q", body)
	}
	if _, body := c.Get("/timeout"); body != "too late" {
		t.Errorf("got %q", body)
	}
	if _, body := c.Get("/intime"); body != "in time" {
		t.Errorf("got %q", body)
	}
	c.Send(ask("GET /early"))
	if h := c.Head(); !strings.Contains(h, "103") {
		t.Errorf("got %q", h)
	}
	if _, body := c.Response("GET"); body != "hinted" {
		t.Errorf("got %q", body)
	}
	c.Send(ask("POST /deadline", "Content-Length: 10") + "hello")
	if _, body := c.Response("POST"); body != "true" {
		t.Errorf("got %q", body)
	}
	c = p.Dial()
	c.Send(ask("GET /quick") + ask("GET /hijack") + "behind")
	c.Response("GET")
	c.Want("behind")
	alive()
	c.Send("more")
	c.Want("more")
	c.CloseWrite()
	c.Ended()
	alive()
}

// A handler that ends its goroutine ends neither the loop nor its connections.
func TestPlacementInlinePanics(t *testing.T) {
	loopsOnly(t)
	for _, placement := range []chert.Placement{chert.PlacementAdaptive, chert.PlacementInline} {
		p := startPlaced(t, &chert.Server{Placement: placement})
		var wait sync.Map
		for path, f := range map[string]func(){
			"panic": func() { panic("boom") }, "abort": func() { panic(http.ErrAbortHandler) }, "goexit": runtime.Goexit,
		} {
			p.handle("/"+path, func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.RawQuery {
				case "":
					return
				case "flushed":
					put(w, "a")
					flush(w)
				case "blocked":
					ch, _ := wait.Load(path)
					<-ch.(chan struct{})
				}
				f()
			})
		}
		others := p.others()
		for _, path := range []string{"panic", "abort", "goexit"} {
			for _, query := range []string{"now", "flushed", "blocked"} {
				if placement == chert.PlacementAdaptive {
					p.prove("/" + path)
				}
				release := make(chan struct{})
				wait.Store(path, release)
				c := p.Dial()
				c.Send(ask("GET /quick") + ask("GET /"+path+"?"+query) + ask("GET /never"))
				if _, body := c.Response("GET"); body != "quick" {
					t.Errorf("got %q", body)
				}
				for _, o := range others {
					o.Get("/quick")
				}
				close(release)
				if got := c.UpToEnd(); query != "flushed" && got != "" || query == "flushed" && !strings.HasSuffix(got, "\r\n\r\n1\r\na\r\n") {
					t.Errorf("%s: got %q", path, got)
				}
				for _, o := range others {
					o.Get("/quick")
				}
			}
		}
	}
}

// A handler that waits on a former loop is notified of its client's end.
func TestPlacementInlineContext(t *testing.T) {
	loopsOnly(t)
	for how, leave := range leavings {
		p := startPlaced(t, &chert.Server{Placement: chert.PlacementInline})
		running, over := make(chan struct{}), make(chan struct{})
		p.handle("/", func(w http.ResponseWriter, r *http.Request) {
			done := r.Context().Done()
			close(running)
			servertest.Await(t, done, "the context, when the client leaves by "+how)
			close(over)
		})
		c := p.Dial()
		c.Send(ask("GET /"))
		servertest.Await(t, running, "the handler")
		leave(c)
		servertest.Await(t, over, "the handler's end")
	}
}

// Shutdown waits for handlers that block on former loops; Close ends their
// contexts.
func TestPlacementShutdown(t *testing.T) {
	loopsOnly(t)
	for _, closes := range []bool{false, true} {
		p := startPlaced(t, &chert.Server{Placement: chert.PlacementInline})
		running, release := make(chan struct{}), make(chan struct{})
		var over sync.WaitGroup
		p.handle("/block", func(w http.ResponseWriter, r *http.Request) {
			over.Add(1)
			defer over.Done()
			running <- struct{}{}
			if closes {
				servertest.WaitDone(t, r.Context(), "Close ends the context")
				return
			}
			<-release
			put(w, "unblocked")
		})
		others := p.others()
		for _, o := range others {
			o.Get("/quick")
		}
		var blocked []*servertest.Client
		for range 8 {
			c := p.Dial()
			c.Send(ask("GET /block"))
			servertest.Await(t, running, "the handler")
			blocked = append(blocked, c)
		}
		if closes {
			p.Close()
			over.Wait()
			for _, c := range append(blocked, others...) {
				c.Ended()
			}
			continue
		}
		ended := make(chan error, 1)
		go func() { ended <- p.Shutdown(context.Background()) }()
		for _, o := range others {
			o.Ended()
		}
		close(release)
		for _, c := range blocked {
			if res, body := c.Response("GET"); body != "unblocked" || !res.Close {
				t.Errorf("got %v %q", res, body)
			}
			c.Ended()
		}
		if err := servertest.Await(t, ended, "Shutdown"); err != nil {
			t.Error(err)
		}
	}
}

// Pipelined requests are answered in their order, wherever each runs.
func TestPlacementPipelined(t *testing.T) {
	loopsOnly(t)
	for _, placement := range []chert.Placement{chert.PlacementAdaptive, chert.PlacementInline, chert.PlacementPooled} {
		p := startPlaced(t, &chert.Server{Placement: placement})
		p.handle("/slow", func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(3 * time.Millisecond) // a slow handler: it overstays
			put(w, "slow"+r.URL.RawQuery)
		})
		p.handle("/quickly", func(w http.ResponseWriter, r *http.Request) { put(w, "quick"+r.URL.RawQuery) })
		if placement == chert.PlacementAdaptive {
			p.prove("/quickly")
		}
		c := p.Dial()
		var all, want strings.Builder
		for i := range 300 {
			kind := "quick"
			path := "/quickly"
			if i%50 == 49 {
				kind, path = "slow", "/slow"
			}
			fmt.Fprint(&all, ask(fmt.Sprintf("GET %s?%d", path, i)))
			fmt.Fprintf(&want, "%s%d ", kind, i)
		}
		go func() {
			io.WriteString(c.Conn, all.String())
			c.Conn.(*net.TCPConn).CloseWrite()
		}()
		var got strings.Builder
		for range 300 {
			res, err := http.ReadResponse(c.R, nil)
			if err != nil {
				t.Fatal(err)
			}
			b, _ := io.ReadAll(res.Body)
			fmt.Fprintf(&got, "%s ", b)
		}
		if got.String() != want.String() {
			t.Errorf("got %s", servertest.Brief(got.String()))
		}
		c.Ended()
	}
}

// A quick route is demoted if its handlers then wait and end by a panic, as
// httputil.ReverseProxy's do: each would cost a loop its driver.
func TestPlacementPanicsCount(t *testing.T) {
	loopsOnly(t)
	for _, how := range []string{"panic", "goexit"} {
		t.Run(how, func(t *testing.T) {
			p := startPlaced(t, &chert.Server{})
			running, release := make(chan string), make(chan struct{})
			p.handle("/route", func(w http.ResponseWriter, r *http.Request) {
				if r.URL.RawQuery == "" {
					return
				}
				running <- w.Header().Get("X-Where")
				<-release
				if how == "goexit" {
					runtime.Goexit()
				}
				panic(http.ErrAbortHandler)
			})
			others := p.others()
			p.prove("/route")
			inline := 0
			for range 10 {
				c := p.Dial()
				c.Send(ask("GET /route?slow"))
				if servertest.Await(t, running, "the handler") == "inline" {
					inline++
				}
				for _, o := range others { // also on the handler's former loop
					o.Get("/quick")
				}
				release <- struct{}{}
				c.UpToEnd()
			}
			if inline > 5 {
				t.Errorf("%d of 10 slow handlers ran on the loop", inline)
			}
		})
	}
}

// Methods with the same length, first and last letter do not share records: a
// client could prove a slow route with a method that is refused at once.
func TestPlacementMethodsAreApart(t *testing.T) {
	loopsOnly(t)
	p := startPlaced(t, &chert.Server{})
	c := p.Dial()
	for range 100 {
		c.Send("GXT /slow HTTP/1.1\r\nHost: h\r\n\r\n")
		c.Response("GXT")
	}
	if got := where(p.Dial(), "/slow"); got != "pooled" {
		t.Errorf("GET runs %s after 100 requests of another method", got)
	}
}
