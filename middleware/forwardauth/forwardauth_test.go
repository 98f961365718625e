package forwardauth

import (
	"bufio"
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert/chertest"
	"github.com/chert-http/chert/internal/testing/freeport"
	"github.com/chert-http/chert/middleware"
	"github.com/chert-http/chert/router"
)

// inner shows what a handler gets.
var inner = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	w.Header().Add("Set-Cookie", "own=1")
	fmt.Fprintf(w, "user=%q", middleware.UserOf(r.Context()))
	for name, v := range r.Header {
		if strings.Contains(strings.ToLower(name), "remote") {
			fmt.Fprintf(w, " %s=%q", name, v)
		}
	}
})

func newForward(t *testing.T, o Options) *Forward {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Timeout == 0 {
		o.Timeout = 90 * time.Second // a busy machine takes more than the default
	}
	f, err := New(&o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// raw sends a request as it is written, and returns the response and its body.
func raw(t *testing.T, base, text string) (*http.Response, string) {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, strings.ReplaceAll(text, "\n", "\r\n"))
	method, _, _ := strings.Cut(text, " ")
	res, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}

// both runs a test on net/http's server and on chert's.
func both(t *testing.T, h http.Handler, test func(t *testing.T, base string)) {
	std := httptest.NewServer(h)
	defer std.Close()
	ours := chertest.NewServer(h)
	defer ours.Close()
	t.Run("net/http", func(t *testing.T) { test(t, std.URL) })
	t.Run("chert", func(t *testing.T) { test(t, ours.URL) })
}

// What a server answers decides, and nothing but 2xx admits.
func TestAnswers(t *testing.T) {
	t.Parallel()
	auth := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var status int
		fmt.Sscan(r.Header.Get("X-Want"), &status)
		h := w.Header()
		h.Set("Remote-User", "ann")
		h.Add("Set-Cookie", "a=1")
		h.Add("Set-Cookie", "b=2")
		h.Set("Location", "https://login.example/?rd=x")
		h.Set("Www-Authenticate", `Basic realm="x"`)
		h.Set("X-Private", "p")
		h.Set("Connection", "X-Private")
		w.WriteHeader(status)
		if status != 204 && status != 304 {
			io.WriteString(w, "body of the auth server")
		}
	}))
	defer auth.Close()
	f := newForward(t, Options{URL: auth.URL, Headers: []string{"remote-user"}, User: "Remote-User", ResponseHeaders: []string{"set-cookie"}})
	both(t, f.Wrap(inner), func(t *testing.T, base string) {
		for _, tt := range []struct{ answer, status int }{
			{200, 200}, {204, 200}, {299, 502}, {301, 301}, {302, 302}, {303, 303}, {307, 307}, {308, 308}, {401, 401}, {403, 403},
			{300, 502}, {304, 502}, {400, 502}, {402, 502}, {404, 502}, {429, 502}, {500, 502}, {502, 502}, {503, 502}, {999, 502},
		} {
			res, body := raw(t, base, fmt.Sprintf("GET / HTTP/1.1\nHost: a\nX-Want: %d\nConnection: close\n\n", tt.answer))
			if res.StatusCode != tt.status {
				t.Errorf("%d: got %d", tt.answer, res.StatusCode)
			}
			cookies := strings.Join(res.Header["Set-Cookie"], " ")
			switch tt.status {
			case 200:
				if body != `user="ann" Remote-User=["ann"]` || cookies != "a=1 b=2 own=1" {
					t.Errorf("%d: %q, cookies %q", tt.answer, body, cookies)
				}
			case 502:
				if strings.Contains(body, "auth server") || cookies != "" || res.Header["Location"] != nil {
					t.Errorf("%d: %q %v", tt.answer, body, res.Header)
				}
			default:
				if body != "body of the auth server" || cookies != "a=1 b=2" || res.Header.Get("Location") == "" || res.Header.Get("Www-Authenticate") == "" ||
					res.Header.Get("Cache-Control") != "no-store" || res.Header["X-Private"] != nil {
					t.Errorf("%d: %q %v", tt.answer, body, res.Header)
				}
			}
		}
		if res, body := raw(t, base, "HEAD / HTTP/1.1\nHost: a\nX-Want: 401\nConnection: close\n\n"); res.StatusCode != 401 || body != "" {
			t.Errorf("HEAD: %d %q", res.StatusCode, body)
		}
	})
}

// No client forges what only the server says, in no way of writing it, and the server sees
// the request and no forged description of it.
func TestForged(t *testing.T) {
	t.Parallel()
	var saw atomic.Pointer[http.Request]
	var length atomic.Int64
	auth := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		length.Store(n)
		saw.Store(r)
		w.Header().Set("Remote-Groups", "staff")
	}))
	defer auth.Close()
	f := newForward(t, Options{URL: auth.URL + "/verify?x=y", Headers: []string{"Remote-User", "Remote-Groups"}, User: "Remote-User"})
	both(t, f.Wrap(inner), func(t *testing.T, base string) {
		res, body := raw(t, base, `POST /a%2Fb?q=1 HTTP/1.1
Host: site.example
Content-Length: 4
Content-Type: text/evil
Remote-User: eve
remote-user: eve2
Remote_User: eve3
REMOTE_user: eve4
Remote-Groups: admin
Cookie: s=1
Authorization: Basic eA==
Accept: text/html
X-Forwarded-For: 6.6.6.6
X-Forwarded-Uri: /public
X_Forwarded_Uri: /public
X-Forwarded-Host: evil
X-Forwarded-Method: GET
X-Forwarded-Proto: https
X-Original-URL: https://site.example/public
Forwarded: for=6.6.6.6
X-Real-IP: 6.6.6.6
If-None-Match: *
Range: bytes=0-1
X-Hop: 1
Connection: close, X-Hop, Cookie

body`)
		if res.StatusCode != 200 || body != `user="" Remote-Groups=["staff"]` {
			t.Fatalf("%d %q", res.StatusCode, body)
		}
		r := saw.Load()
		if r.Method != "GET" || r.RequestURI != "/verify?x=y" || length.Load() != 0 {
			t.Errorf("%s %s, %d bytes", r.Method, r.RequestURI, length.Load())
		}
		want := http.Header{
			"X-Forwarded-Method": {"POST"}, "X-Forwarded-Proto": {"http"}, "X-Forwarded-Host": {"site.example"}, "X-Forwarded-Uri": {"/a%2Fb?q=1"},
			"X-Forwarded-For": {"127.0.0.1"}, "Cookie": {"s=1"}, "Authorization": {"Basic eA=="}, "Accept": {"text/html"},
		}
		if got, want := fmt.Sprint(r.Header), fmt.Sprint(want); got != want {
			t.Errorf("the server got %s\nwant %s", got, want)
		}
		for _, named := range []string{"Remote-User", "x, remote_groups", "close,REMOTE-GROUPS "} {
			res, _ := raw(t, base, "GET / HTTP/1.1\nHost: a\nConnection: "+named+"\n\n")
			if res.StatusCode != 400 {
				t.Errorf("Connection: %s: %d", named, res.StatusCode)
			}
		}
	})
}

// The server decides about what the client asks for, not about what is left of it for the handler.
func TestTarget(t *testing.T) {
	t.Parallel()
	auth := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if uri := r.Header.Get("X-Forwarded-Uri"); uri != "/admin/a%2Fb?q=1" {
			w.WriteHeader(http.StatusForbidden)
			io.WriteString(w, uri)
		}
	}))
	defer auth.Close()
	h := newForward(t, Options{URL: auth.URL}).Wrap(inner)
	mux := router.New()
	mux.Mount("/admin", h)
	rewrite := middleware.Must(middleware.Rewrite(&middleware.RewriteOptions{Rules: []middleware.RewriteRule{{From: "^/admin/.*", To: "/public"}}}))
	for name, h := range map[string]http.Handler{"none": h, "Mount": mux, "StripPrefix": http.StripPrefix("/admin", h), "Rewrite": rewrite(h)} {
		both(t, h, func(t *testing.T, base string) {
			for _, origin := range []string{"", "http://site.example"} {
				if res, body := raw(t, base, "GET "+origin+"/admin/a%2Fb?q=1 HTTP/1.1\nHost: site.example\nConnection: close\n\n"); res.StatusCode != 200 {
					t.Errorf("%s, %q: the server was told %d %q", name, origin, res.StatusCode, body)
				}
			}
		})
	}
	r := httptest.NewRequest("GET", "/admin/a%2Fb?q=1", nil)
	r.RequestURI = "" // made by a program
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); w.Code != 200 {
		t.Errorf("without RequestURI: %d %q", w.Code, w.Body)
	}
}

// A server that sends without end, does not answer, breaks off or is not there admits
// nothing and holds nothing.
func TestBadServers(t *testing.T) {
	t.Parallel()
	gone := "http://" + freeport.Addr(t)
	raws := func(text string, forever string) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					defer c.Close()
					http.ReadRequest(bufio.NewReader(c))
					io.WriteString(c, text)
					for forever != "" {
						if _, err := io.WriteString(c, forever); err != nil {
							return
						}
					}
					if text == "" {
						io.Copy(io.Discard, c) // until the client gives up
					}
				}()
			}
		}()
		return "http://" + l.Addr().String()
	}
	for name, tt := range map[string]struct {
		url     string
		timeout time.Duration
		status  int
	}{
		"not there":            {gone, 0, 502},
		"silent":               {raws("", ""), 50 * time.Millisecond, 504},
		"not HTTP":             {raws("SSH-2.0-x\r\n", ""), 0, 502},
		"endless body":         {raws("HTTP/1.1 401 No\r\n\r\n", strings.Repeat("x", 4096)), 0, 502},
		"endless head":         {raws("HTTP/1.1 200 OK\r\n", "X: "+strings.Repeat("x", 4096)+"\r\n"), 0, 502},
		"cut off":              {raws("HTTP/1.1 401 No\r\nContent-Length: 100\r\n\r\nhalf", ""), 0, 502},
		"endless 2xx":          {raws("HTTP/1.1 200 OK\r\n\r\n", strings.Repeat("x", 4096)), 0, 200},
		"switches":             {raws("HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", ""), 0, 502},
		"a line break":         {raws("HTTP/1.1 200 OK\r\nRemote-User: a\x00b\r\n\r\n", ""), 0, 502},
		"contradictory":        {raws("HTTP/1.1 401 No\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", ""), 0, 502},
		"does not speak https": {strings.Replace(gone, "http:", "https:", 1), 0, 502},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newForward(t, Options{URL: tt.url, Timeout: tt.timeout, Headers: []string{"Remote-User"}})
			rec := httptest.NewRecorder()
			f.Wrap(inner).ServeHTTP(rec, httptest.NewRequest("GET", "/", nil))
			if rec.Code != tt.status {
				t.Errorf("got %d %q, want %d", rec.Code, rec.Body, tt.status)
			}
		})
	}
}

// A client that leaves ends its subrequest, and that is no error of the server.
func TestClientLeaves(t *testing.T) {
	t.Parallel()
	began, ended := make(chan struct{}), make(chan struct{})
	auth := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(began)
		<-r.Context().Done()
		close(ended)
	}))
	defer auth.Close()
	var log bytes.Buffer
	f := newForward(t, Options{URL: auth.URL, Timeout: -1, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.Wrap(inner).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil).WithContext(ctx))
	}()
	<-began
	cancel()
	<-done
	<-ended
	if log.Len() > 0 {
		t.Errorf("logged %s", &log)
	}
}

// What goes wrong is logged once for all requests of a second; connections are used again.
func TestLogAndReuse(t *testing.T) {
	t.Parallel()
	var conns atomic.Int64
	auth := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusTeapot)
	}))
	auth.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns.Add(1)
		}
	}
	auth.Start()
	defer auth.Close()
	var log bytes.Buffer
	f := newForward(t, Options{URL: auth.URL, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	f.logged.Store(time.Now().Add(time.Hour).UnixNano()) // just now, however slow this machine is
	for range 20 {
		f.Wrap(inner).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	}
	if log.Len() > 0 {
		t.Errorf("logged again: %s", &log)
	}
	f.logged.Store(0)
	f.Wrap(inner).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "status 418") {
		t.Errorf("logged %q", got)
	}
	if n := conns.Load(); n > 2 {
		t.Errorf("%d connections for requests one after the other", n)
	}
}

// Unix sockets, and TLS with an authority of one's own.
func TestTransports(t *testing.T) {
	t.Parallel()
	ok := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Remote-User", "ann") })
	sock := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", sock)
	if err != nil {
		t.Fatal(err)
	}
	onSocket := httptest.NewUnstartedServer(ok)
	onSocket.Listener.Close()
	onSocket.Listener = l
	onSocket.Start()
	defer onSocket.Close()
	secure := httptest.NewUnstartedServer(ok)
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	secure.StartTLS()
	defer secure.Close()
	pool := x509.NewCertPool()
	pool.AddCert(secure.Certificate())
	for _, tt := range []struct {
		o      Options
		status int
	}{
		{Options{URL: "http://auth/x", Socket: sock}, 200},
		{Options{URL: "http://auth/x", Socket: sock + "x"}, 502},
		{Options{URL: secure.URL, RootCAs: pool}, 200},
		{Options{URL: secure.URL}, 502}, // an unknown authority
	} {
		tt.o.Headers, tt.o.User = []string{"Remote-User"}, "remote-user"
		rec := httptest.NewRecorder()
		newForward(t, tt.o).Wrap(inner).ServeHTTP(rec, httptest.NewRequest("GET", "/", nil))
		if rec.Code != tt.status || tt.status == 200 && !strings.Contains(rec.Body.String(), `user="ann"`) {
			t.Errorf("%s: %d %q", tt.o.URL, rec.Code, rec.Body)
		}
	}
}

func TestOptionsRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		o    Options
		want string
	}{
		{Options{}, "URL: want a whole URL"},
		{Options{URL: "ftp://a/"}, "URL: want a whole URL"},
		{Options{URL: "http:///x"}, "URL: want a whole URL"},
		{Options{URL: "http://a:b:c/"}, "URL: "},
		{Options{URL: "http://a:99999/"}, "URL: want a port from 1 to 65535"},
		{Options{URL: "http://a:0/"}, "URL: want a port from 1 to 65535"},
		{Options{URL: "http://u:p@a/"}, "URL: want no user"},
		{Options{URL: "http://a/", Headers: []string{"a b"}}, "Headers: the field"},
		{Options{URL: "http://a/", Headers: []string{"Transfer-Encoding"}}, "Headers: the field"},
		{Options{URL: "http://a/", ResponseHeaders: []string{"connection"}}, "ResponseHeaders: the field"},
		{Options{URL: "http://a/", User: "Remote-User"}, "User: want one of Headers"},
		{Options{URL: "http://a/", Scheme: "HTTPS"}, "Scheme: "},
	} {
		if f, err := New(&tt.o); f != nil || err == nil || !strings.HasPrefix(err.Error(), "forwardauth: option "+tt.want) {
			t.Errorf("%+v: %v", tt.o, err)
		}
	}
	if _, err := New(nil); err == nil {
		t.Error("no options")
	}
}

// A name that has bytes of another case or with an underscore is the same variable.
func FuzzOwns(f *testing.F) {
	f.Add("Remote_User")
	f.Fuzz(func(t *testing.T, name string) {
		fw := &Forward{o: Options{Headers: []string{"Remote-User"}}}
		cgi := func(s string) string { return strings.ToUpper(strings.ReplaceAll(s, "-", "_")) }
		ascii := url.PathEscape(name) == name
		if got, want := fw.owns(name), cgi(name) == "REMOTE_USER"; ascii && got != want {
			t.Errorf("%q: %v", name, got)
		}
	})
}
