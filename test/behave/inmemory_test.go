package behave

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// The tests of this file serve net.Pipes, most of them in a synctest bubble:
// there time passes only when everybody waits, so the times that they measure
// are exact. A bubble in which a goroutine is left at the end panics.

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
// EngineAuto has to see for itself.
func alikeInMemory(t *testing.T, f func(t *testing.T, e chert.Engine)) {
	t.Helper()
	for name, e := range map[string]chert.Engine{"auto": chert.EngineAuto, "nethttp": engines.NetHTTP} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, e)
		})
	}
}

// memoryEcho answers with what it got, hijacks for an upgrade, and has a few
// paths of its own.
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

// TestBubbleTimeouts has clients that are late, and says when they lose their
// connection.
func TestBubbleTimeouts(t *testing.T) {
	t.Parallel()
	const s = time.Second
	type times struct{ read, header, idle, stall time.Duration }
	type step struct {
		wire   string
		answer bool          // to be awaited
		pause  time.Duration // behind that
	}
	get := step{wire: "GET / HTTP/1.1\r\nHost: h\r\n\r\n", answer: true}
	slow := strings.Repeat("x", 100)
	for _, tt := range []struct {
		why   string
		with  times
		steps []step
		want  time.Duration // after the last step
		reply string        // the first of what chert says then
	}{
		{"idle", times{idle: 7 * s}, []step{get}, 7 * s, ""},
		{"idle again", times{idle: 7 * s}, []step{get, {pause: 6 * s}, get}, 7 * s, ""},
		{"idle, ReadTimeout in its place", times{read: 9 * s}, []step{get}, 9 * s, ""},
		{"idle, ReadTimeout is shorter", times{read: 2 * s, idle: 9 * s}, []step{get}, 9 * s, ""},
		{"no first byte", times{header: 5 * s}, nil, 5 * s, ""},
		{"no first byte, ReadTimeout in its place", times{read: 4 * s}, nil, 4 * s, ""},
		{"half a head", times{header: 5 * s}, []step{{wire: "GET / HT"}}, 5 * s, "HTTP/1.1 408 "},
		{"half a head, late", times{header: 5 * s}, []step{{pause: 3 * s}, {wire: "GET / HT"}}, 2 * s, "HTTP/1.1 408 "},
		{"half a second head", times{header: 5 * s, idle: 60 * s}, []step{get, {pause: 20 * s}, {wire: "GET / HT"}}, 5 * s, "HTTP/1.1 408 "},
		{"a head that trickles", times{header: 5 * s}, []step{
			{wire: "GET /"}, {pause: 2 * s}, {wire: " HTTP/1.1\r\n"}, {pause: 2 * s}, {wire: "Host: "},
		}, s, "HTTP/1.1 408 "},
		{"half a head, idle time is shorter", times{header: 9 * s, idle: 2 * s}, []step{get, {pause: s}, {wire: "GET / HT"}}, 9 * s, "HTTP/1.1 408 "},
		{"half a head, ReadTimeout in its place", times{read: 4 * s}, []step{{wire: "GET / HT"}}, 4 * s, "HTTP/1.1 408 "},
		{"a handler that sleeps is not idle", times{idle: 7 * s, header: s, read: s},
			[]step{{wire: "GET /sleep HTTP/1.1\r\nHost: h\r\n\r\n", answer: true}}, 7 * s, ""},
		{"half a body", times{read: 10 * s, idle: time.Hour}, []step{
			{wire: "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 200\r\n\r\n"}, {pause: 4 * s}, {wire: slow},
		}, 6 * s, "HTTP/1.1 200 OK\r\n"},
		{"half a chunked body", times{read: 10 * s, idle: time.Hour}, []step{
			{wire: "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"}, {pause: 4 * s}, {wire: "64\r\n" + slow},
		}, 6 * s, "HTTP/1.1 200 OK\r\n"},
		{unlike + "the default for the first head", times{}, nil, 60 * s, ""},
		{unlike + "the default for a head", times{}, []step{get, {pause: 70 * s}, {wire: "G"}}, 60 * s, "HTTP/1.1 408 "},
		{unlike + "the default for idle ones", times{}, []step{get}, 75 * s, ""},
		{unlike + "the default between pieces of a body", times{}, []step{
			{wire: "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n"}, {pause: 59 * s}, {wire: slow}, {pause: 59 * s}, {wire: slow},
		}, 60 * s, "HTTP/1.1 200 OK\r\n"},
		{unlike + "between pieces of a body, and the handler does not care", times{stall: 3 * s}, []step{
			{wire: "POST /silent HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"}, {pause: 2 * s}, {wire: "64\r\n" + slow},
		}, 3 * s, "HTTP/1.1 408 "},
		{unlike + "half of a body that nobody reads", times{}, []step{
			{wire: "POST /unread HTTP/1.1\r\nHost: h\r\nContent-Length: 200\r\n\r\n"}, {wire: slow},
		}, 5 * s, "HTTP/1.1 200 OK\r\n"},
		{"none", times{header: -1, idle: -1, stall: -1}, []step{
			{pause: 1e6 * s}, {wire: "GET "}, {pause: 1e6 * s}, {wire: "/ HTTP/1.1\r\nHost: h\r\n\r\n", answer: true}, {pause: 1e6 * s},
			{wire: "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n"}, {pause: 1e6 * s}, {wire: slow, answer: true}, {pause: 1e6 * s},
			{wire: "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", answer: true},
		}, 0, ""},
	} {
		t.Run(tt.why, func(t *testing.T) {
			t.Parallel()
			bubbles(t, func(t *testing.T, e chert.Engine) {
				if e == engines.NetHTTP && strings.HasPrefix(tt.why, unlike) {
					return
				}
				_, m := engines.StartMemory(t, &chert.Server{
					Engine: e, ReadTimeout: tt.with.read, ReadHeaderTimeout: tt.with.header,
					IdleTimeout: tt.with.idle, ReadStallTimeout: tt.with.stall,
					Handler: hf(func(w http.ResponseWriter, r *http.Request) {
						switch r.URL.Path {
						case "/unread":
							return
						case "/sleep":
							time.Sleep(time.Minute)
						}
						if _, err := io.Copy(io.Discard, r.Body); err != nil && !servertest.IsTimeout(err) {
							t.Errorf("Read gave %v", err)
						}
						if r.URL.Path != "/silent" {
							put(w, "answer")
						}
					}),
				})
				c := m.Patient(t)
				for _, st := range tt.steps {
					if st.wire != "" {
						c.Send(st.wire)
					}
					if st.answer {
						if _, body := c.Response("GET"); body != "answer" {
							t.Errorf("got %q", body)
						}
					}
					time.Sleep(st.pause)
				}
				var got string
				if d := servertest.Took(func() { got = c.UpToEnd() }); d != tt.want {
					t.Errorf("closed after %v, want %v", d, tt.want)
				}
				if e == engines.NetHTTP {
					return // it closes without a word, or answers 400
				}
				if !strings.HasPrefix(got, tt.reply) || tt.reply == "" && got != "" {
					t.Errorf("got %q, want %q", got, tt.reply)
				}
			})
		})
	}
}

// A client that takes nothing ends the writes after WriteTimeout, or, unlike
// with net/http, after WriteStallTimeout.
func TestBubbleWriteTimeout(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		why          string
		write, stall time.Duration
		takes        bool // a little, every second
		want         time.Duration
	}{
		{"all of it", 8 * time.Second, 0, false, 8 * time.Second},
		{"steadily, but not in time", 8 * time.Second, 0, true, 8 * time.Second},
		{"WriteTimeout first", 2 * time.Second, 5 * time.Second, false, 2 * time.Second},
		{unlike + "a stall", 0, 5 * time.Second, false, 5 * time.Second},
		{unlike + "the default", 0, 0, false, time.Minute},
		{unlike + "a stall first", time.Minute, 5 * time.Second, false, 5 * time.Second},
	} {
		t.Run(tt.why, func(t *testing.T) {
			t.Parallel()
			bubbles(t, func(t *testing.T, e chert.Engine) {
				if e == engines.NetHTTP && strings.HasPrefix(tt.why, unlike) {
					return
				}
				type end struct {
					err error
					d   time.Duration
				}
				ended := make(chan end, 1)
				ts, m := engines.StartMemory(t, &chert.Server{
					Engine: e, WriteTimeout: tt.write, WriteStallTimeout: tt.stall,
					Handler: hf(func(w http.ResponseWriter, r *http.Request) {
						var err error
						d := servertest.Took(func() {
							for err == nil {
								_, err = w.Write(servertest.Pattern(100_000))
							}
						})
						<-r.Context().Done()
						ended <- end{err, d}
					}),
				})
				c := m.Patient(t)
				c.Send(servertest.GET)
				var taking sync.WaitGroup
				if tt.takes {
					taking.Go(func() {
						for {
							if _, err := io.CopyN(io.Discard, c.Conn, 10_000); err != nil {
								return
							}
							time.Sleep(time.Second)
						}
					})
				}
				if got := <-ended; got.d != tt.want || !servertest.IsTimeout(got.err) {
					t.Errorf("Write ended after %v with %v, want %v", got.d, got.err, tt.want)
				}
				taking.Wait()
				// The connection ends without another wait.
				if d := servertest.Took(func() { io.Copy(io.Discard, c.Conn) }); d != 0 {
					t.Errorf("it was closed %v later", d)
				}
				if err := ts.Control.Shutdown(context.Background()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A handler that has the connection itself, by ConnContext, may set its write
// deadline.
func TestBubbleOwnWriteDeadline(t *testing.T) {
	t.Parallel()
	type connKey struct{}
	bubbles(t, func(t *testing.T, e chert.Engine) {
		type end struct {
			err error
			d   time.Duration
		}
		ended := make(chan end, 1)
		_, m := engines.StartMemory(t, &chert.Server{Engine: e,
			ConnContext: func(ctx context.Context, c net.Conn) context.Context {
				return context.WithValue(ctx, connKey{}, c)
			},
			Handler: hf(func(w http.ResponseWriter, r *http.Request) {
				r.Context().Value(connKey{}).(net.Conn).SetWriteDeadline(time.Now().Add(time.Second))
				var err error
				d := servertest.Took(func() {
					for err == nil {
						_, err = w.Write(servertest.Pattern(10_000))
					}
				})
				ended <- end{err, d}
			}),
		})
		m.Patient(t).Send(servertest.GET)
		if got := <-ended; got.d != time.Second || !servertest.IsTimeout(got.err) {
			t.Errorf("Write ended after %v with %v", got.d, got.err)
		}
	})
}

func TestBubbleTimeoutHandler(t *testing.T) {
	t.Parallel()
	bubbles(t, func(t *testing.T, e chert.Engine) {
		ended := make(chan time.Duration, 1)
		inner := hf(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/" {
				put(w, "in time")
				return
			}
			d := servertest.Took(func() { <-r.Context().Done() })
			synctest.Wait()
			if _, err := w.Write([]byte("late")); !errors.Is(err, http.ErrHandlerTimeout) {
				t.Errorf("Write gave %v", err)
			}
			ended <- d
		})
		_, m := engines.StartMemory(t, &chert.Server{Engine: e, Handler: http.TimeoutHandler(inner, 3*time.Second, "too late")})
		c := m.Patient(t)
		for range 2 {
			if res, body := c.Get("/"); res.StatusCode != 200 || body != "in time" {
				t.Errorf("got %v %q", res.Status, body)
			}
			d := servertest.Took(func() {
				if res, body := c.Get("/slow"); res.StatusCode != 503 || body != "too late" {
					t.Errorf("got %v %q", res.Status, body)
				}
			})
			if in := <-ended; d != 3*time.Second || in != d {
				t.Errorf("answered after %v, the handler was told after %v", d, in)
			}
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
					t.Errorf("%s %q: told %v after the client left", path, body, at.Sub(left))
				}
			}
		}
		// A client that sends ahead has not left; when it does, nobody reads
		// that before the request at hand is answered.
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

// memoryPhases opens a connection in each of its phases.
type memoryPhases struct {
	fresh, partial, late, idle, active *servertest.Client
	release                            chan struct{}
}

func newMemoryPhases(t *testing.T, e chert.Engine) (*engines.Server, *memoryPhases) {
	p := &memoryPhases{release: make(chan struct{})}
	running := make(chan struct{})
	ts, m := engines.StartMemory(t, &chert.Server{Engine: e, ReadHeaderTimeout: -1, IdleTimeout: -1, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			running <- struct{}{}
			select {
			case <-p.release:
			case <-r.Context().Done():
			}
		}
		put(w, "answer")
	})})
	p.idle, p.active = m.Patient(t), m.Patient(t)
	p.idle.Get("/")
	p.active.Send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n")
	<-running
	p.fresh, p.partial, p.late = m.Patient(t), m.Patient(t), m.Patient(t)
	p.partial.Send("GET / HTTP/1.1\r\n")
	p.late.Send("G")
	synctest.Wait()
	return ts, p
}

// within fails unless d is in the given bounds: net/http looks every half a
// second which connections can be closed, and counts in whole ones.
func within(t *testing.T, what string, d, from, to time.Duration) {
	t.Helper()
	if d < from || d > to {
		t.Errorf("%s after %v, want between %v and %v", what, d, from, to)
	}
}

func TestBubbleShutdown(t *testing.T) {
	t.Parallel()
	const atOnce, netHTTPs = 10 * time.Millisecond, 7 * time.Second
	bubbles(t, func(t *testing.T, e chert.Engine) {
		ts, p := newMemoryPhases(t, e)
		ended := make(chan time.Duration)
		go func() {
			ended <- servertest.Took(func() {
				if err := ts.Control.Shutdown(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}()
		within(t, "the idle one is closed", servertest.Took(p.idle.Ended), 0, atOnce)
		time.Sleep(4 * time.Second)
		if e == engines.NetHTTP {
			p.partial.Close()
			p.late.Close()
		} else {
			// Its request may be on the way.
			p.partial.Send("Host: h\r\n\r\n")
			if res, body := p.partial.Response("GET"); body != "answer" || !res.Close {
				t.Errorf("got %v %q", res, body)
			}
			p.partial.Ended()
			within(t, "the late one is refused", servertest.Took(func() {
				if res, _ := p.late.Response("GET"); res.StatusCode != 408 {
					t.Errorf("got %v", res)
				}
			}), time.Second-atOnce, time.Second+atOnce)
			p.late.Ended()
		}
		p.fresh.Ended()
		synctest.Wait()
		select {
		case <-ended:
			t.Error("Shutdown did not wait")
		default:
		}
		time.Sleep(24 * time.Hour)
		close(p.release)
		if res, body := p.active.Response("GET"); body != "answer" || !res.Close {
			t.Errorf("got %v %q", res, body)
		}
		within(t, "the active one is closed", servertest.Took(p.active.Ended), 0, atOnce)
		within(t, "Shutdown ends", <-ended, 24*time.Hour, 24*time.Hour+netHTTPs)
	})
}

// Two connections that have sent nothing are closed five seconds after
// Shutdown, and with them it ends. net/http counts from the accept.
func TestBubbleShutdownNewConns(t *testing.T) {
	t.Parallel()
	bubbles(t, func(t *testing.T, e chert.Engine) {
		ts, m := engines.StartMemory(t, &chert.Server{Engine: e, Handler: memoryEcho(t)})
		one, other, served := m.Patient(t), m.Patient(t), m.Patient(t)
		synctest.Wait()
		ended := make(chan time.Duration)
		go func() {
			ended <- servertest.Took(func() {
				if err := ts.Control.Shutdown(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}()
		time.Sleep(4 * time.Second)
		if e == engines.NetHTTP {
			served.Close() // it does not answer any more
		} else {
			// A request that comes in time is answered, and is the last.
			if res, _ := served.Get("/"); res.StatusCode != 200 || !res.Close {
				t.Errorf("got %v", res)
			}
			served.Ended()
		}
		one.Ended()
		other.Ended()
		d := <-ended
		within(t, "Shutdown ends", d, 5*time.Second, 7*time.Second)
		if e != engines.NetHTTP && d != 5*time.Second {
			t.Errorf("Shutdown took %v", d)
		}
	})
}

func TestBubbleShutdownContext(t *testing.T) {
	t.Parallel()
	bubbles(t, func(t *testing.T, e chert.Engine) {
		ts, p := newMemoryPhases(t, e)
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		d := servertest.Took(func() {
			if err := ts.Control.Shutdown(ctx); err != context.DeadlineExceeded {
				t.Errorf("Shutdown returned %v", err)
			}
		})
		if d != 3*time.Second {
			t.Errorf("Shutdown took %v", d)
		}
		// The handler goes on; a second Shutdown may wait for it.
		ended := make(chan error)
		go func() { ended <- ts.Control.Shutdown(context.Background()) }()
		time.Sleep(time.Hour)
		close(p.release)
		if _, body := p.active.Response("GET"); body != "answer" {
			t.Errorf("got %q", body)
		}
		p.partial.Close()
		p.late.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestBubbleClose(t *testing.T) {
	t.Parallel()
	bubbles(t, func(t *testing.T, e chert.Engine) {
		ts, p := newMemoryPhases(t, e)
		d := servertest.Took(func() {
			if err := ts.Control.Close(); err != nil {
				t.Error(err)
			}
			for _, c := range []*servertest.Client{p.fresh, p.partial, p.idle, p.active} {
				c.Ended()
			}
			if err := <-ts.Served; err != http.ErrServerClosed {
				t.Errorf("Serve returned %v", err)
			}
			ts.Served <- http.ErrServerClosed // for start's cleanup
		})
		if d != 0 {
			t.Errorf("Close took %v", d)
		}
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
					t.Errorf("the handler was told after %v", d)
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
			done := r.Context().Done() // somebody watches the client
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

// Accept errors that pass are waited out, longer each time.
func TestBubbleAcceptErrors(t *testing.T) {
	t.Parallel()
	bubbles(t, func(t *testing.T, e chert.Engine) {
		m := servertest.NewMemory()
		l := &failing{Memory: m}
		l.left.Store(10)
		engines.StartOn(t, &chert.Server{Engine: e, Handler: memoryEcho(t)}, l)
		const ms = time.Millisecond
		if d := servertest.Took(func() { m.Patient(t).Get("/") }); d != (5+10+20+40+80+160+320+640+1000+1000)*ms {
			t.Errorf("accepted after %v", d)
		}
		l.left.Store(1)
		m.Patient(t).Get("/") // ends the Accept under way
		if d := servertest.Took(func() { m.Patient(t).Get("/") }); d != 5*ms {
			t.Errorf("accepted after %v", d)
		}
	})
}

// failing is a listener whose Accept fails a few times.
type failing struct {
	*servertest.Memory
	left atomic.Int32
}

func (f *failing) Accept() (net.Conn, error) {
	if f.left.Add(-1) >= 0 {
		return nil, passing{}
	}
	return f.Memory.Accept()
}

// passing is an error that passes by itself.
type passing struct{}

func (passing) Error() string   { return "no luck" }
func (passing) Timeout() bool   { return false }
func (passing) Temporary() bool { return true }

// The limits of our own keep to a bubble's time too.
func TestBubbleLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, m := engines.StartMemory(t, &chert.Server{MaxConns: 2, Handler: memoryEcho(t)})
		c := [2]*servertest.Client{m.Patient(t), m.Patient(t)}
		c[0].Get("/")
		time.Sleep(time.Second) // c[0] is idle before c[1]: at one instant either may give way
		c[1].Get("/")
		// The one that has been idle longest gives way; requests on the way do not.
		newcomer := m.Patient(t)
		newcomer.Get("/")
		c[0].Ended()
		c[0] = newcomer
		for _, c := range c {
			c.Send("GET / HTTP/1.1\r\n")
		}
		synctest.Wait()
		refused := m.Patient(t)
		if d := servertest.Took(func() {
			if got := refused.UpToEnd(); !strings.HasPrefix(got, "HTTP/1.1 503 ") {
				t.Errorf("got %q", got)
			}
		}); d != 100*time.Millisecond {
			t.Errorf("refused after %v", d)
		}
		waiting := m.Patient(t)
		go c[0].Close()
		if d := servertest.Took(func() { waiting.Get("/") }); d != 0 {
			t.Errorf("the place was taken after %v", d)
		}
	})
}

func TestBubbleWorkers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		running, release := make(chan struct{}), make(map[string]chan struct{})
		for _, path := range []string{"/0", "/1", "/2"} {
			release[path] = make(chan struct{})
		}
		ts, m := engines.StartMemory(t, &chert.Server{Workers: 2, QueueLength: 1, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			running <- struct{}{}
			<-release[r.URL.Path]
			put(w, "answer")
		})})
		var c [3]*servertest.Client
		for i := range c {
			c[i] = m.Patient(t)
			c[i].SendAside(fmt.Sprintf("GET /%d HTTP/1.1\r\nHost: h\r\n\r\n", i))
			if i < 2 {
				<-running
			}
		}
		if got := m.Patient(t).UpToEnd(); !strings.HasPrefix(got, "HTTP/1.1 503 ") {
			t.Errorf("got %q", got)
		}
		for i, c := range c {
			time.Sleep(time.Hour)
			close(release[fmt.Sprintf("/%d", i)])
			if _, body := c.Response("GET"); body != "answer" {
				t.Errorf("got %q", body)
			}
			if i < 2 {
				c.Ended() // to give way
			}
			if i == 0 {
				<-running // the one that waited
			}
		}
		if err := ts.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// What the process shares between servers, such as pooled buffers, must hold
// nothing of a bubble: bubbles come and go beside servers of real sockets, and
// each other.
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

// A server on sockets inside a bubble, next to one outside: what a process or a
// server keeps for reuse must not cross over.
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
