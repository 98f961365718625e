package behave

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// Once wrong: the plain way makes Cache-Control of Pragma, the direct way does not.
func TestOnceDirectPragma(t *testing.T) {
	t.Parallel()
	for _, way := range directWays() {
		t.Run(way.name, func(t *testing.T) {
			ts := way.start(t, &chert.Server{Handler: direct.HandlerFunc(func(x *direct.Exchange) { x.Write(x.Fields.Get("Cache-Control")) })})
			if _, body := ts.Dial().Get("/", "Pragma: no-cache"); body != "no-cache" {
				t.Errorf("Cache-Control is %q", body)
			}
		})
	}
}

// Once wrong: an empty Content-Encoding keeps the direct way from guessing a type, but
// not the plain way.
func TestOnceDirectEmptyEncoding(t *testing.T) {
	t.Parallel()
	for _, way := range directWays() {
		t.Run(way.name, func(t *testing.T) {
			ts := way.start(t, &chert.Server{Handler: direct.HandlerFunc(func(x *direct.Exchange) {
				x.SetField("Content-Encoding", "")
				x.WriteString("text")
			})})
			if res, _ := ts.Dial().Get("/"); res.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
				t.Errorf("got %v", res.Header)
			}
		})
	}
}

// Once wrong: a request on a loop that waits for one of MaxHandlers is in the loop's
// read buffer, where the requests of other connections replace it.
func TestOnceDirectQueuedRequestIsOverwritten(t *testing.T) {
	t.Parallel()
	running, release := make(chan struct{}, 16), make(chan struct{})
	ts := engines.Start(t, &chert.Server{Engine: chert.EngineLoops, MaxHandlers: 1, QueueLength: 100, Handler: direct.HandlerFunc(func(x *direct.Exchange) {
		if string(x.Path) == "/block" {
			running <- struct{}{}
			<-release
		}
		x.WriteString(string(x.Target) + " " + string(x.Fields.Get("X-Own")))
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
			t.Errorf("%s was answered %q", paths[i], body)
		}
	}
}

// Once wrong: what follows a request that was refused for want of a place, on the same
// connection, is served without one.
func TestOnceMaxHandlersPipelinedBehindRefusal(t *testing.T) {
	t.Parallel()
	for _, placement := range []chert.Placement{chert.Inline, chert.Pooled} {
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

// Once wrong: a quick route whose handlers then wait and end by a panic, as
// httputil.ReverseProxy's do, is never demoted: each costs a loop its driver.
func TestOncePlacementPanicsAreNotLearnt(t *testing.T) {
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
				for _, o := range others { // on the handler's loop too: it has lost it
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

// Once wrong: methods of the same length, first and last letter share their records, so
// anybody can prove a slow route by asking for it with a method that is refused
// at once.
func TestOncePlacementMethodsAreMixedUp(t *testing.T) {
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

// Once wrong: a file that is replaced, or whose handler panics, is never done with.
func TestOnceDirectFileDone(t *testing.T) {
	t.Parallel()
	file := directFile(t)
	for _, way := range directWays() {
		t.Run(way.name, func(t *testing.T) {
			var first, second, panicked atomic.Int64
			ts := way.start(t, &chert.Server{Handler: direct.HandlerFunc(func(x *direct.Exchange) {
				if string(x.Path) == "/panic" {
					x.SendFile(direct.File{File: file, Len: 10, Done: func() { panicked.Add(1) }})
					panic(http.ErrAbortHandler)
				}
				x.SendFile(direct.File{File: file, Len: 10, Done: func() { first.Add(1) }})
				x.SendFile(direct.File{File: file, Len: 20, Done: func() { second.Add(1) }})
			})})
			c := ts.Dial()
			c.Get("/twice")
			c.Get("/twice") // the first is over
			c = ts.Dial()
			c.Send(ask("GET /panic"))
			c.Ended()
			ts.Shutdown(t.Context())
			if way.name != "nethttp" && (first.Load() != 2 || second.Load() != 2 || panicked.Load() != 1) {
				t.Errorf("Done was called %d times for the replaced files, %d for the sent ones, %d behind the panic; want 2, 2, 1", first.Load(), second.Load(), panicked.Load())
			}
		})
	}
}

// Once wrong: behind a declined direct request, WriteTimeout takes the deadline away
// that a hijacker has set, on goroutines.
func TestOnceDirectHijackDeadline(t *testing.T) {
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
		// Nothing tells that Serve has returned, but that its goroutine has ended.
		servertest.Eventually(t, "the handler's goroutine has ended", func() bool {
			stacks := make([]byte, 1<<20)
			return !strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "serveDirect")
		})
		close(returned)
		if err := servertest.Await(t, result, "the hijacker"); !servertest.IsTimeout(err) {
			t.Errorf("Write behind the deadline gave %v", err)
		}
	})
}

// Once wrong: over net/http's header, a field that is there and empty looks as if it
// were not.
func TestOnceDirectEmptyField(t *testing.T) {
	t.Parallel()
	for _, way := range directWays() {
		t.Run(way.name, func(t *testing.T) {
			ts := way.start(t, &chert.Server{Handler: direct.HandlerFunc(func(x *direct.Exchange) {
				fmt.Fprint(x, x.Fields.Get("X-Empty") != nil, x.Fields.Get("X-None") != nil)
			})})
			if _, body := ts.Dial().Get("/", "X-Empty:"); body != "true false" {
				t.Errorf("got %s", body)
			}
		})
	}
}

// Once wrong: a client that has sent FIN and waits for its answer gets none if its
// request had to wait for a place.
func TestOnceSlotsHalfClosed(t *testing.T) {
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
		for range 16 * runtime.GOMAXPROCS(0) { // its loop has seen the FIN behind these
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

// Once wrong: connections that a loop accepts while the server begins to shut down are
// read at once, one after the other, into the loop's one buffer, although none
// of their direct requests has been served: all are answered as the last one.
func TestOnceDirectAcceptedDuringShutdown(t *testing.T) {
	loopsOnly(t)
	release := make(chan struct{})
	ts := engines.Start(t, &chert.Server{
		Engine:    chert.EngineLoops,
		ConnState: func(net.Conn, http.ConnState) { <-release }, // holds the loops
		Handler:   direct.HandlerFunc(func(x *direct.Exchange) { x.Write(x.Target) }),
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
				t.Errorf("/%03d was answered %q", i, body)
			}
		}
		c.Close()
	}
	servertest.Await(t, ended, "Shutdown")
}
