package middleware

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
)

// Fields that describe the response that is not sent are removed, whether the
// handler or middleware has set them, and others stay: on both ways, for written
// and for prepared responses.
func TestInstead(t *testing.T) {
	fields := http.Header{
		"Cache-Control": {"public"}, "Content-Encoding": {"br"}, "Content-Language": {"en"}, "Content-Type": {"text/css"}, "Expires": {"0"},
		"Last-Modified": {"Sat, 01 Jan 2000 00:00:00 GMT"}, "Set-Cookie": {"a=1", "b=2"}, "Vary": {"Origin"}, "X-Other": {"1", "2"},
	}
	outside := func(h http.Header) func(next http.Handler) http.Handler {
		return func(next http.Handler) http.Handler { return keeps{next, h} }
	}
	set := func(x *direct.Exchange) {
		for name, values := range fields {
			x.Wire().DelHeader(name)
			for _, v := range values {
				x.AddHeader(name, v)
			}
		}
	}
	written := direct.HandlerFunc(func(x *direct.Exchange) { set(x); x.WriteString("half") })
	panicking := direct.HandlerFunc(func(x *direct.Exchange) {
		x.AddHeader("X-Own", "1")
		x.AddHeader("Set-Cookie", "a=1")
		x.WriteString("half")
		panic("on purpose")
	})
	quiet := Recover(&RecoverOptions{Handle: func(any, []byte) {}})
	for _, tt := range []struct {
		name   string
		mw     func(http.Handler) http.Handler
		h      direct.Handler
		status int
	}{
		{"panic", quiet, panicking, 500},
		{"failed, written", ETag(nil), written, 412},
		{"failed, ready", ETag(nil), direct.NewResponse(200, fields, []byte("half")), 412},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mw := func(h http.Handler) http.Handler {
				return Chain(h, outside(http.Header{"Content-Language": {"de"}, "X-Outside": {"1"}, "X-Other": {"0"}, "Set-Cookie": {"c=3"}, "Expires": {"0"}}), tt.mw)
			}
			ways(t, mw, tt.h, func(t *testing.T, do func(r *http.Request) answer) {
				a := do(request("GET", "/", "", "If-Match", `"another"`))
				text := http.StatusText(tt.status) + "\n"
				want := map[string]string{
					"Cache-Control": "[no-store]", "Content-Length": fmt.Sprint([]int{len(text)}), "Content-Type": "[text/plain; charset=utf-8]",
					"Set-Cookie": "[a=1 b=2]", "Vary": "[Origin]", "X-Content-Type-Options": "[nosniff]", "X-Other": "[1 2]", "X-Outside": "[1]",
				}
				switch tt.name {
				case "failed, ready":
					want["Set-Cookie"] = "[c=3 a=1 b=2]" // a Response adds to those that are there
				case "panic": // its fields were not sent
					want["Set-Cookie"], want["X-Other"] = "[c=3]", "[0]"
					delete(want, "Vary")
				}
				got := map[string]string{}
				for name, values := range a.Header {
					got[name] = fmt.Sprint(values)
				}
				if a.Status != tt.status || a.Body != text || !maps.Equal(got, want) {
					t.Errorf("got %d %q\n%v, want\n%v", a.Status, a.Body, got, want)
				}
			})
		})
	}
}

// A plain handler has sent its fields when it panics, as far as it can.
func TestRecoverSetCookie(t *testing.T) {
	h := Recover(&RecoverOptions{Handle: func(any, []byte) {}})(hf(func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "session", MaxAge: -1})
		w.Header().Set("Cache-Control", "public")
		panic("on purpose")
	}))
	a := plain(h, request("GET", "/", ""))
	if a.Status != 500 || a.Header.Get("Set-Cookie") != "session=; Max-Age=0" || a.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("got %v", a)
	}
}

// keeps sets fields for any response.
type keeps struct {
	next http.Handler
	h    http.Header
}

func (k keeps) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	maps.Copy(w.Header(), http.Header(k.h).Clone())
	k.next.ServeHTTP(w, r)
}

func (k keeps) ServeDirect(x *direct.Exchange) bool {
	for _, name := range slices.Sorted(maps.Keys(k.h)) {
		for _, v := range k.h[name] {
			x.Wire().Keep(wire.NewName(name), v)
		}
	}
	d, ok := k.next.(direct.Handler)
	return ok && d.ServeDirect(x)
}

// Fields that were there before a ready Response count as its own.
func TestCompressKept(t *testing.T) {
	ready := direct.NewResponse(200, http.Header{"Content-Type": {"text/plain"}}, []byte(page))
	says := direct.NewResponse(200, http.Header{"Content-Type": {"text/plain"}, "Cache-Control": {"public"}}, []byte(page))
	for _, tt := range []struct {
		name   string
		h      *direct.Response
		kept   http.Header
		coding string
		etag   string
	}{
		{"nothing", ready, nil, "gzip", ""},
		{"no-transform", ready, http.Header{"Cache-Control": {"No-Transform"}}, "", ""},
		{"no-transform replaced", says, http.Header{"Cache-Control": {"no-transform"}}, "gzip", ""},
		{"coded", ready, http.Header{"Content-Encoding": {"odd"}}, "odd", ""},
		{"tag", ready, http.Header{"Etag": {`"a"`}, "Accept-Ranges": {"bytes"}}, "gzip", `W/"a"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mw := func(h http.Handler) http.Handler { return Must(Compress(nil))(keeps{h, tt.kept}) }
			ways(t, mw, tt.h, func(t *testing.T, do func(r *http.Request) answer) {
				for range 2 {
					a := do(request("GET", "/", "", "Accept-Encoding", "gzip"))
					if a.Header.Get("Content-Encoding") != tt.coding || a.Header.Get("Etag") != tt.etag || (tt.coding != "gzip") != (a.Body == page) || a.Header.Get("Accept-Ranges") != "" {
						t.Errorf("got %v", a.Header)
					}
				}
			})
		})
	}
}

// The 304 has the tag that the 200 had, coded or not, also if the client accepts
// other codings by now.
func TestCompressNotModified(t *testing.T) {
	const own = `"own"`
	// resource evaluates conditions by itself, as static does.
	resource := func(mediaType, body string) map[string]direct.Handler {
		fields := http.Header{"Content-Type": {mediaType}, "Etag": {own}, "Accept-Ranges": {"bytes"}}
		whole := direct.NewResponse(200, fields, []byte(body))
		unmodified := direct.NewResponse(304, http.Header{"Etag": {own}, "Accept-Ranges": {"bytes"}}, nil)
		known := func(x *direct.Exchange) bool { return strings.Contains(string(x.RequestHeader("If-None-Match")), own) }
		return map[string]direct.Handler{
			"ready": direct.HandlerFunc(func(x *direct.Exchange) {
				if known(x) {
					x.Send(unmodified)
				} else {
					x.Send(whole)
				}
			}),
			"written": direct.HandlerFunc(func(x *direct.Exchange) {
				x.SetHeader("Etag", own)
				x.SetHeader("Accept-Ranges", "bytes")
				if known(x) {
					x.SetStatus(304)
					return
				}
				x.SetHeader("Content-Type", mediaType)
				x.WriteString(body)
			}),
		}
	}
	for _, tt := range []struct {
		name, mediaType, body, accept, then, tag string
	}{
		{"coded", "text/plain", page, "gzip", "gzip", `W/"own"`},
		{"image", "image/png", page, "gzip", "gzip", own},
		{"small", "text/plain", "small", "gzip", "gzip", own},
		{"not asked for", "text/plain", page, "", "", own},
		{"not asked for then", "text/plain", page, "", "gzip", own},
	} {
		for name, h := range resource(tt.mediaType, tt.body) {
			t.Run(tt.name+", "+name, func(t *testing.T) {
				ways(t, Must(Compress(nil)), h, func(t *testing.T, do func(r *http.Request) answer) {
					a := do(request("GET", "/", "", "Accept-Encoding", tt.accept))
					b := do(request("GET", "/", "", "Accept-Encoding", tt.then, "If-None-Match", a.Header.Get("Etag")))
					if a.Status != 200 || b.Status != 304 || a.Header.Get("Etag") != tt.tag || b.Header.Get("Etag") != tt.tag {
						t.Errorf("got %d %v, then %d %v", a.Status, a.Header, b.Status, b.Header)
					}
					if b.Header.Get("Accept-Ranges") != "bytes" {
						t.Errorf("the 304 has lost a field: %v", b.Header)
					}
					// A request with both gets the tag of the 200.
					b = do(request("GET", "/", "", "Accept-Encoding", tt.accept, "If-None-Match", `"own", W/"own"`))
					if tt.tag != own && b.Header.Get("Etag") != tt.tag {
						t.Errorf("with both: %v", b.Header)
					}
				})
			})
		}
	}
}

// The length of a body that is not read is not known, as with
// http.MaxBytesHandler.
func TestBodyLimitUnread(t *testing.T) {
	unread := hf(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "unread") })
	for name, h := range map[string]http.Handler{"ours": BodyLimit(&BodyLimitOptions{MaxSize: 1000})(unread), "net/http's": http.MaxBytesHandler(unread, 1000)} {
		t.Run(name, func(t *testing.T) {
			servers(t, h, func(t *testing.T, url string, c *http.Client) {
				res, err := c.Post(url, "text/plain", io.MultiReader(strings.NewReader(strings.Repeat("x", 2000))))
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				if b, err := io.ReadAll(res.Body); res.StatusCode != 200 || string(b) != "unread" || err != nil {
					t.Errorf("got %d %q, %v", res.StatusCode, b, err)
				}
			})
		})
	}
}
