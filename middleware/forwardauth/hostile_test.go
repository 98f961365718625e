package forwardauth

import (
	"bufio"
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert/chertest"
	"github.com/chert-http/chert/middleware"
)

// answering is a server that decides as decide does.
func answering(t *testing.T, decide http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(decide)
	t.Cleanup(s.Close)
	return s.URL
}

// A handshake that never ends does not hold a connection of MaxConns for ever.
func TestStuckHandshake(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var stuck []net.Conn
	var well atomic.Bool
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	secure.Listener.Close()
	secure.Listener = listenerFunc{l, func() (net.Conn, error) {
		for {
			c, err := l.Accept()
			if err != nil || well.Load() {
				return c, err
			}
			stuck = append(stuck, c) // open, and silent
		}
	}}
	secure.StartTLS()
	defer func() {
		secure.Close()
		for _, c := range stuck {
			c.Close()
		}
	}()
	pool := x509.NewCertPool()
	pool.AddCert(secure.Certificate())
	f := newForward(t, Options{URL: "https://" + l.Addr().String(), Timeout: 200 * time.Millisecond, MaxConns: 1, RootCAs: pool})
	h := f.Wrap(inner)
	ask := func() int {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest("GET", "/", nil))
		return rec.Code
	}
	if got := ask(); got != 504 && got != 502 {
		t.Fatalf("a stuck handshake: %d", got)
	}
	well.Store(true)
	for deadline := time.Now().Add(time.Minute); ask() != 200; {
		if time.Now().After(deadline) {
			t.Fatal("the server is well again, and has not been asked since")
		}
	}
}

type listenerFunc struct {
	net.Listener
	accept func() (net.Conn, error)
}

func (l listenerFunc) Accept() (net.Conn, error) { return l.accept() }

// An answer that refuses does not take away what outer middleware has set for all responses.
func TestAnswerBesideOuterFields(t *testing.T) {
	t.Parallel()
	f := newForward(t, Options{URL: answering(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", "of the server")
		w.Header().Set("Strict-Transport-Security", "max-age=0")
		w.Header().Set("Vary", "Cookie")
		w.Header().Set("Set-Cookie", "a=1")
		w.WriteHeader(401)
	})})
	outer := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Vary", "Origin")
			w.Header().Set("Set-Cookie", "b=2")
			w.Header().Set("Strict-Transport-Security", "max-age=9")
			next.ServeHTTP(w, r)
		})
	}
	h := middleware.Chain(inner, middleware.RequestID(&middleware.RequestIDOptions{New: func() string { return "own" }}), outer, f.Wrap)
	both(t, h, func(t *testing.T, base string) {
		res, _ := raw(t, base, "GET / HTTP/1.1\nHost: a\nConnection: close\n\n")
		vary, cookies := res.Header["Vary"], res.Header["Set-Cookie"]
		if id := res.Header.Get("X-Request-Id"); id != "own" || !slices.Equal(vary, []string{"Origin", "Cookie"}) ||
			!slices.Equal(cookies, []string{"b=2", "a=1"}) || res.Header.Get("Strict-Transport-Security") != "max-age=9" {
			t.Errorf("%v", res.Header)
		}
	})
}

// The body of an answer that refuses is the server's, and pages are for what has none.
func TestErrorPagesAround(t *testing.T) {
	t.Parallel()
	f := newForward(t, Options{URL: answering(t, func(w http.ResponseWriter, r *http.Request) {
		var status int
		fmt.Sscan(r.Header.Get("X-Want"), &status)
		w.Header().Set("Www-Authenticate", `Bearer realm="x"`)
		w.WriteHeader(status)
		io.WriteString(w, r.Header.Get("X-Body"))
	})})
	pages := middleware.Must(middleware.ErrorPages(&middleware.ErrorPagesOptions{Pages: map[int]*middleware.ErrorPage{
		0: {Type: "text/plain", Body: []byte("page {status}"), Template: true}}}))
	both(t, pages(f.Wrap(inner)), func(t *testing.T, base string) {
		for _, tt := range []struct {
			method, want, body string
			status             int
			got                string
		}{
			{"GET", "401", "log in", 401, "log in"}, {"GET", "401", "", 401, "page 401"}, {"GET", "403", "no", 403, "no"},
			{"GET", "403", "", 403, "page 403"}, {"GET", "500", "x", 502, "page 502"}, {"HEAD", "401", "log in", 401, ""},
			{"GET", "302", "moved", 302, "moved"},
		} {
			res, body := raw(t, base, tt.method+" / HTTP/1.1\nHost: a\nX-Want: "+tt.want+"\nX-Body: "+tt.body+"\nConnection: close\n\n")
			if res.StatusCode != tt.status || body != tt.got || tt.status == 401 && res.Header.Get("Www-Authenticate") == "" {
				t.Errorf("%+v: %d %q %v", tt, res.StatusCode, body, res.Header)
			}
		}
	})
}

// An answer that admits and does not end in time is none, as one that is cut off.
func TestSlowAdmission(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	url := answering(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "10")
		io.WriteString(w, "half")
		http.NewResponseController(w).Flush()
		if r.Header.Get("X-Cut") != "" {
			panic(http.ErrAbortHandler)
		}
		<-release
	})
	defer close(release)
	for _, tt := range []struct {
		cut     string
		timeout time.Duration
		want    int
	}{{"", 100 * time.Millisecond, 504}, {"1", 0, 502}} {
		rec, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
		r.Header.Set("X-Cut", tt.cut)
		newForward(t, Options{URL: url, Timeout: tt.timeout}).Wrap(inner).ServeHTTP(rec, r)
		if rec.Code != tt.want {
			t.Errorf("%q: %d %q", tt.cut, rec.Code, rec.Body)
		}
	}
}

// What belongs to another body, or is no field for handlers, cannot be copied.
func TestFieldsThatCannotBeCopied(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Content-Encoding", "content-type", "Host", "Date", "Content-Range", "Expect"} {
		if _, err := New(&Options{URL: "http://a/", ResponseHeaders: []string{name}}); err == nil {
			t.Errorf("ResponseHeaders: %s", name)
		}
		if _, err := New(&Options{URL: "http://a/", Headers: []string{name}}); err == nil {
			t.Errorf("Headers: %s", name)
		}
	}
}

// The body of a request reaches the handler, with and without 100 Continue, and what is
// refused is not read.
func TestBodies(t *testing.T) {
	t.Parallel()
	f := newForward(t, Options{URL: answering(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Cookie") == "" {
			w.WriteHeader(401)
		}
	})})
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%d %.3s %v", len(b), b, err)
	})
	both(t, f.Wrap(echo), func(t *testing.T, base string) {
		long := strings.Repeat("x", 200_000)
		for _, tt := range []struct{ head, body, want string }{
			{"Content-Length: 3", "abc", "3 abc <nil>"},
			{"Transfer-Encoding: chunked", "3\nabc\n0\n\n", "3 abc <nil>"},
			{"Content-Length: 200000", long, "200000 xxx <nil>"},
		} {
			if res, body := raw(t, base, "POST / HTTP/1.1\nHost: a\nCookie: s=1\nConnection: close\n"+tt.head+"\n\n"+tt.body); res.StatusCode != 200 || body != tt.want {
				t.Errorf("%s: %d %q", tt.head, res.StatusCode, body)
			}
		}
		for cookie, want := range map[string]int{"s=1": 100, "": 401} {
			c, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			head := "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n"
			if cookie != "" {
				head += "Cookie: " + cookie + "\r\n"
			}
			io.WriteString(c, head+"\r\n")
			br := bufio.NewReader(c)
			res, err := http.ReadResponse(br, nil)
			if err != nil || res.StatusCode != want {
				t.Fatalf("%q: %v, %v", cookie, res, err)
			}
			if want != 100 {
				continue
			}
			io.WriteString(c, "abc")
			if res, err = http.ReadResponse(br, nil); err != nil {
				t.Fatal(err)
			}
			if body, err := io.ReadAll(res.Body); string(body) != "3 abc <nil>" || err != nil {
				t.Errorf("%q, %v", body, err)
			}
		}
	})
}

// The largest MaxBody is as good as none.
func TestHugeMaxBody(t *testing.T) {
	t.Parallel()
	f := newForward(t, Options{MaxBody: math.MaxInt64, URL: answering(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(403)
		io.WriteString(w, strings.Repeat("x", 100_000))
	})})
	both(t, f.Wrap(inner), func(t *testing.T, base string) {
		res, body := raw(t, base, "GET / HTTP/1.1\nHost: a\nConnection: close\n\n")
		if res.StatusCode != 403 || len(body) != 100_000 {
			t.Errorf("%d, %d bytes", res.StatusCode, len(body))
		}
	})
}

// An upgrade is asked about without being one, and the connection is the handler's.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	saw := make(chan http.Header, 2)
	f := newForward(t, Options{Headers: []string{"Remote-User"}, URL: answering(t, func(w http.ResponseWriter, r *http.Request) {
		saw <- r.Header.Clone()
		w.Header().Set("Remote-User", "ann")
	})})
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user := r.Header.Get("Remote-User")
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n" + user + "\n")
		rw.Flush()
		line, _ := rw.ReadString('\n')
		rw.WriteString(line)
		rw.Flush()
	})
	both(t, f.Wrap(h), func(t *testing.T, base string) {
		c, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: echo\r\nSec-WebSocket-Key: k\r\n\r\n")
		br := bufio.NewReader(c)
		res, err := http.ReadResponse(br, nil)
		if err != nil || res.StatusCode != 101 {
			t.Fatalf("%v, %v", res, err)
		}
		io.WriteString(c, "hello\n")
		for _, want := range []string{"ann\n", "hello\n"} {
			if line, err := br.ReadString('\n'); line != want || err != nil {
				t.Errorf("%q, %v", line, err)
			}
		}
		if got := <-saw; got["Upgrade"] != nil || got["Connection"] != nil || got.Get("Sec-Websocket-Key") != "k" {
			t.Errorf("the server got %v", got)
		}
	})
}

// A client that leaves over a real connection ends its subrequest.
func TestClientDisconnects(t *testing.T) {
	t.Parallel()
	began, ended := make(chan struct{}), make(chan struct{})
	f := newForward(t, Options{Timeout: -1, URL: answering(t, func(w http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		<-r.Context().Done()
		ended <- struct{}{}
	})})
	both(t, f.Wrap(inner), func(t *testing.T, base string) {
		c, err := new(net.Dialer).DialContext(context.Background(), "tcp", strings.TrimPrefix(base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		<-began
		c.Close()
		<-ended
	})
}

// Over HTTP/2 the server gets one field of cookies, as HTTP/1.1 has it (RFC 9113 section
// 8.2.3), and the description of the request; a body reaches the handler, and a client
// that resets its stream ends the subrequest.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	saw, ended := make(chan *http.Request, 1), make(chan struct{})
	f := newForward(t, Options{Headers: []string{"Remote-User"}, Timeout: -1, URL: answering(t, func(w http.ResponseWriter, r *http.Request) {
		saw <- r
		if r.Header.Get("X-Forwarded-Uri") == "/slow" {
			<-r.Context().Done()
			close(ended)
		}
		w.Header().Set("Remote-User", "ann")
	})})
	s := chertest.NewUnstartedServer(f.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %d %q %v", r.Proto, len(b), r.Header["Remote-User"], err)
	})))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	req, _ := http.NewRequest("PUT", s.URL+"/a%2Fb?q=1", strings.NewReader(strings.Repeat("x", 200_000)))
	req.Host = "site.example:8443"
	req.Header = http.Header{"Cookie": {"a=1; b=2; c=3"}, "Remote-User": {"eve"}, "Remote_user": {"eve"}, "Te": {"trailers"}}
	res, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	res.Body.Close()
	if err != nil || string(body) != `HTTP/2.0 200000 ["ann"] <nil>` {
		t.Errorf("%d %q, %v", res.StatusCode, body, err)
	}
	got := (<-saw).Header
	for name, want := range map[string]string{"Cookie": "a=1; b=2; c=3", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "site.example:8443",
		"X-Forwarded-Uri": "/a%2Fb?q=1", "X-Forwarded-Method": "PUT", "X-Forwarded-For": "127.0.0.1"} {
		if fmt.Sprint(got[name]) != "["+want+"]" {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
	for _, name := range []string{"Remote-User", "Remote_user", "Te", "Content-Length", "Content-Type"} {
		if got[name] != nil {
			t.Errorf("%s: %q", name, got[name])
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	req, _ = http.NewRequestWithContext(ctx, "GET", s.URL+"/slow", nil)
	left := make(chan struct{})
	go func() {
		defer close(left)
		if res, err := s.Client().Do(req); err == nil {
			res.Body.Close()
		}
	}()
	<-saw
	cancel()
	<-left
	<-ended
}
