package middleware

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/klauspost/compress/zstd"
)

func decode(t *testing.T, a answer) string {
	t.Helper()
	var r io.Reader = strings.NewReader(a.Body)
	var err error
	switch a.Header.Get("Content-Encoding") {
	case "gzip":
		r, err = gzip.NewReader(r)
	case "br":
		r = brotli.NewReader(r)
	case "zstd":
		r, err = zstd.NewReader(r, zstd.WithDecoderConcurrency(1))
	}
	if err != nil {
		t.Errorf("%s: %v", a.Header.Get("Content-Encoding"), err)
		return ""
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Errorf("%s: %v", a.Header.Get("Content-Encoding"), err)
	}
	return string(b)
}

var page = strings.Repeat("the same words again ", 200)

func TestCompress(t *testing.T) {
	text := []string{"Content-Type", "text/plain"}
	for _, tt := range []struct {
		name, accept   string
		status         int
		fields         []string
		body           string
		coding, vary   string
		etag           string
		length, ranges bool
	}{
		{"gzip", "gzip", 200, text, page, "gzip", "Accept-Encoding", "", false, false},
		{"br", "br", 200, text, page, "br", "Accept-Encoding", "", false, false},
		{"zstd", "zstd", 200, text, page, "zstd", "Accept-Encoding", "", false, false},
		{"a browser", "gzip, deflate, br, zstd", 200, text, page, "zstd", "Accept-Encoding", "", false, false},
		{"the client's order", "gzip;q=1, br;q=0.5, zstd;q=0.1", 200, text, page, "gzip", "Accept-Encoding", "", false, false},
		{"guessed type", "gzip", 200, nil, page, "gzip", "Accept-Encoding", "", false, false},
		{"guessed type, not text", "gzip", 200, nil, "\x89PNG\r\n\x1a\n" + page, "", "", "", false, false},
		{"none asked for", "", 200, text, page, "", "Accept-Encoding", "", false, false},
		{"unknown", "deflate", 200, text, page, "", "Accept-Encoding", "", false, false},
		{"nothing acceptable", "*;q=0", 200, text, page, "", "Accept-Encoding", "", false, false},
		{"small", "gzip", 200, text, page[:1023], "", "", "", false, false},
		{"large enough", "gzip", 200, text, page[:1024], "gzip", "Accept-Encoding", "", false, false},
		{"image", "gzip", 200, []string{"Content-Type", "image/png"}, page, "", "", "", false, false},
		{"coded already", "gzip", 200, []string{"Content-Type", "text/plain", "Content-Encoding", "br"}, page, "br", "", "", false, false},
		{"coded as odd", "gzip", 200, []string{"Content-Type", "text/plain", "Content-Encoding", "odd"}, page, "odd", "", "", false, false},
		{"no-transform", "gzip", 200, []string{"Content-Type", "text/plain", "Cache-Control", "public, No-Transform"}, page, "", "", "", false, false},
		{"no-transform on a line of its own", "gzip", 200, []string{"Content-Type", "text/plain", "Cache-Control", "public", "Cache-Control", "no-transform"}, page, "", "", "", false, false},
		{"a part", "gzip", 206, []string{"Content-Type", "text/plain", "Content-Range", "bytes 0-4199/9999"}, page, "", "", "", false, false},
		{"a part without its field", "gzip", 206, text, page, "", "", "", false, false},
		{"204", "gzip", 204, nil, "", "", "", "", false, false},
		{"304", "gzip", 304, []string{"Etag", `"a"`}, "", "", "Accept-Encoding", `W/"a"`, false, false},
		{"304 uncoded", "", 304, []string{"Etag", `"a"`}, "", "", "Accept-Encoding", `"a"`, false, false},
		{"404", "gzip", 404, text, page, "gzip", "Accept-Encoding", "", false, false},
		{"strong tag", "gzip", 200, []string{"Content-Type", "text/plain", "Etag", `"a"`, "Accept-Ranges", "bytes"}, page, "gzip", "Accept-Encoding", `W/"a"`, false, false},
		{"strong tag, uncoded", "", 200, []string{"Content-Type", "text/plain", "Etag", `"a"`, "Accept-Ranges", "bytes"}, page, "", "Accept-Encoding", `"a"`, false, true},
		{"weak tag", "gzip", 200, []string{"Content-Type", "text/plain", "Etag", `W/"a"`}, page, "gzip", "Accept-Encoding", `W/"a"`, false, false},
		{"Vary", "gzip", 200, []string{"Content-Type", "text/plain", "Vary", "Origin"}, page, "gzip", "Origin,Accept-Encoding", "", false, false},
		{"Vary has it", "gzip", 200, []string{"Content-Type", "text/plain", "Vary", "origin, accept-encoding"}, page, "gzip", "origin, accept-encoding", "", false, false},
		{"Vary all", "gzip", 200, []string{"Content-Type", "text/plain", "Vary", "*"}, page, "gzip", "*", "", false, false},
		{"JSON", "gzip", 200, []string{"Content-Type", "application/json"}, page, "gzip", "Accept-Encoding", "", false, false},
	} {
		set := func(x *direct.Exchange) {
			x.SetStatus(tt.status)
			for i := 0; i < len(tt.fields); i += 2 {
				x.AddHeader(tt.fields[i], tt.fields[i+1])
			}
			x.WriteString(tt.body)
		}
		h := http.Header{}
		for i := 0; i < len(tt.fields); i += 2 {
			h.Add(tt.fields[i], tt.fields[i+1])
		}
		pieces := directly2(hf(func(w http.ResponseWriter, r *http.Request) {
			for i := 0; i < len(tt.fields); i += 2 {
				w.Header().Add(tt.fields[i], tt.fields[i+1])
			}
			w.WriteHeader(tt.status)
			for body := tt.body; body != ""; {
				n := min(100, len(body))
				io.WriteString(w, body[:n])
				body = body[n:]
			}
		}))
		for name, handler := range map[string]direct.Handler{"written": direct.HandlerFunc(set), "ready": direct.NewResponse(tt.status, h, []byte(tt.body)), "pieces": pieces} {
			t.Run(tt.name+", "+name, func(t *testing.T) {
				check := func(t *testing.T, do func(r *http.Request) answer) {
					r := request("GET", "/", "")
					if tt.accept != "" {
						r.Header.Set("Accept-Encoding", tt.accept)
					}
					for range 2 { // what was derived is used again
						a := do(r)
						body := a.Body
						if tt.coding != "odd" && !(tt.coding == "br" && len(tt.fields) > 2) {
							body = decode(t, a)
						}
						if a.Status != tt.status || body != tt.body || a.Header.Get("Content-Encoding") != tt.coding || strings.Join(a.Header["Vary"], ",") != tt.vary ||
							a.Header.Get("Etag") != tt.etag && tt.etag != "" || (a.Header.Get("Accept-Ranges") != "") != tt.ranges {
							t.Errorf("got %d %v, %d bytes", a.Status, a.Header, len(a.Body))
						}
						if l := a.Header.Get("Content-Length"); l != "" && tt.status != 304 && l != fmt.Sprint(len(a.Body)) {
							t.Errorf("Content-Length %s of %d", l, len(a.Body))
						}
					}
				}
				if name == "pieces" {
					check(t, func(r *http.Request) answer { return plain(Must(Compress(nil))(pieces), r) })
					return
				}
				mw := Must(Compress(nil))
				ways(t, mw, handler, check)
			})
		}
	}
	mw, err := Compress(&CompressOptions{Codings: []string{"deflate"}})
	refused(t, mw, err, `middleware: Compress: Codings: "deflate" `)
}

// directly2 lends a plain handler the method that it does not need.
func directly2(h http.Handler) direct.Handler { return declines{h} }

// HEAD has the fields of GET and no body.
func TestCompressHEAD(t *testing.T) {
	for name, h := range map[string]http.Handler{
		"length": hf(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			w.Header().Set("Content-Length", fmt.Sprint(len(page)))
			if r.Method != "HEAD" {
				io.WriteString(w, page)
			}
		}),
		"written": hf(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, page) }),
	} {
		servers(t, Must(Compress(nil))(h), func(t *testing.T, url string, c *http.Client) {
			var got []string
			for _, method := range []string{"GET", "HEAD"} {
				req, _ := http.NewRequest(method, url, nil)
				req.Header.Set("Accept-Encoding", "gzip")
				res, err := c.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				b, err := io.ReadAll(res.Body)
				res.Body.Close()
				if err != nil || method == "HEAD" && len(b) > 0 {
					t.Errorf("%s: %q, %v", method, b, err)
				}
				got = append(got, fmt.Sprint(res.StatusCode, res.Header["Content-Encoding"], res.Header["Vary"], res.Header["Content-Type"]))
				if l := res.Header.Get("Content-Length"); l == fmt.Sprint(len(page)) {
					t.Errorf("%s, %s: Content-Length of what is not sent", name, method)
				}
			}
			if got[0] != got[1] {
				t.Errorf("%s: GET %s, HEAD %s", name, got[0], got[1])
			}
		})
	}
}

// Events arrive when they are flushed, and the stream ends correctly.
func TestCompressStream(t *testing.T) {
	next := make(chan struct{})
	h := Must(Compress(nil))(hf(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		c := http.NewResponseController(w)
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			if err := c.Flush(); err != nil {
				t.Error(err)
			}
			<-next // not before the client has seen it
		}
	}))
	servers(t, h, func(t *testing.T, url string, c *http.Client) {
		req, _ := http.NewRequest("GET", url, nil)
		req.Header.Set("Accept-Encoding", "gzip")
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.Header.Get("Content-Encoding") != "gzip" {
			t.Fatalf("got %v", res.Header)
		}
		z, err := gzip.NewReader(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		b := bufio.NewReader(z)
		for i := range 3 {
			if line, err := b.ReadString('\n'); line != fmt.Sprintf("data: %d\n", i) {
				t.Fatalf("%q, %v", line, err)
			}
			b.ReadString('\n')
			next <- struct{}{}
		}
		if rest, err := io.ReadAll(b); err != nil || len(rest) > 0 {
			t.Errorf("%q, %v", rest, err)
		}
	})
}

// A response that a panic cuts off does not look complete.
func TestCompressPanic(t *testing.T) {
	h := Must(Compress(nil))(hf(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, page)
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	servers(t, h, func(t *testing.T, url string, c *http.Client) {
		res, err := c.Get(url)
		if err != nil {
			return
		}
		defer res.Body.Close()
		if b, err := io.ReadAll(res.Body); err == nil {
			t.Errorf("%d bytes look whole", len(b))
		}
	})
}

// halved is content that cannot be read to its end.
type halved struct{ *strings.Reader }

func (f halved) Read(p []byte) (int, error) {
	if f.Len() <= len(page)/2 {
		return 0, io.ErrNoProgress
	}
	return f.Reader.Read(p[:min(len(p), 512)])
}

// A response that is shorter than its handler has announced does not look complete, nor does one that is longer.
func TestCompressShort(t *testing.T) {
	for name, write := range map[string]hf{
		"content": func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "a.txt", moment, halved{strings.NewReader(page)})
		},
		"flushed": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(page)))
			io.WriteString(w, page[1:])
			http.NewResponseController(w).Flush()
		},
		"long": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			w.Header().Set("Content-Length", fmt.Sprint(len(page)-1))
			if n, err := io.WriteString(w, page); n != 0 || err != http.ErrContentLength {
				t.Errorf("%d, %v", n, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			servers(t, Must(Compress(nil))(write), func(t *testing.T, url string, c *http.Client) {
				res, err := c.Get(url)
				if err != nil {
					return
				}
				defer res.Body.Close()
				if b, err := io.ReadAll(res.Body); err == nil {
					t.Errorf("%d bytes look whole", len(b))
				}
			})
		})
	}
}

// Nothing is not coded, also if the smallest response is.
func TestCompressEmpty(t *testing.T) {
	mw := Must(Compress(&CompressOptions{MinSize: -1}))
	for name, h := range map[string]http.Handler{
		"announced": hf(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			w.Header().Set("Content-Length", "0")
			w.WriteHeader(http.StatusOK)
		}),
		"written": hf(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			io.WriteString(w, "")
		}),
		"direct": direct.HandlerFunc(func(x *direct.Exchange) { x.SetHeader("Content-Type", "text/plain") }),
		"ready":  direct.NewResponse(200, http.Header{"Content-Type": {"text/plain"}}, nil),
	} {
		r := request("GET", "/", "", "Accept-Encoding", "gzip")
		answers := []answer{plain(mw(h), r)}
		if d, ok := mw(h).(direct.Handler); ok {
			a, _ := directly(t, d.(http.Handler), r)
			answers = append(answers, a)
		}
		for _, a := range answers {
			if a.Status != 200 || a.Body != "" || a.Header.Get("Content-Encoding") != "" {
				t.Errorf("%s: got %v", name, a)
			}
		}
	}
}

// A body that has become so short that the server could give it a Content-Length has its trailers all the same.
func TestCompressTrailers(t *testing.T) {
	servers(t, Must(Compress(nil))(hf(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		io.WriteString(w, page)
		w.Header().Set(http.TrailerPrefix+"X-Sum", "1")
	})), func(t *testing.T, url string, c *http.Client) {
		res, body, err := get(t, c, url, "Accept-Encoding", "gzip")
		if got := decode(t, answer{Header: res.Header, Body: body}); err != nil || got != page || len(body) >= 2<<10 || res.Trailer.Get("X-Sum") != "1" {
			t.Errorf("%v, %v, %d bytes, trailers %v", err, res.Header, len(body), res.Trailer)
		}
	})
}

// A digest is of the bytes that are sent.
func TestCompressDigests(t *testing.T) {
	ways(t, Must(Compress(nil)), handlerOf(func(x *direct.Exchange) {
		for _, name := range digests {
			x.SetHeader(name, "sha-256=:x=:")
		}
		x.SetHeader("Content-Type", "text/plain")
		x.WriteString(page)
	}), func(t *testing.T, do func(r *http.Request) answer) {
		for _, accept := range []string{"gzip", "identity"} {
			a := do(request("GET", "/", "", "Accept-Encoding", accept))
			for _, name := range digests {
				if got := a.Header.Get(name); (got != "") != (accept == "identity") {
					t.Errorf("%s: %s: %q", accept, name, got)
				}
			}
		}
	})
}

// A file that is not compressed passes unchanged; one that is takes the ordinary
// path.
func TestCompressFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for ctype, coded := range map[string]bool{"text/plain": true, "image/png": false} {
		done := 0
		file := handlerOf(func(x *direct.Exchange) {
			x.SetHeader("Content-Type", ctype)
			x.SendFile(direct.File{File: f, Len: int64(len(page)), Done: func() { done++ }})
		})
		ready := wire.NewFileResponse(200, http.Header{"Content-Type": {ctype}}, int64(len(page)))
		again := 0
		as := Chain(handlerOf(func(x *direct.Exchange) {
			x.Wire().SendFileAs(ready, direct.File{File: f, Len: int64(len(page)), Done: func() { again++ }})
		}), SecurityHeaders(nil), Must(Compress(nil)), ETag(nil))
		r := request("GET", "/", "", "Accept-Encoding", "gzip")
		if a, ok := directly(t, as, r); ok == coded || ok && (a.Header.Get("X-Frame-Options") != "DENY" || a.Header.Get("Content-Length") != fmt.Sprint(len(page))) || coded && again != 1 {
			t.Errorf("%s: SendFileAs: %v, %v, Done was called %d times", ctype, ok, a, again)
		}
		h := Must(Compress(nil))(file)
		if a, ok := directly(t, h, r); ok == coded || ok && a.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s: direct: %v, %v", ctype, ok, a)
		} else if coded && done != 1 {
			t.Errorf("%s: Done was called %d times", ctype, done)
		}
		servers(t, h, func(t *testing.T, url string, c *http.Client) {
			req, _ := http.NewRequest("GET", url, nil)
			req.Header.Set("Accept-Encoding", "gzip")
			res, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			b, err := io.ReadAll(res.Body)
			if got := decode(t, answer{Header: res.Header, Body: string(b)}); err != nil || got != page || (res.Header.Get("Content-Encoding") != "") != coded {
				t.Errorf("%s: %v, %v, %d bytes", ctype, err, res.Header, len(got))
			}
		})
	}
}

// handlerOf is a HandlerFunc that does not read bodies.
type handlerOf func(x *direct.Exchange)

func (f handlerOf) ServeDirect(x *direct.Exchange) bool { f(x); return true }
func (f handlerOf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	direct.Respond(w, r, f)
}

// http.ServeContent, with and without ranges, is right in all cases.
func TestCompressServeContent(t *testing.T) {
	h := hf(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "a.txt", moment, bytes.NewReader([]byte(page)))
	})
	servers(t, Must(Compress(nil))(h), func(t *testing.T, url string, c *http.Client) {
		for _, tt := range []struct {
			field, value string
			status       int
			coding, want string
		}{
			{"Accept", "*/*", 200, "gzip", page},
			{"Range", "bytes=10-2009", 206, "", page[10:2010]},
			{"If-Modified-Since", moment.UTC().Format(http.TimeFormat), 304, "", ""},
		} {
			req, _ := http.NewRequest("GET", url, nil)
			req.Header.Set("Accept-Encoding", "gzip")
			req.Header.Set(tt.field, tt.value)
			res, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(res.Body)
			res.Body.Close()
			if res.StatusCode != tt.status || err != nil || res.Header.Get("Content-Encoding") != tt.coding || decode(t, answer{Header: res.Header, Body: string(b)}) != tt.want {
				t.Errorf("%s: %d %v %v, %d bytes", tt.field, res.StatusCode, err, res.Header, len(b))
			}
		}
	})
}

func TestCompressReadFrom(t *testing.T) {
	for _, tt := range []struct {
		name string
		src  io.Reader
	}{
		{"limited", io.LimitReader(strings.NewReader(page), int64(len(page)))},
		{"less than the limit", io.LimitReader(strings.NewReader(page), 1<<30)},
		{"unlimited", io.MultiReader(strings.NewReader(page))},
		{"failing", io.MultiReader(strings.NewReader(page), failingReader{})},
	} {
		a := plain(Must(Compress(nil))(hf(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			w.(io.ReaderFrom).ReadFrom(tt.src)
		})), request("GET", "/", "", "Accept-Encoding", "gzip"))
		if got := decode(t, a); got != page || a.Header.Get("Content-Encoding") != "gzip" {
			t.Errorf("%s: %v, %d bytes", tt.name, a.Header, len(got))
		}
	}
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("on purpose") }
