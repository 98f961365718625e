package behave

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/eventstream"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/middleware"
	"github.com/chert-http/chert/static"
)

// Of pacedSize bytes, the first 100,000 are not limited, nor is a piece of 50,000.
const pacedSize = 250_000

// pacedLeast is how long the other 100,000 take.
const pacedLeast = 250 * time.Millisecond

var paced = middleware.Bandwidth(&middleware.BandwidthOptions{Rate: 400_000, After: 100_000})

// pacedFiles has the file "large", with a pattern, and "small".
func pacedFiles(t *testing.T) *static.Handler {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string][]byte{"large": servertest.Pattern(pacedSize), "small": []byte("small")} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h, err := static.New(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// Files are sent at the rate, whichever way, and unchanged.
func TestBandwidth(t *testing.T) {
	t.Parallel()
	files := pacedFiles(t)
	want := string(servertest.Pattern(pacedSize))
	check := func(t *testing.T, c *http.Client, url string) {
		t.Helper()
		for _, tt := range []struct {
			method, path, ranges, want string
			least                      time.Duration
		}{
			{"GET", "/large", "", want, pacedLeast},
			{"GET", "/large", "bytes=10-", want[10:], pacedLeast - 10*time.Second/400_000},
			{"GET", "/large", "bytes=1000-99999", want[1000:100_000], 0},
			{"HEAD", "/large", "", "", 0},
			{"GET", "/small", "", "small", 0},
			{"GET", "/none", "", "404 page not found\n", 0},
		} {
			req, err := http.NewRequest(tt.method, url+tt.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Accept-Encoding", "identity")
			if tt.ranges != "" {
				req.Header.Set("Range", tt.ranges)
			}
			began := time.Now()
			res, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(res.Body)
			res.Body.Close()
			if string(b) != tt.want || err != nil || res.ContentLength < int64(len(b)) {
				t.Errorf("%s %s %s: %d %d bytes, %v", tt.method, tt.path, tt.ranges, res.StatusCode, len(b), err)
			}
			if d := time.Since(began); d < tt.least {
				t.Errorf("%s %s %s: after %v, want %v at least", tt.method, tt.path, tt.ranges, d, tt.least)
			}
		}
	}
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: paced(files)})
		tr := new(http.Transport)
		defer tr.CloseIdleConnections()
		check(t, &http.Client{Transport: tr}, "http://"+ts.ListenAddr)
		if e != engines.NetHTTP {
			overHTTP2(t, e, paced(files), func(c *http.Client, url string) { check(t, c, url) })
		}
	})
}

// A client that has only closed its side gets everything; one that has left ends the
// handler, and so does the end of the server.
func TestBandwidthEnds(t *testing.T) {
	t.Parallel()
	files := pacedFiles(t)
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		ended := make(chan struct{}, 1)
		h := paced(files)
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			defer func() { ended <- struct{}{} }()
			h.ServeHTTP(w, r)
		})})
		c := ts.Dial()
		c.Send(ask("GET /large"))
		c.CloseWrite()
		if got := c.UpToEnd(); !strings.HasSuffix(got, string(servertest.Pattern(pacedSize))) {
			t.Errorf("half closed: %d bytes", len(got))
		}
		servertest.Await(t, ended, "the handler of a client that has closed its side")
		c = ts.Dial()
		c.Send(ask("GET /large"))
		c.Head()
		c.Reset()
		servertest.Await(t, ended, "the handler of a client that has left")
		c = ts.Dial()
		c.Send(ask("GET /large"))
		c.Head()
		ts.Control.Close()
		servertest.Await(t, ended, "the handler of a server that is closed")
	})
}

// The writes of a handler are paced as files are, in chunks and to HTTP/1.0 too.
func TestBandwidthWritten(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: paced(hf(func(w http.ResponseWriter, r *http.Request) {
			for p := servertest.Pattern(pacedSize); len(p) > 0; p = p[1000:] {
				if _, err := w.Write(p[:1000]); err != nil {
					t.Error(err)
				}
			}
			if r.URL.RawQuery == "flush" {
				flush(w)
			}
		}))})
		for _, request := range []string{ask("GET /"), ask("GET /?flush"), ask10("GET /")} {
			c := ts.Dial()
			began := time.Now()
			c.Send(request)
			if _, body := c.Response("GET"); body != string(servertest.Pattern(pacedSize)) {
				t.Errorf("%q: %d bytes", request, len(body))
			}
			if d := time.Since(began); d < pacedLeast {
				t.Errorf("%q: after %v", request, d)
			}
		}
	})
}

// Event streams are not limited, whether they outlive their handler or not.
func TestBandwidthEvents(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		const events = 20_000
		stream, err := eventstream.New(&eventstream.Options{OnOpen: func(s *eventstream.Stream, r *http.Request) {
			for i := range 2 {
				if err := s.Send(eventstream.Event{Data: strings.Repeat(fmt.Sprint(i), events)}); err != nil {
					t.Error(err)
				}
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Close()
		h := middleware.Bandwidth(&middleware.BandwidthOptions{Rate: 1})(stream)
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: h})
		c := ts.Dial()
		c.Send(ask("GET /"))
		for i := range 2 {
			want := strings.Repeat(fmt.Sprint(i), events)
			for !strings.Contains(c.Line(), want) {
			}
		}
		c.Close()
	})
}

// Responses that need not wait are on the fast path, and only they are.
func TestBandwidthDirect(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		h := paced(sized{})
		p := new(http.Protocols)
		p.SetHTTP1(true)
		p.SetUnencryptedHTTP2(true)
		ts := engines.Start(t, &chert.Server{Engine: e, Protocols: p, Handler: h})
		p2 := new(http.Protocols)
		p2.SetUnencryptedHTTP2(true)
		for _, tr := range []*http.Transport{{}, {Protocols: p2}} {
			for path, want := range map[string]string{"/150000": "direct", "/150001": "ordinary"} {
				res, err := (&http.Client{Transport: tr}).Get("http://" + ts.ListenAddr + path)
				if err != nil {
					t.Fatal(err)
				}
				n, err := io.Copy(io.Discard, res.Body)
				res.Body.Close()
				if got := res.Header.Get("X-Way"); got != want || fmt.Sprint("/", n) != path || err != nil {
					t.Errorf("%s: %d bytes %s, want %s; %v", path, n, got, want, err)
				}
			}
			tr.CloseIdleConnections()
		}
	})
}

// sized responds with as many bytes as the path says, and with the way.
type sized struct{}

var sizes = map[string]*direct.Response{
	"/150000": direct.NewResponse(200, http.Header{"X-Way": {"direct"}, "Content-Type": {"a/b"}}, make([]byte, 150_000)),
	"/150001": direct.NewResponse(200, http.Header{"X-Way": {"direct"}, "Content-Type": {"a/b"}}, make([]byte, 150_001)),
}

func (sized) ServeDirect(x *direct.Exchange) bool {
	x.Send(sizes[string(x.Path())])
	return true
}

func (sized) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Way", "ordinary")
	w.Write(sizes[r.URL.Path].Wire().Body())
}
