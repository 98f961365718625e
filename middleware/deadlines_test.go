package middleware

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
)

// A deadlined is a response writer that notes deadlines, and can be hijacked.
type deadlined struct {
	*httptest.ResponseRecorder
	read, write []time.Time
}

func newDeadlined() *deadlined { return &deadlined{httptest.NewRecorder(), nil, nil} }

func (d *deadlined) SetReadDeadline(t time.Time) error {
	d.read = append(d.read, t)
	return nil
}

func (d *deadlined) SetWriteDeadline(t time.Time) error {
	d.write = append(d.write, t)
	return nil
}

func (d *deadlined) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, nil }

// A lateBody is a body that does not arrive in time.
type lateBody struct{ err error }

func (b lateBody) Read([]byte) (int, error) { return 0, b.err }
func (b lateBody) Close() error             { return nil }

// What the handler has done with a late body decides the response.
func TestBodyTimeoutResponse(t *testing.T) {
	late := lateBody{fmt.Errorf("read: %w", os.ErrDeadlineExceeded)}
	read := func(r *http.Request) { io.Copy(io.Discard, r.Body) }
	for _, tt := range []struct {
		name   string
		body   io.ReadCloser
		h      hf
		major  int
		status int
		closes bool
	}{
		{"nothing written", late, func(w http.ResponseWriter, r *http.Request) { read(r) }, 1, 408, true},
		{"over HTTP/2", late, func(w http.ResponseWriter, r *http.Request) { read(r) }, 2, 408, false},
		{"not read", late, func(w http.ResponseWriter, r *http.Request) {}, 1, 200, false},
		{"fields set", late, func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Content-Type", "a/b"); read(r) }, 1, 408, true},
		{"a status", late, func(w http.ResponseWriter, r *http.Request) { read(r); w.WriteHeader(503) }, 1, 503, false},
		{"a body", late, func(w http.ResponseWriter, r *http.Request) { read(r); io.WriteString(w, "x") }, 1, 200, false},
		{"flushed", late, func(w http.ResponseWriter, r *http.Request) { w.(http.Flusher).Flush(); read(r) }, 1, 200, false},
		{"hijacked", late, func(w http.ResponseWriter, r *http.Request) { read(r); w.(http.Hijacker).Hijack() }, 1, 200, false},
		{"another error", lateBody{io.ErrUnexpectedEOF}, func(w http.ResponseWriter, r *http.Request) { read(r) }, 1, 200, false},
		{"in time", io.NopCloser(strings.NewReader("x")), func(w http.ResponseWriter, r *http.Request) { read(r) }, 1, 200, false},
	} {
		w := newDeadlined()
		r := request("POST", "/", "x")
		r.Body, r.ProtoMajor = tt.body, tt.major
		began := time.Now()
		BodyTimeout(&BodyTimeoutOptions{Limit: time.Hour})(tt.h).ServeHTTP(w, r)
		if w.Code != tt.status || (w.Header().Get("Connection") == "close") != tt.closes {
			t.Errorf("%s: %d %v", tt.name, w.Code, w.Header())
		}
		if tt.status == 408 && (w.Body.String() != "Request Timeout\n" || w.Header().Get("Content-Type") != "text/plain; charset=utf-8") {
			t.Errorf("%s: %q %v", tt.name, w.Body, w.Header())
		}
		if w.read[0].Before(began.Add(time.Hour)) || w.read[0].After(time.Now().Add(time.Hour)) {
			t.Errorf("%s: deadlines %v", tt.name, w.read)
		}
		if len(w.read) != 1 || len(w.write) > 0 {
			t.Errorf("%s: deadlines %v, of writes %v", tt.name, w.read, w.write)
		}
	}
}

// A panic passes through, what refuses is seen outside, and a read after the handler has
// returned does not change what is another request's.
func TestBodyTimeoutOutside(t *testing.T) {
	late := lateBody{os.ErrDeadlineExceeded}
	mw := BodyTimeout(&BodyTimeoutOptions{Limit: time.Hour})
	r := request("POST", "/", "x")
	r.Body = late
	w := newDeadlined()
	if !panics(func() {
		mw(hf(func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body); panic("on purpose") })).ServeHTTP(w, r)
	}) || w.Code != 200 || w.Body.Len() > 0 {
		t.Errorf("a panic: %d %q", w.Code, w.Body)
	}
	w = newDeadlined()
	Chain(hf(func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }), Problems(nil), mw).ServeHTTP(w, r)
	if w.Code != 408 || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("a refusal: %d %v", w.Code, w.Header())
	}
	w = newDeadlined()
	r = request("POST", "/", "x")
	var kept io.Reader
	mw(hf(func(w http.ResponseWriter, r *http.Request) { kept = r.Body })).ServeHTTP(w, r)
	if b, err := io.ReadAll(kept); string(b) != "x" || err != nil || len(w.read) != 1 {
		t.Errorf("read later: %q, %v; deadlines %v", b, err, w.read)
	}
}

// Requests without a body, tunnels, and writers without deadlines have no limit.
func TestTimeoutsNone(t *testing.T) {
	for _, tt := range []struct {
		name        string
		limit       time.Duration
		method      string
		body        string
		read, write bool
	}{
		{"the default", 0, "POST", "x", true, true},
		{"none", -1, "POST", "x", false, false},
		{"no body", time.Hour, "POST", "", false, true},
		{"a tunnel", time.Hour, "CONNECT", "x", false, false},
	} {
		r := request(tt.method, "http://h/", tt.body)
		h := Chain(hf(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") }),
			BodyTimeout(&BodyTimeoutOptions{Limit: tt.limit}), ResponseTimeout(&ResponseTimeoutOptions{Limit: tt.limit}))
		w := newDeadlined()
		h.ServeHTTP(w, r)
		if len(w.read) > 0 != tt.read || len(w.write) > 0 != tt.write || w.Body.String() != "ok" {
			t.Errorf("%s: %v, %v, %q", tt.name, w.read, w.write, w.Body)
		}
		if a := plain(h, request(tt.method, "http://h/", tt.body)); a.Body != "ok" {
			t.Errorf("%s: %v", tt.name, a)
		}
	}
	for name, mw := range map[string]func(http.Handler) http.Handler{"body": BodyTimeout(nil), "response": ResponseTimeout(nil)} {
		a := plain(mw(hf(func(w http.ResponseWriter, r *http.Request) {
			b, err := io.ReadAll(r.Body)
			fmt.Fprintf(w, "%s %v", b, err)
		})), request("POST", "/", "x"))
		if a.Body != "x <nil>" {
			t.Errorf("%s: %v", name, a)
		}
	}
}

// On the fast path the limit is the server's for this response, the innermost if there are
// several, and it is not that of the next.
func TestResponseTimeoutDirect(t *testing.T) {
	limit := func(d time.Duration) func(http.Handler) http.Handler {
		return ResponseTimeout(&ResponseTimeoutOptions{Limit: d})
	}
	for _, tt := range []struct {
		name string
		h    http.Handler
		want time.Duration
	}{
		{"one", Chain(hello, limit(time.Hour)), time.Hour},
		{"two", Chain(hello, limit(time.Hour), limit(time.Minute)), time.Minute},
		{"ready", Chain(direct.NewResponse(200, nil, nil), limit(time.Hour)), time.Hour},
		{"the default", Chain(hello, limit(0)), time.Minute},
		{"none", Chain(hello, limit(-1)), 7 * time.Second},
	} {
		var x direct.Exchange
		exchange(&x, request("GET", "/", ""))
		if !tt.h.(direct.Handler).ServeDirect(&x) {
			t.Errorf("%s: not direct", tt.name)
		}
		a := x.Wire().Finish()
		if got := a.WriteLimit(7 * time.Second); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
		x.Wire().Reset(wire.Request{Method: "GET"})
		hello(&x)
		if a = x.Wire().Finish(); a.WriteLimit(-1) != 0 {
			t.Errorf("%s: the next has the limit %v", tt.name, a.WriteLimit(-1))
		}
	}
	h := Chain(direct.NewResponse(200, nil, nil), BodyTimeout(nil), limit(time.Hour)).(direct.Handler)
	var x direct.Exchange
	exchange(&x, request("GET", "/", ""))
	if n := testing.AllocsPerRun(100, func() {
		if !h.ServeDirect(&x) {
			t.Error("not direct")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
	// A function for the fast path that limits its response does so on the ordinary one too.
	w := newDeadlined()
	direct.HandlerFunc(func(x *direct.Exchange) { x.Wire().LimitWrite(time.Hour) }).ServeHTTP(w, request("GET", "/", ""))
	if len(w.write) != 1 {
		t.Errorf("deadlines %v", w.write)
	}
}
