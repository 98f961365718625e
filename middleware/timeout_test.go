package middleware

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// If the handler has written nothing, 504 is sent at once, and nothing after it.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var late error
		h := Chain(hf(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Handler", "1")
			<-r.Context().Done()
			if !errors.Is(r.Context().Err(), context.DeadlineExceeded) {
				t.Errorf("got %v", r.Context().Err())
			}
			w.WriteHeader(201)
			w.Header().Set("X-Late", "1")
			_, late = io.WriteString(w, "late")
			if err := http.NewResponseController(w).Flush(); err == nil {
				t.Error("Flush gives no error")
			}
			if _, _, err := w.(http.Hijacker).Hijack(); !errors.Is(err, http.ErrHandlerTimeout) {
				t.Errorf("Hijack: %v", err)
			}
		}), SecurityHeaders(nil), Timeout(&TimeoutOptions{Limit: time.Second}))
		began := time.Now()
		a := plain(h, request("GET", "/", ""))
		if a.Status != 504 || a.Body != "Gateway Timeout\n" || a.Header.Get("X-Handler") != "" || a.Header.Get("X-Late") != "" || a.Header.Get("X-Frame-Options") != "DENY" {
			t.Errorf("got %v", a)
		}
		if !errors.Is(late, http.ErrHandlerTimeout) || time.Since(began) != time.Second {
			t.Errorf("got %v after %v", late, time.Since(began))
		}
	})
}

// A context is done shortly before its AfterFunc starts. A handler that calls Hijack
// between the two does not get a connection on which a 504 was, or will be, sent.
func TestTimeoutHijackAtDeadline(t *testing.T) {
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	rec := httptest.NewRecorder()
	w := &timed{ctx: ctx, limit: &limit{timer: time.NewTimer(0)}, w: rec, r: request("GET", "/", ""), header: http.Header{}, stop: func() bool { return true }}
	if _, _, err := w.Hijack(); !errors.Is(err, http.ErrHandlerTimeout) || rec.Code != 504 {
		t.Errorf("Hijack: %v, status %d", err, rec.Code)
	}
}

// What a handler has taken has no limit, nor has what it derives of its context; if the
// connection cannot be taken the limit stays.
func TestTimeoutHijackLifts(t *testing.T) {
	for _, can := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var w http.ResponseWriter = httptest.NewRecorder()
			if can {
				w = hijackable{w}
			}
			outer, leave := context.WithCancelCause(t.Context())
			Chain(hf(func(w http.ResponseWriter, r *http.Request) {
				derived, cancel := context.WithTimeout(r.Context(), time.Hour)
				defer cancel()
				for range 2 {
					http.NewResponseController(w).Hijack()
				}
				began := time.Now()
				after, cancel := context.WithTimeout(r.Context(), time.Minute)
				defer cancel()
				<-after.Done()
				if took := time.Since(began); can && took != time.Minute || !can && took != time.Second {
					t.Errorf("hijacked %v: done after %v", can, took)
				}
				if !can {
					if derived.Err() != context.DeadlineExceeded || context.Cause(derived) != context.DeadlineExceeded {
						t.Errorf("got %v, %v", derived.Err(), context.Cause(derived))
					}
					return
				}
				if _, ok := r.Context().Deadline(); ok || r.Context().Err() != nil {
					t.Errorf("hijacked: it has a deadline, or has ended: %v", r.Context().Err())
				}
				leave(io.ErrClosedPipe)
				<-derived.Done()
				if derived.Err() != context.Canceled || context.Cause(derived) != io.ErrClosedPipe {
					t.Errorf("got %v, %v", derived.Err(), context.Cause(derived))
				}
			}), Timeout(&TimeoutOptions{Limit: 2 * time.Second}), Timeout(&TimeoutOptions{Limit: time.Second})).ServeHTTP(w, request("GET", "/", "").WithContext(outer))
		})
	}
}

// What is left of a request's body would follow on its connection over HTTP/1; others have a stream for each.
func TestTimeoutCloses(t *testing.T) {
	for major, want := range map[int]string{1: "close", 2: "", 3: ""} {
		for name, h := range map[string]http.Handler{
			"late": hf(func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }),
			"large": BodyLimit(&BodyLimitOptions{MaxSize: 10})(hf(func(w http.ResponseWriter, r *http.Request) {
				_, err := io.ReadAll(r.Body)
				http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			})),
		} {
			synctest.Test(t, func(t *testing.T) {
				r := request("POST", "/", page)
				r.ContentLength, r.ProtoMajor = -1, major
				a := plain(Timeout(&TimeoutOptions{Limit: time.Second})(h), r)
				if got := a.Header.Get("Connection"); a.Status != map[string]int{"late": 504, "large": 413}[name] || got != want {
					t.Errorf("HTTP/%d, %s: %d, Connection %q", major, name, a.Status, got)
				}
			})
		}
	}
}

func TestTimeoutInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, h := range map[string]http.Handler{
			"nothing": hf(func(w http.ResponseWriter, r *http.Request) { w.Header().Set("X-A", "1") }),
			"written": hf(func(w http.ResponseWriter, r *http.Request) {
				h := w.Header()
				h.Set("X-A", "1")
				h.Set("Trailer", "X-T")
				io.WriteString(w, "some")
				w.(io.ReaderFrom).ReadFrom(strings.NewReader("thing"))
				h.Set("X-T", "trailer")
			}),
			"after its time": hf(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-A", "1")
				io.WriteString(w, "something")
				time.Sleep(2 * time.Second) // fake time
			}),
		} {
			a := plain(SecurityHeaders(nil)(Timeout(&TimeoutOptions{Limit: time.Second})(h)), request("GET", "/", ""))
			if a.Status != 200 || a.Header.Get("X-A") != "1" || name != "nothing" && a.Body != "something" || a.Header.Get("X-Frame-Options") != "DENY" || name == "written" && a.Header.Get("X-T") != "trailer" {
				t.Errorf("%s: got %v", name, a)
			}
		}
		// Begun and cut.
		h := Timeout(&TimeoutOptions{Limit: time.Second})(hf(func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "some")
			<-r.Context().Done()
			io.WriteString(w, "thing")
		}))
		rec := httptest.NewRecorder()
		if !panics(func() { h.ServeHTTP(rec, request("GET", "/", "")) }) || rec.Body.String() != "some" {
			t.Errorf("looks whole: %q", rec.Body)
		}
		// The client leaves: no 504.
		ctx, cancel := context.WithCancel(t.Context())
		h = Timeout(&TimeoutOptions{Limit: time.Second})(hf(func(w http.ResponseWriter, r *http.Request) {
			cancel()
			<-r.Context().Done()
			if r.Context().Err() != context.Canceled {
				t.Errorf("got %v", r.Context().Err())
			}
		}))
		if a := plain(h, request("GET", "/", "").WithContext(ctx)); a.Status != 200 {
			t.Errorf("got %v", a)
		}
		// A panic goes through.
		h = Timeout(&TimeoutOptions{Limit: time.Second})(hf(func(w http.ResponseWriter, r *http.Request) { panic("on purpose") }))
		if !panics(func() { plain(h, request("GET", "/", "")) }) {
			t.Error("no panic")
		}
	})
	for limit, want := range map[time.Duration]bool{0: true, time.Hour: true, -1: false} {
		plain(Timeout(&TimeoutOptions{Limit: limit})(hf(func(_ http.ResponseWriter, r *http.Request) {
			if _, has := r.Context().Deadline(); has != want {
				t.Errorf("Limit %v: a deadline: got %v, want %v", limit, has, want)
			}
		})), request("GET", "/", ""))
	}
	if a, ok := directly(t, Timeout(&TimeoutOptions{Limit: time.Second})(hello), request("GET", "/", "")); !ok || a.Body != "hello" {
		t.Errorf("direct: %v", a)
	}
}

// dial sends bytes and reads until the server closes the connection.
func dial(t *testing.T, url, request string) (net.Conn, func() string) {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(30 * time.Second))
	io.WriteString(c, request)
	return c, func() string {
		b, err := io.ReadAll(c)
		if err != nil && len(b) == 0 {
			t.Errorf("read: %v", err)
		}
		return string(b)
	}
}

// On servers: the 504 is complete before the handler returns, and reads and writes
// that the handler waits for end.
func TestTimeoutServers(t *testing.T) {
	leave := make(chan struct{})
	bodies := make(chan error, 1)
	h := Timeout(&TimeoutOptions{Limit: 20 * time.Millisecond})(hf(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/stuck":
			<-leave // ignores its context
		case "/body":
			_, err := io.ReadAll(r.Body)
			bodies <- err
		case "/taken-slowly":
			b := make([]byte, 1<<20)
			for {
				if _, err := w.Write(b); err != nil {
					bodies <- err
					return
				}
			}
		}
	}))
	servers(t, h, func(t *testing.T, url string, c *http.Client) {
		res, err := c.Get(url + "/stuck")
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != 504 || string(b) != "Gateway Timeout\n" || err != nil {
			t.Errorf("got %d %q %v", res.StatusCode, b, err)
		}
		leave <- struct{}{}

		conn, all := dial(t, url, "POST /body HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab")
		if err := <-bodies; err == nil {
			t.Error("the body looks whole")
		}
		if got := all(); !strings.HasPrefix(got, "HTTP/1.1 504 ") || !strings.HasSuffix(got, "\r\n\r\nGateway Timeout\n") {
			t.Errorf("got %q", got)
		}
		conn.Close()

		conn, _ = dial(t, url, "GET /taken-slowly HTTP/1.1\r\nHost: h\r\n\r\n")
		if err := <-bodies; err == nil {
			t.Error("the write ended without an error")
		}
		conn.Close()
	})
}

// On servers: a connection that was hijacked in time has no limit.
func TestTimeoutHijacked(t *testing.T) {
	t.Parallel()
	const limit = 2 * time.Second // a busy machine must not be late with the hijack
	servers(t, Timeout(&TimeoutOptions{Limit: limit})(hf(func(w http.ResponseWriter, r *http.Request) {
		c, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		time.Sleep(limit + limit/10) // past the limit
		if err := r.Context().Err(); err != nil {
			t.Errorf("hijacked: %v", err)
		}
		rw.WriteString("mine")
		rw.Flush()
	})), func(t *testing.T, url string, _ *http.Client) {
		conn, all := dial(t, url, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		if got := all(); got != "mine" {
			t.Errorf("got %q", got)
		}
		conn.Close()
	})
}

// The tests above fail if a handler does not return; this one, if a goroutine leaks.
func TestTimeoutLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which fails if one is left
		h := Timeout(&TimeoutOptions{Limit: time.Hour})(hello)
		for range 10 {
			plain(h, request("GET", "/", ""))
		}
	})
}

// Nor does a timer, which would keep the request of a client that has left.
func TestTimeoutLeavesNoTimer(t *testing.T) {
	t.Parallel()
	outer, leave := context.WithCancel(t.Context())
	ctx, cancel, l := withLimit(outer, time.Hour)
	leave()
	<-ctx.Done()
	if cancel(); l.timer.Stop() {
		t.Error("the timer runs")
	}
	if ctx, cancel, _ := withLimit(outer, time.Hour); ctx.Err() == nil {
		t.Error("a context begins that has ended")
		cancel()
	}
}

// 504 is sent at the limit also if a Hijack has failed before.
func TestTimeoutAfterHijack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := httptest.NewRecorder()
		Timeout(&TimeoutOptions{Limit: time.Second})(hf(func(w http.ResponseWriter, r *http.Request) {
			http.NewResponseController(w).Hijack()
			<-r.Context().Done()
			synctest.Wait()
			if rec.Code != http.StatusGatewayTimeout {
				t.Errorf("%d has been sent", rec.Code)
			}
		})).ServeHTTP(rec, request("GET", "/", ""))
	})
}

// A limit that is met when the time is over does not touch the server's header
// while the 504 is being sent.
func TestTimeoutBodyLimit(t *testing.T) {
	short, inner, outer := Timeout(&TimeoutOptions{Limit: 20 * time.Millisecond}), BodyLimit(&BodyLimitOptions{MaxSize: 1000}), BodyLimit(&BodyLimitOptions{MaxSize: 1500})
	foreign := func(next http.Handler) http.Handler {
		return hf(func(w http.ResponseWriter, r *http.Request) {
			r.Body = struct{ io.ReadCloser }{r.Body}
			next.ServeHTTP(w, r)
		})
	}
	for name, chain := range map[string][]func(http.Handler) http.Handler{
		"inside": {short, inner}, "outside": {inner, short}, "outside, hidden": {inner, foreign, short},
		"both outside": {inner, outer, short}, "between": {Timeout(&TimeoutOptions{Limit: time.Hour}), inner, Must(Compress(nil)), short},
	} {
		t.Run(name, func(t *testing.T) {
			h := Chain(hf(func(w http.ResponseWriter, r *http.Request) {
				// Read when the time has passed, it is too large just while
				// expire responds.
				<-r.Context().Done()
				io.ReadAll(r.Body)
			}), chain...)
			servers(t, h, func(t *testing.T, url string, c *http.Client) {
				for range 3 {
					res, err := c.Post(url, "text/plain", io.MultiReader(strings.NewReader(strings.Repeat("x", 2000))))
					if err != nil {
						t.Fatal(err)
					}
					res.Body.Close()
					if res.StatusCode != http.StatusGatewayTimeout {
						t.Errorf("got %d", res.StatusCode)
					}
				}
			})
		})
	}
	// In time, the handler chooses the response to the limit, and the
	// connection ends.
	for _, begun := range []bool{false, true} {
		for name, chain := range map[string][]func(http.Handler) http.Handler{
			"inside": {Timeout(&TimeoutOptions{Limit: time.Hour}), Must(Compress(nil)), Timeout(&TimeoutOptions{Limit: time.Hour}), inner}, "outside": {inner, Timeout(&TimeoutOptions{Limit: time.Hour}), Must(Compress(nil)), Timeout(&TimeoutOptions{Limit: time.Hour})},
		} {
			h := Chain(hf(func(w http.ResponseWriter, r *http.Request) {
				if begun {
					w.WriteHeader(http.StatusAccepted)
				}
				_, err := io.ReadAll(r.Body)
				var tooLarge *http.MaxBytesError
				if errors.As(err, &tooLarge) && !begun {
					w.WriteHeader(http.StatusRequestEntityTooLarge)
				}
				fmt.Fprint(w, err)
			}), chain...)
			servers(t, h, func(t *testing.T, url string, c *http.Client) {
				res, err := c.Post(url, "text/plain", io.MultiReader(strings.NewReader(strings.Repeat("x", 2000))))
				if err != nil {
					t.Fatal(err)
				}
				b, err := io.ReadAll(res.Body)
				res.Body.Close()
				if err != nil || string(b) != "http: request body too large" || !begun && (res.StatusCode != 413 || !res.Close) {
					t.Errorf("%s, begun %v: %v, %d %q, closes: %v", name, begun, err, res.StatusCode, b, res.Close)
				}
			})
		}
	}
}

// Early hints leave no field in the 504 that describes another response.
func TestTimeoutEarlyHints(t *testing.T) {
	h := Timeout(&TimeoutOptions{Limit: 20 * time.Millisecond})(hf(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Etag", `"a"`)
		w.WriteHeader(http.StatusEarlyHints)
		<-r.Context().Done()
	}))
	servers(t, h, func(t *testing.T, url string, c *http.Client) {
		res, body, err := get(t, c, url)
		if err != nil || res.StatusCode != http.StatusGatewayTimeout || body != "Gateway Timeout\n" ||
			res.Header.Get("Content-Encoding") != "" || res.Header.Get("Etag") != "" {
			t.Errorf("%v, %v, %q", err, res, body)
		}
	})
}

// If a handler returns as soon as its context is done, before expire has begun,
// the response is the 504 and not an empty 200.
func TestTimeoutReturnsFirst(t *testing.T) {
	for range 20 {
		a := plain(Timeout(&TimeoutOptions{Limit: 10 * time.Millisecond})(hf(func(w http.ResponseWriter, r *http.Request) {
			for range 5000 { // some of which are told before expire is called
				context.AfterFunc(r.Context(), func() {})
			}
			<-r.Context().Done()
		})), request("GET", "/", ""))
		if a.Status != http.StatusGatewayTimeout || a.Body != "Gateway Timeout\n" {
			t.Errorf("got %d %q", a.Status, a.Body)
		}
	}
}
