package wrap

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/filter"
	"github.com/chert-http/chert/internal/user"
)

// noting is a hook that records its calls.
type noting struct {
	Writer
	log     []string
	fail    error
	through bool
}

func (n *noting) WriteHeader(status int) {
	n.log = append(n.log, http.StatusText(status))
	n.PassHead(status)
}

func (n *noting) Write(p []byte) (int, error) {
	n.log = append(n.log, string(p))
	return n.Next().Write(p)
}

func (n *noting) Flush() error { n.log = append(n.log, "flush"); return n.fail }

func (n *noting) ReadFrom(int64) bool { n.log = append(n.log, "from"); return n.through }

func (n *noting) End(returned bool) {
	n.log = append(n.log, map[bool]string{true: "returned", false: "panicked"}[returned])
}

func TestHook(t *testing.T) {
	for _, tt := range []struct {
		name string
		f    func(w http.ResponseWriter)
		log  string
	}{
		{"nothing", func(w http.ResponseWriter) {}, ""},
		{"write", func(w http.ResponseWriter) { w.Write([]byte("a")); io.WriteString(w, "b") }, "OK a b"},
		{"status", func(w http.ResponseWriter) { w.WriteHeader(404); w.Write([]byte("a")) }, "Not Found a"},
		{"status twice", func(w http.ResponseWriter) { w.WriteHeader(404); w.WriteHeader(200) }, "Not Found"},
		{"early hints", func(w http.ResponseWriter) { w.WriteHeader(103); w.WriteHeader(204) }, "No Content"},
		{"101 is final", func(w http.ResponseWriter) { w.WriteHeader(101) }, "Switching Protocols"},
		{"flush", func(w http.ResponseWriter) { w.(http.Flusher).Flush() }, "OK flush"},
		{"hijack", func(w http.ResponseWriter) { w.(http.Hijacker).Hijack() }, ""},
		{"hijack late", func(w http.ResponseWriter) { w.WriteHeader(404); w.(http.Hijacker).Hijack(); w.Write([]byte("a")) }, "Not Found flush a"},
		{"read from", func(w http.ResponseWriter) { w.(io.ReaderFrom).ReadFrom(strings.NewReader("abc")) }, "OK from abc"},
	} {
		n := new(noting)
		tt.f(n.Init(httptest.NewRecorder(), n))
		if got := strings.Join(n.log, " "); got != tt.log {
			t.Errorf("%s: got %q", tt.name, got)
		}
	}
	n := &noting{fail: errors.New("x")}
	if err := http.NewResponseController(n.Init(httptest.NewRecorder(), n)).Flush(); err != n.fail {
		t.Errorf("got %v", err)
	}
}

func TestCounts(t *testing.T) {
	var w Writer
	h := w.Init(httptest.NewRecorder(), nil)
	if w.Status() != 0 {
		t.Errorf("got %d", w.Status())
	}
	h.Write([]byte("abc"))
	io.WriteString(h, "de")
	h.(io.ReaderFrom).ReadFrom(strings.NewReader("fgh"))
	if w.Status() != 200 || w.Written() != 8 || w.Hijacked() {
		t.Errorf("got %d, %d", w.Status(), w.Written())
	}
	if Innermost(h) == h {
		t.Error("not unwrapped")
	}
}

type sender struct{ http.ResponseWriter }

func (sender) SendFile(direct.File) error { return nil }

// A writer is a FileSender if what it is around is, and the user is noted
// through all of them.
func TestInit(t *testing.T) {
	var a, b Writer
	h := b.Init(a.Init(sender{httptest.NewRecorder()}, nil), nil)
	s, ok := h.(wire.FileSender)
	if !ok || s.SendFile(direct.File{Len: 7}) != nil || a.Written() != 7 || b.Written() != 7 {
		t.Errorf("%v, %d, %d", ok, a.Written(), b.Written())
	}
	name := "ann"
	var call filter.Call
	call.Wire().View(h, httptest.NewRequest("GET", "/", nil))
	call.SetUser(&name)
	_, r := call.Plain()
	if a.User() != "ann" || b.User() != "ann" || user.Of(r.Context()) != "ann" {
		t.Errorf("%q, %q, %q", a.User(), b.User(), user.Of(r.Context()))
	}
	if n := testing.AllocsPerRun(100, func() { b.Init(sender{}, nil) }); n > 1 {
		t.Errorf("%v allocations", n)
	}
	var c Writer
	if _, ok := c.Init(httptest.NewRecorder(), nil).(wire.FileSender); ok {
		t.Error("a FileSender around none")
	}
}

func TestTokenSyntax(t *testing.T) {
	for s, want := range map[string]bool{"a": true, "aZ09-._~+/==": true, "": false, "=": false, "a=b": false, "a b": false, "\xff": false, "a,": false} {
		if TokenSyntax([]byte(s)) != want {
			t.Errorf("%q: %v", s, !want)
		}
	}
}

// After End nothing reaches the hook, whatever is called, and End itself only once.
func TestEnd(t *testing.T) {
	for _, returned := range []bool{true, false} {
		n := new(noting)
		rec := httptest.NewRecorder()
		w := n.Init(rec, n)
		io.WriteString(w, "a")
		n.Writer.End(returned)
		n.Writer.End(!returned)
		want, passed := strings.Join(n.log, " "), rec.Body.String()
		w.WriteHeader(500)
		for name, f := range map[string]func() error{
			"write":     func() error { _, err := w.Write([]byte("b")); return err },
			"string":    func() error { _, err := io.WriteString(w, "b"); return err },
			"read from": func() error { _, err := w.(io.ReaderFrom).ReadFrom(strings.NewReader("b")); return err },
			"flush":     func() error { return http.NewResponseController(w).Flush() },
			"hijack":    func() error { _, _, err := http.NewResponseController(w).Hijack(); return err },
		} {
			if err := f(); err != ErrDone {
				t.Errorf("%s: got %v", name, err)
			}
		}
		if got := strings.Join(n.log, " "); got != want || !strings.HasSuffix(got, map[bool]string{true: "returned", false: "panicked"}[returned]) || rec.Body.String() != passed {
			t.Errorf("got %q, %q", got, rec.Body)
		}
	}
}

// Claim and the first write exclude each other.
func TestClaim(t *testing.T) {
	for name, f := range map[string]func(w http.ResponseWriter) error{
		"status": func(w http.ResponseWriter) error { w.WriteHeader(200); return ErrDone },
		"write":  func(w http.ResponseWriter) error { _, err := io.WriteString(w, "b"); return err },
		"read": func(w http.ResponseWriter) error {
			_, err := w.(io.ReaderFrom).ReadFrom(strings.NewReader("b"))
			return err
		},
		"flush": func(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() },
	} {
		w := Writer{Claimable: true}
		rec := httptest.NewRecorder()
		h := w.Init(rec, nil)
		if f(h); w.Claim() {
			t.Errorf("%s: claimed what has begun", name)
		}
		claimed := Writer{Claimable: true}
		rec = httptest.NewRecorder()
		h = claimed.Init(rec, nil)
		if !claimed.Claim() || claimed.Claim() {
			t.Errorf("%s: not claimed once", name)
		}
		if err := f(h); err != ErrDone || rec.Body.Len() > 0 || rec.Flushed {
			t.Errorf("%s: got %v, %q", name, err, rec.Body)
		}
	}
}
