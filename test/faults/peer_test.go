package faults

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// phased is a handler that stays in the phase that the path names and reports
// how it ended.
type phased struct {
	reached chan bool
	ended   chan error
	answer  []byte
}

func newPhased() *phased {
	return &phased{make(chan bool, 1), make(chan error, 1), noise(8<<20, 3)}
}

func (h *phased) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/body":
		var b [4]byte
		if _, err := io.ReadFull(r.Body, b[:]); err != nil {
			h.ended <- err
			return
		}
		h.reached <- true
		_, err := io.Copy(io.Discard, r.Body)
		h.ended <- err
	case "/compute":
		h.reached <- true
		<-r.Context().Done()
		h.ended <- r.Context().Err()
	case "/write":
		_, err := io.WriteString(w, "some")
		w.(http.Flusher).Flush()
		h.reached <- true
		for err == nil {
			_, err = w.Write(h.answer)
		}
		h.ended <- err
		return
	case "/answer":
		_, err := w.Write(h.answer)
		h.ended <- err
		return
	}
	io.WriteString(w, "ok")
}

func TestFaultsReset(t *testing.T) {
	t.Parallel()
	get := func(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: h\r\n\r\n" }
	for _, tt := range []struct {
		name string
		play func(c *servertest.Client, h *phased)
		ends bool // the handler must end with an error
	}{
		{"before a byte", func(c *servertest.Client, h *phased) {}, false},
		{"in the head", func(c *servertest.Client, h *phased) { c.Send("GET / HT") }, false},
		{"in a second head", func(c *servertest.Client, h *phased) { c.Send(servertest.GET + "GET / HT"); c.Status(200) }, false},
		{"in the body", func(c *servertest.Client, h *phased) {
			c.Send("POST /body HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nabcd")
			servertest.Await(c.T, h.reached, "the handler")
		}, true},
		{"in a chunk", func(c *servertest.Client, h *phased) {
			c.Send("POST /body HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n5\r\nab")
			servertest.Await(c.T, h.reached, "the handler")
		}, true},
		{"while the handler computes", func(c *servertest.Client, h *phased) {
			c.Send(get("/compute"))
			servertest.Await(c.T, h.reached, "the handler")
		}, true},
		{"while the handler computes, more requests sent", func(c *servertest.Client, h *phased) {
			c.Send(get("/compute") + servertest.GET + servertest.GET)
			servertest.Await(c.T, h.reached, "the handler")
		}, true},
		{"while it writes", func(c *servertest.Client, h *phased) {
			c.Send(get("/write"))
			io.ReadFull(c.R, make([]byte, 100<<10))
		}, true},
		{"while it writes, nothing read", func(c *servertest.Client, h *phased) {
			c.Send(get("/answer") + get("/answer"))
		}, true},
		{"while lingering", func(c *servertest.Client, h *phased) { c.Send("not HTTP at all\r\n\r\n"); c.Status(400) }, false},
		{"after the answer", func(c *servertest.Client, h *phased) { c.Send(servertest.GET); c.Status(200) }, false},
		{"with the answer unread", func(c *servertest.Client, h *phased) { c.Send(servertest.GET) }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			engines.Each(t, func(t *testing.T, e chert.Engine) {
				h := newPhased()
				fs := engines.StartCounting(t, &chert.Server{Engine: e, Handler: h})
				c := fs.Dial()
				tt.play(c, h)
				c.Reset()
				if tt.ends {
					if err := servertest.Await(t, h.ended, "the handler's end"); err == nil {
						t.Error("the handler noticed nothing")
					}
				}
				fs.Alive()
				fs.Settled(2)
			})
		})
	}
}

func TestFaultsHalfClose(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		in     string
		status []int // the statuses of the responses
		ended  error // the handler's error; nil if it is not checked
	}{
		{"before a byte", "", nil, nil},
		{"in the head", "GET / HT", []int{400}, nil},
		{"in a second head", servertest.GET + "GET / HT", []int{200, 400}, nil},
		{"in the body", "POST /body HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nabcd", []int{200}, io.ErrUnexpectedEOF},
		{"in a chunk", "POST /body HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcd", []int{200}, io.ErrUnexpectedEOF},
		{"while the handler computes", "GET /compute HTTP/1.1\r\nHost: h\r\n\r\n", []int{200}, nil},
		{"behind many requests", strings.Repeat(servertest.GET, 20), repeat(200, 20), nil},
		{"while the handler writes", "GET /answer HTTP/1.1\r\nHost: h\r\n\r\n", []int{200}, nil},
		{"with a refusal on the way", "not HTTP at all\r\n\r\n", []int{400}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			engines.Each(t, func(t *testing.T, e chert.Engine) {
				h := newPhased()
				fs := engines.StartCounting(t, &chert.Server{Engine: e, Handler: h})
				c := fs.Dial()
				c.Send(tt.in)
				c.CloseWrite()
				for _, want := range tt.status {
					body := c.Status(want)
					if strings.Contains(tt.in, "/answer") && body != string(h.answer) {
						t.Errorf("the response's %d bytes are wrong", len(body))
					}
				}
				c.Ended()
				if tt.ended != nil {
					if err := servertest.Await(t, h.ended, "the handler's end"); !errors.Is(err, tt.ended) {
						t.Errorf("the handler saw %v, want %v", err, tt.ended)
					}
				}
				fs.Settled(1)
			})
		})
	}
}

func repeat(status, n int) (s []int) {
	for range n {
		s = append(s, status)
	}
	return s
}

// A client that has responded to FIN with FIN and reads nothing, and one that
// has closed both sides: writes to it fail (EPIPE, ECONNRESET), never the
// process.
func TestFaultsWriteToClosed(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		h := newPhased()
		fs := engines.StartCounting(t, &chert.Server{Engine: e, Handler: h})
		c := fs.Dial()
		c.Send("GET /write HTTP/1.1\r\nHost: h\r\n\r\n")
		servertest.Await(t, h.reached, "the first write")
		c.Close()
		err := servertest.Await(t, h.ended, "the write's error")
		var ne *net.OpError
		if !errors.As(err, &ne) || ne.Timeout() {
			t.Errorf("the write failed with %v", err)
		}
		fs.Alive()
		fs.Settled(2)
	})
}

// echoes responds with what it received, including trailers.
func echoes(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s %q %v %q", r.Method, r.URL, b, err, r.Trailer.Get("T"))
}

func TestFaultsByteAtATime(t *testing.T) {
	t.Parallel()
	const in = "\r\nGET /a?b HTTP/1.1\r\nHost: h\r\nX-Y: z\r\n\r\n" +
		"POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 11\r\n\r\nhello\r\nyou\n" +
		"POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTrailer: T\r\n\r\n5;x=\"y\"\r\nhello\r\n00a\r\n0123456789\r\n0\r\nT: u\r\n\r\n" +
		"GET /d HTTP/1.1\r\nHost: h\r\n\r\n" +
		"GET /e HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
	want := []string{
		`GET /a?b "" <nil> ""`,
		`POST /b "hello\r\nyou\n" <nil> ""`,
		`POST /c "hello0123456789" <nil> "u"`,
		`GET /d "" <nil> ""`,
		`GET /e "" <nil> ""`,
	}
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		fs := engines.StartCounting(t, &chert.Server{Engine: e, Handler: http.HandlerFunc(echoes)})
		for _, n := range []int{1, 2, 3, 7, len(in)} {
			c := fs.Dial()
			c.TCP().SetNoDelay(true)
			c.SendSlowly(in, n)
			for _, w := range want {
				if got := c.Status(200); got != w {
					t.Errorf("in pieces of %d: got %s, want %s", n, got, w)
				}
			}
			c.Ended()
		}
		fs.Settled(5)
	})
}

// Responses of 8 MiB over small buffers, so that nearly every write is partial.
func TestFaultsPartialWrites(t *testing.T) {
	t.Parallel()
	want := noise(8<<20, 1)
	file := filepath.Join(t.TempDir(), "answer")
	if err := os.WriteFile(file, want, 0o600); err != nil {
		t.Fatal(err)
	}
	ways := map[string]func(w http.ResponseWriter, r *http.Request) error{
		"one write": func(w http.ResponseWriter, r *http.Request) error {
			_, err := w.Write(want)
			return err
		},
		"with a length": func(w http.ResponseWriter, r *http.Request) error {
			w.Header().Set("Content-Length", fmt.Sprint(len(want)))
			_, err := w.Write(want)
			return err
		},
		"odd pieces": func(w http.ResponseWriter, r *http.Request) (err error) {
			for rest, n := want, 1; len(rest) > 0 && err == nil; n = n*7%65521 + 1 {
				n = min(n, len(rest))
				_, err = w.Write(rest[:n])
				rest = rest[n:]
			}
			return err
		},
		"flushed": func(w http.ResponseWriter, r *http.Request) (err error) {
			for rest := want; len(rest) > 0 && err == nil; {
				n := min(100<<10-1, len(rest))
				if _, err = w.Write(rest[:n]); err == nil {
					err = http.NewResponseController(w).Flush()
				}
				rest = rest[n:]
			}
			return err
		},
		"reader": func(w http.ResponseWriter, r *http.Request) error {
			_, err := io.Copy(w, io.MultiReader(bytes.NewReader(want)))
			return err
		},
		"file": func(w http.ResponseWriter, r *http.Request) error {
			http.ServeFile(w, r, file)
			return nil
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engines.Each(t, func(t *testing.T, e chert.Engine) {
				fs := new(engines.Counting)
				s := &chert.Server{Engine: e, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if err := way(w, r); err != nil {
						t.Errorf("the handler's write: %v", err)
					}
				})}
				fs.Count(s)
				fs.Server = engines.StartOn(t, s, servertest.ListenSmall(t, 4<<10))
				c := fs.DialSmall(4 << 10)
				c.SetDeadline(time.Now().Add(4 * servertest.Patience))
				c.R = bufio.NewReaderSize(c.Conn, 1<<20)
				c.Send(servertest.GET + servertest.GET)
				for range 2 {
					if got := c.Status(200); got != string(want) {
						t.Fatalf("%d bytes are wrong, first at %d", len(got), firstDiff(got, string(want)))
					}
				}
			})
		})
	}
}

func firstDiff(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}
