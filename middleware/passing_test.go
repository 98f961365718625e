package middleware

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
)

// everything has all middleware of this package, each by itself and in a chain.
func everything(t testing.TB) map[string]func(http.Handler) http.Handler {
	l := NewAccessLog(&AccessLogOptions{Output: io.Discard})
	t.Cleanup(func() { l.Close() })
	all := []struct {
		name string
		mw   func(http.Handler) http.Handler
	}{
		{"realip", Must(RealIP(&RealIPOptions{Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}))},
		{"accesslog", l.Wrap}, {"refusals", Problems(nil)}, {"recover", Recover(nil)}, {"requestid", RequestID(nil)}, {"security", SecurityHeaders(nil)},
		{"cors", Must(CORS(&CORSOptions{Origins: []string{"https://a.example"}, Credentials: true}))}, {"inflight", InFlight(&InFlightOptions{Max: 100})},
		{"timeout", Timeout(&TimeoutOptions{Limit: time.Hour})}, {"bearer", Must(Bearer(&BearerOptions{Tokens: map[string]string{"ann": "token"}}))},
		{"bodylimit", BodyLimit(&BodyLimitOptions{MaxSize: 1 << 20})}, {"compress", Must(Compress(nil))}, {"etag", ETag(nil)},
		{"errorpages", Must(ErrorPages(&ErrorPagesOptions{Pages: map[int]*ErrorPage{5: {Body: []byte("page")}}}))}, {"ownerrors", OwnErrors},
		{"bandwidth", Bandwidth(&BandwidthOptions{Rate: 400_000})}, {"bodytimeout", BodyTimeout(nil)}, {"responsetimeout", ResponseTimeout(nil)},
	}
	m := map[string]func(http.Handler) http.Handler{}
	var chain []func(http.Handler) http.Handler
	for _, a := range all {
		m[a.name] = a.mw
		chain = append(chain, a.mw)
	}
	m["all"] = func(h http.Handler) http.Handler { return Chain(h, chain...) }
	return m
}

// get sends a token, and does not decompress the response.
func get(t *testing.T, c *http.Client, url string, fields ...string) (*http.Response, string, error) {
	t.Helper()
	req, err := http.NewRequest("GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer token")
	req.Header.Set("Accept-Encoding", "identity")
	for i := 0; i < len(fields); i += 2 {
		req.Header.Set(fields[i], fields[i+1])
	}
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res, string(b), err
}

// A response writer inside of middleware can do what the server's can.
func TestPassing(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	content := strings.Repeat("0123456789", 10_000)
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	seen := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/flush", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		f, ok := w.(http.Flusher)
		if !ok {
			t.Error("no Flusher")
		}
		io.WriteString(w, "one\n")
		f.Flush()
		<-seen
		fmt.Fprint(w, "two\n")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		<-seen
	})
	mux.HandleFunc("/hijack", func(w http.ResponseWriter, r *http.Request) {
		var c net.Conn
		var rw *bufio.ReadWriter
		var err error
		if r.URL.RawQuery == "begun" {
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(http.StatusOK)
		}
		if r.URL.RawQuery == "controller" {
			c, rw, err = http.NewResponseController(w).Hijack()
		} else {
			c, rw, err = w.(http.Hijacker).Hijack()
		}
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		rw.WriteString("mine")
		rw.Flush()
	})
	mux.HandleFunc("/controller", func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		for what, err := range map[string]error{
			"read deadline": c.SetReadDeadline(time.Now().Add(time.Minute)), "write deadline": c.SetWriteDeadline(time.Now().Add(time.Minute)), "full duplex": c.EnableFullDuplex(),
		} {
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		//lint:ignore SA1019 gin asks for it
		w.(http.CloseNotifier).CloseNotify()
		io.WriteString(w, "ok")
	})
	mux.HandleFunc("/readfrom", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		if _, err := w.(io.ReaderFrom).ReadFrom(io.NewSectionReader(file, 0, int64(len(content)))); err != nil {
			t.Error(err)
		}
	})
	mux.HandleFunc("/sendfile", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		if r.URL.RawQuery == "chert" {
			if _, ok := w.(wire.FileSender); !ok {
				t.Errorf("a %T is no FileSender", w)
			}
		} else if _, ok := w.(wire.FileSender); ok {
			t.Errorf("a %T says it is a FileSender, and the server's is none", w)
		}
		if err := wire.SendFile(w, direct.File{File: file, Offset: 10, Len: 50_000}); err != nil {
			t.Error(err)
		}
	})
	mux.HandleFunc("/servefile", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, name) })
	mux.HandleFunc("/early", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</a.css>")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusTeapot)
		io.WriteString(w, "tea")
	})
	mux.HandleFunc("/trailer", func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Trailer", "X-Sum")
		io.WriteString(w, strings.Repeat("x", 100))
		w.(http.Flusher).Flush()
		h.Set("X-Sum", "100")
	})
	mux.HandleFunc("/upload", func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n, err)
	})
	for name, mw := range everything(t) {
		t.Run(name, func(t *testing.T) {
			h := mw(mux)
			servers(t, h, func(t *testing.T, url string, c *http.Client) {
				passing(t, url, c, content, seen)
			})
		})
	}
}

func passing(t *testing.T, url string, c *http.Client, content string, seen chan struct{}) {
	engine := ""
	if strings.HasSuffix(t.Name(), "/chert") {
		engine = "?chert"
	}
	flushed, _ := dial(t, url, "GET /flush HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer token\r\n\r\n")
	r := bufio.NewReader(flushed)
	for _, want := range []string{"one\n", "two\n"} {
		for { // the head and the framing come too
			line, err := r.ReadString('\n')
			if err != nil {
				t.Fatalf("%q: %v", want, err)
			}
			if line == want {
				break
			}
		}
		seen <- struct{}{}
	}
	flushed.Close()
	for _, query := range []string{"", "?controller"} {
		conn, all := dial(t, url, "GET /hijack"+query+" HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer token\r\n\r\n")
		if got := all(); got != "mine" {
			t.Errorf("hijack: got %q", got)
		}
		conn.Close()
	}
	conn, all := dial(t, url, "GET /hijack?begun HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer token\r\nAccept-Encoding: gzip\r\n\r\n")
	head, rest, _ := strings.Cut(all(), "\r\n\r\n")
	if conn.Close(); !strings.HasPrefix(head, "HTTP/1.1 200 ") || strings.Contains(head, "Content-Encoding") || rest != "mine" {
		t.Errorf("hijack after the head: got %q, %q", head, rest)
	}
	for _, tt := range []struct {
		path   string
		status int
		want   string
	}{
		{"/controller", 200, "ok"}, {"/readfrom", 200, content}, {"/sendfile" + engine, 200, content[10:50_010]}, {"/servefile", 200, content},
		{"/early", 418, "tea"}, {"/trailer", 200, strings.Repeat("x", 100)}, {"/nowhere", 404, "404 page not found\n"},
	} {
		res, got, err := get(t, c, url+tt.path)
		if res.StatusCode != tt.status || got != tt.want || err != nil {
			t.Errorf("%s: got %d, %d bytes %.50q, %v", tt.path, res.StatusCode, len(got), got, err)
		}
		if tt.path == "/trailer" && res.Trailer.Get("X-Sum") != "100" {
			t.Errorf("trailer: got %v", res.Trailer)
		}
	}
	if res, got, err := get(t, c, url+"/servefile", "Range", "bytes=5-9"); res.StatusCode != 206 || got != content[5:10] || err != nil {
		t.Errorf("range: got %d %.50q, %v", res.StatusCode, got, err)
	}
	req, _ := http.NewRequest("POST", url+"/upload", io.LimitReader(zeros{}, 300_000))
	req.Header.Set("Authorization", "Bearer token")
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if b, err := io.ReadAll(res.Body); string(b) != "300000 <nil>" && string(b) != "300000<nil>" || err != nil {
		t.Errorf("upload: got %q, %v", b, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// Of several statuses the first counts, also while the head is held back.
func TestPassingFirstStatus(t *testing.T) {
	t.Parallel()
	for name, mw := range everything(t) {
		for _, first := range []int{200, 201} {
			a := plain(mw(hf(func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(first)
				io.WriteString(w, "ok")
				w.WriteHeader(http.StatusEarlyHints)
				w.WriteHeader(http.StatusInternalServerError)
			})), request("GET", "/", "", "Authorization", "Bearer token"))
			if a.Status != first || a.Body != "ok" {
				t.Errorf("%s: %d: got %v", name, first, a)
			}
		}
	}
}

// What a handler changes of the header after it has begun the response is for trailers only, also
// while the head is held back.
func TestPassingLateFields(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	for path, f := range map[string]func(w http.ResponseWriter){
		"/small":  func(w http.ResponseWriter) { io.WriteString(w, "ok") },
		"/large":  func(w http.ResponseWriter) { io.WriteString(w, page) },
		"/status": func(w http.ResponseWriter) { w.WriteHeader(200) },
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			h := w.Header()
			h.Set("Content-Type", "text/plain")
			h.Set("Trailer", "X-Sum")
			h.Set("X-Set", "1")
			h.Set("X-Removed", "1")
			f(w)
			h.Set("X-Set", "2")
			h.Del("X-Removed")
			h.Set("X-Late", "2")
			h.Set("Content-Encoding", "br")
			h.Set("X-Sum", "3")
			h.Set(http.TrailerPrefix+"X-Other", "4")
			io.WriteString(w, page)
		})
	}
	const want = "[1] [1] [] [] map[X-Other:[4] X-Sum:[3]]"
	for name, mw := range everything(t) {
		servers(t, mw(mux), func(t *testing.T, url string, c *http.Client) {
			for _, path := range []string{"/small", "/large", "/status"} {
				for _, accept := range []string{"identity", "gzip"} {
					res, _, err := get(t, c, url+path, "Accept-Encoding", accept)
					h, coding := res.Header, res.Header.Get("Content-Encoding")
					got := fmt.Sprint(h["X-Set"], h["X-Removed"], h["X-Late"], h["X-Sum"], res.Trailer)
					if got != want || coding != "" && coding != accept || err != nil {
						t.Errorf("%s, %s, %s: got %s, Content-Encoding %q, %v", name, path, accept, got, coding, err)
					}
				}
			}
		})
	}
}

// A writer without optional methods does not get those that callers rely on.
func TestPassingNothing(t *testing.T) {
	for name, mw := range everything(t) {
		if name == "bearer" || name == "all" {
			continue
		}
		a := plain(mw(hf(func(w http.ResponseWriter, r *http.Request) {
			if _, _, err := http.NewResponseController(w).Hijack(); !errors.Is(err, http.ErrNotSupported) {
				t.Errorf("%s: Hijack: %v", name, err)
			}
			if err := http.NewResponseController(w).SetReadDeadline(time.Now()); !errors.Is(err, http.ErrNotSupported) {
				t.Errorf("%s: SetReadDeadline: %v", name, err)
			}
			if _, ok := w.(wire.FileSender); ok {
				t.Errorf("%s: a FileSender", name)
			}
			io.WriteString(w, "ok")
		})), request("GET", "/", ""))
		if a.Status != 200 || a.Body != "ok" {
			t.Errorf("%s: got %v", name, a)
		}
	}
}

// A server removes the files of a form that its own request has: one that is parsed by a
// handler inside is seen outside.
func TestFormPassesOut(t *testing.T) {
	t.Parallel()
	all := everything(t)
	all["rewrite"] = Must(Rewrite(&RewriteOptions{Rules: []RewriteRule{{"^/a$", "/b"}}}))
	const form = "--b\r\nContent-Disposition: form-data; name=x\r\n\r\n1\r\n--b--\r\n"
	for name, mw := range all {
		var inside, outside *multipart.Form
		h := mw(hf(func(w http.ResponseWriter, r *http.Request) {
			if err := r.ParseMultipartForm(100); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			inside = r.MultipartForm
		}))
		servers(t, hf(func(w http.ResponseWriter, r *http.Request) {
			inside, outside = nil, nil
			h.ServeHTTP(w, r)
			outside = r.MultipartForm
		}), func(t *testing.T, url string, c *http.Client) {
			req, err := http.NewRequest("POST", url+"/a", strings.NewReader(form))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer token")
			req.Header.Set("Content-Type", "multipart/form-data; boundary=b")
			res, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if inside == nil || inside != outside {
				t.Errorf("%s: the form is %v inside, %v outside", name, inside, outside)
			}
		})
	}
}

// Around a direct handler all of it is direct, and on chert the response of the
// chain is the same as on net/http.
func TestPassingDirect(t *testing.T) {
	for name, mw := range everything(t) {
		h := mw(hello)
		a, ok := directly(t, h, request("GET", "/", "", "Authorization", "Bearer token"))
		if !ok || a.Status != 200 || a.Body != "hello" {
			t.Errorf("%s: %v, %v", name, ok, a)
		}
		if _, is := mw(plainHello).(direct.Handler); is {
			t.Errorf("%s: direct around what is not", name)
		}
		var fields []string
		servers(t, h, func(t *testing.T, url string, c *http.Client) {
			res, got, err := get(t, c, url+"/")
			if res.StatusCode != 200 || got != "hello" || err != nil {
				t.Errorf("%s: got %d %q, %v", name, res.StatusCode, got, err)
			}
			res.Header.Del("Date")
			res.Header.Del("X-Request-Id")
			fields = append(fields, fmt.Sprint(res.Header))
		})
		if fields[0] != fields[1] {
			t.Errorf("%s:\nnet/http %s\nchert    %s", name, fields[0], fields[1])
		}
	}
}
