package chert

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

	"github.com/chert-http/chert/internal/sys"
)

// loopsOnly runs f where there are event loops.
func loopsOnly(t *testing.T) {
	t.Helper()
	if !sys.HavePoller {
		t.Skip("there are no event loops here")
	}
	t.Parallel()
}

// onDriver reports whether its caller runs on a goroutine that drives a loop or
// did: one that has lost its loop may serve what follows on the same connection.
// So only a connection's first request tells for sure.
func onDriver() bool {
	var pcs [128]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs[:])])
	for {
		f, more := frames.Next()
		if strings.HasSuffix(f.Function, "loop.(*Loop).drive") {
			return true
		}
		if !more {
			return false
		}
	}
}

// placed is a server whose handlers say where they run, "inline" or "pooled",
// and then do what the path's handler does.
type placed struct {
	*testServer
	handlers sync.Map // path to http.HandlerFunc
	runs     atomic.Int64
}

func startPlaced(t *testing.T, s *Server) *placed {
	p := new(placed)
	s.Engine, s.Handler = EngineLoops, p
	p.testServer = start(t, s)
	return p
}

func (p *placed) handle(path string, h http.HandlerFunc) { p.handlers.Store(path, h) }

func (p *placed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.runs.Add(1)
	where := "pooled"
	if onDriver() {
		where = "inline"
	}
	w.Header().Set("X-Where", where)
	if h, ok := p.handlers.Load(r.URL.Path); ok {
		h.(http.HandlerFunc)(w, r)
		return
	}
	put(w, "quick")
}

// where asks for a path and tells where its handler ran.
func (c *rawConn) where(path string) string {
	c.t.Helper()
	res, _ := c.get(path)
	return res.Header.Get("X-Where")
}

// prove asks for a path until its handler runs inline.
func (p *placed) prove(path string) *rawConn {
	p.t.Helper()
	eventually(p.t, path+" runs inline", func() bool {
		c := p.dial()
		defer c.Close()
		return c.where(path) == "inline"
	})
	return p.dial()
}

// inlineToo reports whether path's handler runs inline where proven's does. A busy
// machine makes single quick runs slow, so it tries some times, too few to prove path.
func (p *placed) inlineToo(proven, path string) bool {
	p.t.Helper()
	for range 10 {
		p.prove(proven)
		if p.dial().where(path) == "inline" {
			return true
		}
	}
	return false
}

// others are connections on all loops, in all likelihood.
func (p *placed) others() (all []*rawConn) {
	p.dial().get("/") // from now on each loop has its socket
	for range 16 * runtime.GOMAXPROCS(0) {
		all = append(all, p.dial())
	}
	return all
}

func TestPlacementForced(t *testing.T) {
	loopsOnly(t)
	for _, tt := range []struct {
		placement Placement
		want      string
	}{{Inline, "inline"}, {Pooled, "pooled"}} {
		p := startPlaced(t, &Server{Placement: tt.placement})
		c := p.dial()
		for i := range 100 {
			if got := c.where("/"); got != tt.want {
				t.Fatalf("request %d ran %s, want %s", i, got, tt.want)
			}
		}
	}
}

// A new route is not tried on the loop before it has been quick for a while.
func TestPlacementProves(t *testing.T) {
	loopsOnly(t)
	p := startPlaced(t, &Server{})
	c := p.dial()
	for i := range 30 {
		if got := c.where("/a/b/c"); got != "pooled" {
			t.Fatalf("request %d ran %s", i, got)
		}
	}
	// The whole prefix is, and for other connections too; another method is not.
	if !p.inlineToo("/a/b/c", "/a/other?query") {
		t.Error("another path under the prefix runs pooled")
	}
	if got := p.dial().where("/b"); got != "pooled" {
		t.Errorf("another path ran %s", got)
	}
	c.send("POST /a/b/c HTTP/1.1\r\nHost: h\r\n\r\n")
	if res, _ := c.response("POST"); res.Header.Get("X-Where") != "pooled" {
		t.Error("another method ran inline")
	}
}

// What was quick and then waits or computes costs nobody the loop, leaves it,
// and comes back when it has been quick again.
func TestPlacementDemotes(t *testing.T) {
	loopsOnly(t)
	for _, how := range []string{"waits", "computes"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			p := startPlaced(t, &Server{})
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
			// A run that a busy machine has made slow may come between.
			c, where := (*rawConn)(nil), ""
			for tries := 10; where != "inline" && tries > 0; tries-- {
				slow.Store(false)
				c = p.prove("/route")
				slow.Store(true)
				spin.Store(true)
				c.send(ask("GET /route"))
				await(t, running, "the slow run")
				for _, o := range others {
					if _, body := o.get("/quick"); body != "quick" {
						t.Errorf("got %q", body)
					}
				}
				spin.Store(false)
				if how == "waits" {
					release <- struct{}{}
				}
				res, body := c.response("GET")
				if body != "done" {
					t.Errorf("got %v %q", res.Header, body)
				}
				where = res.Header.Get("X-Where")
			}
			if where != "inline" {
				t.Errorf("the slow run was %s", where)
			}
			slow.Store(false)
			c.get("/quick") // the slow run is over and known
			if got := p.dial().where("/route"); got != "pooled" {
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

// However many handlers wait on a loop, others are served.
func TestPlacementManyBlock(t *testing.T) {
	loopsOnly(t)
	for _, placement := range []Placement{Adaptive, Inline, Pooled} {
		p := startPlaced(t, &Server{Placement: placement})
		running, release := make(chan struct{}), make(chan struct{})
		p.handle("/block", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.RawQuery == "" {
				running <- struct{}{}
				<-release
			}
			put(w, "unblocked")
		})
		if placement == Adaptive {
			c := p.dial()
			eventually(t, "it is proven", func() bool { return c.where("/block?no") == "inline" })
		}
		others := p.others()
		var blocked []*rawConn
		for range 64 {
			c := p.dial()
			c.send(ask("GET /block") + ask("GET /behind"))
			await(t, running, "a blocking handler")
			blocked = append(blocked, c)
			others[len(blocked)%len(others)].get("/quick")
		}
		for _, o := range others {
			o.get("/quick")
		}
		close(release)
		for _, c := range blocked {
			if _, body := c.response("GET"); body != "unblocked" {
				t.Errorf("got %q", body)
			}
			if _, body := c.response("GET"); body != "quick" {
				t.Errorf("got %q", body)
			}
		}
	}
}

// The answers before a request whose handler waits are not kept back: the
// client may need them to end that wait.
func TestPlacementAnswersBeforeBlocked(t *testing.T) {
	loopsOnly(t)
	for _, placement := range []Placement{Adaptive, Inline, Pooled} {
		for _, how := range []string{"waits", "computes", "reads", "flushes"} {
			p := startPlaced(t, &Server{Placement: placement})
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
			if placement == Adaptive {
				c := p.dial()
				eventually(t, "it is proven", func() bool {
					c.send("POST /proven HTTP/1.1\r\nHost: h\r\n\r\n")
					res, _ := c.response("POST")
					return res.Header.Get("X-Where") == "inline"
				})
			}
			c := p.dial()
			const first = "POST /proven HTTP/1.1\r\nHost: h\r\n\r\n"
			c.send(first + first + "POST /block HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\n")
			for range 2 {
				if _, body := c.response("POST"); body != "quick" {
					t.Errorf("got %q", body)
				}
			}
			close(heard)
			stop.Store(true)
			c.send("body" + first)
			for _, want := range []string{"unblocked", "quick"} {
				if _, body := c.response("POST"); body != want {
					t.Errorf("%s: got %q, want %q", how, body, want)
				}
			}
		}
	}
}

// A client that is slow to send or to read says nothing about its handler.
func TestPlacementSlowClient(t *testing.T) {
	loopsOnly(t)
	p := startPlaced(t, &Server{})
	began := make(chan struct{}, 100)
	p.handle("/body", func(w http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		b, _ := io.ReadAll(r.Body)
		w.Write(b)
	})
	others := p.others()
	c := p.dial()
	upload := func() *http.Response {
		c.send(post("/body", "hello"))
		res, _ := c.response("POST")
		<-began
		return res
	}
	eventually(t, "/body runs inline", func() bool { return upload().Header.Get("X-Where") == "inline" })
	for range 5 {
		var slow []*rawConn
		for range 8 {
			s := p.dial()
			s.send("POST /body HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhe")
			await(t, began, "the handler")
			slow = append(slow, s)
		}
		for _, o := range others {
			o.get("/quick")
		}
		time.Sleep(5 * time.Millisecond) // makes the clients slow; nothing depends on how slow
		for _, s := range slow {
			s.send("llo")
			if _, body := s.response("POST"); body != "hello" {
				t.Errorf("got %q", body)
			}
		}
		// A pause of the machine may demote it. That does not happen each time.
	}
	eventually(t, "/body runs inline", func() bool { return upload().Header.Get("X-Where") == "inline" })
}

// Random paths and methods change nothing for the others.
func TestPlacementAttack(t *testing.T) {
	loopsOnly(t)
	p := startPlaced(t, &Server{})
	var slow atomic.Int64
	p.handle("/slow", func(w http.ResponseWriter, r *http.Request) {
		slow.Add(1)
		time.Sleep(time.Millisecond) // a slow handler
		put(w, "slow")
	})
	p.prove("/good")
	s := p.dial()
	for range 3 {
		s.get("/slow")
	}
	c := p.dial()
	for i := range 60 {
		var b strings.Builder
		for j := range 100 {
			fmt.Fprint(&b, ask(fmt.Sprintf("GET /x%d/%d/%d", i*100+j, j, i)))
		}
		go c.send(b.String())
		for range 100 {
			c.response("GET")
		}
	}
	for _, method := range []string{"FOO", "GEST", "POST", "G", "HEAD", "T", "PROPFIND"} {
		for _, path := range []string{"/slow/x", "/good", "/other", "/slowly"} {
			var b strings.Builder
			for range 64 {
				b.WriteString(ask(method + " " + path))
			}
			go c.send(b.String())
			for range 64 {
				c.response(method)
			}
		}
	}
	// A pause of the machine may demote it; then it is proven again.
	p.prove("/good")
	for range 3 {
		if got := s.where("/slow"); got != "pooled" {
			t.Errorf("the slow handler ran %s", got)
		}
	}
}

// All that handlers may do, they may do on the loop.
func TestPlacementInlineMethods(t *testing.T) {
	loopsOnly(t)
	p := startPlaced(t, &Server{Placement: Inline})
	client := make(chan struct{})
	p.handle("/flush", func(w http.ResponseWriter, r *http.Request) {
		put(w, "a")
		flush(w)
		<-client
		put(w, "b")
	})
	p.handle("/large", func(w http.ResponseWriter, r *http.Request) { w.Write(pattern(8 << 20)) })
	p.handle("/echo", func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).EnableFullDuplex()
		io.Copy(w, r.Body)
	})
	p.handle("/deadline", func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).SetReadDeadline(time.Now().Add(5 * time.Millisecond))
		_, err := io.ReadAll(r.Body)
		fmt.Fprint(w, isTimeout(err))
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
	p.handle("/timeout", http.TimeoutHandler(hf(func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
	}), 5*time.Millisecond, "too late").ServeHTTP)
	p.handle("/intime", http.TimeoutHandler(hf(func(w http.ResponseWriter, r *http.Request) {
		put(w, "in time")
	}), patience, "too late").ServeHTTP)
	p.handle("/early", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(103)
		put(w, "hinted")
	})
	others := p.others()
	alive := func() {
		t.Helper()
		for _, o := range others {
			o.get("/quick")
		}
	}
	c := p.dial()
	c.send(ask("GET /flush"))
	if h := c.head(); !strings.Contains(h, "X-Where: inline") || !strings.Contains(h, "chunked") {
		t.Errorf("got %q", h)
	}
	c.expect("1\r\na\r\n")
	alive()
	client <- struct{}{}
	c.expect("1\r\nb\r\n0\r\n\r\n")
	c.send(ask("GET /large"))
	alive()
	if _, body := c.response("GET"); body != string(pattern(8<<20)) {
		t.Error("the large answer is wrong")
	}
	c.send(ask("POST /echo", "Content-Length: 10") + "hello")
	alive()
	c.send("world")
	if _, body := c.response("POST"); body != "helloworld" {
		t.Errorf("got %q", body)
	}
	if _, body := c.get("/timeout"); body != "too late" {
		t.Errorf("got %q", body)
	}
	if _, body := c.get("/intime"); body != "in time" {
		t.Errorf("got %q", body)
	}
	c.send(ask("GET /early"))
	if h := c.head(); !strings.Contains(h, "103") {
		t.Errorf("got %q", h)
	}
	if _, body := c.response("GET"); body != "hinted" {
		t.Errorf("got %q", body)
	}
	c.send(ask("POST /deadline", "Content-Length: 10") + "hello")
	if _, body := c.response("POST"); body != "true" {
		t.Errorf("got %q", body)
	}
	c = p.dial()
	c.send(ask("GET /quick") + ask("GET /hijack") + "behind")
	c.response("GET")
	c.expect("behind")
	alive()
	c.send("more")
	c.expect("more")
	c.closeWrite()
	c.closed()
	alive()
}

// A handler that ends its goroutine ends neither the loop nor its connections.
func TestPlacementInlinePanics(t *testing.T) {
	loopsOnly(t)
	for _, placement := range []Placement{Adaptive, Inline} {
		p := startPlaced(t, &Server{Placement: placement})
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
				if placement == Adaptive {
					p.prove("/" + path)
				}
				release := make(chan struct{})
				wait.Store(path, release)
				c := p.dial()
				c.send(ask("GET /quick") + ask("GET /"+path+"?"+query) + ask("GET /never"))
				if _, body := c.response("GET"); body != "quick" {
					t.Errorf("got %q", body)
				}
				for _, o := range others {
					o.get("/quick")
				}
				close(release)
				if got := c.upToEnd(); query != "flushed" && got != "" || query == "flushed" && !strings.HasSuffix(got, "\r\n\r\n1\r\na\r\n") {
					t.Errorf("%s: got %q", path, got)
				}
				for _, o := range others {
					o.get("/quick")
				}
			}
		}
	}
}

// The end of a client reaches a handler that waits on what was the loop.
func TestPlacementInlineContext(t *testing.T) {
	loopsOnly(t)
	for how, leave := range leavings {
		p := startPlaced(t, &Server{Placement: Inline})
		running, over := make(chan struct{}), make(chan struct{})
		p.handle("/", func(w http.ResponseWriter, r *http.Request) {
			done := r.Context().Done()
			close(running)
			await(t, done, "the context, when the client leaves by "+how)
			close(over)
		})
		c := p.dial()
		c.send(ask("GET /"))
		await(t, running, "the handler")
		leave(c)
		await(t, over, "the handler's end")
	}
}

// Shutdown waits for handlers that block on what were the loops; Close ends
// their contexts.
func TestPlacementShutdown(t *testing.T) {
	loopsOnly(t)
	for _, closes := range []bool{false, true} {
		p := startPlaced(t, &Server{Placement: Inline})
		running, release := make(chan struct{}), make(chan struct{})
		var over sync.WaitGroup
		p.handle("/block", func(w http.ResponseWriter, r *http.Request) {
			over.Add(1)
			defer over.Done()
			running <- struct{}{}
			if closes {
				waitDone(t, r.Context(), "Close ends the context")
				return
			}
			<-release
			put(w, "unblocked")
		})
		others := p.others()
		for _, o := range others {
			o.get("/quick")
		}
		var blocked []*rawConn
		for range 8 {
			c := p.dial()
			c.send(ask("GET /block"))
			await(t, running, "the handler")
			blocked = append(blocked, c)
		}
		if closes {
			p.Close()
			over.Wait()
			for _, c := range append(blocked, others...) {
				c.closed()
			}
			continue
		}
		ended := make(chan error, 1)
		go func() { ended <- p.Shutdown(context.Background()) }()
		for _, o := range others {
			o.closed()
		}
		close(release)
		for _, c := range blocked {
			if res, body := c.response("GET"); body != "unblocked" || !res.Close {
				t.Errorf("got %v %q", res, body)
			}
			c.closed()
		}
		if err := await(t, ended, "Shutdown"); err != nil {
			t.Error(err)
		}
	}
}

// Pipelined requests are answered in their order, wherever each runs.
func TestPlacementPipelined(t *testing.T) {
	loopsOnly(t)
	for _, placement := range []Placement{Adaptive, Inline, Pooled} {
		p := startPlaced(t, &Server{Placement: placement})
		p.handle("/slow", func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(3 * time.Millisecond) // a slow handler: it overstays
			put(w, "slow"+r.URL.RawQuery)
		})
		p.handle("/quickly", func(w http.ResponseWriter, r *http.Request) { put(w, "quick"+r.URL.RawQuery) })
		if placement == Adaptive {
			p.prove("/quickly")
		}
		c := p.dial()
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
			res, err := http.ReadResponse(c.r, nil)
			if err != nil {
				t.Fatal(err)
			}
			b, _ := io.ReadAll(res.Body)
			fmt.Fprintf(&got, "%s ", b)
		}
		if got.String() != want.String() {
			t.Errorf("got %s", brief(got.String()))
		}
		c.closed()
	}
}
