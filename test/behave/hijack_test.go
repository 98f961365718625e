package behave

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

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

const upgrade = "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"

// echo hijacks, sends 101 and echoes until the client ends.
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

const switched = servertest.Switched

// What the client has sent ahead, little or much, is in the hijacker's reader.
func TestHijackEcho(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
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
				c := ts.Dial()
				c.SendSlowly("GET / HTTP/1.1\r\nHost: h\r\n\r\n"+upgrade+string(servertest.Pattern(ahead)), size)
				c.Response("GET")
				c.Want(switched + string(servertest.Pattern(ahead)))
				c.Send("more")
				c.Want("more")
				c.CloseWrite()
				c.Ended()
			}
		}
	})
}

func TestHijackConn(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		done := make(chan struct{})
		ts := engines.Start(t, &chert.Server{Engine: e, ReadTimeout: time.Hour, WriteTimeout: time.Hour, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
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
		c := ts.Dial()
		c.Send("POST / HTTP/1.1\r\nHost: " + ts.ListenAddr + "\r\nContent-Length: 5\r\n\r\nhello")
		servertest.Await(t, done, "the handler")
		c.Ended()
	})
}

// dialled is the address that the client has dialled, according to the client.
func dialled(r *http.Request) string { return r.Host }

func TestHijackAfterFlush(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
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
		c := ts.Dial()
		if _, body := c.Get("/"); body != "abcdef" {
			t.Errorf("got %q", body)
		}
		c.Ended()
	})
}

func TestHijackMisuse(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		late := make(chan http.Hijacker, 2)
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
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
			if e != engines.NetHTTP { // net/http panics
				w.(http.Flusher).Flush()
				if err := http.NewResponseController(w).Flush(); err != http.ErrHijacked {
					t.Errorf("Flush gave %v", err)
				}
			}
			put(nc, "end")
		})})
		c := ts.Dial()
		c.Send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		if got := c.Rest(); got != "end" {
			t.Errorf("got %q", got)
		}
		log := ts.Log.String()
		if !strings.Contains(log, "http: response.Write on hijacked connection from ") || !strings.Contains(log, "http: response.WriteHeader on hijacked connection from ") {
			t.Errorf("log is %q", log)
		}
		c = ts.Dial()
		c.Get("/late")
		c.Get("/late") // now the first has certainly ended
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
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		release := make(chan struct{})
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
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
			c := ts.Dial()
			c.Send("GET " + path + " HTTP/1.1\r\nHost: h\r\n\r\n")
			if got := c.Rest(); got != "bye" {
				t.Errorf("got %q", got)
			}
		}
	})
}

// A hijacked connection no longer belongs to the server: it outlives the
// server, and nothing waits for it or for its handler.
func TestHijackOutlivesServer(t *testing.T) {
	t.Parallel()
	ends := map[string]func(c engines.Control) error{
		"Close":    func(c engines.Control) error { return c.Close() },
		"Shutdown": func(c engines.Control) error { return c.Shutdown(context.Background()) },
	}
	for how, end := range ends {
		for _, running := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s,running=%v", how, running), func(t *testing.T) {
				t.Parallel()
				engines.Alike(t, func(t *testing.T, e chert.Engine) {
					over := make(chan struct{})
					ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
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
					c := ts.Dial()
					c.Send(upgrade)
					c.Want(switched)
					ended := make(chan error, 1)
					go func() { ended <- end(ts.Control) }()
					if err := servertest.Await(t, ended, how); err != nil {
						t.Error(err)
					}
					c.Send("still here")
					c.Want("still here")
					c.Close()
					servertest.Await(t, over, "the hijacker")
				})
			})
		}
	}
}

// Hijack may be called by another goroutine than the handler's.
func TestHijackFromGoroutine(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			r.Context().Done() // the client is watched
			done := make(chan struct{})
			go func() {
				defer close(done)
				echo(t, w)
			}()
			<-done
		})})
		for _, slowly := range []bool{false, true} {
			c := ts.Dial()
			if slowly {
				c.SendSlowly(upgrade+"ahead", 1)
			} else {
				c.Send(upgrade + "ahead")
			}
			c.Want(switched + "ahead")
			c.CloseWrite()
			c.Ended()
		}
	})
}

func TestHijackThenPanic(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		kept := make(chan net.Conn, 1)
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			nc, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
			}
			kept <- nc
			panic("after the hijack")
		})})
		c := ts.Dial()
		c.Send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		nc := servertest.Await(t, kept, "the handler")
		servertest.Eventually(t, "the panic is logged", func() bool { return strings.Contains(ts.Log.String(), "after the hijack") })
		put(nc, "alive\n")
		c.Want("alive\n")
		c.Send("you too\n")
		if s, err := bufio.NewReader(nc).ReadString('\n'); s != "you too\n" {
			t.Errorf("got %q, %v", s, err)
		}
		nc.Close()
		c.Ended()
	})
}
