package h2_test

import (
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// early answers before the body has come.
func early(w http.ResponseWriter, r *http.Request) {
	w.WriteHeader(http.StatusRequestEntityTooLarge)
	io.WriteString(w, "no")
}

// curl receives a response that comes before its upload has ended.
func TestEarlyResponseToCurl(t *testing.T) {
	t.Parallel()
	curl := tool(t, "curl", "curl")
	file := filepath.Join(t.TempDir(), "upload")
	if err := os.WriteFile(file, servertest.Pattern(3<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	reads := hf(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, 1<<20)); err != nil {
			early(w, r)
		}
	})
	each(t, "oracle pooled inline", func(t *testing.T, kind string) {
		for name, h := range map[string]http.Handler{"unread": hf(early), "MaxBytesReader": reads} {
			s := serve(t, kind, &chert.Server{Handler: h})
			version := "--http2-prior-knowledge"
			if s.overTLS() {
				version = "--http2"
			}
			for range 10 {
				cmd := exec.Command(curl, "-sSk", "--noproxy", "*", "--max-time", "30", version, "-F", "file=@"+file, "-w", "%{http_code}", "-o", os.DevNull, s.url("/"))
				var stderr strings.Builder
				cmd.Stderr = &stderr
				if out, err := cmd.Output(); err != nil || string(out) != "413" {
					t.Errorf("%s: %s, %v %s", name, out, err, stderr.String())
				}
			}
		}
	})
}

// After an early response the client may end its stream in each way, or go on until its
// window is used up; then, or after a time, the stream is reset with NO_ERROR. It keeps its
// place meanwhile, and the connection's window is given back.
func TestEarlyResponse(t *testing.T) {
	t.Parallel()
	const window = 65535
	each(t, "oracle", func(t *testing.T, kind string) {
		s := serve(t, kind, &chert.Server{HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: 5, MaxReceiveBufferPerStream: window, MaxReceiveBufferPerConnection: window,
		}, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == "POST" {
				early(w, r)
			}
		})})
		large := with(post, "content-length: 1000000", "a: "+strings.Repeat("a", 15_000), "b: "+strings.Repeat("a", 15_000), "c: "+strings.Repeat("a", 15_000), "d: "+strings.Repeat("a", 15_000), "e: "+strings.Repeat("a", 15_000))
		for name, end := range map[string]func(c *raw, id uint32){
			"DATA":     func(c *raw, id uint32) { c.fr.WriteData(id, true, []byte("x")) },
			"trailers": func(c *raw, id uint32) { c.headers(id, true, "x-t: 1") },
			"reset":    func(c *raw, id uint32) { c.fr.WriteRSTStream(id, http2.ErrCodeCancel) },
			"":         nil,
		} {
			for want, fields := range map[int][]string{413: with(post, "content-length: 1000000"), 431: large} {
				c := s.raw()
				id := uint32(1)
				start := func() {
					block := c.block(fields...)
					n := min(len(block), 16000)
					c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block[:n], EndHeaders: n == len(block)})
					for block = block[n:]; len(block) > 0; block = block[n:] {
						n = min(len(block), 16000)
						c.fr.WriteContinuation(id, n == len(block), block[:n])
					}
					c.send()
					if a := c.read(id); a.status() != strconv.Itoa(want) || !a.end {
						t.Fatalf("%s: %+v", name, a)
					}
				}
				resets, sent := 0, 0
				next := func() {
					switch f := c.next().(type) {
					case nil:
						t.Fatal("closed")
					case *http2.RSTStreamFrame:
						if f.ErrCode != http2.ErrCodeNo {
							t.Fatal(f)
						}
						resets++
					case *http2.WindowUpdateFrame:
						if f.StreamID != 0 {
							t.Errorf("a window is opened for what is discarded: %v", f)
						}
					}
				}
				// The handler may not have returned yet, and the window not have been given back.
				data := func(n int) {
					for sent += n; sent > window+c.opened; {
						c.send()
						next()
					}
					c.fr.WriteData(id, false, make([]byte, n))
				}
				if end != nil {
					// More than may be open at a time, and than the connection's window.
					for range 20 {
						start()
						for range 3 {
							data(10_000)
						}
						sent++ // at most
						end(c, id)
						c.send()
						id += 2
					}
					if a := c.get(id, "/"); a.outcome() != "200" {
						t.Errorf("%s: %+v", name, a)
					}
					continue
				}
				for range 5 {
					start()
					for left := window; left > 0; left -= 16_000 {
						data(min(left, 16_000))
					}
					c.send()
					id += 2
				}
				c.headers(id, true, get...)
				c.send()
				if a := c.read(id); a.outcome() != "RST REFUSED_STREAM" {
					t.Errorf("one more: %+v", a)
				}
				for resets < 5 {
					next()
				}
				c.fr.WriteData(1, true, nil) // was on its way
				if a := c.get(id+2, "/"); a.outcome() != "200" {
					t.Errorf("after the resets: %+v", a)
				}
				// Beyond the window it is an error of the stream.
				id += 4
				start()
				for range 5 {
					data(16_000)
				}
				c.send()
				if a := c.read(id); a.reset != "FLOW_CONTROL_ERROR" {
					t.Errorf("beyond the window: %+v", a)
				}
			}
		}
	})
}

// A client that waits for 100 (Continue), and gets a final answer instead, would wait on: its
// stream is reset at once. One that got 100 (Continue), or sent something, is as others are.
func TestEarlyResponseExpected(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		s := serve(t, kind, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/reads" {
				io.ReadFull(r.Body, make([]byte, 1))
			}
			early(w, r)
		})})
		c := s.raw()
		// Read before the stream that lingers: frames come in order.
		c.headers(1, false, with(post, "content-length: 1000", "expect: 100-continue")...)
		c.send()
		a := c.read(1)
		for a.reset == "" {
			if f, ok := c.next().(*http2.RSTStreamFrame); ok {
				a.reset = f.ErrCode.String()
			}
		}
		if a.status() != "413" || a.reset != "NO_ERROR" && a.reset != "NO" {
			t.Errorf("%+v", a)
		}
	})
}

// A client that waits for 100 (Continue) gets it as long as the head has not been sent, also if
// WriteHeader or Write has been called.
func TestContinueBeforeHeldHead(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		s := serve(t, kind, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/head":
				w.WriteHeader(http.StatusCreated)
			case "/write":
				io.WriteString(w, "he")
			case "/flush":
				w.(http.Flusher).Flush()
			}
			io.Copy(w, r.Body)
		})})
		c := s.raw()
		for i, tt := range []struct{ path, first, body string }{
			{"/head", "100", "llo"}, {"/write", "100", "hello"}, {"/flush", "200", "llo"},
		} {
			id := uint32(2*i + 1)
			c.headers(id, false, with(path(post, tt.path), "expect: 100-continue")...)
			c.send()
			first := ""
			for first == "" {
				if f, ok := c.next().(*http2.HeadersFrame); ok {
					first = must(c.dec.DecodeFull(f.HeaderBlockFragment()))[0].Value
				}
			}
			c.fr.WriteData(id, true, []byte("llo"))
			c.send()
			if a := c.read(id); first != tt.first || a.body != tt.body {
				t.Errorf("%s: %s, then %+v", tt.path, first, a)
			}
		}
	})
}

// A body is read while a Write waits for a client that has not got its 100 (Continue): that came too late for it.
func TestContinueBesideWrite(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		waits, body := make(chan struct{}), make(chan string, 1)
		s := serve(t, kind, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			wrote := make(chan struct{})
			go func() {
				defer close(wrote)
				w.Write(make([]byte, 1<<17))
			}()
			<-waits
			b, _ := io.ReadAll(r.Body)
			body <- string(b)
			<-wrote
		})})
		c := s.raw()
		c.headers(1, false, with(post, "expect: 100-continue")...)
		c.send()
		for got := 0; got < 65535; { // the window
			if f, ok := c.next().(*http2.DataFrame); ok {
				got += len(f.Data())
			}
		}
		close(waits)
		c.fr.WriteData(1, true, []byte("hello"))
		c.send()
		if got := servertest.Await(t, body, "the body is read"); got != "hello" {
			t.Errorf("%q is read", got)
		}
		c.fr.WriteWindowUpdate(0, 1<<17)
		c.fr.WriteWindowUpdate(1, 1<<17)
		c.send()
		if a := c.read(1); len(a.body) != 1<<17-65535 {
			t.Errorf("%d more bytes, %s", len(a.body), a.reset)
		}
	})
}

// A connection whose early answers linger is idle, and ends with its server, which resets
// them: Shutdown and tests' servers do not wait for them.
func TestEarlyResponseShutdown(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		states := make(chan http.ConnState, 8)
		srv := &chert.Server{Handler: hf(early)}
		srv.ConnState = func(_ net.Conn, st http.ConnState) { states <- st }
		s := serve(t, kind, srv)
		c := s.raw()
		c.headers(1, false, with(post, "content-length: 1000000")...)
		c.send()
		if a := c.read(1); a.status() != "413" {
			t.Fatalf("%+v", a)
		}
		for range 2 { // the first time there was no request yet
			for servertest.Await(t, states, "the connection is idle, and its stream lingers") != http.StateIdle {
			}
		}
		done := make(chan error, 1)
		go func() { done <- s.Shutdown(t.Context()) }()
		var order []string
		for f := c.next(); f != nil; f = c.next() {
			switch f := f.(type) {
			case *http2.PingFrame:
				if !f.IsAck() {
					c.fr.WritePing(true, f.Data)
					c.send()
				}
			case *http2.GoAwayFrame:
				order = append(order, "GOAWAY")
			case *http2.RSTStreamFrame:
				order = append(order, "RST "+f.ErrCode.String())
			}
		}
		if got := strings.Join(order, " "); got != "GOAWAY GOAWAY RST NO_ERROR" {
			t.Errorf("%s", got)
		}
		c.Close()
		if err := servertest.Await(t, done, "Shutdown"); err != nil {
			t.Error(err)
		}
	})
}
