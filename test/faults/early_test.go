package faults

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// answersEarly has handlers that answer without the body.
func answersEarly(large string) http.Handler {
	return hf(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/head": // nothing of it is written before the handler has returned
			w.Header().Set("X", large)
		case "/body":
			put(w, large)
		case "/closed":
			put(w, "sorry")
			flush(w)
			r.Body.Close()
		case "/panic":
			put(w, "sorry")
			flush(w)
			put(w, large[:3000]) // more than is held back before the head
			panic(http.ErrAbortHandler)
		case "/413":
			http.Error(w, "too large", http.StatusRequestEntityTooLarge)
		}
	})
}

// unread is a request whose body has n bytes.
func unread(path string, n int, chunked bool, fields ...string) string {
	body := string(servertest.Pattern(n))
	if chunked {
		return postChunks(path, servertest.Chunks(body, 8000), fields...)
	}
	return post(path, body, fields...)
}

// A client that reads nothing before it has sent its whole body gets the response of a
// handler that has not read the body, also over a connection without any buffer.
func TestAnswerBeforeBodyInMemory(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 50_000)
	for _, e := range []chert.Engine{chert.EngineAuto, chert.EngineGoroutines} {
		_, m := engines.StartMemory(t, &chert.Server{Engine: e, WriteStallTimeout: time.Hour, Handler: answersEarly(large)})
		for _, path := range []string{"/", "/head", "/413"} {
			for _, n := range []int{1000, 200_000, 1 << 20} {
				for _, chunked := range []bool{false, true} {
					for _, field := range []string{"A: b", "Connection: close"} {
						what := fmt.Sprint(path, n, chunked, field)
						c := servertest.Wrap(t, m.Dial(t))
						c.Send(unread(path, n, chunked, field))
						if res, _ := c.Response("POST"); res.Header.Get("X") != large && path == "/head" {
							t.Errorf("%s: got %v", what, res.Status)
						}
						c.Close()
					}
				}
			}
		}
		// The body is read before the head if the connection can be kept.
		c := servertest.Wrap(t, m.Dial(t))
		c.Send(unread("/body", 200_000, true))
		if _, body := c.Response("POST"); body != large {
			t.Error("the body has", len(body), "bytes")
		}
		c = servertest.Wrap(t, m.Dial(t))
		c.Send("POST /panic HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 1000000\r\n\r\n")
		c.Head()
		c.Want("5\r\nsorry\r\n")
		c.Send(string(servertest.Pattern(1_000_000)))
		c.Want("bb8\r\n" + large[:3000] + "\r\n")
	}
}

// As connect's handlers: the head was sent, and then the handler closes the body.
func TestCloseBodyAfterHead(t *testing.T) {
	t.Parallel()
	alikeInMemory(t, func(t *testing.T, e chert.Engine) {
		_, m := engines.StartMemory(t, &chert.Server{Engine: e, WriteStallTimeout: time.Hour, Handler: answersEarly("")})
		c := servertest.Wrap(t, m.Dial(t))
		c.Send("POST /closed HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n")
		c.Head()
		c.Want("5\r\nsorry\r\n")
		c.Send(servertest.Chunks(string(servertest.Pattern(200_000)), 8000))
		c.Want("0\r\n\r\n")
	})
}

// alikeInMemory runs f for a listener that only goroutines can serve, and on net/http.
func alikeInMemory(t *testing.T, f func(t *testing.T, e chert.Engine)) {
	for name, e := range map[string]chert.Engine{"auto": chert.EngineAuto, "nethttp": engines.NetHTTP} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, e)
		})
	}
}

// The same over sockets whose buffers are full in both directions.
func TestAnswerBeforeBody(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 60_000)
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		if engines.Layered {
			t.Skip("the relay has buffers of its own")
		}
		ts := engines.StartOn(t, &chert.Server{Engine: e, WriteStallTimeout: time.Hour, Handler: answersEarly(large)}, servertest.ListenSmall(t, 4<<10))
		paths := []string{"/head"}
		if e == chert.EngineLoops {
			paths = append(paths, "/body") // it is queued; on goroutines the handler itself would wait
		}
		for _, path := range paths {
			for _, field := range []string{"A: b", "Connection: close"} {
				for _, chunked := range []bool{false, true} {
					c := ts.DialSmall(4 << 10)
					_, err := io.WriteString(c.Conn, unread(path, 8<<20, chunked, field))
					if err != nil {
						t.Fatalf("%s: %v", path, err)
					}
					res, body := c.Response("POST")
					if len(body)+len(res.Header.Get("X")) != len(large) {
						t.Errorf("%s: %d bytes of %d", path, len(body)+len(res.Header.Get("X")), len(large))
					}
					c.CloseWrite()
					c.Ended()
				}
			}
		}
		// The client half-closes while the response waits for it.
		c := ts.DialSmall(4 << 10)
		c.Send(unread("/head", 4<<20, false))
		c.CloseWrite()
		if res, _ := c.Response("POST"); res.Header.Get("X") != large {
			t.Error("the response is cut short")
		}
		c.Ended()
		// A client that resets while the response waits is noticed.
		c = ts.DialSmall(4 << 10)
		c.Send(unread("/head", 4<<20, false))
		c.Reset()
		ts.Alive()
	})
}

// A client that sends without end and reads nothing is given up on.
func TestAnswerNotTaken(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		if engines.Layered {
			t.Skip("the relay has buffers of its own")
		}
		ts := engines.StartOn(t, &chert.Server{Engine: e, WriteStallTimeout: 100 * time.Millisecond, Handler: answersEarly(strings.Repeat("x", 60_000))}, servertest.ListenSmall(t, 4<<10))
		c := ts.DialSmall(4 << 10)
		c.Send("POST /head HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000000000\r\n\r\n")
		block := servertest.Pattern(64 << 10)
		for {
			if _, err := c.Write(block); err != nil {
				if servertest.IsTimeout(err) {
					t.Error("it was not given up on")
				}
				return
			}
		}
	})
}
