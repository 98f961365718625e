package middleware

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/chert-http/chert/chertest"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/middleware/internal/wrap"
)

// What a handler's goroutine may do to a response writer.
var lateCalls = []struct {
	name string
	f    func(w http.ResponseWriter) error
}{
	{"write", func(w http.ResponseWriter) error { _, err := io.WriteString(w, page); return err }},
	{"write bytes", func(w http.ResponseWriter) error { _, err := w.Write([]byte(page)); return err }},
	{"flush", func(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() }},
	{"read from", func(w http.ResponseWriter) error { _, err := io.Copy(w, strings.NewReader(page)); return err }},
	{"hijack", func(w http.ResponseWriter) error { _, _, err := http.NewResponseController(w).Hijack(); return err }},
	{"send file", func(w http.ResponseWriter) error {
		if s, ok := w.(wire.FileSender); ok {
			return s.SendFile(direct.File{Len: 1}) // not read: it is refused before
		}
		return io.ErrClosedPipe
	}},
}

// Middleware that buffers, pools or changes the response returns an error to
// goroutines that outlive their handler, also if the outer writer would accept the
// call.
func TestLateCalls(t *testing.T) {
	for _, mw := range []string{"compress", "etag", "timeout"} {
		for _, how := range []string{"returned", "panicked", "wrote nothing"} {
			var kept http.ResponseWriter
			rec := httptest.NewRecorder()
			r := request("GET", "/", "", "Accept-Encoding", "gzip")
			func() {
				defer func() { recover() }()
				everything(t)[mw](hf(func(w http.ResponseWriter, r *http.Request) {
					kept = w
					if how != "wrote nothing" {
						io.WriteString(w, page)
					}
					if how == "panicked" {
						panic("on purpose")
					}
				})).ServeHTTP(rec, r)
			}()
			length, fields := rec.Body.Len(), len(rec.Header())
			for _, call := range lateCalls {
				if err := call.f(kept); !errors.Is(err, wrap.ErrDone) && err != io.ErrClosedPipe {
					t.Errorf("%s, handler %s, %s: got %v", mw, how, call.name, err)
				}
			}
			kept.WriteHeader(500)
			if rec.Body.Len() != length || len(rec.Header()) != fields {
				t.Errorf("%s, handler %s: the response was changed", mw, how)
			}
		}
	}
}

// Goroutines that continue to write after their handler has returned or
// panicked do not affect another response: each by itself and all in a chain,
// on both servers.
func TestLateWriters(t *testing.T) {
	for name, mw := range everything(t) {
		t.Run(name, func(t *testing.T) {
			var left sync.WaitGroup
			defer left.Wait()
			mux := http.NewServeMux()
			mux.HandleFunc("/late", func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/plain")
				begun := make(chan struct{})
				panicking := r.URL.RawQuery == "panic"
				left.Go(func() {
					// net/http's own writer is no safer than before.
					defer func() { recover() }()
					for i := range 50 {
						if _, err := io.WriteString(w, page); err != nil {
							return
						}
						if i == 0 {
							close(begun)
						}
						http.NewResponseController(w).Flush()
					}
				})
				<-begun
				if panicking {
					panic(http.ErrAbortHandler)
				}
			})
			mux.HandleFunc("/innocent", func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/plain")
				for range 20 {
					io.WriteString(w, page)
				}
			})
			s := chertest.NewServer(mw(mux))
			defer s.Close()
			var clients sync.WaitGroup
			for i := range 4 {
				clients.Go(func() {
					for n := range 25 {
						switch {
						case i >= 2:
							res, got, err := get(t, s.Client(), s.URL+"/innocent", "Accept-Encoding", []string{"gzip", "zstd"}[i%2])
							if err != nil {
								t.Errorf("%v", err)
								return
							}
							a := answer{res.StatusCode, res.Header, got}
							if body := decode(t, a); body != strings.Repeat(page, 20) {
								t.Errorf("an innocent client got %d bytes, status %d", len(body), res.StatusCode)
							}
						case n%3 == 2:
							lateGet(s.Client(), s.URL+"/late?panic")
						default:
							lateGet(s.Client(), s.URL+"/late")
						}
					}
				})
			}
			clients.Wait()
		})
	}
}

// lateGet sends a GET and accepts any result: the response may be cut off.
func lateGet(c *http.Client, url string) {
	req, _ := http.NewRequest("GET", url, nil)
	req.Header.Set("Authorization", "Bearer token")
	req.Header.Set("Accept-Encoding", "gzip")
	if res, err := c.Do(req); err == nil {
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
}

// A goroutine that outlives a handler that panicked does not add to Recover's 500.
func TestLateRecover(t *testing.T) {
	for _, call := range lateCalls[:4] {
		var kept http.ResponseWriter
		rec := httptest.NewRecorder()
		Recover(&RecoverOptions{Handle: func(any, []byte) {}})(hf(func(w http.ResponseWriter, r *http.Request) {
			kept = w
			panic("on purpose")
		})).ServeHTTP(rec, request("GET", "/", ""))
		if err := call.f(kept); !errors.Is(err, wrap.ErrDone) || rec.Code != 500 || rec.Body.String() != "Internal Server Error\n" {
			t.Errorf("%s: got %v, then %d %q", call.name, err, rec.Code, rec.Body)
		}
	}
}
