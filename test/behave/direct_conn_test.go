package behave

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// A direct handler that blocks, although it must not, stops no other client.
func TestDirectLate(t *testing.T) {
	t.Parallel()
	eachDirect(t, func(t *testing.T, way directWay) {
		release, running := make(chan struct{}), make(chan struct{}, 1000)
		ts := way.start(t, &chert.Server{Handler: direct.HandlerFunc(func(x *direct.Exchange) {
			// A copy: the test checks that the request does not change.
			target, own := string(x.Wire().Target()), string(x.RequestHeader("X-Own"))
			if strings.HasPrefix(target, "/late") {
				running <- struct{}{}
				<-release
			}
			if string(x.Wire().Target()) != target || string(x.RequestHeader("X-Own")) != own || string(x.Host()) != "h" {
				t.Errorf("%s %s has become %s %s", target, own, x.Wire().Target(), x.RequestHeader("X-Own"))
			}
			x.WriteString(string(x.Wire().Target()) + own)
		})})
		var late []*servertest.Client
		for i := range 6 * runtime.GOMAXPROCS(0) {
			c := ts.Dial()
			own := fmt.Sprint(i)
			c.Send(ask("GET /late"+own, "X-Own: "+own) + ask("GET /behind", "X-Own: "+own))
			servertest.Await(t, running, "a late handler")
			late = append(late, c)
			for _, c := range []*servertest.Client{ts.Dial(), ts.Dial()} {
				if _, body := c.Get("/prompt", "X-Own: p"); body != "/promptp" {
					t.Errorf("got %q", body)
				}
			}
		}
		close(release)
		for i, c := range late {
			for _, want := range []string{"/late", "/behind"} {
				_, body := c.Response("GET")
				if want == "/late" {
					want += fmt.Sprint(i)
				}
				if body != want+fmt.Sprint(i) {
					t.Errorf("got %q", body)
				}
			}
		}
	})
}

// Done is called for a file that Finish does not send.
func TestDirectKeepAlivesOff(t *testing.T) {
	t.Parallel()
	for _, way := range directWays() {
		t.Run(way.name, func(t *testing.T) {
			s := &chert.Server{Handler: direct.NewResponse(200, nil, []byte("hello"))}
			s.SetKeepAlivesEnabled(false)
			ts := way.start(t, s)
			c := ts.Dial()
			c.Send(ask("GET /") + ask("GET /"))
			if got, want := servertest.Undated(c.UpToEnd()), ok+"Content-Length: 5\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\nhello"; got != want {
				t.Errorf("got %q", got)
			}
		})
	}
}

// A ConnState hook sees the same on both ways.
func TestDirectConnState(t *testing.T) {
	t.Parallel()
	var want string
	for _, way := range directWays() {
		states := make(chan http.ConnState, 100)
		ts := way.start(t, &chert.Server{
			ConnState: func(_ net.Conn, s http.ConnState) { states <- s },
			Handler: directFunc{
				func(x *direct.Exchange) bool {
					if string(x.Path()) == "/declined" {
						return false
					}
					if string(x.Path()) == "/panic" {
						panic(http.ErrAbortHandler)
					}
					return true
				},
				func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/panic" {
						panic(http.ErrAbortHandler)
					}
				},
			},
		})
		var got strings.Builder
		for _, script := range []string{
			ask("GET /"), ask("GET /", "Connection: close"), ask("GET /declined") + ask("GET /") + post("/", "hello"), ask("GET /panic"), post("/declined", "hello"), "nonsense\r\n\r\n",
		} {
			c := ts.Dial()
			c.Send(script)
			c.CloseWrite()
			c.UpToEnd()
			for s := http.StateNew; s != http.StateClosed; {
				s = servertest.Await(t, states, "a state")
				fmt.Fprint(&got, s, " ")
			}
			fmt.Fprintln(&got)
		}
		if want == "" {
			want = got.String()
		}
		if got.String() != want {
			t.Errorf("%s: got\n%swant\n%s", way.name, got.String(), want)
		}
	}
}

// Shutdown lets a direct handler finish, Close does not wait for its client.
func TestDirectShutdown(t *testing.T) {
	t.Parallel()
	eachDirect(t, func(t *testing.T, way directWay) {
		running, release := make(chan struct{}, 1), make(chan struct{})
		ts := way.start(t, &chert.Server{Handler: direct.HandlerFunc(func(x *direct.Exchange) {
			if string(x.Path()) == "/" {
				running <- struct{}{}
				<-release
			}
			x.WriteString("done")
		})})
		idle := ts.Dial()
		idle.Get("/idle")
		c := ts.Dial()
		c.Send(ask("GET /"))
		servertest.Await(t, running, "the handler")
		ended := make(chan error, 1)
		go func() { ended <- ts.Shutdown(context.Background()) }()
		idle.Ended()
		select {
		case err := <-ended:
			t.Errorf("Shutdown did not wait: %v", err)
		default:
		}
		close(release)
		if res, body := c.Response("GET"); body != "done" || !res.Close {
			t.Errorf("got %v %q", res, body)
		}
		c.Ended()
		if err := servertest.Await(t, ended, "Shutdown"); err != nil {
			t.Error(err)
		}
	})
}

// The response to a request that arrives slowly is the same, and it delays no
// other.
func TestDirectSlowBody(t *testing.T) {
	t.Parallel()
	eachDirect(t, func(t *testing.T, way directWay) {
		ts := way.start(t, &chert.Server{ReadStallTimeout: servertest.Patience, Handler: direct.HandlerFunc(func(x *direct.Exchange) { x.Write(x.Body()) })})
		slow := ts.Dial()
		slow.Send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhello")
		for range 4 * runtime.GOMAXPROCS(0) {
			c := ts.Dial()
			c.Send(post("/", "quick"))
			if _, body := c.Response("POST"); body != "quick" {
				t.Errorf("got %q", body)
			}
		}
		slow.Send("world")
		if _, body := slow.Response("POST"); body != "helloworld" {
			t.Errorf("got %q", body)
		}
		late := ts.Dial()
		late.Send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhello")
		late.CloseWrite()
		if res, _ := late.Response("POST"); res.StatusCode != 400 || !res.Close {
			t.Errorf("got %v", res)
		}
		late.Ended()
	})
}

// A direct handler that ends its goroutine about when its loop changes drivers:
// the goroutine that records that reads the request meanwhile.
func TestDirectGoexitLate(t *testing.T) {
	t.Parallel()
	if !sys.HavePoller {
		t.Skip("no event loops here")
	}
	ts := engines.Start(t, &chert.Server{Engine: chert.EngineLoops, Placement: chert.PlacementInline, Handler: direct.HandlerFunc(func(x *direct.Exchange) {
		n := 0
		fmt.Sscan(string(x.RawQuery()), &n)
		for until := time.Now().Add(time.Millisecond + time.Duration(n)*20*time.Microsecond); time.Now().Before(until); {
		}
		runtime.Goexit()
	})})
	for i := range 60 {
		c := ts.Dial()
		c.Send(ask(fmt.Sprintf("GET /?%d", i)))
		c.Ended()
	}
}

// After a declined direct request, WriteTimeout leaves the deadline alone that a
// hijacker has set.
func TestDirectHijackDeadline(t *testing.T) {
	t.Parallel()
	eachDirect(t, func(t *testing.T, way directWay) {
		returned, result := make(chan struct{}), make(chan error, 1)
		ts := way.start(t, &chert.Server{
			WriteTimeout: servertest.Patience,
			ConnState:    func(_ net.Conn, s http.ConnState) {},
			Handler: directFunc{func(x *direct.Exchange) bool { return false }, func(w http.ResponseWriter, r *http.Request) {
				nc, _, err := w.(http.Hijacker).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				nc.SetWriteDeadline(time.Unix(1, 0))
				go func() {
					defer nc.Close()
					<-returned
					_, err := nc.Write([]byte("late"))
					result <- err
				}()
			}},
		})
		c := ts.Dial()
		c.Send(ask("GET /"))
		// No event marks the return of Serve but the end of its goroutine.
		servertest.Eventually(t, "the handler's goroutine has ended", func() bool {
			stacks := make([]byte, 1<<20)
			return !strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "serveDirect")
		})
		close(returned)
		if err := servertest.Await(t, result, "the hijacker"); !servertest.IsTimeout(err) {
			t.Errorf("Write after the deadline returned %v", err)
		}
	})
}

// Connections that a loop accepts while the server begins to shut down are not
// read one after the other into the loop's one buffer before their direct
// requests are served: all would get the response to the last one.
func TestDirectAcceptedDuringShutdown(t *testing.T) {
	loopsOnly(t)
	release := make(chan struct{})
	ts := engines.Start(t, &chert.Server{
		Engine:    chert.EngineLoops,
		ConnState: func(net.Conn, http.ConnState) { <-release }, // holds the loops
		Handler:   direct.HandlerFunc(func(x *direct.Exchange) { x.Write(x.Wire().Target()) }),
	})
	var all []*servertest.Client
	for i := range 40 {
		c := ts.Dial()
		c.Send(ask(fmt.Sprintf("GET /%03d", i)))
		all = append(all, c)
	}
	ended := make(chan error, 1)
	go func() { ended <- ts.Shutdown(context.Background()) }()
	servertest.Eventually(t, "the shutdown has begun", ts.Inside().Ending)
	close(release)
	for i, c := range all {
		if res, err := http.ReadResponse(c.R, nil); err == nil {
			if body, _ := io.ReadAll(res.Body); string(body) != fmt.Sprintf("/%03d", i) {
				t.Errorf("/%03d got %q", i, body)
			}
		}
		c.Close()
	}
	servertest.Await(t, ended, "Shutdown")
}
