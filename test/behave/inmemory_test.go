package behave

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// The tests of this file serve net.Pipes, most of them in a synctest bubble:
// there time passes only when every goroutine waits, so the times that they
// measure are exact. A bubble in which a goroutine is left at the end panics.

// inMemory runs f on net.Pipes, in a bubble and outside.
func inMemory(t *testing.T, f func(t *testing.T, e chert.Engine)) {
	t.Helper()
	t.Run("bubble", func(t *testing.T) { bubbles(t, f) })
	t.Run("plain", func(t *testing.T) { alikeInMemory(t, f) })
}

// bubbles runs f in a bubble of its own for our server and for net/http.
func bubbles(t *testing.T, f func(t *testing.T, e chert.Engine)) {
	t.Helper()
	alikeInMemory(t, func(t *testing.T, e chert.Engine) {
		synctest.Test(t, func(t *testing.T) { f(t, e) })
	})
}

// alikeInMemory is alike for listeners that event loops cannot drive, which
// EngineAuto has to detect.
func alikeInMemory(t *testing.T, f func(t *testing.T, e chert.Engine)) {
	t.Helper()
	for name, e := range map[string]chert.Engine{"auto": chert.EngineAuto, "nethttp": engines.NetHTTP} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, e)
		})
	}
}

// memoryEcho responds with what it received, hijacks for an upgrade, and has a
// few paths of its own.
func memoryEcho(t *testing.T) hf {
	return func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Upgrade") != "":
			echo(t, w)
			return
		case r.URL.Path == "/large":
			w.Write(servertest.Pattern(1 << 20))
			return
		}
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("%s: %v", r.URL, err)
		}
		fmt.Fprintf(w, "%s %s %s %s", r.Method, r.URL, r.RemoteAddr, b)
	}
}

func TestInMemory(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, e chert.Engine) {
		_, m := engines.StartMemory(t, &chert.Server{Engine: e, Handler: memoryEcho(t)})
		large := string(servertest.Pattern(1 << 20))
		c := servertest.Wrap(t, m.Dial(t))
		for _, tt := range []struct{ request, body string }{
			{"GET /1 HTTP/1.1\r\nHost: h\r\n\r\n", "GET /1 pipe "},
			{"POST /2 HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello", "POST /2 pipe hello"},
			{"POST /3 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + servertest.Chunks("hello", 2), "POST /3 pipe hello"},
			{"POST /4 HTTP/1.1\r\nHost: h\r\nContent-Length: 1048576\r\n\r\n" + large, "POST /4 pipe " + large},
			{"GET /large HTTP/1.1\r\nHost: h\r\n\r\n", large},
			{"HEAD /5 HTTP/1.1\r\nHost: h\r\n\r\n", ""},
			{"GET /6 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "GET /6 pipe "},
		} {
			for _, slowly := range []bool{false, true} {
				if slowly && len(tt.request) < 1000 {
					c.SendSlowly(tt.request, 1)
				} else {
					c.SendAside(tt.request)
				}
				method, _, _ := strings.Cut(tt.request, " ")
				if res, body := c.Response(method); res.StatusCode != 200 || body != tt.body {
					t.Errorf("%s: got %v %s, want %s", servertest.Brief(tt.request), res.Status, servertest.Brief(body), servertest.Brief(tt.body))
				}
			}
		}
		var all strings.Builder
		for i := range 50 {
			fmt.Fprintf(&all, "POST /%d HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx", i)
		}
		c.SendAside(all.String() + upgrade + "ahead")
		for i := range 50 {
			if _, body := c.Response("POST"); body != fmt.Sprintf("POST /%d pipe x", i) {
				t.Errorf("answer %d is %q", i, body)
			}
		}
		c.Want(switched)
		c.Want("ahead")
		c.Send("m")
		c.Want("m")
		// Others are served meanwhile.
		c2 := servertest.Wrap(t, m.Dial(t))
		if res, _ := c2.Get("/", "Connection: close"); !res.Close {
			t.Errorf("got %v", res)
		}
		c2.Ended()
	})
}

// net/http's client on the other side.
func TestInMemoryClient(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, e chert.Engine) {
		ts, m := engines.StartMemory(t, &chert.Server{Engine: e, Handler: memoryEcho(t)})
		transport := &http.Transport{
			DialContext:           m.DialContext,
			ExpectContinueTimeout: time.Hour, // the server answers 100
		}
		defer transport.CloseIdleConnections()
		client := http.Client{Transport: transport}
		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() {
				for range 3 {
					req, _ := http.NewRequest("POST", fmt.Sprintf("http://h/%d", i), io.MultiReader(strings.NewReader("hello")))
					if i%2 == 0 {
						req.Header.Set("Expect", "100-continue")
					}
					res, err := client.Do(req)
					if err != nil {
						t.Error(err)
						return
					}
					b, err := io.ReadAll(res.Body)
					res.Body.Close()
					if want := fmt.Sprintf("POST /%d pipe hello", i); string(b) != want || err != nil {
						t.Errorf("got %q, %v", b, err)
					}
				}
			})
		}
		all.Wait()
		transport.CloseIdleConnections()
		if err := ts.Control.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// A client that leaves ends its request's context at once.
func TestBubbleClientGone(t *testing.T) {
	t.Parallel()
	bubbles(t, func(t *testing.T, e chert.Engine) {
		running, ended := make(chan time.Time), make(chan time.Time)
		ts, m := engines.StartMemory(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			running <- time.Now()
			switch r.URL.Path {
			case "/derived":
				ctx, cancel := context.WithTimeout(r.Context(), time.Hour)
				defer cancel()
				<-ctx.Done()
			case "/after":
				after := make(chan struct{})
				context.AfterFunc(r.Context(), func() { close(after) })
				<-after
			default:
				<-r.Context().Done()
			}
			if err := r.Context().Err(); err != context.Canceled {
				t.Errorf("%s: %v", r.URL, err)
			}
			ended <- time.Now()
		})})
		for _, path := range []string{"/", "/derived", "/after"} {
			for _, body := range []string{"Content-Length: 0\r\n\r\n", "Content-Length: 1\r\n\r\nx", "Transfer-Encoding: chunked\r\n\r\n" + servertest.Chunks("x", 1)} {
				c := m.Patient(t)
				c.SendAside("POST " + path + " HTTP/1.1\r\nHost: h\r\n" + body)
				<-running
				time.Sleep(10 * time.Minute) // the context lives
				left := time.Now()
				c.Close()
				if at := <-ended; at != left {
					t.Errorf("%s %q: notified %v after the client left", path, body, at.Sub(left))
				}
			}
		}
		// A client that sends ahead has not left; when it does, that is not
		// noticed before the response to the current request.
		c := m.Patient(t)
		c.SendAside("GET / HTTP/1.1\r\nHost: h\r\n\r\nGET")
		<-running
		synctest.Wait()
		select {
		case <-ended:
			t.Error("the context has ended")
		default:
		}
		ts.Control.Close()
		<-ended
	})
}

// A hijacked connection has none of the server's deadlines, and neither
// Shutdown nor Close ends it or waits for it.
func TestBubbleHijack(t *testing.T) {
	t.Parallel()
	bubbles(t, func(t *testing.T, e chert.Engine) {
		ts, m := engines.StartMemory(t, &chert.Server{
			Engine: e, ReadTimeout: time.Second, WriteTimeout: time.Second, IdleTimeout: time.Second,
			Handler: memoryEcho(t),
		})
		c := m.Patient(t)
		c.Send(upgrade)
		c.Want(switched)
		for _, then := range []func() error{
			func() error { return nil },
			func() error { return ts.Control.Shutdown(context.Background()) },
			ts.Control.Close,
		} {
			time.Sleep(time.Hour)
			c.Send("a")
			c.Want("a")
			d := servertest.Took(func() {
				if err := then(); err != nil {
					t.Error(err)
				}
			})
			if d != 0 {
				t.Errorf("it took %v", d)
			}
		}
		c.Send("b")
		c.Want("b")
	})
}

// A handler that sends something every second reaches its client every second,
// through a proxy too, and ends when the client leaves.
func TestBubbleStream(t *testing.T) {
	t.Parallel()
	for _, proxied := range []bool{false, true} {
		t.Run(fmt.Sprintf("proxied=%v", proxied), func(t *testing.T) {
			t.Parallel()
			bubbles(t, func(t *testing.T, e chert.Engine) {
				ended := make(chan time.Time, 1)
				_, m := engines.StartMemory(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
					ticker := time.NewTicker(time.Second)
					defer ticker.Stop()
					w.Header().Set("Content-Type", "text/event-stream")
					for {
						select {
						case at := <-ticker.C:
							fmt.Fprintln(w, "data:", at.Unix())
							w.(http.Flusher).Flush()
						case <-r.Context().Done():
							ended <- time.Now()
							return
						}
					}
				})})
				if proxied {
					transport := &http.Transport{DialContext: m.DialContext}
					t.Cleanup(transport.CloseIdleConnections)
					_, m = engines.StartMemory(t, &chert.Server{Engine: e, Handler: &httputil.ReverseProxy{
						Transport: transport,
						Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "behind"}) },
						ErrorLog:  servertest.NewLogger(io.Discard), // it complains when the client leaves
					}})
				}
				c := m.Patient(t)
				c.Send(servertest.GET)
				res, err := http.ReadResponse(c.R, nil)
				if err != nil {
					t.Fatal(err)
				}
				lines := bufio.NewReader(res.Body)
				for range 100 {
					if s, err := lines.ReadString('\n'); s != fmt.Sprintln("data:", time.Now().Unix()) {
						t.Errorf("got %q, %v", s, err)
					}
				}
				left := time.Now()
				c.Close()
				if d := (<-ended).Sub(left); d != 0 {
					t.Errorf("the handler was notified after %v", d)
				}
			})
		})
	}
}

// A handler that ends badly leaves nothing in the bubble.
func TestBubbleBadEnds(t *testing.T) {
	t.Parallel()
	bubbles(t, func(t *testing.T, e chert.Engine) {
		ts, m := engines.StartMemory(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			done := r.Context().Done() // the client is watched
			go func() { <-done }()
			switch r.URL.Path {
			case "/panic":
				panic("no luck")
			case "/abort":
				panic(http.ErrAbortHandler)
			case "/goexit":
				runtime.Goexit()
			case "/unread":
			}
		})})
		for _, path := range []string{"/panic", "/abort", "/goexit", "/unread"} {
			c := m.Patient(t)
			c.Send("POST " + path + " HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n")
			c.SendAside("some")
			c.UpToEnd()
		}
		if log := ts.Log.String(); strings.Count(log, "http: panic serving pipe: no luck\n") != 1 || strings.Count(log, "panic serving") != 1 {
			t.Errorf("log is %s", servertest.Brief(log))
		}
		if err := ts.Control.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// State that the process shares between servers, such as pooled buffers, must
// hold nothing of a bubble: bubbles come and go beside servers of real sockets,
// and each other.
func TestBubblesBesideServers(t *testing.T) {
	t.Parallel()
	body := string(servertest.Pattern(20_000))
	post := func(t *testing.T, c *servertest.Client) {
		c.Send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 20000\r\n\r\n")
		c.SendAside(body) // its handler waits for it
		if _, got := c.Response("POST"); !strings.HasSuffix(got, body) {
			t.Errorf("got %s", servertest.Brief(got))
		}
	}
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: memoryEcho(t)})
		stop := make(chan struct{})
		var outside sync.WaitGroup
		for range 2 {
			c := ts.Dial()
			outside.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						post(t, c)
					}
				}
			})
		}
		for i := range 20 {
			synctest.Test(t, func(t *testing.T) {
				with := chert.EngineAuto
				if e == engines.NetHTTP {
					with = engines.NetHTTP
				}
				s, m := engines.StartMemory(t, &chert.Server{Engine: with, Handler: memoryEcho(t)})
				for range 3 {
					c := servertest.Wrap(t, m.Dial(t))
					post(t, c)
					post(t, c)
					c.Send(upgrade)
					c.Want(switched)
					c.Close()
				}
				if i%2 == 0 {
					if err := s.Control.Shutdown(context.Background()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		close(stop)
		outside.Wait()
		post(t, ts.Dial())
	})
}

// A server on sockets inside a bubble, next to one outside: objects that are
// kept for reuse must not cross over.
func TestBubbleSockets(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		serve := func(t *testing.T) {
			ts := engines.Start(t, &chert.Server{Engine: e, Handler: memoryEcho(t)})
			for range 3 {
				c := ts.Dial()
				for range 3 {
					// The handler has to wait for the body, and for room.
					c.Send("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
					c.Want("HTTP/1.1 100 Continue\r\n\r\n")
					c.Send("hello")
					c.Response("POST")
					c.Get("/large")
				}
				c.Close()
			}
		}
		for range 3 {
			synctest.Test(t, serve)
			serve(t)
		}
	})
}

// settling is a listener whose connections write when all that could run has run.
type settling struct{ *servertest.Memory }

type settlingConn struct{ net.Conn }

func (l settling) Accept() (net.Conn, error) {
	nc, err := l.Memory.Accept()
	return settlingConn{nc}, err
}

func (c settlingConn) Write(p []byte) (int, error) {
	synctest.Wait()
	return c.Conn.Write(p)
}

// The rest of a large body is not read while the client accepts the response: there is no
// deadlock to be avoided.
func TestBubbleUnreadBodyStaysUnread(t *testing.T) {
	t.Parallel()
	bubbles(t, func(t *testing.T, e chert.Engine) {
		m := servertest.NewMemory()
		engines.StartOn(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusNotFound)
		})}, settling{m})
		nc := m.Dial(t)
		sent := make(chan int)
		go func() {
			n, _ := io.WriteString(nc, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9999999999\r\n\r\n"+strings.Repeat("a", 1<<20))
			sent <- n
		}()
		all, _ := io.ReadAll(nc)
		if !strings.HasPrefix(string(all), "HTTP/1.1 404 ") {
			t.Errorf("got %q", all)
		}
		if n := <-sent; n > 16<<10 {
			t.Errorf("the server has read %d bytes", n)
		}
	})
}

// A client that is still sending when the last answer of a connection comes gets that, though the
// connection cannot be closed in one direction.
func TestBubbleAnswerBeforeBody(t *testing.T) {
	t.Parallel()
	bubbles(t, func(t *testing.T, e chert.Engine) {
		m := servertest.NewMemory()
		engines.StartOn(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "answer")
		})}, settling{m})
		tr := &http.Transport{
			DisableKeepAlives: true,
			DialContext:       func(context.Context, string, string) (net.Conn, error) { return m.Dial(t), nil },
		}
		for range 50 { // of an error and an answer the client takes any
			body := io.MultiReader(strings.NewReader("one"), strings.NewReader("another"))
			req, _ := http.NewRequest("POST", "http://h/", body)
			res, err := tr.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			if b, err := io.ReadAll(res.Body); err != nil || string(b) != "answer" {
				t.Fatalf("%q, %v", b, err)
			}
			res.Body.Close()
		}
	})
}
