package chert

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

const upgrade = "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"

// echo hijacks, says 101 and sends back what it gets until the client ends.
func echo(t *testing.T, w http.ResponseWriter) {
	nc, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	echoOn(t, nc, rw)
}

func echoOn(t *testing.T, nc net.Conn, rw *bufio.ReadWriter) {
	defer nc.Close()
	io.WriteString(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	for {
		if err := rw.Flush(); err != nil {
			t.Error(err)
			return
		}
		b, err := rw.ReadByte()
		if err != nil {
			return
		}
		rw.WriteByte(b)
	}
}

const switched = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"

// What the client has sent ahead, much or little, is in the hijacker's reader.
func TestHijackEcho(t *testing.T) {
	t.Parallel()
	alike(t, func(t *testing.T, e Engine) {
		ts := start(t, &Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Upgrade") == "" {
				put(w, "plain")
				return
			}
			echo(t, w)
		})})
		for _, ahead := range []int{0, 1, 100, 5000, 70_000} {
			for _, size := range []int{1 << 20, 1} {
				if ahead > 100 && size == 1 {
					continue
				}
				c := ts.dial()
				c.sendSlowly("GET / HTTP/1.1\r\nHost: h\r\n\r\n"+upgrade+string(pattern(ahead)), size)
				c.response("GET")
				c.expect(switched + string(pattern(ahead)))
				c.send("more")
				c.expect("more")
				c.closeWrite()
				c.closed()
			}
		}
	})
}

func TestHijackConn(t *testing.T) {
	t.Parallel()
	alike(t, func(t *testing.T, e Engine) {
		done := make(chan struct{})
		ts := start(t, &Server{Engine: e, ReadTimeout: time.Hour, WriteTimeout: time.Hour, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			defer close(done)
			nc, rw, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer nc.Close()
			if _, ok := nc.(*net.TCPConn); !ok {
				t.Errorf("Hijack gave a %T", nc)
			}
			if nc.LocalAddr().String() != dialled(r) || nc.RemoteAddr().String() != r.RemoteAddr {
				t.Errorf("addresses are %v %v", nc.LocalAddr(), nc.RemoteAddr())
			}
			if n := rw.Reader.Buffered(); n != 5 {
				t.Errorf("%d bytes are buffered, want the body's 5", n)
			}
			if b, err := rw.Peek(5); string(b) != "hello" || err != nil {
				t.Errorf("Peek gave %q, %v", b, err)
			}
			if a, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr); a == nil || a.String() != nc.LocalAddr().String() {
				t.Errorf("LocalAddrContextKey gives %v", a)
			}
		})})
		c := ts.dial()
		c.send("POST / HTTP/1.1\r\nHost: " + ts.addr + "\r\nContent-Length: 5\r\n\r\nhello")
		await(t, done, "the handler")
		c.closed()
	})
}

// dialled is the address that the client has dialled, as it says itself.
func dialled(r *http.Request) string { return r.Host }

func TestHijackAfterFlush(t *testing.T) {
	t.Parallel()
	alike(t, func(t *testing.T, e Engine) {
		ts := start(t, &Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "6")
			put(w, "abc")
			w.(http.Flusher).Flush()
			nc, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer nc.Close()
			put(nc, "def")
		})})
		c := ts.dial()
		if _, body := c.get("/"); body != "abcdef" {
			t.Errorf("got %q", body)
		}
		c.closed()
	})
}

func TestHijackMisuse(t *testing.T) {
	t.Parallel()
	alike(t, func(t *testing.T, e Engine) {
		late := make(chan http.Hijacker, 2)
		ts := start(t, &Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/late" {
				late <- w.(http.Hijacker)
				return
			}
			nc, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer nc.Close()
			if _, _, err := w.(http.Hijacker).Hijack(); !errors.Is(err, http.ErrHijacked) {
				t.Errorf("the second Hijack gave %v", err)
			}
			if n, err := io.WriteString(w, "x"); n != 0 || err != http.ErrHijacked {
				t.Errorf("Write gave %d, %v", n, err)
			}
			if n, err := w.Write(nil); n != 0 || err != http.ErrHijacked {
				t.Errorf("an empty Write gave %d, %v", n, err)
			}
			w.WriteHeader(500)
			if e != oracle { // net/http panics
				w.(http.Flusher).Flush()
			}
			put(nc, "end")
		})})
		c := ts.dial()
		c.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		if got := c.rest(); got != "end" {
			t.Errorf("got %q", got)
		}
		log := ts.log.String()
		if !strings.Contains(log, "http: response.Write on hijacked connection from ") || !strings.Contains(log, "http: response.WriteHeader on hijacked connection from ") {
			t.Errorf("log is %q", log)
		}
		c = ts.dial()
		c.get("/late")
		c.get("/late") // now the first has surely ended
		func() {
			defer func() {
				if p := recover(); p != "net/http: Hijack called after ServeHTTP finished" {
					t.Errorf("a late Hijack panicked with %v", p)
				}
			}()
			(<-late).Hijack()
		}()
	})
}

// Closing a hijacked connection must reach the client although its handler
// still runs, and although the server has had the descriptor too.
func TestHijackClose(t *testing.T) {
	t.Parallel()
	alike(t, func(t *testing.T, e Engine) {
		release := make(chan struct{})
		ts := start(t, &Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			nc, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			put(nc, "bye")
			if r.URL.Path == "/half" {
				defer nc.Close()
				nc.(*net.TCPConn).CloseWrite()
			} else {
				nc.Close()
			}
			<-release
		})})
		defer close(release)
		for _, path := range []string{"/", "/half"} {
			c := ts.dial()
			c.send("GET " + path + " HTTP/1.1\r\nHost: h\r\n\r\n")
			if got := c.rest(); got != "bye" {
				t.Errorf("got %q", got)
			}
		}
	})
}

// A hijacked connection is not the server's any more: it outlives the server,
// and nothing waits for it or for its handler.
func TestHijackOutlivesServer(t *testing.T) {
	t.Parallel()
	ends := map[string]func(c control) error{
		"Close":    func(c control) error { return c.Close() },
		"Shutdown": func(c control) error { return c.Shutdown(context.Background()) },
	}
	for how, end := range ends {
		for _, running := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s,running=%v", how, running), func(t *testing.T) {
				t.Parallel()
				alike(t, func(t *testing.T, e Engine) {
					over := make(chan struct{})
					ts := start(t, &Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
						if running {
							echo(t, w)
							close(over)
							return
						}
						nc, rw, err := w.(http.Hijacker).Hijack()
						if err != nil {
							t.Error(err)
							return
						}
						go func() {
							defer close(over)
							echoOn(t, nc, rw)
						}()
					})})
					c := ts.dial()
					c.send(upgrade)
					c.expect(switched)
					ended := make(chan error, 1)
					go func() { ended <- end(ts.ctl) }()
					if err := await(t, ended, how); err != nil {
						t.Error(err)
					}
					c.send("still here")
					c.expect("still here")
					c.Close()
					await(t, over, "the hijacker")
				})
			})
		}
	}
}

// Hijack may be called by another goroutine than the handler's.
func TestHijackFromGoroutine(t *testing.T) {
	t.Parallel()
	alike(t, func(t *testing.T, e Engine) {
		ts := start(t, &Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			r.Context().Done() // somebody watches the client
			done := make(chan struct{})
			go func() {
				defer close(done)
				echo(t, w)
			}()
			<-done
		})})
		for _, slowly := range []bool{false, true} {
			c := ts.dial()
			if slowly {
				c.sendSlowly(upgrade+"ahead", 1)
			} else {
				c.send(upgrade + "ahead")
			}
			c.expect(switched + "ahead")
			c.closeWrite()
			c.closed()
		}
	})
}

func TestHijackThenPanic(t *testing.T) {
	t.Parallel()
	alike(t, func(t *testing.T, e Engine) {
		kept := make(chan net.Conn, 1)
		ts := start(t, &Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			nc, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
			}
			kept <- nc
			panic("behind the hijack")
		})})
		c := ts.dial()
		c.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		nc := await(t, kept, "the handler")
		eventually(t, "the panic is logged", func() bool { return strings.Contains(ts.log.String(), "behind the hijack") })
		put(nc, "alive\n")
		c.expect("alive\n")
		c.send("you too\n")
		if s, err := bufio.NewReader(nc).ReadString('\n'); s != "you too\n" {
			t.Errorf("got %q, %v", s, err)
		}
		nc.Close()
		c.closed()
	})
}
