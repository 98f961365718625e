package chert

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

	"github.com/chert-http/chert/direct"
)

// Once wrong: the plain way makes Cache-Control of Pragma, the direct way does not.
func TestOnceDirectPragma(t *testing.T) {
	t.Parallel()
	for _, way := range directWays() {
		t.Run(way.name, func(t *testing.T) {
			ts := way.start(t, &Server{Handler: direct.HandlerFunc(func(x *direct.Exchange) { x.Write(x.RequestHeader("Cache-Control")) })})
			if _, body := ts.dial().get("/", "Pragma: no-cache"); body != "no-cache" {
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
			ts := way.start(t, &Server{Handler: direct.HandlerFunc(func(x *direct.Exchange) {
				x.SetHeader("Content-Encoding", "")
				x.WriteString("text")
			})})
			if res, _ := ts.dial().get("/"); res.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
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
	ts := start(t, &Server{Engine: EngineLoops, MaxHandlers: 1, QueueLength: 100, Handler: direct.HandlerFunc(func(x *direct.Exchange) {
		if string(x.Path()) == "/block" {
			running <- struct{}{}
			<-release
		}
		x.WriteString(string(x.Wire().Target()) + " " + string(x.RequestHeader("X-Own")))
	})})
	blocker := ts.dial()
	blocker.send("GET /block HTTP/1.1\r\nHost: h\r\n\r\n")
	await(t, running, "the blocking handler")
	paths := []string{"/aaaa", "/bbbb", "/cccc", "/dddd", "/eeee", "/ffff", "/gggg", "/hhhh"}
	var all []*rawConn
	for _, path := range paths {
		c := ts.dial()
		c.send("GET " + path + " HTTP/1.1\r\nHost: h\r\nX-Own: " + path + "\r\n\r\n")
		all = append(all, c)
	}
	eventually(t, "all wait", func() bool { return ts.waiting() == len(paths) })
	close(release)
	for i, c := range all {
		if _, body := c.response("GET"); body != paths[i]+" "+paths[i] {
			t.Errorf("%s was answered %q", paths[i], body)
		}
	}
}

// Once wrong: what follows a request that was refused for want of a place, on the same
// connection, is served without one.
func TestOnceMaxHandlersPipelinedBehindRefusal(t *testing.T) {
	t.Parallel()
	for _, placement := range []Placement{Inline, Pooled} {
		running, release, served := make(chan struct{}, 16), make(chan struct{}), make(chan struct{}, 16)
		ts := start(t, &Server{Engine: EngineLoops, Placement: placement, MaxHandlers: 1, QueueLength: -1, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/block" {
				running <- struct{}{}
				<-release
				return
			}
			served <- struct{}{}
		})})
		blocker := ts.dial()
		blocker.send("GET /block HTTP/1.1\r\nHost: h\r\n\r\n")
		await(t, running, "the blocking handler")
		c := ts.dial()
		c.send("GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\n\r\nGET /3 HTTP/1.1\r\nHost: h\r\n\r\n")
		for range 3 {
			if res, _ := c.response("GET"); res.StatusCode != 503 {
				t.Errorf("placement %d: got %s", placement, res.Status)
			}
		}
		if n := len(served); n != 0 {
			t.Errorf("placement %d: %d handlers ran beside the only one that may", placement, n)
		}
		close(release)
	}
}

// Once wrong: what the tests above show, under stress: wrong answers, and more handlers
// at once than may run.
func TestOnceFaultsMaxHandlers(t *testing.T) { mixtures(t, 6, false) }

// Once wrong: as TestOnceDirectAcceptedDuringShutdown, now and then.
func TestOnceFaultsShutdown(t *testing.T) { mixtures(t, 0, true) }

// Once wrong: a quick route whose handlers then wait and end by a panic, as
// httputil.ReverseProxy's do, is never demoted: each costs a loop its driver.
func TestOncePlacementPanicsAreNotLearnt(t *testing.T) {
	loopsOnly(t)
	for _, how := range []string{"panic", "goexit"} {
		t.Run(how, func(t *testing.T) {
			p := startPlaced(t, &Server{})
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
				c := p.dial()
				c.send(ask("GET /route?slow"))
				if await(t, running, "the handler") == "inline" {
					inline++
				}
				for _, o := range others { // on the handler's loop too: it has lost it
					o.get("/quick")
				}
				release <- struct{}{}
				c.upToEnd()
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
	p := startPlaced(t, &Server{})
	c := p.dial()
	for range 100 {
		c.send("GXT /slow HTTP/1.1\r\nHost: h\r\n\r\n")
		c.response("GXT")
	}
	if got := p.dial().where("/slow"); got != "pooled" {
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
			ts := way.start(t, &Server{Handler: direct.HandlerFunc(func(x *direct.Exchange) {
				if string(x.Path()) == "/panic" {
					x.SendFile(direct.File{File: file, Len: 10, Done: func() { panicked.Add(1) }})
					panic(http.ErrAbortHandler)
				}
				x.SendFile(direct.File{File: file, Len: 10, Done: func() { first.Add(1) }})
				x.SendFile(direct.File{File: file, Len: 20, Done: func() { second.Add(1) }})
			})})
			c := ts.dial()
			c.get("/twice")
			c.get("/twice") // the first is over
			c = ts.dial()
			c.send(ask("GET /panic"))
			c.closed()
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
		ts := way.start(t, &Server{
			WriteTimeout: patience,
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
		c := ts.dial()
		c.send(ask("GET /"))
		// Nothing tells that Serve has returned, but that its goroutine has ended.
		eventually(t, "the handler's goroutine has ended", func() bool {
			stacks := make([]byte, 1<<20)
			return !strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "serveDirect")
		})
		close(returned)
		if err := await(t, result, "the hijacker"); !isTimeout(err) {
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
			ts := way.start(t, &Server{Handler: direct.HandlerFunc(func(x *direct.Exchange) {
				fmt.Fprint(x, x.RequestHeader("X-Empty") != nil, x.RequestHeader("X-None") != nil)
			})})
			if _, body := ts.dial().get("/", "X-Empty:"); body != "true false" {
				t.Errorf("got %s", body)
			}
		})
	}
}

// Once wrong: a client that has sent FIN and waits for its answer gets none if its
// request had to wait for a place.
func TestOnceSlotsHalfClosed(t *testing.T) {
	slottedWays(t, func(t *testing.T, fresh func() *Server) {
		s := fresh()
		s.MaxHandlers, s.QueueLength = 1, 10
		sl := startSlotted(t, s)
		sl.dial().send(ask("GET /wait"))
		await(t, sl.running, "the handler")
		c := sl.dial()
		c.send(ask("GET /?half"))
		eventually(t, "it waits", func() bool { return sl.waiting() == 1 })
		c.closeWrite()
		for range 16 * runtime.GOMAXPROCS(0) { // its loop has seen the FIN behind these
			c := sl.dial()
			c.send("nonsense\r\n\r\n")
			c.rest()
			c.Close()
		}
		close(sl.release)
		if got := c.upToEnd(); !strings.HasSuffix(got, "served half") {
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
	ts := start(t, &Server{
		Engine:    EngineLoops,
		ConnState: func(net.Conn, http.ConnState) { <-release }, // holds the loops
		Handler:   direct.HandlerFunc(func(x *direct.Exchange) { x.Write(x.Wire().Target()) }),
	})
	var all []*rawConn
	for i := range 40 {
		c := ts.dial()
		c.send(ask(fmt.Sprintf("GET /%03d", i)))
		all = append(all, c)
	}
	ended := make(chan error, 1)
	go func() { ended <- ts.Shutdown(context.Background()) }()
	eventually(t, "the shutdown has begun", ts.stopping.Load)
	close(release)
	for i, c := range all {
		if res, err := http.ReadResponse(c.r, nil); err == nil {
			if body, _ := io.ReadAll(res.Body); string(body) != fmt.Sprintf("/%03d", i) {
				t.Errorf("/%03d was answered %q", i, body)
			}
		}
		c.Close()
	}
	await(t, ended, "Shutdown")
}
