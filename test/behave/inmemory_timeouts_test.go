package behave

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// TestBubbleTimeouts has clients that are late, and checks when they lose their
// connection.
func TestBubbleTimeouts(t *testing.T) {
	t.Parallel()
	const s = time.Second
	type times struct{ read, header, idle, stall time.Duration }
	type step struct {
		wire   string
		answer bool          // to be awaited
		pause  time.Duration // after that
	}
	get := step{wire: "GET / HTTP/1.1\r\nHost: h\r\n\r\n", answer: true}
	slow := strings.Repeat("x", 100)
	for _, tt := range []struct {
		why   string
		with  times
		steps []step
		want  time.Duration // after the last step
		reply string        // the first thing that chert sends then
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
					return // it closes without a response, or responds 400
				}
				if !strings.HasPrefix(got, tt.reply) || tt.reply == "" && got != "" {
					t.Errorf("got %q, want %q", got, tt.reply)
				}
			})
		})
	}
}

// A client that accepts nothing ends the writes after WriteTimeout, or, unlike
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

// A handler that has the connection, by ConnContext, may set its write
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
				t.Errorf("responded after %v, the handler was notified after %v", d, in)
			}
		}
	})
}

// A client that does not accept what TLS itself has to tell it, an alert here, has no more time than others for its
// next request, and does not hold up Close.
func TestBubbleTLSAlert(t *testing.T) {
	t.Parallel()
	cert, roots := servertest.Certificate(t)
	for _, closes := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			const idle, late = 7 * time.Second, 2 * time.Second
			closed := make(chan bool, 1)
			m := servertest.NewMemory()
			ts := engines.StartTLS(t, &chert.Server{IdleTimeout: idle, Handler: memoryEcho(t), ConnState: func(_ net.Conn, s http.ConnState) {
				if s == http.StateClosed {
					closed <- true
				}
			}}, m, cert)
			raw := m.Patient(t).Conn
			c, _ := servertest.TLSOver(t, raw, roots)
			c.Get("/")
			io.WriteString(raw, "\x17\x03\x03\x00\x20"+strings.Repeat("x", 32)) // a bad MAC
			synctest.Wait()
			want := idle + late
			if closes {
				want = 0
			}
			if d := servertest.Took(func() {
				if closes {
					ts.Close()
				}
				<-closed
			}); d != want {
				t.Errorf("closed after %v, want %v", d, want)
			}
		})
	}
}
