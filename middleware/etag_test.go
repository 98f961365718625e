package middleware

import (
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/filter"
)

func TestETag(t *testing.T) {
	tag := tagOf([]byte("hello"))
	const old = "Sat, 01 Jan 2000 00:00:00 GMT"
	for _, tt := range []struct {
		name, method string
		request      []string
		status       int
		fields       []string
		body         string
		want         int
		tag          string
		wantBody     string
	}{
		{"given", "GET", nil, 200, nil, "hello", 200, tag, "hello"},
		{"known", "GET", []string{"If-None-Match", tag}, 200, nil, "hello", 304, tag, ""},
		{"known, weak", "GET", []string{"If-None-Match", "W/" + tag}, 200, nil, "hello", 304, tag, ""},
		{"another", "GET", []string{"If-None-Match", `"x"`}, 200, nil, "hello", 200, tag, "hello"},
		{"one of a list", "GET", []string{"If-None-Match", `"x", ` + tag}, 200, nil, "hello", 304, tag, ""},
		{"If-Match", "GET", []string{"If-Match", tag}, 200, nil, "hello", 200, tag, "hello"},
		{"If-Match fails", "GET", []string{"If-Match", `"x"`}, 200, nil, "hello", 412, "", "Precondition Failed\n"},
		{"modified", "GET", []string{"If-Modified-Since", old}, 200, []string{"Last-Modified", old}, "hello", 304, tag, ""},
		{"empty", "GET", nil, 200, nil, "", 200, tagOf(nil), ""},
		{"HEAD", "HEAD", []string{"If-None-Match", tag}, 200, nil, "hello", 304, tag, ""},
		{"POST", "POST", []string{"If-None-Match", tag}, 200, nil, "hello", 200, "", "hello"},
		{"404", "GET", []string{"If-None-Match", tag}, 404, nil, "hello", 404, "", "hello"},
		{"own tag", "GET", []string{"If-None-Match", tag}, 200, []string{"Etag", `"own"`}, "hello", 200, `"own"`, "hello"},
		{"no-store", "GET", []string{"If-None-Match", tag}, 200, []string{"Cache-Control", "no-store"}, "hello", 200, "", "hello"},
		{"no-store on a line of its own", "GET", []string{"If-None-Match", tag}, 200, []string{"Cache-Control", "private", "Cache-Control", "no-store"}, "hello", 200, "", "hello"},
		{"as large as may be", "GET", []string{"If-None-Match", tagOf([]byte("helloworld"))}, 200, nil, "helloworld", 304, tagOf([]byte("helloworld")), ""},
		{"too large", "GET", []string{"If-None-Match", tagOf([]byte("helloworld!"))}, 200, nil, "helloworld!", 200, "", "helloworld!"},
	} {
		h := http.Header{"Content-Type": {"text/plain"}}
		for i := 0; i < len(tt.fields); i += 2 {
			h.Add(tt.fields[i], tt.fields[i+1])
		}
		written := direct.HandlerFunc(func(x *direct.Exchange) {
			x.SetStatus(tt.status)
			for name, values := range h {
				for _, v := range values {
					x.AddHeader(name, v)
				}
			}
			x.WriteString(tt.body)
		})
		pieces := directly2(hf(func(w http.ResponseWriter, r *http.Request) {
			maps.Copy(w.Header(), h.Clone())
			w.WriteHeader(tt.status)
			for i := range tt.body {
				io.WriteString(w, tt.body[i:i+1])
			}
		}))
		mw := ETag(&ETagOptions{MaxSize: 10})
		check := func(t *testing.T, do func(r *http.Request) answer) {
			a := do(request(tt.method, "/", "", tt.request...))
			if tt.method == "HEAD" && a.Status == 200 {
				a.Body = ""
			}
			if a.Status != tt.want || a.Header.Get("Etag") != tt.tag || a.Body != tt.wantBody || a.Status == 304 && a.Header.Get("Content-Type") != "" {
				t.Errorf("%s: got %v", tt.name, a)
			}
		}
		for _, h := range []direct.Handler{written, direct.NewResponse(tt.status, h, []byte(tt.body))} {
			ways(t, mw, h, func(t *testing.T, do func(r *http.Request) answer) {
				for range 2 {
					if tt.method != "HEAD" {
						check(t, do)
					} else if a := do(request(tt.method, "/", "", tt.request...)); a.Status != 200 || a.Header.Get("Etag") != "" {
						t.Errorf("%s: got %v", tt.name, a)
					}
				}
			})
		}
		check(t, func(r *http.Request) answer { return plain(mw(pieces), r) })
	}
}

func TestETagStream(t *testing.T) {
	a := plain(ETag(nil)(hf(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "a")
		w.(http.Flusher).Flush()
		io.WriteString(w, "b")
	})), request("GET", "/", ""))
	if a.Body != "ab" || a.Header.Get("Etag") != "" {
		t.Errorf("got %v", a)
	}
	// HEAD without a body: its tag is not known.
	a = plain(ETag(nil)(hf(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "5")
		w.WriteHeader(200)
	})), request("HEAD", "/", ""))
	if a.Header.Get("Etag") != "" || a.Header.Get("Content-Length") != "5" {
		t.Errorf("got %v", a)
	}
}

// A 304 has none of the fields that describe a body, whether middleware or the handler has set them.
func TestETagNotModified(t *testing.T) {
	kept := filter.New(func(c *filter.Call) filter.Outcome {
		c.SetHeader("Content-Type", "text/kept")
		c.SetHeader("Content-Encoding", "br")
		return filter.Pass
	})
	for _, h := range []direct.Handler{hello, direct.NewResponse(200, nil, []byte("hello"))} {
		for _, mw := range []func(http.Handler) http.Handler{
			func(h http.Handler) http.Handler { return kept(ETag(nil)(h)) },
			func(h http.Handler) http.Handler { return ETag(nil)(kept(h)) },
		} {
			ways(t, mw, h, func(t *testing.T, do func(r *http.Request) answer) {
				a := do(request("GET", "/", "", "If-None-Match", "*"))
				if len(a.Header) != 1 || a.Header.Get("Etag") == "" || a.Status != 304 {
					t.Errorf("got %v", a)
				}
			})
		}
	}
}

// Inside of Compress the client gets a weak tag and may send it back.
func TestETagCompress(t *testing.T) {
	for name, h := range map[string]http.Handler{
		"written": direct.HandlerFunc(func(x *direct.Exchange) { x.SetHeader("Content-Type", "text/plain"); x.WriteString(page) }),
		"ready":   direct.NewResponse(200, http.Header{"Content-Type": {"text/plain"}}, []byte(page)),
	} {
		mw := func(h http.Handler) http.Handler { return Chain(h, Must(Compress(nil)), ETag(nil)) }
		ways(t, mw, h.(direct.Handler), func(t *testing.T, do func(r *http.Request) answer) {
			a := do(request("GET", "/", "", "Accept-Encoding", "gzip"))
			tag := a.Header.Get("Etag")
			if !strings.HasPrefix(tag, `W/"`) || a.Header.Get("Content-Encoding") != "gzip" {
				t.Errorf("%s: got %v", name, a.Header)
			}
			a = do(request("GET", "/", "", "Accept-Encoding", "gzip", "If-None-Match", tag))
			if a.Status != 304 || a.Header.Get("Etag") != tag || a.Header.Get("Vary") != "Accept-Encoding" || a.Header.Get("Content-Encoding") != "" {
				t.Errorf("%s: got %v", name, a)
			}
		})
	}
}

func TestETagSizes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		o    *ETagOptions
		size int
		want bool
	}{{nil, 64 << 10, true}, {nil, 64<<10 + 1, false}, {&ETagOptions{MaxSize: -1}, 1 << 20, true}} {
		body := strings.Repeat("x", tt.size)
		ways(t, ETag(tt.o), direct.HandlerFunc(func(x *direct.Exchange) { x.WriteString(body) }), func(t *testing.T, do func(r *http.Request) answer) {
			if a := do(request("GET", "/", "")); (a.Header.Get("Etag") != "") != tt.want || len(a.Body) != tt.size {
				t.Errorf("%+v: %d bytes: tag %q", tt.o, tt.size, a.Header.Get("Etag"))
			}
		})
	}
}
