package behave

import (
	"errors"
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

func TestWriteErrors(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		for _, tt := range []struct {
			why, lines string
			status     int
			length     string
			sizes      []int
			want       string // what each Write returns
			wire       string // the body and whether the connection is kept
		}{
			{"as promised", "", 200, "3", []int{1, 2}, "1 <nil>, 2 <nil>", "012 kept"},
			{"one write too many", "", 200, "3", []int{3, 1, 1}, "3 <nil>, 0 length, 0 length", "012 closed"},
			{"a write too long", "", 200, "3", []int{4}, "0 length", " closed"},
			{"too little", "", 200, "3", []int{2}, "2 <nil>", "01 closed"},
			{"an empty write is allowed", "", 200, "3", []int{3, 0}, "3 <nil>, 0 <nil>", "012 kept"},
			{"204 allows none", "", 204, "", []int{1}, "0 body", " kept"},
			{"204 allows an empty one", "", 204, "", []int{0}, "0 <nil>", " kept"},
			{"304 allows none", "", 304, "", []int{1}, "0 body", " kept"},
			{"a length that is not needed", "", 200, "0", []int{0}, "0 <nil>", " kept"},
			{"a write where none was promised", "", 200, "0", []int{1}, "0 length", " closed"},
		} {
			results := make(chan string, 1)
			ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
				if tt.length != "" {
					w.Header().Set("Content-Length", tt.length)
				}
				w.WriteHeader(tt.status)
				var got []string
				for at, i := 0, 0; i < len(tt.sizes); i++ {
					n, err := io.WriteString(w, "0123456789"[at:at+tt.sizes[i]])
					at += n
					switch {
					case errors.Is(err, http.ErrContentLength):
						got = append(got, fmt.Sprint(n, " length"))
					case errors.Is(err, http.ErrBodyNotAllowed):
						got = append(got, fmt.Sprint(n, " body"))
					default:
						got = append(got, fmt.Sprint(n, " ", err))
					}
				}
				results <- strings.Join(got, ", ")
			})})
			c := ts.Dial()
			c.Send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
			if got := servertest.Await(t, results, "the handler"); got != tt.want {
				t.Errorf("%s: writes gave %s, want %s", tt.why, got, tt.want)
			}
			c.Head()
			body, fate, _ := strings.Cut(tt.wire, " ")
			c.Want(body)
			if fate == "closed" {
				c.Ended()
				continue
			}
			c.Send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
			servertest.Await(t, results, "the handler again")
			c.Head()
			c.Want(body)
		}
	})
}

func TestWriteHeaderComplaints(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/twice":
				w.WriteHeader(200)
				w.WriteHeader(404)
			case "/late":
				put(w, "a")
				w.WriteHeader(404)
			case "/length":
				w.Header().Set("Content-Length", "many")
				put(w, "a")
			case "/coding":
				w.Header().Set("Content-Length", "1")
				w.Header().Set("Transfer-Encoding", "chunked")
				put(w, "a")
			case "/quiet":
				w.WriteHeader(103)
				w.WriteHeader(200)
				put(w, "a")
			}
		})})
		for _, tt := range []struct{ path, line string }{
			{"/quiet", ""},
			{"/twice", "http: superfluous response.WriteHeader call from github.com/chert-http/chert/test/behave.TestWriteHeaderComplaints.func1.1 (write_test.go:"},
			{"/late", "http: superfluous response.WriteHeader call from github.com/chert-http/chert/test/behave.TestWriteHeaderComplaints.func1.1 (write_test.go:"},
			{"/length", `http: invalid Content-Length of "many"`},
			{"/coding", `http: WriteHeader called with both Transfer-Encoding of "chunked" and a Content-Length of 1`},
		} {
			before := ts.Log.String()
			ts.Exchange("GET "+tt.path+" HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", false)
			got := strings.TrimPrefix(ts.Log.String(), before)
			if !strings.HasPrefix(got, tt.line) || tt.line == "" && got != "" || strings.Count(got, "\n") > 1 {
				t.Errorf("%s logged %q, want %q", tt.path, got, tt.line)
			}
		}
	})
}

func TestWriteHeaderInvalidCode(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		for _, code := range []int{-1, 0, 99, 1000} {
			got := make(chan any, 1)
			ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
				defer func() {
					got <- recover()
					w.WriteHeader(204)
				}()
				w.WriteHeader(code)
			})})
			// The response is usable after the panic: no lock is held.
			if res, _ := ts.Dial().Get("/"); res.StatusCode != 204 {
				t.Errorf("%d: %v", code, res)
			}
			if p := servertest.Await(t, got, "the panic"); fmt.Sprint(p) != fmt.Sprintf("invalid WriteHeader code %d", code) {
				t.Errorf("%d: panic with %v", code, p)
			}
		}
	})
}

func TestDate(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) { put(w, "a") })})
		before := time.Now().Truncate(time.Second)
		res, _ := ts.Dial().Get("/")
		d, err := http.ParseTime(res.Header.Get("Date"))
		if err != nil || len(res.Header["Date"]) != 1 || d.Before(before) || d.After(time.Now()) {
			t.Errorf("Date is %q (%v)", res.Header["Date"], err)
		}
	})
}

// The largest body that gets a length by itself is the one that is buffered.
func TestLengthOrChunks(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			var n, piece int
			fmt.Sscanf(r.URL.Path, "/%d/%d", &n, &piece)
			for p := servertest.Pattern(n); len(p) > 0; p = p[min(piece, len(p)):] {
				w.Write(p[:min(piece, len(p))])
			}
		})})
		c := ts.Dial()
		for _, n := range []int{1, 2047, 2048, 2049, 4095, 4096, 4097, 65536} {
			for _, piece := range []int{n, 1024, 1000, 1} {
				res, body := c.Get(fmt.Sprintf("/%d/%d", n, piece))
				if body != string(servertest.Pattern(n)) {
					t.Fatalf("%d bytes in pieces of %d: body is %s", n, piece, servertest.Brief(body))
				}
				want := int64(n)
				if n > 2048 {
					want = -1
				}
				if res.ContentLength != want {
					t.Errorf("%d bytes in pieces of %d: length %d, want %d", n, piece, res.ContentLength, want)
				}
			}
		}
	})
}

// The client sees what was flushed while the handler still runs.
func TestFlushStreams(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		step := make(chan struct{})
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/length" {
				w.Header().Set("Content-Length", "3")
			}
			rc := http.NewResponseController(w)
			for i := range 3 {
				if n, err := w.Write([]byte{byte('a' + i)}); n != 1 || err != nil {
					t.Error(n, err)
				}
				if err := rc.Flush(); err != nil {
					t.Error(err)
				}
				<-step
			}
		})})
		c := ts.Dial()
		for _, tt := range []struct {
			path, version string
			pieces        []string
			end           string
		}{
			{"/", "1.1", []string{"1\r\na\r\n", "1\r\nb\r\n", "1\r\nc\r\n"}, "0\r\n\r\n"},
			{"/length", "1.1", []string{"a", "b", "c"}, ""},
			{"/", "1.0", []string{"a", "b", "c"}, ""},
		} {
			c.Send("GET " + tt.path + " HTTP/" + tt.version + "\r\nHost: h\r\n\r\n")
			c.Head()
			for _, p := range tt.pieces {
				c.Want(p)
				step <- struct{}{}
			}
			c.Want(tt.end)
		}
		c.Ended()
	})
}

// 1xx must not be sent to a client that does not support it (RFC 9110 section
// 15.2); net/http sends it.
func TestNoInformationalToHTTP10(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(103)
			put(w, "a")
		})})
		if got := ts.Exchange("GET / HTTP/1.0\r\n\r\n", false); !strings.HasPrefix(got, "HTTP/1.0 200 OK\r\n") {
			t.Errorf("got %q", got)
		}
	})
}

func TestLargeBody(t *testing.T) {
	t.Parallel()
	const size = 8 << 20
	content := servertest.Pattern(size)
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Has("length") {
				w.Header().Set("Content-Length", fmt.Sprint(size))
			}
			piece := size
			if r.URL.Query().Has("pieces") {
				piece = 100_001
			}
			for p := content; len(p) > 0; {
				n, err := w.Write(p[:min(piece, len(p))])
				if err != nil || n != min(piece, len(p)) {
					t.Errorf("Write gave %d, %v", n, err)
					return
				}
				p = p[n:]
			}
		})})
		c := ts.Dial()
		for _, path := range []string{"/", "/?length", "/?pieces", "/?pieces&length"} {
			if res, body := c.Get(path); body != string(content) {
				t.Errorf("%s: got %v, %s", path, res, servertest.Brief(body))
			}
		}
	})
}

// A key without values suppresses Content-Length.
func TestNoContentLength(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			w.Header()["Content-Length"] = nil
			if r.URL.Path == "/empty" {
				w.Header()["Content-Length"] = []string{}
			}
			w.Header()["Content-Type"] = nil
			switch r.URL.Path {
			case "/":
				put(w, "body")
			case "/204":
				w.WriteHeader(204)
			}
		})})
		const ok, chunked = "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		for _, tt := range []struct {
			method, path, version, lines string
			want                         string
			kept                         bool
		}{
			{"GET", "/", "1.1", "", chunked + "4\r\nbody\r\n0\r\n\r\n", true},
			{"GET", "/nothing", "1.1", "", chunked + "0\r\n\r\n", true},
			{"GET", "/empty", "1.1", "", chunked + "0\r\n\r\n", true},
			{"GET", "/204", "1.1", "", "HTTP/1.1 204 No Content\r\n\r\n", true},
			{"HEAD", "/", "1.1", "", ok + "\r\n", true},
			{"HEAD", "/nothing", "1.1", "", ok + "\r\n", true},
			{"GET", "/", "1.1", "Connection: close\r\n", ok + "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n", false},
			{"GET", "/", "1.0", "", "HTTP/1.0 200 OK\r\n\r\nbody", false},
			{"GET", "/", "1.0", "Connection: keep-alive\r\n", "HTTP/1.0 200 OK\r\n\r\nbody", false},
			{"HEAD", "/", "1.0", "Connection: keep-alive\r\n", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n", true},
		} {
			c := ts.Dial()
			request := tt.method + " " + tt.path + " HTTP/" + tt.version + "\r\nHost: h\r\n" + tt.lines + "\r\n"
			c.Send(request + request)
			c.CloseWrite()
			want := tt.want
			if tt.kept {
				want += tt.want
			}
			if got := servertest.Undated(c.UpToEnd()); got != want {
				t.Errorf("%q:\ngot  %q\nwant %q", request, got, want)
			}
		}
	})
}

// A handler that writes and flushes until an error reports that its client has
// left does end, however little it writes and whichever error it checks.
func TestFlushUntilError(t *testing.T) {
	t.Parallel()
	for how, leave := range leavings {
		if how == "half-close" {
			continue // such a client can still receive
		}
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			engines.Alike(t, func(t *testing.T, e chert.Engine) {
				ended := make(chan error, 1)
				ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/length" {
						w.Header().Set("Content-Length", "1000000000")
					}
					var err error
					for deadline := time.Now().Add(servertest.Patience); err == nil && time.Now().Before(deadline); {
						if r.URL.Path == "/string" {
							_, err = io.WriteString(w, "a line\n")
						} else {
							_, err = w.Write([]byte("a line\n"))
						}
						// Flush returns no error.
						w.(http.Flusher).Flush()
					}
					// And it stays so.
					if _, again := w.Write([]byte("more")); err != nil && again == nil {
						t.Error("a later Write gave no error")
					}
					ended <- err
				})})
				for _, path := range []string{"/", "/string", "/length"} {
					for _, version := range []string{"1.0", "1.1"} {
						c := ts.Dial()
						c.Send("GET " + path + " HTTP/" + version + "\r\nHost: h\r\n\r\n")
						c.Head()
						leave(c)
						if err := servertest.Await(t, ended, "the handler"); err == nil {
							t.Errorf("%s: no error", path)
						}
					}
				}
			})
		})
	}
}
