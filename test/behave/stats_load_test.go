package behave

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/router"
	"github.com/chert-http/chert/stats"
	"github.com/chert-http/chert/websocket"
)

// observed is what clients have seen: responses by class, and those that were cut off in 0.
type observed struct {
	classes  [6]atomic.Uint64
	opened   atomic.Uint64 // connections
	hijacked atomic.Uint64
	sockets  atomic.Uint64 // WebSockets
	routes   sync.Map      // *atomic.Uint64 by pattern
}

func (s *observed) add(class int, pattern string) {
	s.classes[class].Add(1)
	n, _ := s.routes.LoadOrStore(pattern, new(atomic.Uint64))
	n.(*atomic.Uint64).Add(1)
}

// loadHandler is a router with a route for each way in which requests end.
func (l *load) handler() http.Handler {
	t := l.t
	sockets, err := websocket.New(&websocket.Options{OnMessage: func(c *websocket.Conn, typ websocket.Type, p []byte) { c.Send(typ, p) }})
	if err != nil {
		t.Fatal(err)
	}
	r := router.New()
	r.HandleFunc("GET /items/{id}", func(w http.ResponseWriter, r *http.Request) { put(w, r.PathValue("id")) })
	r.Handle("GET /direct", direct.NewResponse(200, http.Header{"Content-Type": {"text/plain"}}, []byte("direct")))
	r.HandleFunc("GET /fails", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(503) })
	r.HandleFunc("POST /body", func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
	r.HandleFunc("GET /panics", func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) })
	r.HandleFunc("GET /large", func(w http.ResponseWriter, r *http.Request) { w.Write(servertest.Pattern(300 << 10)) })
	r.Handle("GET /socket", sockets)
	r.HandleFunc("GET /left", func(w http.ResponseWriter, r *http.Request) {
		began, _ := l.begun.Load(r.URL.RawQuery)
		close(began.(chan bool))
		<-r.Context().Done()
	})
	r.HandleFunc("GET /hijacks", func(w http.ResponseWriter, r *http.Request) {
		nc, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		put(nc, "mine")
		nc.Close()
	})
	return r
}

// load is one server under load.
type load struct {
	t    *testing.T
	addr string
	tls  *tls.Config // nil in plain text
	// handlers that wait for their clients to leave, by the number in their query
	begun sync.Map // chan bool
	ids   atomic.Int64
	observed
}

func (l *load) dial() *servertest.Client {
	nc, err := net.Dial("tcp", l.addr)
	if err != nil {
		l.t.Error(err)
		return nil
	}
	l.opened.Add(1)
	if l.tls != nil {
		nc = tls.Client(nc, l.tls)
	}
	return servertest.NewClient(l.t, nc)
}

// kept sends requests on a kept connection, some of them pipelined.
func (l *load) kept(rnd *rand.Rand) {
	c := l.dial()
	defer c.Close()
	for range 12 {
		n := 1
		if rnd.IntN(3) == 0 {
			n = 1 + rnd.IntN(20)
		}
		type one struct {
			wire, method, pattern string
			class                 int
		}
		var wire strings.Builder
		var all []one
		for range n {
			x := [...]one{
				{ask(fmt.Sprint("GET /items/", rnd.IntN(1000))), "GET", "GET /items/{id}", 2},
				{ask("HEAD /items/x"), "HEAD", "GET /items/{id}", 2},
				{ask("GET /direct"), "GET", "GET /direct", 2},
				{ask("GET /fails"), "GET", "GET /fails", 5},
				{post("/body", "some bytes"), "POST", "POST /body", 2},
				{ask(fmt.Sprint("GET /missing/", rnd.IntN(1000))), "GET", "", 4},
				{ask(fmt.Sprint("M", rnd.IntN(1000), " /direct")), "GET", "", 4},
				{ask("GET /large"), "GET", "GET /large", 2},
			}[rnd.IntN(8)]
			wire.WriteString(x.wire)
			all = append(all, x)
		}
		go c.Send(wire.String())
		for _, x := range all {
			if res, _ := c.Response(x.method); res.StatusCode/100 != x.class {
				l.t.Errorf("%s: status %d", servertest.Brief(x.wire), res.StatusCode)
			}
			l.add(x.class, x.pattern)
		}
	}
}

// ends uses a connection for one request that ends it.
func (l *load) ends(rnd *rand.Rand) {
	c := l.dial()
	defer c.Close()
	switch rnd.IntN(5) {
	case 0:
		c.Send(ask("GET /panics"))
		c.UpToEnd()
		l.add(0, "GET /panics")
	case 1:
		c.Send("nonsense\r\n\r\n")
		c.UpToEnd()
		l.add(4, "")
	case 2:
		c.Send(ask("GET /hijacks"))
		if c.UpToEnd() == "mine" {
			l.hijacked.Add(1)
		}
		l.add(0, "GET /hijacks")
	case 3:
		id, began := l.awaited()
		c.Send(ask("GET /left?" + id))
		servertest.Await(l.t, began, "the handler")
		nc := c.Conn
		if tc, ok := nc.(*tls.Conn); ok {
			nc = tc.NetConn()
		}
		nc.(*net.TCPConn).SetLinger(0)
		nc.Close()
		l.add(0, "GET /left")
	case 4:
		c.Send(ask("GET /socket", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="))
		if head := c.Head(); !strings.Contains(head, " 101 ") {
			l.t.Errorf("no WebSocket: %s", head)
		}
		l.sockets.Add(1)
		c.Send("\x81\x82\x00\x00\x00\x00hi") // masked with zeros
		c.Want("\x81\x02hi")
		l.add(1, "GET /socket")
	}
}

// awaited returns a number for a request and what tells that its handler has begun.
func (l *load) awaited() (id string, began chan bool) {
	id, began = fmt.Sprint(l.ids.Add(1)), make(chan bool)
	l.begun.Store(id, began)
	return id, began
}

// second sends requests by HTTP/2, some of which it resets.
func (l *load) second(rnd *rand.Rand) {
	tr := &http.Transport{Protocols: new(http.Protocols)}
	// The request's context must not cancel the dial: the client cannot tell whether the server
	// has accepted such a connection, and counts it.
	tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		l.opened.Add(1)
		return new(net.Dialer).DialContext(context.WithoutCancel(ctx), network, addr)
	}
	if tr.Protocols.SetUnencryptedHTTP2(l.tls == nil); l.tls != nil {
		tr.Protocols.SetHTTP2(true)
		cfg := l.tls.Clone()
		cfg.NextProtos = []string{"h2"}
		tr.DialTLSContext = func(_ context.Context, network, addr string) (net.Conn, error) {
			l.opened.Add(1)
			return tls.Dial(network, addr, cfg)
		}
	}
	defer tr.CloseIdleConnections()
	scheme := "http://"
	if l.tls != nil {
		scheme = "https://"
	}
	var all sync.WaitGroup
	for range 40 {
		kind, id := rnd.IntN(6), rnd.IntN(1000)
		all.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			left, began := l.awaited()
			path := [...]string{fmt.Sprint("/items/", id), "/direct", "/fails", "/left?" + left, fmt.Sprint("/none/", id), "/large"}[kind]
			req, err := http.NewRequestWithContext(ctx, "GET", scheme+l.addr+path, nil)
			if err != nil {
				l.t.Error(err)
				return
			}
			if kind == 3 {
				go func() {
					servertest.Await(l.t, began, "the handler")
					cancel()
				}()
			}
			res, err := tr.RoundTrip(req)
			if kind == 3 {
				if err == nil {
					l.t.Error("a request that was left has a response")
				}
				l.add(0, "GET /left")
				return
			}
			if err != nil {
				l.t.Error(err)
				return
			}
			io.Copy(io.Discard, res.Body)
			res.Body.Close()
			class := [...]int{2, 2, 5, 0, 4, 2}[kind]
			if res.StatusCode/100 != class {
				l.t.Errorf("%s: status %d", path, res.StatusCode)
			}
			l.add(class, [...]string{"GET /items/{id}", "GET /direct", "GET /fails", "", "", "GET /large"}[kind])
		})
	}
	all.Wait()
}

// What is counted is what clients have seen, whatever they do, and whatever counts it:
// at the end, and after it.
func TestStatsUnderLoad(t *testing.T) {
	if engines.Layered {
		t.Skip("a relay has connections of its own")
	}
	cert, roots := servertest.Certificate(t)
	for _, kind := range []string{"loops", "inline", "pooled", "goroutines", "tls", "tls on goroutines"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			// A slow machine must not end handshakes whose connections the HTTP/2 client does not need any more.
			srv := &chert.Server{Engine: chert.EngineLoops, Protocols: new(http.Protocols), ReadHeaderTimeout: servertest.Patience}
			srv.Protocols.SetHTTP1(true)
			srv.Protocols.SetHTTP2(true)
			srv.Protocols.SetUnencryptedHTTP2(true)
			switch kind {
			case "inline":
				srv.Placement = chert.PlacementInline
			case "pooled":
				srv.Placement = chert.PlacementPooled
			case "goroutines", "tls on goroutines":
				srv.Engine = chert.EngineGoroutines
			}
			if !sys.HavePoller {
				srv.Engine = chert.EngineGoroutines
			}
			l := &load{t: t}
			srv.Handler = l.handler()
			var s *engines.Server
			if strings.HasPrefix(kind, "tls") {
				s = engines.StartTLS(t, srv, servertest.ListenTCP(t), cert)
				l.tls = &tls.Config{RootCAs: roots, ServerName: "example.com"}
			} else {
				s = engines.Start(t, srv)
			}
			l.addr = s.ListenAddr
			rounds := 4
			if testing.Short() {
				rounds = 1
			}
			var all sync.WaitGroup
			stop := make(chan bool)
			polled := make(chan bool)
			go func() { // while others look
				defer close(polled)
				for {
					select {
					case <-stop:
						return
					case <-time.After(5 * time.Millisecond):
						s.Stats()
						s.RunningRequests(5)
						s.OpenConnections(5)
					}
				}
			}()
			for i := range 8 {
				rnd := rand.New(rand.NewPCG(uint64(i), 1))
				all.Go(func() {
					for range rounds {
						l.kept(rnd)
						l.ends(rnd)
						if i < 3 {
							l.second(rnd)
						}
					}
				})
			}
			all.Wait()
			close(stop)
			<-polled
			d := "not looked"
			for until := time.Now().Add(servertest.Patience); d != "" && time.Now().Before(until); time.Sleep(time.Millisecond) {
				d = l.difference(s.Stats())
			}
			if d != "" {
				t.Error(d)
			}
			ctx, cancel := context.WithTimeout(context.Background(), servertest.Patience)
			defer cancel()
			if err := s.Shutdown(ctx); err != nil {
				t.Fatal(err)
			}
			sn := s.Stats()
			if d := l.difference(sn); d != "" {
				t.Errorf("after the end: %s", d)
			}
			n := sn.Connections
			if n.Open != 0 || n.Closed != n.Accepted || n.Active != 0 || n.HTTP1 != 0 || n.HTTP2 != 0 || n.WebSockets != 0 || sn.Running != 0 || sn.Waiting != 0 {
				t.Errorf("after the end: %+v, running %d, waiting %d", n, sn.Running, sn.Waiting)
			}
			if len(s.RunningRequests(9))+len(s.OpenConnections(9)) > 0 {
				t.Error("something is left after the end")
			}
		})
	}
}

// difference describes what is counted otherwise than seen; "" for nothing.
func (l *load) difference(sn stats.Snapshot) string {
	var out []string
	not := func(what string, counted, seen uint64) {
		if counted != seen {
			out = append(out, fmt.Sprintf("%s: counted %d, seen %d", what, counted, seen))
		}
	}
	all := uint64(0)
	for class := range l.classes {
		n := l.classes[class].Load()
		all += n
		not(fmt.Sprint("class ", class), finished(&sn, class), n)
	}
	not("connections", sn.Connections.Accepted, l.opened.Load())
	not("hijacked", sn.Connections.Hijacked, l.hijacked.Load())
	sum := uint64(0)
	for _, r := range sn.Routes {
		n := uint64(0)
		if v, ok := l.routes.Load(r.Pattern); ok {
			n = v.(*atomic.Uint64).Load()
		}
		not("route "+r.Pattern, r.N(), n)
		sum += r.N()
		ways := uint64(0)
		for _, n := range r.Ways {
			ways += n
		}
		not("ways of "+r.Pattern, ways, r.N())
	}
	not("routes", sum, all)
	// What is not timed for itself stands for others, or is the rest of a sample.
	slack := uint64(2 * stats.SampleEvery * max(len(sn.Loops), 8))
	not4 := finished(&sn, 0) + finished(&sn, 1) + finished(&sn, 4) // some of them are not timed
	if n := sn.Total.N(); n > all+slack || n+slack+not4 < all {
		out = append(out, fmt.Sprintf("%d times of %d requests", n, all))
	}
	if l.tls != nil {
		shaken := uint64(0)
		for _, v := range sn.TLS.Versions {
			shaken += v.N
		}
		not("handshakes", shaken, l.opened.Load())
	}
	return strings.Join(out, "; ")
}
