package chert

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
)

// The tests of this file serve net.Pipes, most of them in a synctest bubble:
// there time passes only when everybody waits, so the times that they measure
// are exact. A bubble in which a goroutine is left at the end panics.

// inMemory runs f on net.Pipes, in a bubble and outside.
func inMemory(t *testing.T, f func(t *testing.T, e Engine)) {
	t.Helper()
	t.Run("bubble", func(t *testing.T) { bubbles(t, f) })
	t.Run("plain", func(t *testing.T) { alikeInMemory(t, f) })
}

// bubbles runs f in a bubble of its own for our server and for net/http.
func bubbles(t *testing.T, f func(t *testing.T, e Engine)) {
	t.Helper()
	alikeInMemory(t, func(t *testing.T, e Engine) {
		synctest.Test(t, func(t *testing.T) { f(t, e) })
	})
}

// alikeInMemory is alike for listeners that event loops cannot drive, which
// EngineAuto has to see for itself.
func alikeInMemory(t *testing.T, f func(t *testing.T, e Engine)) {
	t.Helper()
	for name, e := range map[string]Engine{"auto": EngineAuto, "nethttp": oracle} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, e)
		})
	}
}

// startMemory serves s on net.Pipes.
func startMemory(t *testing.T, s *Server) (*testServer, *memory) {
	t.Helper()
	m := newMemory()
	return startOn(t, s, m), m
}

// patient dials without a deadline, for a bubble, where patience may be a
// short time.
func (m *memory) patient(t *testing.T) *rawConn {
	nc := m.dial(t)
	nc.SetDeadline(time.Time{})
	return newRaw(t, nc)
}

// dialContext is for http.Transport, which may dial when nobody accepts any
// more.
func (m *memory) dialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case m.conns <- server:
		return client, nil
	case <-m.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// sendAside writes s while the test goes on: a pipe takes no byte before it is
// read. What a server does not read any more is lost.
func (c *rawConn) sendAside(s string) { go io.WriteString(c.Conn, s) }

// took runs f and returns how long it took.
func took(f func()) time.Duration {
	begin := time.Now()
	f()
	return time.Since(begin)
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
			w.Write(pattern(1 << 20))
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
	inMemory(t, func(t *testing.T, e Engine) {
		_, m := startMemory(t, &Server{Engine: e, Handler: memoryEcho(t)})
		large := string(pattern(1 << 20))
		c := newRaw(t, m.dial(t))
		for _, tt := range []struct{ request, body string }{
			{"GET /1 HTTP/1.1\r\nHost: h\r\n\r\n", "GET /1 pipe "},
			{"POST /2 HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello", "POST /2 pipe hello"},
			{"POST /3 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks("hello", 2), "POST /3 pipe hello"},
			{"POST /4 HTTP/1.1\r\nHost: h\r\nContent-Length: 1048576\r\n\r\n" + large, "POST /4 pipe " + large},
			{"GET /large HTTP/1.1\r\nHost: h\r\n\r\n", large},
			{"HEAD /5 HTTP/1.1\r\nHost: h\r\n\r\n", ""},
			{"GET /6 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "GET /6 pipe "},
		} {
			for _, slowly := range []bool{false, true} {
				if slowly && len(tt.request) < 1000 {
					c.sendSlowly(tt.request, 1)
				} else {
					c.sendAside(tt.request)
				}
				method, _, _ := strings.Cut(tt.request, " ")
				if res, body := c.response(method); res.StatusCode != 200 || body != tt.body {
					t.Errorf("%s: got %v %s, want %s", brief(tt.request), res.Status, brief(body), brief(tt.body))
				}
			}
		}
		var all strings.Builder
		for i := range 50 {
			fmt.Fprintf(&all, "POST /%d HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx", i)
		}
		c.sendAside(all.String() + upgrade + "ahead")
		for i := range 50 {
			if _, body := c.response("POST"); body != fmt.Sprintf("POST /%d pipe x", i) {
				t.Errorf("answer %d is %q", i, body)
			}
		}
		c.expect(switched)
		c.expect("ahead")
		c.send("m")
		c.expect("m")
		// Others are served meanwhile.
		c2 := newRaw(t, m.dial(t))
		if res, _ := c2.get("/", "Connection: close"); !res.Close {
			t.Errorf("got %v", res)
		}
		c2.closed()
	})
}

// net/http's client on the other side.
func TestInMemoryClient(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, e Engine) {
		ts, m := startMemory(t, &Server{Engine: e, Handler: memoryEcho(t)})
		transport := &http.Transport{
			DialContext:           m.dialContext,
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
		if err := ts.ctl.Shutdown(context.Background()); err != nil {
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
			bubbles(t, func(t *testing.T, e Engine) {
				if e == oracle && strings.HasPrefix(tt.why, unlike) {
					return
				}
				_, m := startMemory(t, &Server{
					Engine: e, ReadTimeout: tt.with.read, ReadHeaderTimeout: tt.with.header,
					IdleTimeout: tt.with.idle, ReadStallTimeout: tt.with.stall,
					Handler: hf(func(w http.ResponseWriter, r *http.Request) {
						switch r.URL.Path {
						case "/unread":
							return
						case "/sleep":
							time.Sleep(time.Minute)
						}
						if _, err := io.Copy(io.Discard, r.Body); err != nil && !isTimeout(err) {
							t.Errorf("Read gave %v", err)
						}
						if r.URL.Path != "/silent" {
							put(w, "answer")
						}
					}),
				})
				c := m.patient(t)
				for _, st := range tt.steps {
					if st.wire != "" {
						c.send(st.wire)
					}
					if st.answer {
						if _, body := c.response("GET"); body != "answer" {
							t.Errorf("got %q", body)
						}
					}
					time.Sleep(st.pause)
				}
				var got string
				if d := took(func() { got = c.upToEnd() }); d != tt.want {
					t.Errorf("closed after %v, want %v", d, tt.want)
				}
				if e == oracle {
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
			bubbles(t, func(t *testing.T, e Engine) {
				if e == oracle && strings.HasPrefix(tt.why, unlike) {
					return
				}
				type end struct {
					err error
					d   time.Duration
				}
				ended := make(chan end, 1)
				ts, m := startMemory(t, &Server{
					Engine: e, WriteTimeout: tt.write, WriteStallTimeout: tt.stall,
					Handler: hf(func(w http.ResponseWriter, r *http.Request) {
						var err error
						d := took(func() {
							for err == nil {
								_, err = w.Write(pattern(100_000))
							}
						})
						<-r.Context().Done()
						ended <- end{err, d}
					}),
				})
				c := m.patient(t)
				c.send(faultGet)
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
				if got := <-ended; got.d != tt.want || !isTimeout(got.err) {
					t.Errorf("Write ended after %v with %v, want %v", got.d, got.err, tt.want)
				}
				taking.Wait()
				// The connection ends without another wait.
				if d := took(func() { io.Copy(io.Discard, c.Conn) }); d != 0 {
					t.Errorf("it was closed %v later", d)
				}
				if err := ts.ctl.Shutdown(context.Background()); err != nil {
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
	bubbles(t, func(t *testing.T, e Engine) {
		type end struct {
			err error
			d   time.Duration
		}
		ended := make(chan end, 1)
		_, m := startMemory(t, &Server{Engine: e,
			ConnContext: func(ctx context.Context, c net.Conn) context.Context {
				return context.WithValue(ctx, connKey{}, c)
			},
			Handler: hf(func(w http.ResponseWriter, r *http.Request) {
				r.Context().Value(connKey{}).(net.Conn).SetWriteDeadline(time.Now().Add(time.Second))
				var err error
				d := took(func() {
					for err == nil {
						_, err = w.Write(pattern(10_000))
					}
				})
				ended <- end{err, d}
			}),
		})
		m.patient(t).send(faultGet)
		if got := <-ended; got.d != time.Second || !isTimeout(got.err) {
			t.Errorf("Write ended after %v with %v", got.d, got.err)
		}
	})
}

func TestBubbleTimeoutHandler(t *testing.T) {
	t.Parallel()
	bubbles(t, func(t *testing.T, e Engine) {
		ended := make(chan time.Duration, 1)
		inner := hf(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/" {
				put(w, "in time")
				return
			}
			d := took(func() { <-r.Context().Done() })
			synctest.Wait()
			if _, err := w.Write([]byte("late")); !errors.Is(err, http.ErrHandlerTimeout) {
				t.Errorf("Write gave %v", err)
			}
			ended <- d
		})
		_, m := startMemory(t, &Server{Engine: e, Handler: http.TimeoutHandler(inner, 3*time.Second, "too late")})
		c := m.patient(t)
		for range 2 {
			if res, body := c.get("/"); res.StatusCode != 200 || body != "in time" {
				t.Errorf("got %v %q", res.Status, body)
			}
			d := took(func() {
				if res, body := c.get("/slow"); res.StatusCode != 503 || body != "too late" {
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
	bubbles(t, func(t *testing.T, e Engine) {
		running, ended := make(chan time.Time), make(chan time.Time)
		ts, m := startMemory(t, &Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
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
			for _, body := range []string{"Content-Length: 0\r\n\r\n", "Content-Length: 1\r\n\r\nx", "Transfer-Encoding: chunked\r\n\r\n" + chunks("x", 1)} {
				c := m.patient(t)
				c.sendAside("POST " + path + " HTTP/1.1\r\nHost: h\r\n" + body)
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
		c := m.patient(t)
		c.sendAside("GET / HTTP/1.1\r\nHost: h\r\n\r\nGET")
		<-running
		synctest.Wait()
		select {
		case <-ended:
			t.Error("the context has ended")
		default:
		}
		ts.ctl.Close()
		<-ended
	})
}

// memoryPhases opens a connection in each of its phases.
type memoryPhases struct {
	fresh, partial, late, idle, active *rawConn
	release                            chan struct{}
}

func newMemoryPhases(t *testing.T, e Engine) (*testServer, *memoryPhases) {
	p := &memoryPhases{release: make(chan struct{})}
	running := make(chan struct{})
	ts, m := startMemory(t, &Server{Engine: e, ReadHeaderTimeout: -1, IdleTimeout: -1, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			running <- struct{}{}
			select {
			case <-p.release:
			case <-r.Context().Done():
			}
		}
		put(w, "answer")
	})})
	p.idle, p.active = m.patient(t), m.patient(t)
	p.idle.get("/")
	p.active.send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n")
	<-running
	p.fresh, p.partial, p.late = m.patient(t), m.patient(t), m.patient(t)
	p.partial.send("GET / HTTP/1.1\r\n")
	p.late.send("G")
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
	bubbles(t, func(t *testing.T, e Engine) {
		ts, p := newMemoryPhases(t, e)
		ended := make(chan time.Duration)
		go func() {
			ended <- took(func() {
				if err := ts.ctl.Shutdown(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}()
		within(t, "the idle one is closed", took(p.idle.closed), 0, atOnce)
		time.Sleep(4 * time.Second)
		if e == oracle {
			p.partial.Close()
			p.late.Close()
		} else {
			// Its request may be on the way.
			p.partial.send("Host: h\r\n\r\n")
			if res, body := p.partial.response("GET"); body != "answer" || !res.Close {
				t.Errorf("got %v %q", res, body)
			}
			p.partial.closed()
			within(t, "the late one is refused", took(func() {
				if res, _ := p.late.response("GET"); res.StatusCode != 408 {
					t.Errorf("got %v", res)
				}
			}), time.Second-atOnce, time.Second+atOnce)
			p.late.closed()
		}
		p.fresh.closed()
		synctest.Wait()
		select {
		case <-ended:
			t.Error("Shutdown did not wait")
		default:
		}
		time.Sleep(24 * time.Hour)
		close(p.release)
		if res, body := p.active.response("GET"); body != "answer" || !res.Close {
			t.Errorf("got %v %q", res, body)
		}
		within(t, "the active one is closed", took(p.active.closed), 0, atOnce)
		within(t, "Shutdown ends", <-ended, 24*time.Hour, 24*time.Hour+netHTTPs)
	})
}

// Two connections that have sent nothing are closed five seconds after
// Shutdown, and with them it ends. net/http counts from the accept.
func TestBubbleShutdownNewConns(t *testing.T) {
	t.Parallel()
	bubbles(t, func(t *testing.T, e Engine) {
		ts, m := startMemory(t, &Server{Engine: e, Handler: memoryEcho(t)})
		one, other, served := m.patient(t), m.patient(t), m.patient(t)
		synctest.Wait()
		ended := make(chan time.Duration)
		go func() {
			ended <- took(func() {
				if err := ts.ctl.Shutdown(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}()
		time.Sleep(4 * time.Second)
		if e == oracle {
			served.Close() // it does not answer any more
		} else {
			// A request that comes in time is answered, and is the last.
			if res, _ := served.get("/"); res.StatusCode != 200 || !res.Close {
				t.Errorf("got %v", res)
			}
			served.closed()
		}
		one.closed()
		other.closed()
		d := <-ended
		within(t, "Shutdown ends", d, 5*time.Second, 7*time.Second)
		if e != oracle && d != 5*time.Second {
			t.Errorf("Shutdown took %v", d)
		}
	})
}

func TestBubbleShutdownContext(t *testing.T) {
	t.Parallel()
	bubbles(t, func(t *testing.T, e Engine) {
		ts, p := newMemoryPhases(t, e)
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		d := took(func() {
			if err := ts.ctl.Shutdown(ctx); err != context.DeadlineExceeded {
				t.Errorf("Shutdown returned %v", err)
			}
		})
		if d != 3*time.Second {
			t.Errorf("Shutdown took %v", d)
		}
		// The handler goes on; a second Shutdown may wait for it.
		ended := make(chan error)
		go func() { ended <- ts.ctl.Shutdown(context.Background()) }()
		time.Sleep(time.Hour)
		close(p.release)
		if _, body := p.active.response("GET"); body != "answer" {
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
	bubbles(t, func(t *testing.T, e Engine) {
		ts, p := newMemoryPhases(t, e)
		d := took(func() {
			if err := ts.ctl.Close(); err != nil {
				t.Error(err)
			}
			for _, c := range []*rawConn{p.fresh, p.partial, p.idle, p.active} {
				c.closed()
			}
			if err := <-ts.errc; err != http.ErrServerClosed {
				t.Errorf("Serve returned %v", err)
			}
			ts.errc <- http.ErrServerClosed // for start's cleanup
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
	bubbles(t, func(t *testing.T, e Engine) {
		ts, m := startMemory(t, &Server{
			Engine: e, ReadTimeout: time.Second, WriteTimeout: time.Second, IdleTimeout: time.Second,
			Handler: memoryEcho(t),
		})
		c := m.patient(t)
		c.send(upgrade)
		c.expect(switched)
		for _, then := range []func() error{
			func() error { return nil },
			func() error { return ts.ctl.Shutdown(context.Background()) },
			ts.ctl.Close,
		} {
			time.Sleep(time.Hour)
			c.send("a")
			c.expect("a")
			d := took(func() {
				if err := then(); err != nil {
					t.Error(err)
				}
			})
			if d != 0 {
				t.Errorf("it took %v", d)
			}
		}
		c.send("b")
		c.expect("b")
	})
}

// A handler that sends something every second reaches its client every second,
// through a proxy too, and ends when the client leaves.
func TestBubbleStream(t *testing.T) {
	t.Parallel()
	for _, proxied := range []bool{false, true} {
		t.Run(fmt.Sprintf("proxied=%v", proxied), func(t *testing.T) {
			t.Parallel()
			bubbles(t, func(t *testing.T, e Engine) {
				ended := make(chan time.Time, 1)
				_, m := startMemory(t, &Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
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
					transport := &http.Transport{DialContext: m.dialContext}
					t.Cleanup(transport.CloseIdleConnections)
					_, m = startMemory(t, &Server{Engine: e, Handler: &httputil.ReverseProxy{
						Transport: transport,
						Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "behind"}) },
						ErrorLog:  newLog(io.Discard), // it complains when the client leaves
					}})
				}
				c := m.patient(t)
				c.send(faultGet)
				res, err := http.ReadResponse(c.r, nil)
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
	bubbles(t, func(t *testing.T, e Engine) {
		ts, m := startMemory(t, &Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
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
			c := m.patient(t)
			c.send("POST " + path + " HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n")
			c.sendAside("some")
			c.upToEnd()
		}
		if log := ts.log.String(); strings.Count(log, "http: panic serving pipe: no luck\n") != 1 || strings.Count(log, "panic serving") != 1 {
			t.Errorf("log is %s", brief(log))
		}
		if err := ts.ctl.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// Accept errors that pass are waited out, longer each time.
func TestBubbleAcceptErrors(t *testing.T) {
	t.Parallel()
	bubbles(t, func(t *testing.T, e Engine) {
		m := newMemory()
		l := &failing{memory: m}
		l.left.Store(10)
		startOn(t, &Server{Engine: e, Handler: memoryEcho(t)}, l)
		const ms = time.Millisecond
		if d := took(func() { m.patient(t).get("/") }); d != (5+10+20+40+80+160+320+640+1000+1000)*ms {
			t.Errorf("accepted after %v", d)
		}
		l.left.Store(1)
		m.patient(t).get("/") // ends the Accept under way
		if d := took(func() { m.patient(t).get("/") }); d != 5*ms {
			t.Errorf("accepted after %v", d)
		}
	})
}

// failing is a listener whose Accept fails a few times.
type failing struct {
	*memory
	left atomic.Int32
}

func (f *failing) Accept() (net.Conn, error) {
	if f.left.Add(-1) >= 0 {
		return nil, passing{}
	}
	return f.memory.Accept()
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
		_, m := startMemory(t, &Server{MaxConns: 2, Handler: memoryEcho(t)})
		c := [2]*rawConn{m.patient(t), m.patient(t)}
		c[0].get("/")
		time.Sleep(time.Second) // c[0] is idle before c[1]: at one instant either may give way
		c[1].get("/")
		// The one that has been idle longest gives way; requests on the way do not.
		newcomer := m.patient(t)
		newcomer.get("/")
		c[0].closed()
		c[0] = newcomer
		for _, c := range c {
			c.send("GET / HTTP/1.1\r\n")
		}
		synctest.Wait()
		refused := m.patient(t)
		if d := took(func() {
			if got := refused.upToEnd(); !strings.HasPrefix(got, "HTTP/1.1 503 ") {
				t.Errorf("got %q", got)
			}
		}); d != 100*time.Millisecond {
			t.Errorf("refused after %v", d)
		}
		waiting := m.patient(t)
		go c[0].Close()
		if d := took(func() { waiting.get("/") }); d != 0 {
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
		ts, m := startMemory(t, &Server{Workers: 2, QueueLength: 1, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			running <- struct{}{}
			<-release[r.URL.Path]
			put(w, "answer")
		})})
		var c [3]*rawConn
		for i := range c {
			c[i] = m.patient(t)
			c[i].sendAside(fmt.Sprintf("GET /%d HTTP/1.1\r\nHost: h\r\n\r\n", i))
			if i < 2 {
				<-running
			}
		}
		if got := m.patient(t).upToEnd(); !strings.HasPrefix(got, "HTTP/1.1 503 ") {
			t.Errorf("got %q", got)
		}
		for i, c := range c {
			time.Sleep(time.Hour)
			close(release[fmt.Sprintf("/%d", i)])
			if _, body := c.response("GET"); body != "answer" {
				t.Errorf("got %q", body)
			}
			if i < 2 {
				c.closed() // to give way
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
	body := string(pattern(20_000))
	post := func(t *testing.T, c *rawConn) {
		c.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 20000\r\n\r\n")
		c.sendAside(body) // its handler waits for it
		if _, got := c.response("POST"); !strings.HasSuffix(got, body) {
			t.Errorf("got %s", brief(got))
		}
	}
	alike(t, func(t *testing.T, e Engine) {
		ts := start(t, &Server{Engine: e, Handler: memoryEcho(t)})
		stop := make(chan struct{})
		var outside sync.WaitGroup
		for range 2 {
			c := ts.dial()
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
				with := EngineAuto
				if e == oracle {
					with = oracle
				}
				s, m := startMemory(t, &Server{Engine: with, Handler: memoryEcho(t)})
				for range 3 {
					c := newRaw(t, m.dial(t))
					post(t, c)
					post(t, c)
					c.send(upgrade)
					c.expect(switched)
					c.Close()
				}
				if i%2 == 0 {
					if err := s.ctl.Shutdown(context.Background()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		close(stop)
		outside.Wait()
		post(t, ts.dial())
	})
}

// A server on sockets inside a bubble, next to one outside: what a process or a
// server keeps for reuse must not cross over.
func TestBubbleSockets(t *testing.T) {
	t.Parallel()
	alike(t, func(t *testing.T, e Engine) {
		serve := func(t *testing.T) {
			ts := start(t, &Server{Engine: e, Handler: memoryEcho(t)})
			for range 3 {
				c := ts.dial()
				for range 3 {
					// The handler has to wait for the body, and for room.
					c.send("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
					c.expect("HTTP/1.1 100 Continue\r\n\r\n")
					c.send("hello")
					c.response("POST")
					c.get("/large")
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
