package http3_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/quic-go/quic-go/http3"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// view answers what a handler has of a request.
func view(w http.ResponseWriter, r *http.Request) {
	announced := make(http.Header)
	for k := range r.Trailer {
		announced[k] = nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%q %q %q %q\n", r.Method, r.Host, r.URL.String(), body)
	// Where the two differ: Host, and trailers that were not announced.
	delete(r.Header, "Host")
	for k := range announced {
		announced[k] = r.Trailer[k]
	}
	for i, h := range []http.Header{r.Header, announced} {
		var all []string
		for k, vv := range h {
			all = append(all, fmt.Sprintf("%d %q: %q\n", i, k, vv))
		}
		slices.Sort(all)
		b.WriteString(strings.Join(all, ""))
	}
	io.WriteString(w, b.String())
}

// fuzzed is a raw client of a server, which connects again when its connection has ended, or has
// done much that a server would not go on with for ever.
type fuzzed struct {
	s     *running
	c     *raw
	uses  int
	owner owner
}

func (f *fuzzed) do(t *testing.T, p []byte, by int) answer {
	for range 10 {
		if f.uses++; f.c == nil || f.uses%200 == 0 || f.c.Context().Err() != nil {
			f.end()
			f.owner.TB = f.s.t
			f.c = f.s.at(&f.owner).raw()
		}
		e := f.c.open(false)
		e.c = &raw{Conn: f.c.Conn, t: t}
		if e.Stream == nil {
			continue // the connection has ended because of the last one
		}
		for rest := p; len(rest) > 0; {
			n := min(by, len(rest))
			if _, err := e.Write(rest[:n]); err != nil {
				break
			}
			rest = rest[n:]
		}
		e.Close()
		a := e.read()
		if strings.HasPrefix(a.ending(), "CLOSE") {
			f.c = nil
		}
		return a
	}
	t.Fatal("no connection")
	return answer{}
}

// end ends the connection.
func (f *fuzzed) end() {
	for _, after := range slices.Backward(f.owner.after) {
		after()
	}
	f.owner.after = nil
}

// owner is a *testing.F for what goes on beside the fuzz target, in which the methods of that may
// not be called.
type owner struct {
	testing.TB
	after []func()
}

func (o *owner) Helper()                   {}
func (o *owner) Cleanup(f func())          { o.after = append(o.after, f) }
func (o *owner) Logf(string, ...any)       {}
func (o *owner) Fatal(args ...any)         { panic(fmt.Sprint(args...)) }
func (o *owner) Fatalf(s string, a ...any) { panic(fmt.Sprintf(s, a...)) }

// FuzzRequest has requests, as bytes, come whole and in pieces, to this server and to quic-go's.
// How they come makes no difference; what both serve is the same for their handlers.
func FuzzRequest(f *testing.F) {
	for _, tt := range requests {
		f.Add(tt.p, 1)
	}
	f.Add(join(headers(with(post, "cookie: a", "cookie: b", "trailer: t", "priority: u=1")...), data("x"), headers("t: 1", "u: 2")), 3)
	f.Add(headers(with(get, "a: 1", "a: 2", "content-length: 0")...), 100)
	ours := &fuzzed{s: serve(f, &chert.Server{Handler: hf(view), DisableGeneralOptionsHandler: true})}
	theirs := &fuzzed{s: quicServer(f, hf(view))}
	f.Cleanup(ours.end)
	f.Cleanup(theirs.end)
	f.Fuzz(func(t *testing.T, p []byte, by int) {
		if len(p) > 4<<10 {
			return // for longer than a few thousand frames no server goes on
		}
		whole, parts := ours.do(t, p, len(p)+1), ours.do(t, p, min(max(by, 1), 1000)+len(p)/300)
		if whole.ending() == excessive || parts.ending() == excessive {
			return // that depends on what the connection has had before
		}
		if whole.ending() != parts.ending() || whole.body != parts.body {
			t.Fatalf("whole: %s\n%s\nin pieces: %s\n%s", whole.ending(), whole.body, parts.ending(), parts.body)
		}
		if whole.ending() != "200" {
			return // others may serve what this refuses
		}
		other := theirs.do(t, p, len(p)+1)
		if other.ending() == "200" && other.body != whole.body {
			t.Fatalf("this server: %s\nquic-go's: %s", whole.body, other.body)
		}
	})
}

// quicServer is quic-go's.
func quicServer(t testing.TB, h http.Handler) *running {
	t.Helper()
	cert, _ := servertest.Certificate(t)
	d := dialer(t)
	l, err := d.ListenEarly(http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{cert}}), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &http3.Server{Handler: h}
	done := make(chan error, 1)
	go func() { done <- s.ServeListener(l) }()
	t.Cleanup(func() {
		s.Close()
		servertest.Await(t, done, "ServeListener")
		l.Close()
	})
	return &running{t: t, addr: d.Conn.LocalAddr().String(), log: new(servertest.Log)}
}
