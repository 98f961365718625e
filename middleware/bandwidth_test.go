package middleware

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/middleware/internal/wrap"
)

// A clocked is a response that notes what arrives when. It is a wire.FileSender.
type clocked struct {
	*httptest.ResponseRecorder
	began   time.Time
	pieces  []string // "TIME+BYTES"
	flushes int
}

func newClocked() *clocked { return &clocked{httptest.NewRecorder(), time.Now(), nil, 0} }

func (c *clocked) note(n int) {
	c.pieces = append(c.pieces, fmt.Sprintf("%v+%d", time.Since(c.began), n))
}

func (c *clocked) Write(p []byte) (int, error) {
	c.note(len(p))
	return c.ResponseRecorder.Write(p)
}

func (c *clocked) ReadFrom(src io.Reader) (int64, error) {
	n, err := io.Copy(c.ResponseRecorder, src)
	c.note(int(n))
	return n, err
}

func (c *clocked) SendFile(f direct.File) error {
	c.note(int(f.Len))
	_, err := io.Copy(c.ResponseRecorder, io.NewSectionReader(f.File, f.Offset, f.Len))
	return err
}

func (c *clocked) FlushError() error { c.flushes++; return nil }

func patternFile(t *testing.T, n int) (*os.File, string) {
	t.Helper()
	content := strings.Repeat("0123456789", n/10)
	return servertest.File(t, []byte(content)), content
}

// However a body is sent, it is sent at the rate, and unchanged.
func TestBandwidthPace(t *testing.T) {
	file, content := patternFile(t, 6000)
	for name, send := range map[string]func(w http.ResponseWriter) error{
		"write": func(w http.ResponseWriter) error {
			_, err := io.WriteString(w, content)
			return err
		},
		"copy": func(w http.ResponseWriter) error {
			n, err := io.Copy(w, strings.NewReader(content))
			if n != 6000 {
				t.Errorf("copied %d", n)
			}
			return err
		},
		"part of a file": func(w http.ResponseWriter) error {
			if _, err := file.Seek(0, io.SeekStart); err != nil {
				return err
			}
			part := &io.LimitedReader{R: file, N: 6000}
			n, err := w.(io.ReaderFrom).ReadFrom(part)
			if n != 6000 || part.N != 0 {
				t.Errorf("read %d, and %d are left", n, part.N)
			}
			return err
		},
		"sendfile": func(w http.ResponseWriter) error {
			return w.(interface{ SendFile(direct.File) error }).SendFile(direct.File{File: file, Len: 6000})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newClocked()
				Bandwidth(&BandwidthOptions{Rate: 8000, After: 2500})(hf(func(w http.ResponseWriter, r *http.Request) {
					if err := send(w); err != nil {
						t.Error(err)
					}
				})).ServeHTTP(c, request("GET", "/", ""))
				if c.Body.String() != content {
					t.Errorf("sent %d bytes, which are not the body", c.Body.Len())
				}
				want := "0s+2500 0s+1000 125ms+1000 250ms+1000 375ms+500"
				if got := strings.Join(c.pieces, " "); got != want || c.flushes != 3 {
					t.Errorf("%s, %d flushes, want %s", got, c.flushes, want)
				}
			})
		})
	}
}

// Pieces are of an eighth of a second, and of a size that is worth the while.
func TestBandwidthPieces(t *testing.T) {
	for _, tt := range []struct {
		rate int64
		size int
		want string
	}{
		{100, 250, "0s+100 1s+100 2s+50"},                             // a whole second
		{1024, 1100, "0s+512 500ms+512 1s+76"},                        // what types are guessed by
		{80 << 20, 3 << 20, "0s+1048576 12.5ms+1048576 25ms+1048576"}, // the most
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newClocked()
			Bandwidth(&BandwidthOptions{Rate: tt.rate})(hf(func(w http.ResponseWriter, r *http.Request) {
				w.Write(make([]byte, tt.size))
			})).ServeHTTP(c, request("GET", "/", ""))
			if got := strings.Join(c.pieces, " "); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// What comes first waits for no more if the type need not be guessed by it.
func TestBandwidthTyped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClocked()
		Bandwidth(&BandwidthOptions{Rate: 100})(hf(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			w.Write(make([]byte, 250))
		})).ServeHTTP(c, request("GET", "/", ""))
		if got := strings.Join(c.pieces, " "); got != "0s+100 1s+100 2s+50" || c.flushes != 2 {
			t.Errorf("%s, %d flushes", got, c.flushes)
		}
	})
}

// Time in which the handler has sent nothing is not made up for, but for a piece; small
// writes count together.
func TestBandwidthIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClocked()
		Bandwidth(&BandwidthOptions{Rate: 8000})(hf(func(w http.ResponseWriter, r *http.Request) {
			for range 4 {
				w.Write(make([]byte, 500))
			}
			time.Sleep(time.Hour)
			w.Write(make([]byte, 4000))
		})).ServeHTTP(c, request("GET", "/", ""))
		want := "0s+500 62.5ms+500 125ms+500 187.5ms+500 " +
			"1h0m0.1875s+1000 1h0m0.1875s+1000 1h0m0.3125s+1000 1h0m0.4375s+1000"
		if got := strings.Join(c.pieces, " "); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

// What has no limit is sent at once.
func TestBandwidthNone(t *testing.T) {
	body := make([]byte, 100_000)
	plainly := func(w http.ResponseWriter, r *http.Request) { w.Write(body) }
	for name, tt := range map[string]struct {
		method string
		o      *BandwidthOptions
		h      hf
	}{
		"no options":    {"GET", nil, plainly},
		"no rate":       {"GET", &BandwidthOptions{After: 1}, plainly},
		"negative rate": {"GET", &BandwidthOptions{Rate: -1}, plainly},
		"HEAD":          {"HEAD", &BandwidthOptions{Rate: 1}, plainly},
		"CONNECT":       {"CONNECT", &BandwidthOptions{Rate: 1}, plainly},
		"after":         {"GET", &BandwidthOptions{Rate: 1, After: 100_000}, plainly},
		"event stream": {"GET", &BandwidthOptions{Rate: 1}, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "Text/Event-Stream ; charset=utf-8")
			w.(http.Flusher).Flush()
			w.Write(body)
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newClocked()
			Bandwidth(tt.o)(tt.h).ServeHTTP(c, request(tt.method, "/", ""))
			if got := strings.Join(c.pieces, " "); got != "0s+100000" {
				t.Errorf("%s: %s", name, got)
			}
		})
	}
}

// On the fast path are responses that need not wait, and only those whose handler may be
// called twice.
func TestBandwidthDirect(t *testing.T) {
	file, _ := patternFile(t, 6000)
	done := 0
	files := direct.HandlerFunc(func(x *direct.Exchange) {
		x.SetHeader("Content-Type", "a/b")
		x.SendFile(direct.File{File: file, Len: 6000, Done: func() { done++ }})
	})
	of := func(n int) direct.Handler {
		return direct.NewResponse(200, http.Header{"Content-Type": {"a/b"}}, make([]byte, n))
	}
	for _, tt := range []struct {
		name, method string
		h            direct.Handler
		after        int64
		direct       bool
	}{
		{"nothing", "GET", of(0), 0, true},
		{"a piece", "GET", of(1000), 0, true},
		{"more", "GET", of(1001), 0, false},
		{"without a limit", "GET", of(3000), 2000, true},
		{"more than that", "GET", of(3001), 2000, false},
		{"a number that is too large", "GET", of(3001), 1<<63 - 1, true},
		{"POST", "POST", of(1), 0, false},
		{"HEAD", "HEAD", of(5000), 0, true},
		{"a file", "GET", files, 5000, true},
		{"a large file", "GET", files, 4999, false},
	} {
		done = 0
		mw := Bandwidth(&BandwidthOptions{Rate: 8000, After: tt.after})
		a, ok := directly(t, mw(tt.h), request(tt.method, "/", ""))
		if ok != tt.direct || ok && a.Status != 200 {
			t.Errorf("%s: direct: %v, status %d", tt.name, ok, a.Status)
		}
		if tt.name == "a large file" && done != 1 {
			t.Errorf("Done was called %d times", done)
		}
	}
	var x direct.Exchange
	h := Bandwidth(&BandwidthOptions{Rate: 8000, After: 1000})(of(1500)).(direct.Handler)
	r := request("GET", "/", "")
	exchange(&x, r)
	if n := testing.AllocsPerRun(100, func() {
		if !h.ServeDirect(&x) {
			t.Error("not direct")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// A goroutine that writes when its handler has returned gets an error with the next piece.
func TestBandwidthLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var late http.ResponseWriter
		errs := make(chan error, 1)
		c := newClocked()
		Bandwidth(&BandwidthOptions{Rate: 100})(hf(func(w http.ResponseWriter, r *http.Request) {
			late = w
			go func() {
				_, err := w.Write(make([]byte, 1000))
				errs <- err
			}()
			time.Sleep(1500 * time.Millisecond)
		})).ServeHTTP(c, request("GET", "/", ""))
		if err := <-errs; err != wrap.ErrDone || c.Body.Len() != 200 {
			t.Errorf("%v after %d bytes", err, c.Body.Len())
		}
		late.WriteHeader(500)
		for name, f := range map[string]func() error{
			"write":     func() error { _, err := late.Write([]byte("b")); return err },
			"nothing":   func() error { _, err := late.Write(nil); return err },
			"read from": func() error { _, err := late.(io.ReaderFrom).ReadFrom(strings.NewReader("b")); return err },
			"flush":     func() error { return http.NewResponseController(late).Flush() },
			"hijack":    func() error { _, _, err := http.NewResponseController(late).Hijack(); return err },
			"sendfile": func() error {
				return late.(interface{ SendFile(direct.File) error }).SendFile(direct.File{Len: 1})
			},
		} {
			if err := f(); err != wrap.ErrDone {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// Errors of the source, of the file's check and of the writer end the response.
func TestBandwidthErrors(t *testing.T) {
	file, _ := patternFile(t, 6000)
	on := errors.New("on purpose")
	synctest.Test(t, func(t *testing.T) {
		c := newClocked()
		checks := 0
		Bandwidth(&BandwidthOptions{Rate: 8000})(hf(func(w http.ResponseWriter, r *http.Request) {
			err := w.(interface{ SendFile(direct.File) error }).SendFile(direct.File{File: file, Len: 6000, Check: func() error {
				if checks++; checks == 2 {
					return on
				}
				return nil
			}})
			if err != on || c.Body.Len() != 2000 {
				t.Errorf("check: %v after %d", err, c.Body.Len())
			}
			// A file that is shorter than its part.
			if _, err := file.Seek(4500, io.SeekStart); err != nil {
				t.Error(err)
			}
			n, err := w.(io.ReaderFrom).ReadFrom(&io.LimitedReader{R: file, N: 3000})
			if n != 1500 || err != nil {
				t.Errorf("a short file: %d, %v", n, err)
			}
			n, err = w.(io.ReaderFrom).ReadFrom(io.MultiReader(bytes.NewReader(make([]byte, 1500)), broken{on}))
			if n != 1500 || err != on {
				t.Errorf("a failing source: %d, %v", n, err)
			}
		})).ServeHTTP(c, request("GET", "/", ""))
	})
	Bandwidth(&BandwidthOptions{Rate: 8000})(hf(func(w http.ResponseWriter, r *http.Request) {
		if n, err := w.Write(make([]byte, 10)); n != 3 || err != on {
			t.Errorf("a failing writer: %d, %v", n, err)
		}
	})).ServeHTTP(short{httptest.NewRecorder(), on}, request("GET", "/", ""))
}

type broken struct{ err error }

func (f broken) Read([]byte) (int, error) { return 0, f.err }

type short struct {
	http.ResponseWriter
	err error
}

func (s short) Write(p []byte) (int, error) { return min(len(p), 3), s.err }
