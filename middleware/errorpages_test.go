package middleware

import (
	"bufio"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/testing/race"
)

var testPages = map[int]*ErrorPage{
	404: {Body: []byte("<p>own 404")},
	5:   {Type: "text/plain", Body: []byte("{status} {text}"), Template: true},
	503: {Body: []byte("<p>{status} {request_id}"), Template: true},
	410: nil,
	4:   {Type: "application/json", Body: []byte(`{"status":{status}}`), Template: true},
	0:   {Body: []byte("unused: every class has one")},
}

// ofStatus responds with a status and fields that describe the body, and others.
func ofStatus(status int) http.Header {
	h := http.Header{"Content-Type": {"text/css"}, "Etag": {`"x"`}, "Content-Encoding": {"gzip"}, "Last-Modified": {"Fri, 17 May 2024 10:20:30 GMT"},
		"Content-Range": {"bytes */5"}, "Accept-Ranges": {"bytes"}, "Retry-After": {"7"}, "Allow": {"GET"}, "Www-Authenticate": {"Basic"}, "Vary": {"Accept", "Origin"}}
	h.Set("X-Status", strconv.Itoa(status))
	return h
}

// The most specific page replaces the body, on every kind of response and on every way.
func TestErrorPages(t *testing.T) {
	mw := Must(ErrorPages(&ErrorPagesOptions{Pages: testPages}))
	written := func(status int) direct.Handler {
		return direct.HandlerFunc(func(x *direct.Exchange) {
			x.SetStatus(status)
			for name, values := range ofStatus(status) {
				for _, v := range values {
					x.AddHeader(name, v)
				}
			}
			x.WriteString("handler's")
		})
	}
	for _, tt := range []struct {
		status          int
		want, typ, keep string // keep: Cache-Control
	}{
		{200, "handler's", "text/css", ""}, {404, "<p>own 404", "text/html; charset=utf-8", ""}, {403, `{"status":403}`, "application/json", ""},
		{416, `{"status":416}`, "application/json", ""}, {410, "handler's", "text/css", ""}, {500, "500 Internal Server Error", "text/plain", "no-store"},
		{503, "<p>503 id-1", "text/html; charset=utf-8", "no-store"}, {599, "599 ", "text/plain", "no-store"}, {600, "handler's", "text/css", ""},
	} {
		for name, h := range map[string]direct.Handler{"written": written(tt.status), "ready": direct.NewResponse(tt.status, ofStatus(tt.status), []byte("handler's"))} {
			t.Run(name+" "+strconv.Itoa(tt.status), func(t *testing.T) {
				for _, kept := range []http.Header{nil, {"X-Request-Id": {"id-1"}, "X-Kept": {"k"}, "Content-Language": {"en"}}} {
					outer := func(next http.Handler) http.Handler { return keeps{mw(next), kept} }
					ways(t, outer, h, func(t *testing.T, do func(r *http.Request) answer) {
						for _, method := range []string{"GET", "HEAD", "POST", "GET"} {
							a := do(request(method, "/", "", "If-None-Match", `"x"`, "Range", "bytes=0-1"))
							want := tt.want
							if kept == nil {
								want = strings.ReplaceAll(want, "id-1", "")
							}
							if a.Status != tt.status || a.Header.Get("Content-Type") != tt.typ || method != "HEAD" && a.Body != want {
								t.Fatalf("%s: %d %v %q", method, a.Status, a.Header, a.Body)
							}
							if n := a.Header.Get("Content-Length"); n != "" && n != strconv.Itoa(len(want)) || method == "HEAD" && n == "" && tt.typ != "text/css" {
								t.Errorf("%s: Content-Length %q for %q", method, n, want)
							}
							for _, field := range []string{"Retry-After", "Allow", "Www-Authenticate", "X-Status"} {
								if len(a.Header[field]) != 1 {
									t.Errorf("%s: %s is %q", method, field, a.Header[field])
								}
							}
							if len(a.Header["Vary"]) != 2 || kept != nil && a.Header.Get("X-Kept") != "k" {
								t.Errorf("%s: %v", method, a.Header)
							}
							replaced := tt.typ != "text/css"
							for _, field := range []string{"Etag", "Content-Encoding", "Last-Modified", "Accept-Ranges"} {
								if (a.Header.Get(field) == "") != replaced {
									t.Errorf("%s: %s is %q", method, field, a.Header[field])
								}
							}
							if got := a.Header.Get("Content-Range") == ""; got != (replaced && tt.status != 416) {
								t.Errorf("%s: Content-Range is %q", method, a.Header["Content-Range"])
							}
							if replaced && (a.Header.Get("Cache-Control") != tt.keep || a.Header.Get("Content-Language") != "") {
								t.Errorf("%s: %v", method, a.Header)
							}
						}
					})
				}
			})
		}
	}
}

// What has errors of its own keeps them, also those of an inner ErrorPages.
func TestOwnErrors(t *testing.T) {
	outer := Must(ErrorPages(&ErrorPagesOptions{Pages: map[int]*ErrorPage{0: {Body: []byte("outer")}}}))
	inner := Must(ErrorPages(&ErrorPagesOptions{Pages: map[int]*ErrorPage{404: {Body: []byte("inner")}, 410: nil}}))
	for _, tt := range []struct {
		name   string
		mw     func(http.Handler) http.Handler
		status int
		want   string
	}{
		{"own", OwnErrors, 404, "handler's"}, {"inner", inner, 404, "inner"}, {"inner has none", inner, 403, "outer"}, {"left by the inner", inner, 410, "handler's"},
		{"own of inner", func(h http.Handler) http.Handler { return inner(OwnErrors(h)) }, 404, "handler's"},
		{"own around inner", func(h http.Handler) http.Handler { return OwnErrors(inner(h)) }, 404, "inner"},
		{"through others", func(h http.Handler) http.Handler { return ETag(nil)(Recover(nil)(OwnErrors(h))) }, 404, "handler's"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := direct.NewResponse(tt.status, nil, []byte("handler's"))
			ways(t, func(h http.Handler) http.Handler { return outer(tt.mw(h)) }, h, func(t *testing.T, do func(r *http.Request) answer) {
				if a := do(request("GET", "/", "")); a.Status != tt.status || a.Body != tt.want {
					t.Errorf("%d %q", a.Status, a.Body)
				}
			})
		})
	}
}

// Over real connections: framing is right, whatever the handler announced, and what is no
// error is not held back.
func TestErrorPagesServers(t *testing.T) {
	flushed := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/long", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100000")
		w.WriteHeader(404)
		io.WriteString(w, strings.Repeat("x", 50_000))
		http.NewResponseController(w).Flush()
		io.Copy(w, strings.NewReader(strings.Repeat("x", 50_000)))
	})
	mux.HandleFunc("/flush", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "one\n")
		http.NewResponseController(w).Flush()
		<-flushed
		io.WriteString(w, "two\n")
	})
	mux.HandleFunc("/empty", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) })
	h := Chain(mux, RequestID(&RequestIDOptions{New: func() string { return "abc" }}), Must(ErrorPages(&ErrorPagesOptions{Pages: testPages})))
	servers(t, h, func(t *testing.T, url string, c *http.Client) {
		for range 2 { // the second on the same connection: the first was framed rightly
			for _, tt := range []struct {
				path, want string
				status     int
			}{{"/long", "<p>own 404", 404}, {"/none", "<p>own 404", 404}, {"/empty", "<p>503 abc", 503}} {
				res, got, err := get(t, c, url+tt.path)
				if err != nil || res.StatusCode != tt.status || got != tt.want || res.ContentLength != int64(len(tt.want)) {
					t.Errorf("%s: %v %q, %v", tt.path, res, got, err)
				}
			}
			req, _ := http.NewRequest("HEAD", url+"/long", nil)
			res, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != 404 || res.ContentLength != 10 {
				t.Errorf("HEAD: %v", res)
			}
		}
		res, err := c.Get(url + "/flush")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		r := bufio.NewReader(res.Body)
		if line, err := r.ReadString('\n'); line != "one\n" || err != nil {
			t.Errorf("%q, %v", line, err)
		}
		flushed <- struct{}{}
		if line, err := r.ReadString('\n'); line != "two\n" || err != nil {
			t.Errorf("%q, %v", line, err)
		}
	})
}

func TestErrorPagesErrors(t *testing.T) {
	t.Parallel()
	for name, pages := range map[string]map[int]*ErrorPage{
		"no error": {200: {}}, "no class": {3: {}}, "negative": {-1: {}}, "too high": {600: {}}, "no type": {0: {Type: "html"}}, "a field in it": {0: {Type: "text/html\r\nA: b"}},
		"too long": {0: {Body: make([]byte, maxErrorPage+1)}},
	} {
		mw, err := ErrorPages(&ErrorPagesOptions{Pages: pages})
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		refused(t, mw, err, "middleware: ErrorPages: ")
	}
	if h := Must(ErrorPages(nil))(hello); h.(direct.HandlerFunc) == nil {
		t.Error("no pages, and yet another handler")
	}
}

// Pages without an id cost no allocation, nor do responses that are no errors.
func TestErrorPagesAllocate(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	mw := Must(ErrorPages(&ErrorPagesOptions{Pages: testPages}))
	for _, status := range []int{200, 404, 403, 500} {
		h := mw(direct.NewResponse(status, nil, []byte("hello"))).(direct.Handler)
		var x direct.Exchange
		r := wire.Request{Method: "GET", Target: []byte("/"), Path: []byte("/"), Fields: wire.FieldsOf(nil)}
		if n := testing.AllocsPerRun(100, func() {
			x.Wire().Reset(r)
			h.ServeDirect(&x)
			x.Wire().Finish()
		}); n != 0 {
			t.Errorf("%d: %v allocations", status, n)
		}
	}
}

// Only the placeholders are replaced, and by nothing that could be markup.
func TestErrorPagesTemplates(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ typ, body, id, want string }{
		{"", "<style>p{color:red}</style>{status} {Status} {request_id}{text}{", "a-1", "<style>p{color:red}</style>418 {Status} a-1I&#39;m a teapot{"},
		{"text/plain", "{text}", "", "I'm a teapot"},
		{"text/plain", "{{request_id}}{status", "{text}", "{}{status"},
		{"", "[{request_id}]", "<script>", "[]"},
		{"", "[{request_id}]", strings.Repeat("a", 129), "[]"},
		{"", "", "", ""},
	} {
		mw := Must(ErrorPages(&ErrorPagesOptions{Pages: map[int]*ErrorPage{418: {Type: tt.typ, Body: []byte(tt.body), Template: true}}}))
		outer := func(next http.Handler) http.Handler { return keeps{mw(next), http.Header{"X-Request-Id": {tt.id}}} }
		ways(t, outer, direct.NewResponse(418, nil, []byte("x")), func(t *testing.T, do func(r *http.Request) answer) {
			if a := do(request("GET", "/", "")); a.Body != tt.want {
				t.Errorf("%q, %q: %q, want %q", tt.body, tt.id, a.Body, tt.want)
			}
		})
	}
}
