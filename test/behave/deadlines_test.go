package behave

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/eventstream"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/middleware"
	"github.com/chert-http/chert/websocket"
)

// routed wraps requests below "/limited" in a middleware.
func routed(mw func(http.Handler) http.Handler, h http.Handler) http.Handler {
	limited := mw(h)
	return hf(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/limited") {
			limited.ServeHTTP(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// late is the response to a body that is late, without its Date.
const late = "HTTP/1.1 408 Request Timeout\r\nCache-Control: no-store\r\nConnection: close\r\nContent-Length: 16\r\n" +
	"Content-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\n"

// TestBubbleBodyTimeout has clients whose bodies take their time, and checks when which
// response comes.
func TestBubbleBodyTimeout(t *testing.T) {
	t.Parallel()
	const s = time.Second
	type step struct {
		wire  string
		pause time.Duration // after that
	}
	const length, chunked = "Content-Length: 200\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n"
	half := strings.Repeat("x", 100)
	for _, tt := range []struct {
		why   string
		with  time.Duration // the server's ReadTimeout
		steps []step
		after time.Duration // the response comes, since the first step
		want  string        // how it begins
		kept  bool          // a request follows, after an hour
	}{
		{"no body", 0, []step{{wire: "GET /limited HTTP/1.1\r\nHost: h\r\n\r\n"}}, 0, "HTTP/1.1 200 ", true},
		{"in time", 0, []step{{"POST /limited HTTP/1.1\r\nHost: h\r\n" + length + half, 9 * s}, {wire: half}}, 9 * s, "HTTP/1.1 200 ", true},
		{"chunks in time", 0, []step{{"POST /limited HTTP/1.1\r\nHost: h\r\n" + chunked + "64\r\n" + half, 9 * s}, {wire: "\r\n0\r\n\r\n"}}, 9 * s, "HTTP/1.1 200 ", true},
		{"late", 0, []step{{"POST /limited HTTP/1.1\r\nHost: h\r\n" + length, 6 * s}, {wire: half}}, 10 * s, "HTTP/1.1 408 ", false},
		{"late chunks", 0, []step{{"POST /limited HTTP/1.1\r\nHost: h\r\n" + chunked, 6 * s}, {wire: "64\r\n" + half}}, 10 * s, "HTTP/1.1 408 ", false},
		{"the handler responds", 0, []step{{"POST /limited/says HTTP/1.1\r\nHost: h\r\n" + length, 6 * s}, {wire: half}}, 10 * s, "HTTP/1.1 200 ", false},
		{"no limit", 0, []step{{"POST / HTTP/1.1\r\nHost: h\r\n" + length, 30 * s}, {wire: half + half}}, 30 * s, "HTTP/1.1 200 ", true},
		{"longer than the server's", 5 * s, []step{{"POST /limited HTTP/1.1\r\nHost: h\r\n" + length, 9 * s}, {wire: half + half}}, 9 * s, "HTTP/1.1 200 ", true},
		{"the server's", 5 * s, []step{{"POST / HTTP/1.1\r\nHost: h\r\n" + length, 4 * s}, {wire: half}}, 5 * s, "HTTP/1.1 ", false},
		{"the server's, from the head on", 5 * s, []step{{"POST / HTTP/1.1\r\nHost:", 3 * s}, {"h\r\n" + length, 0}}, 5 * s, "HTTP/1.1 ", false},
		{"the handler takes long", 0, []step{{"POST /limited/long HTTP/1.1\r\nHost: h\r\n" + length + half + half, 0}}, 3600 * s, "HTTP/1.1 200 ", true},
	} {
		t.Run(tt.why, func(t *testing.T) {
			t.Parallel()
			bubbles(t, func(t *testing.T, e chert.Engine) {
				_, m := engines.StartMemory(t, &chert.Server{
					Engine: e, ReadTimeout: tt.with, IdleTimeout: 2 * time.Hour,
					Handler: routed(middleware.BodyTimeout(&middleware.BodyTimeoutOptions{Limit: 10 * s}), hf(func(w http.ResponseWriter, r *http.Request) {
						_, err := io.Copy(io.Discard, r.Body)
						if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
							t.Errorf("Read gave %v", err)
						}
						if err == nil {
							if r.URL.Path == "/limited/long" {
								time.Sleep(time.Hour)
							}
							if r.Context().Err() != nil {
								t.Error("the client has gone")
							}
						}
						if err == nil || r.URL.Path == "/limited/says" {
							put(w, "answer")
						}
					})),
				})
				c := m.Patient(t)
				began := time.Now()
				for _, st := range tt.steps {
					c.Send(st.wire)
					time.Sleep(st.pause)
				}
				head := c.Head()
				if d := time.Since(began).Round(10 * time.Millisecond); d != tt.after || !strings.HasPrefix(head, tt.want) {
					t.Errorf("after %v, want %v, %q", d, tt.after, head)
				}
				if strings.HasPrefix(tt.want, "HTTP/1.1 408") && !strings.HasPrefix(head, late) {
					t.Errorf("got %q", head)
				}
				if !tt.kept {
					c.Cut()
					return
				}
				c.Want("answer")
				time.Sleep(time.Hour)
				c.Send("POST / HTTP/1.1\r\nHost: h\r\n" + length)
				if tt.with == 0 {
					time.Sleep(30 * time.Second)
				}
				c.Send(half + half)
				c.Status(200)
			})
		})
	}
}

// shortly is a limit that passes soon, but not on a busy machine for what comes in time, and sometime is longer.
const (
	shortly  = 500 * time.Millisecond
	sometime = shortly + shortly/4
)

// On sockets the limits end bodies and responses, and are not those of the next request.
func TestBodyTimeout(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, ReadStallTimeout: -1, WriteStallTimeout: -1, Handler: routed(middleware.BodyTimeout(&middleware.BodyTimeoutOptions{Limit: shortly}), hf(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.Copy(io.Discard, r.Body); err == nil {
				if r.URL.Path == "/limited/long" {
					gone := r.Context().Done() // so that the server notices
					time.Sleep(sometime)
					select {
					case <-gone:
						t.Error("the client has gone")
					default:
					}
				}
				put(w, "answer")
			} else if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("Read gave %v", err)
			}
		}))})
		c := ts.Dial()
		for range 2 {
			for _, path := range []string{"/limited", "/limited/long"} {
				c.Send(post(path, "x"))
				c.Status(200)
			}
			c.Send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nx")
			time.Sleep(sometime) // the limit of the request before passes
			c.Send("x")
			c.Status(200)
		}
		c.Send("POST /limited HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nx")
		if got := servertest.Undated(c.Head()); got != late+"\r\n" {
			t.Errorf("got %q", got)
		}
		c.Want("Request Timeout\n")
		c.Ended()
	})
}

// overHTTP2 calls f with a client of HTTP/2, and one connection.
func overHTTP2(t *testing.T, e chert.Engine, h http.Handler, f func(c *http.Client, url string)) {
	t.Helper()
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	ts := engines.Start(t, &chert.Server{Engine: e, ReadStallTimeout: -1, WriteStallTimeout: -1, Protocols: p, Handler: h})
	tr := &http.Transport{Protocols: p}
	defer tr.CloseIdleConnections()
	f(&http.Client{Transport: tr, Timeout: servertest.Patience}, "http://"+ts.ListenAddr)
}

// Over HTTP/2 only the stream ends.
func TestBodyTimeoutHTTP2(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		peers := make(chan string, 4)
		overHTTP2(t, e, routed(middleware.BodyTimeout(&middleware.BodyTimeoutOptions{Limit: shortly}), hf(func(w http.ResponseWriter, r *http.Request) {
			peers <- r.RemoteAddr
			if _, err := io.Copy(io.Discard, r.Body); err == nil {
				put(w, "answer")
			} else if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("Read gave %v", err)
			}
		})), func(c *http.Client, url string) {
			in, out := io.Pipe()
			defer out.Close()
			res, err := c.Post(url+"/limited", "a/b", in)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if b, err := io.ReadAll(res.Body); res.StatusCode != 408 || string(b) != "Request Timeout\n" || err != nil || res.ProtoMajor != 2 || res.Close {
				t.Errorf("%v %q, %v", res, b, err)
			}
			if res, err = c.Post(url+"/limited", "a/b", strings.NewReader("x")); err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if first, second := <-peers, <-peers; res.StatusCode != 200 || first != second {
				t.Errorf("%v, by %s and then %s", res, first, second)
			}
		})
	})
}

// A client that accepts nothing ends a response; one that accepts it keeps its connection.
func TestResponseTimeout(t *testing.T) {
	t.Parallel()
	file := largeFile(t)
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		errs := make(chan error, 1)
		h := hf(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == "/":
				time.Sleep(sometime) // the limit of the request before passes
				put(w, "answer")
			case r.URL.Path == "/limited":
				put(w, "answer")
			case r.URL.RawQuery == "file":
				w.Header().Set("Content-Length", fmt.Sprint(largeSize))
				errs <- wire.SendFile(w, direct.File{File: file, Len: largeSize})
			default:
				var err error
				for err == nil {
					_, err = w.Write(servertest.Pattern(100_000))
				}
				errs <- err
			}
		})
		ts := engines.Start(t, &chert.Server{Engine: e, ReadStallTimeout: -1, WriteStallTimeout: -1, Handler: routed(middleware.ResponseTimeout(&middleware.ResponseTimeoutOptions{Limit: shortly}), h)})
		c := ts.Dial()
		for range 2 {
			for _, path := range []string{"/limited", "/"} {
				if res, body := c.Get(path); body != "answer" {
					t.Errorf("%s: %v", path, res)
				}
			}
		}
		for _, query := range []string{"", "?file"} {
			c := ts.DialSmall(4 << 10)
			c.Send(ask("GET /limited/endless" + query))
			if err := servertest.Await(t, errs, "the end of the response"); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%q: %v", query, err)
			}
			c.Cut()
		}
	})
}

// delivered is a wire.Watcher that reports the delivery.
type delivered chan wire.Delivery

func (d delivered) Keep()                { /* nothing is used */ }
func (d delivered) Sent(v wire.Delivery) { d <- v }

// The fast path has the limit too, for bytes in memory and for files.
func TestResponseTimeoutDirect(t *testing.T) {
	t.Parallel()
	file := largeFile(t)
	memory := direct.NewResponse(200, http.Header{"Content-Type": {"a/b"}}, make([]byte, largeSize))
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		sent := make(delivered, 1)
		h := middleware.ResponseTimeout(&middleware.ResponseTimeoutOptions{Limit: shortly})(watching{sent, file, memory})
		p := new(http.Protocols)
		p.SetHTTP1(true)
		p.SetUnencryptedHTTP2(true)
		ts := engines.Start(t, &chert.Server{Engine: e, ReadStallTimeout: -1, WriteStallTimeout: -1, Protocols: p, Handler: h})
		for _, path := range []string{"/file", "/memory"} {
			c := ts.DialSmall(4 << 10)
			c.Send(ask("GET " + path))
			if d := servertest.Await(t, sent, "the delivery"); d.Complete || d.Body >= largeSize {
				t.Errorf("%s: %+v", path, d)
			}
			c.Cut()
		}
		c := ts.Dial()
		for range 2 {
			c.Get("/small")
			servertest.Await(t, sent, "the delivery")
			time.Sleep(sometime) // the limit passes
		}
		p2 := new(http.Protocols)
		p2.SetUnencryptedHTTP2(true)
		tr := &http.Transport{Protocols: p2}
		defer tr.CloseIdleConnections()
		for _, path := range []string{"/file", "/memory"} {
			res, err := (&http.Client{Transport: tr}).Get("http://" + ts.ListenAddr + path)
			if err != nil {
				t.Fatal(err)
			}
			if d := servertest.Await(t, sent, path+" over HTTP/2"); d.Complete || d.Body >= largeSize {
				t.Errorf("%s over HTTP/2: %+v", path, d)
			}
			if _, err := io.Copy(io.Discard, res.Body); err == nil {
				t.Errorf("%s over HTTP/2: complete", path)
			}
			res.Body.Close()
		}
	})
}

// watching responds on the fast path only.
type watching struct {
	sent   delivered
	file   *os.File
	memory *direct.Response // as large
}

func (h watching) ServeDirect(x *direct.Exchange) bool {
	x.SetHeader("Content-Type", "a/b")
	switch string(x.Path()) {
	case "/file":
		x.SendFile(direct.File{File: h.file, Len: largeSize})
	case "/memory":
		x.Send(h.memory)
	}
	x.Wire().Watch(h.sent)
	return true
}

func (h watching) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	http.Error(w, "the ordinary path", http.StatusInternalServerError)
}

// What lasts beyond its handler, or takes the connection, has no such limit.
func TestTimeoutsLasting(t *testing.T) {
	t.Parallel()
	limit := func(h http.Handler) http.Handler {
		return middleware.Chain(h, middleware.BodyTimeout(&middleware.BodyTimeoutOptions{Limit: shortly}),
			middleware.ResponseTimeout(&middleware.ResponseTimeoutOptions{Limit: shortly}))
	}
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		opened := make(chan *eventstream.Stream, 1)
		events, err := eventstream.New(&eventstream.Options{OnOpen: func(s *eventstream.Stream, r *http.Request) { opened <- s }})
		if err != nil {
			t.Fatal(err)
		}
		defer events.Close()
		mux := http.NewServeMux()
		mux.Handle("/events", events)
		mux.HandleFunc("/hijack", func(w http.ResponseWriter, r *http.Request) {
			nc, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer nc.Close()
			b := make([]byte, 1)
			if _, err := io.ReadFull(nc, b); err != nil {
				t.Error(err)
			}
			if _, err := nc.Write(b); err != nil {
				t.Error(err)
			}
		})
		sockets, err := websocket.New(&websocket.Options{OnMessage: func(c *websocket.Conn, typ websocket.Type, p []byte) {
			if err := c.Send(typ, p); err != nil {
				t.Error(err)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer sockets.Close()
		mux.Handle("/websocket", sockets)
		ts := engines.Start(t, &chert.Server{Engine: e, ReadStallTimeout: -1, WriteStallTimeout: -1, Handler: limit(mux)})
		c := ts.Dial()
		c.Send(ask("GET /events"))
		s := servertest.Await(t, opened, "the stream")
		time.Sleep(sometime) // the limit passes
		if err := s.Send(eventstream.Event{Data: "late"}); err != nil {
			t.Error(err)
		}
		for !strings.HasPrefix(c.Line(), "data: late") {
		}
		c.Close()
		c = ts.Dial()
		c.Send(ask("GET /hijack"))
		time.Sleep(sometime)
		c.Send("x")
		c.Want("x")
		c.Ended()
		c = ts.Dial()
		c.Send(ask("GET /websocket", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="))
		if head := c.Head(); !strings.HasPrefix(head, "HTTP/1.1 101 ") {
			t.Fatalf("got %q", head)
		}
		time.Sleep(sometime)
		c.Send("\x81\x81\x00\x00\x00\x00x") // a masked text message
		c.Want("\x81\x01x")
		c.Close()
	})
}

// endless answers a request with its body, in time for every client.
type endless struct{ direct bool }

func (h endless) ServeDirect(x *direct.Exchange) bool {
	if h.direct {
		x.Write(x.Body())
		x.Write(make([]byte, 8<<20))
	}
	return h.direct
}

func (h endless) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, never := http.NewResponseController(w), time.Now().Add(math.MaxInt64)
	if r.URL.Path == "/own" {
		c.SetReadDeadline(never)
		c.SetWriteDeadline(never)
	}
	io.Copy(w, r.Body)
	w.Write(make([]byte, 8<<20))
}

// TestEndlessTimeouts: a limit with which the time of its end overflows is none.
func TestEndlessTimeouts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		why, target string
		limit       time.Duration // the server's
		h           endless
		body        int
	}{
		{"the server's", "/", math.MaxInt64, endless{}, 8 << 20},
		{"the handler's", "/own", 0, endless{}, 8 << 20},
		{"direct", "/", math.MaxInt64, endless{direct: true}, 5},
	} {
		t.Run(tt.why, func(t *testing.T) {
			engines.Alike(t, func(t *testing.T, e chert.Engine) {
				ts := engines.Start(t, &chert.Server{Engine: e, Handler: tt.h, ReadTimeout: tt.limit, WriteTimeout: tt.limit})
				c := ts.Dial()
				c.SendAside(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n", tt.target, tt.body) +
					strings.Repeat("x", tt.body))
				time.Sleep(50 * time.Millisecond) // a client that pauses is what is tested
				if res, body := c.Response("POST"); res.StatusCode != 200 || len(body) != tt.body+8<<20 {
					t.Errorf("%s with %d bytes", res.Status, len(body))
				}
			})
		})
	}
}
