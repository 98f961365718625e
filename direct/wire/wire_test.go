package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A HandlerFunc is direct's, for exchanges of this package.
type HandlerFunc func(x *Exchange)

func (f HandlerFunc) ServeHTTP(w http.ResponseWriter, r *http.Request) { ServeHTTP(w, r, f) }

// answer returns the response of a handler, as a server sees it.
func answer(method string, f func(x *Exchange)) Answer {
	var x Exchange
	x.Reset(Request{Method: method})
	f(&x)
	return x.Finish()
}

func lines(fields []Field) string {
	var b strings.Builder
	for _, f := range fields {
		fmt.Fprintf(&b, "%s: %s\n", f.Name, f.Value)
	}
	return b.String()
}

func TestFinish(t *testing.T) {
	for _, tt := range []struct {
		name, method string
		f            func(x *Exchange)
		status       int
		fields, body string
	}{
		{"nothing", "GET", func(x *Exchange) {}, 200, "Content-Length: 0\n", ""},
		{"nothing for HEAD may be something for GET", "HEAD", func(x *Exchange) {}, 200, "", ""},
		{"body", "GET", func(x *Exchange) { x.WriteString("a"); x.Write([]byte("b")) }, 200, "Content-Length: 2\nContent-Type: text/plain; charset=utf-8\n", "ab"},
		{"body of HEAD", "HEAD", func(x *Exchange) { x.WriteString("ab") }, 200, "Content-Length: 2\nContent-Type: text/plain; charset=utf-8\n", ""},
		{"204 has no length", "GET", func(x *Exchange) { x.SetStatus(204); x.WriteString("ab"); x.SetHeader("Content-Type", "a/b") }, 204, "Content-Type: a/b\n", ""},
		{"304 has no type either", "GET", func(x *Exchange) {
			x.SetStatus(304)
			x.WriteString("ab")
			x.SetHeader("Content-Type", "a/b")
			x.SetHeader("ETag", "1")
		}, 304, "Etag: 1\n", ""},
		{"205", "GET", func(x *Exchange) { x.SetStatus(205) }, 205, "Content-Length: 0\n", ""},
		{"the smallest status", "GET", func(x *Exchange) { x.SetStatus(200) }, 200, "Content-Length: 0\n", ""},
		{"the largest", "GET", func(x *Exchange) { x.SetStatus(999) }, 999, "Content-Length: 0\n", ""},
		{"sorted, those of a name in their order", "GET", func(x *Exchange) {
			x.AddHeader("b", "2")
			x.AddHeader("a", "1")
			x.AddHeader("B", "1")
			x.SetHeader("c", "1")
			x.SetHeader("C", "2")
			x.SetHeader("X-Removed", "")
		}, 200, "A: 1\nB: 2\nB: 1\nC: 2\nContent-Length: 0\nX-Removed: \n", ""},
		{"an own type", "GET", func(x *Exchange) { x.SetHeader("content-type", "a/b"); x.WriteString("x") }, 200, "Content-Length: 1\nContent-Type: a/b\n", "x"},
		{"coded", "GET", func(x *Exchange) { x.SetHeader("content-encoding", "br"); x.WriteString("x") }, 200, "Content-Encoding: br\nContent-Length: 1\n", "x"},
		{"a response instead of all else", "GET", func(x *Exchange) {
			x.SetStatus(500)
			x.SetHeader("A", "1")
			x.WriteString("lost")
			x.Send(NewResponse(201, nil, []byte("sent")))
			x.WriteString("lost")
		}, 201, "Content-Length: 4\nContent-Type: text/plain; charset=utf-8\n", "sent"},
		{"for HEAD", "HEAD", func(x *Exchange) { x.Send(NewResponse(201, nil, []byte("sent"))) }, 201, "Content-Length: 4\nContent-Type: text/plain; charset=utf-8\n", ""},
		{"an empty response says so to HEAD", "HEAD", func(x *Exchange) { x.Send(NewResponse(200, nil, nil)) }, 200, "Content-Length: 0\n", ""},
		{"long", "GET", func(x *Exchange) { x.SetHeader("Content-Type", ""); x.Write(make([]byte, 2048)) }, 200, "Content-Length: 2048\nContent-Type: \n", string(make([]byte, 2048))},
	} {
		a := answer(tt.method, tt.f)
		if a.Status != tt.status || lines(a.Fields) != tt.fields || string(a.Body) != tt.body {
			t.Errorf("%s: got %d\n%s%q", tt.name, a.Status, lines(a.Fields), a.Body)
		}
	}
}

// A value is one line, over every protocol.
func TestFieldOfLines(t *testing.T) {
	var x Exchange
	x.SetHeader("A", "1\r\nB: 2")
	x.AddHeader("A", "3\n4\r5")
	r := NewResponse(200, http.Header{"A": {"1\r\nB: 2", "3\n4\r5"}}, nil)
	for name, fields := range map[string][]Field{"handler": x.Finish().Fields, "Response": r.fields} {
		var got []string
		for _, f := range fields {
			if f.Name != "Content-Length" {
				got = append(got, f.Name+": "+f.Value)
			}
		}
		if want := []string{"A: 1  B: 2", "A: 3 4 5"}; !slices.Equal(got, want) {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func TestFinishDate(t *testing.T) {
	for _, f := range []func(x *Exchange){
		func(x *Exchange) { x.SetHeader("date", "now") },
		func(x *Exchange) { x.Send(NewResponse(200, http.Header{"date": {"now"}}, nil)) },
	} {
		if a := answer("GET", f); !a.HasDate {
			t.Errorf("the date is not seen: %v", a.Fields)
		}
	}
	for _, f := range []func(x *Exchange){func(x *Exchange) {}, func(x *Exchange) { x.SetHeader("date", "now"); x.Send(NewResponse(200, nil, nil)) }} {
		if a := answer("GET", f); a.HasDate {
			t.Errorf("there is a date: %v", a.Fields)
		}
	}
}

// A reused exchange has nothing of the one before.
func TestReset(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var x Exchange
	for _, before := range []func(){
		func() { x.SetStatus(500) },
		func() { x.SetHeader("A", "1"); x.Finish() },
		func() { x.WriteString("body") },
		func() { x.Write(make([]byte, MaxBody+1)) },
		func() { x.Send(NewResponse(500, nil, []byte("sent"))) },
		func() { x.SendFile(File{File: f, Len: 10}) },
		func() { x.Finish() },
	} {
		x.Reset(Request{Method: "POST", Path: []byte("/before"), Body: []byte("before")})
		before()
		x.Reset(Request{Method: "GET"})
		if x.Status() != 200 || x.Size() != 0 || x.GetHeader("A") != "" || x.Path() != nil || x.Body() != nil {
			t.Errorf("left behind: %v", x)
		}
		if a := x.Finish(); a.Status != 200 || lines(a.Fields) != "Content-Length: 0\n" || len(a.Body) != 0 || a.File.File != nil || a.Ready != nil {
			t.Errorf("left behind: %v", a)
		}
	}
}

// A file is in place of what was written before it, also if it is empty.
func TestEmptyFile(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	done := 0
	a := answer("GET", func(x *Exchange) {
		x.WriteString("lost")
		x.SendFile(File{File: f, Done: func() { done++ }})
	})
	if len(a.Body) != 0 || a.Length() != 0 || a.File.File != nil || done != 1 {
		t.Errorf("%q, %d bytes, Done was called %d times", a.Body, a.Length(), done)
	}
	if got := lines(a.Fields); !strings.Contains(got, "Content-Length: 0\n") {
		t.Error(got)
	}
}

func TestStatusAndSize(t *testing.T) {
	var x Exchange
	x.Reset(Request{Method: "HEAD"})
	x.WriteString("hello")
	if x.Size() != 5 || x.Status() != 200 {
		t.Errorf("got %d, %d", x.Size(), x.Status())
	}
	x.SendFile(File{File: os.Stdin, Len: 7})
	if x.Size() != 7 {
		t.Errorf("got %d", x.Size())
	}
	x.SetStatus(404)
	if x.Status() != 404 {
		t.Errorf("got %d", x.Status())
	}
	r := NewResponse(503, nil, []byte("abc"))
	x.Send(r)
	if x.Size() != 3 || x.Status() != 503 || r.Status() != 503 {
		t.Errorf("got %d, %d, %d", x.Size(), x.Status(), r.Status())
	}
}

// A Response of a file has a cached head, and a file for each exchange.
func TestFileResponse(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.WriteString("hello, world")
	r := NewFileResponse(200, http.Header{"Content-Type": {"a/b"}}, 5)
	const head = "Content-Length: 5\nContent-Type: a/b\n"
	done := 0
	part := File{File: f, Offset: 7, Len: 5, Done: func() { done++ }}
	a := answer("GET", func(x *Exchange) { x.WriteString("lost"); x.SendFileAs(r, part) })
	if a.Ready != r || lines(a.Fields) != head || a.File.File != f || a.File.Offset != 7 || len(a.Body) != 0 || done != 0 {
		t.Errorf("got %+v, done %d", a, done)
	}
	for i, f := range []func(x *Exchange){
		func(x *Exchange) { x.SendFileAs(r, part) },
		func(x *Exchange) { x.Send(r); x.SendFile(part) },
	} {
		if a := answer("HEAD", f); a.Ready != r || lines(a.Fields) != head || a.File.File != nil || done != i+1 {
			t.Errorf("HEAD: %+v, done %d", a, done)
		}
	}
	answer("GET", func(x *Exchange) { x.SendFileAs(r, part); x.Send(NewResponse(200, nil, nil)) })
	answer("GET", func(x *Exchange) {
		if x.SendFileAs(r, part); x.Size() != 5 || x.Status() != 200 {
			t.Errorf("got %d, %d", x.Size(), x.Status())
		}
		x.Drop()
	})
	if done != 4 {
		t.Errorf("done %d times", done)
	}
	rec := httptest.NewRecorder()
	Respond(rec, httptest.NewRequest("GET", "/", nil), func(x *Exchange) { x.SendFileAs(r, part) })
	if rec.Body.String() != "world" || rec.Header().Get("Content-Length") != "5" || done != 5 {
		t.Errorf("got %v %q, done %d", rec.Header(), rec.Body, done)
	}
}

func TestPanics(t *testing.T) {
	for name, f := range map[string]func(x *Exchange){
		"status 0":            func(x *Exchange) { x.SetStatus(0) },
		"status 100":          func(x *Exchange) { x.SetStatus(100) },
		"status 199":          func(x *Exchange) { x.SetStatus(199) },
		"status 1000":         func(x *Exchange) { x.SetStatus(1000) },
		"negative":            func(x *Exchange) { x.SetStatus(-200) },
		"connection":          func(x *Exchange) { x.SetHeader("CONNECTION", "") },
		"content-length":      func(x *Exchange) { x.AddHeader("Content-Length", "1") },
		"keep-alive":          func(x *Exchange) { x.SetHeader("Keep-Alive", "1") },
		"trailer":             func(x *Exchange) { x.SetHeader("trailer", "1") },
		"transfer-encoding":   func(x *Exchange) { x.SetHeader("transfer-encoding", "1") },
		"upgrade":             func(x *Exchange) { x.SetHeader("upgrade", "1") },
		"empty name":          func(x *Exchange) { x.SetHeader("", "1") },
		"space":               func(x *Exchange) { x.SetHeader("a b", "1") },
		"colon":               func(x *Exchange) { x.AddHeader("a:", "1") },
		"line":                func(x *Exchange) { x.AddHeader("a\r\nb", "1") },
		"not ASCII":           func(x *Exchange) { x.SetHeader("\xc3\xa4", "1") },
		"space before":        func(x *Exchange) { x.SetHeader(" Content-Length", "1") },
		"file without a type": func(x *Exchange) { NewFileResponse(200, nil, 1) },
		"file with 304":       func(x *Exchange) { NewFileResponse(304, http.Header{"Content-Type": {"a/b"}}, 1) },
		"file that is missing": func(x *Exchange) {
			x.Send(NewFileResponse(200, http.Header{"Content-Type": {"a/b"}}, 1))
		},
		"file of another length": func(x *Exchange) {
			x.SendFileAs(NewFileResponse(200, http.Header{"Content-Type": {"a/b"}}, 1), File{Len: 2})
		},
		"no file's response": func(x *Exchange) { x.SendFileAs(NewResponse(200, nil, nil), File{}) },
		"new status":         func(x *Exchange) { NewResponse(101, nil, nil) },
		"new name":           func(x *Exchange) { NewResponse(200, http.Header{"a b": {"1"}}, nil) },
		"new framing":        func(x *Exchange) { NewResponse(200, http.Header{"transfer-encoding": {"chunked"}}, nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			answer("GET", f)
		}()
	}
}

// A Response copies what it is made of.
func TestResponseCopies(t *testing.T) {
	header, body := http.Header{"X-A": {"1"}}, []byte("body")
	r := NewResponse(200, header, body)
	header["X-A"][0], header["X-B"], body[0] = "2", []string{"3"}, 'x'
	rec := httptest.NewRecorder()
	r.ServeHTTP(rec, httptest.NewRequest("GET", "/", nil))
	if rec.Body.String() != "body" || rec.Header().Get("X-A") != "1" || rec.Header()["X-B"] != nil {
		t.Errorf("got %v %q", rec.Header(), rec.Body)
	}
	rec.Header()["X-A"][0] = "changed" // by a middleware
	rec = httptest.NewRecorder()
	r.ServeHTTP(rec, httptest.NewRequest("GET", "/", nil))
	if rec.Header().Get("X-A") != "1" {
		t.Errorf("got %v", rec.Header())
	}
}

// A Response is safe for concurrent use, and its head is made once.
func TestResponseConcurrently(t *testing.T) {
	r := NewResponse(200, http.Header{"X-A": {"1"}}, []byte("body"))
	encode := func(status int, fields []Field) []byte { return fmt.Append(nil, status, lines(fields)) }
	want := string(encode(200, []Field{{"Content-Length", "4"}, {"Content-Type", "text/plain; charset=utf-8"}, {"X-A", "1"}}))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				if got := string(r.Head(encode)); got != want {
					t.Errorf("got %q", got)
				}
				rec := httptest.NewRecorder()
				r.ServeHTTP(rec, httptest.NewRequest("GET", "/", nil))
				if rec.Body.String() != "body" {
					t.Errorf("got %q", rec.Body)
				}
				if a := answer("GET", func(x *Exchange) { x.Send(r) }); string(a.Body) != "body" || a.Ready != r {
					t.Errorf("got %v", a)
				}
			}
		})
	}
	all.Wait()
}

// A Content-Length that was set for a response which was then not sent is not sent
// with another: there must not be two.
func TestServeHTTPLength(t *testing.T) {
	rec := httptest.NewRecorder()
	rec.Header().Set("Content-Length", "1000")
	HandlerFunc(func(x *Exchange) { x.WriteString("hello") }).ServeHTTP(rec, httptest.NewRequest("GET", "/", nil))
	if got := rec.Header()["Content-Length"]; len(got) != 1 || got[0] != "5" {
		t.Errorf("Content-Length is %q", got)
	}
}

// A handler sees the same request on any server.
func TestServeHTTP(t *testing.T) {
	h := HandlerFunc(func(x *Exchange) {
		var all []string
		for name, value := range x.Fields().All() {
			all = append(all, string(name)+"="+string(value))
			if len(all) == 2 && x.Method() == "STOP" {
				break
			}
		}
		slices.Sort(all)
		if x.Method() == "STOP" {
			all = all[:min(len(all), 2)]
			fmt.Fprint(x, len(all))
			return
		}
		fmt.Fprintf(x, "%s %s %s %s %s %s %s %v %s", x.Method(), x.Target(), x.Path(), x.RawQuery(), x.Host(), x.Body(), x.RemoteAddr(), all, x.Fields().Get("x-A"))
		if x.Fields().Get("none") != nil {
			x.WriteString("something")
		}
	})
	req := httptest.NewRequest("POST", "/a%20b?c=d", strings.NewReader("body"))
	req.Header = http.Header{"X-A": {"1", "2"}, "X-B": {"3"}}
	req.RemoteAddr = "peer"
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	if want := "POST /a%20b?c=d /a b c=d example.com body peer [X-A=1 X-A=2 X-B=3] 1"; rec.Body.String() != want {
		t.Errorf("got  %s\nwant %s", rec.Body, want)
	}
	req = httptest.NewRequest("STOP", "/", nil)
	req.Header = http.Header{"A": {"1", "2", "3"}, "B": {"1"}}
	rec = httptest.NewRecorder()
	if h.ServeHTTP(rec, req); rec.Body.String() != "2" {
		t.Errorf("got %s", rec.Body)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestServeHTTPBody(t *testing.T) {
	h := HandlerFunc(func(x *Exchange) { fmt.Fprint(x, len(x.Body())) })
	for _, tt := range []struct {
		name   string
		body   io.Reader
		length int64
		status int
		want   string
		major  int // of the protocol's version
	}{
		{"none", nil, 0, 200, "0", 1},
		{"empty", http.NoBody, 0, 200, "0", 1},
		{"some", strings.NewReader("hello"), 5, 200, "5", 1},
		{"the most", bytes.NewReader(make([]byte, MaxBody)), MaxBody, 200, fmt.Sprint(MaxBody), 1},
		{"of unknown length", bytes.NewReader(make([]byte, MaxBody)), -1, 200, fmt.Sprint(MaxBody), 1},
		{"one more", failing{errors.New("it was read")}, MaxBody + 1, 413, "", 1},
		{"one more, of unknown length", bytes.NewReader(make([]byte, MaxBody+1)), -1, 413, "", 1},
		{"cut", failing{io.ErrUnexpectedEOF}, 5, 400, "", 1},
		{"late", failing{os.ErrDeadlineExceeded}, 5, 408, "", 1},
		{"cut, HTTP/2", failing{io.ErrUnexpectedEOF}, 5, 400, "", 2},
	} {
		req := httptest.NewRequest("POST", "/", tt.body)
		req.ContentLength, req.ProtoMajor = tt.length, tt.major
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, req)
		if rec.Code != tt.status || tt.want != "" && rec.Body.String() != tt.want {
			t.Errorf("%s: got %d %q", tt.name, rec.Code, rec.Body)
		}
		if closes := rec.Header().Get("Connection") == "close"; closes != (tt.major < 2 && (tt.status == 400 || tt.status == 408)) {
			t.Errorf("%s: got %v", tt.name, rec.Header())
		}
	}
}

// Done is called exactly once, whatever becomes of the file.
func TestServeHTTPFile(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.WriteString("<html>0123456789")
	for _, tt := range []struct {
		name, method string
		offset, n    int64
		more         func(x *Exchange)
		body, ctype  string
		abort        bool
	}{
		{"whole", "GET", 0, 16, nil, "<html>0123456789", "text/html; charset=utf-8", false},
		{"part", "GET", 6, 5, nil, "01234", "text/plain; charset=utf-8", false},
		{"head", "HEAD", 0, 16, nil, "", "text/html; charset=utf-8", false},
		{"empty", "GET", 3, 0, nil, "", "", false},
		{"204", "GET", 0, 16, func(x *Exchange) { x.SetStatus(204) }, "", "", false},
		{"304", "GET", 0, 16, func(x *Exchange) { x.SetStatus(304) }, "", "", false},
		{"a response instead", "GET", 0, 16, func(x *Exchange) { x.Send(NewResponse(200, nil, []byte("x"))) }, "x", "text/plain; charset=utf-8", false},
		{"written before", "GET", 6, 1, func(x *Exchange) { x.WriteString("not this") }, "0", "text/plain; charset=utf-8", false},
		{"too short", "GET", 6, 11, nil, "0123456789", "text/plain; charset=utf-8", true},
		{"gone", "GET", 60, 1, nil, "", "text/plain; charset=utf-8", true},
	} {
		done := 0
		rec := httptest.NewRecorder()
		func() {
			defer func() {
				if e := recover(); tt.abort != (e != nil) || e != nil && e != http.ErrAbortHandler {
					t.Errorf("%s: panic %v", tt.name, e)
				}
			}()
			ServeHTTP(rec, httptest.NewRequest(tt.method, "/", nil), func(x *Exchange) {
				x.SendFile(File{File: f, Offset: tt.offset, Len: tt.n, Done: func() { done++ }})
				if tt.more != nil {
					tt.more(x)
				}
			})
		}()
		if rec.Body.String() != tt.body || rec.Header().Get("Content-Type") != tt.ctype || done != 1 {
			t.Errorf("%s: got %v %q, Done was called %d times", tt.name, rec.Header(), rec.Body, done)
		}
	}
}

// Done is called once, even if it panics.
func TestDoneOnce(t *testing.T) {
	file, err := os.Open("wire_test.go")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	done := 0
	var x Exchange
	x.Reset(Request{Method: "HEAD"})
	x.SetHeader("Content-Type", "a/b")
	x.SendFile(File{File: file, Len: 10, Done: func() { done++; panic("boom") }})
	func() {
		defer func() { recover() }()
		x.Finish()
	}()
	x.Drop()
	if done != 1 {
		t.Errorf("Done was called %d times", done)
	}
}

// The value of a header stays valid when the exchange is reused.
func TestLengthIsKept(t *testing.T) {
	var kept []http.Header
	for _, n := range []int{111_111, 222_222, 333_333} {
		w := httptest.NewRecorder()
		Respond(w, httptest.NewRequest("GET", "/", nil), func(x *Exchange) { x.Write(make([]byte, n)) })
		kept = append(kept, w.Header())
	}
	for i, want := range []string{"111111", "222222", "333333"} {
		if got := kept[i].Get("Content-Length"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// The values and the pattern are the router's on the fast path, the request's
// on the plain one, and end with the exchange.
func TestPathValue(t *testing.T) {
	var x Exchange
	x.Reset(Request{})
	x.SetPathValue("a", []byte("1"))
	x.SetPathValue("b", []byte("2"))
	x.SetPathValue("a", []byte("3"))
	if a, b, c := x.PathValue("a"), x.PathValue("b"), x.PathValue("c"); string(a) != "3" || string(b) != "2" || c != nil {
		t.Errorf("got %q, %q, %q", a, b, c)
	}
	x.SetPattern("/{a}/{b}")
	x.Reset(Request{})
	if x.PathValue("a") != nil || x.Pattern() != "" {
		t.Errorf("left behind: %q, %q", x.PathValue("a"), x.Pattern())
	}
	mux := http.NewServeMux()
	mux.Handle("/{a}/{b}", HandlerFunc(func(x *Exchange) {
		x.SetPathValue("b", []byte("3"))
		fmt.Fprintf(x, "%s %s %s %s", x.Pattern(), x.PathValue("a"), x.PathValue("b"), x.PathValue("c"))
	}))
	rec := httptest.NewRecorder()
	mux.ServeHTTP(rec, httptest.NewRequest("GET", "/1/2", nil))
	if got := rec.Body.String(); got != "/{a}/{b} 1 3 " {
		t.Errorf("got %q", got)
	}
}

// A file that changes when all of it was read has been sent whole: an error would end the
// connection, and with it the requests that follow.
func TestCopyToChecksNoMoreAtTheEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(path, []byte("content"), 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out strings.Builder
	for _, tt := range []struct {
		n    int64
		want error
	}{{7, nil}, {3, nil}, {0, nil}, {8, io.ErrUnexpectedEOF}} {
		out.Reset()
		part := File{File: f, Len: tt.n}
		if tt.want == nil {
			part.Check = func() error { return errors.New("changed") }
		}
		if err := part.CopyTo(&out); err != tt.want || out.String() != "content"[:min(tt.n, 7)] {
			t.Errorf("%d bytes: %v, %q", tt.n, err, out.String())
		}
	}
}

// MaySet accepts the names that AddHeader does not panic at.
func TestMaySet(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"X-A", "x-a", "vary", "Content-Type", "content-length", "CONNECTION", "keep-alive", "Trailer",
		"transfer-encoding", "Upgrade", "", "a b", "a:", "a\r\nb", "\xc3\xa4", " Content-Length", "x_odd",
	} {
		accepts := func() (ok bool) {
			defer func() { ok = recover() == nil }()
			new(Exchange).AddHeader(name, "1")
			return true
		}()
		if got := MaySet(name); got != accepts {
			t.Errorf("%q: MaySet reports %v, AddHeader accepts it: %v", name, got, accepts)
		}
	}
}

// With shares the body and keeps the framing; SendInstead keeps the file.
func TestResponseWith(t *testing.T) {
	t.Parallel()
	set := func(h http.Header) {
		h.Set("X-Set", "1")
		h.Del("X-Gone")
		h["Content-Length"] = []string{"99"}
		h["Connection"] = []string{"close"}
	}
	r := NewResponse(200, http.Header{"X-Gone": {"1"}, "Vary": {"b", "a"}}, []byte("body"))
	w := r.With(set)
	want := http.Header{"X-Set": {"1"}, "Vary": {"b", "a"}, "Content-Length": {"4"}, "Content-Type": {"text/plain; charset=utf-8"}}
	if !reflect.DeepEqual(w.Header(), want) || &w.Body()[0] != &r.Body()[0] || w.Status() != 200 {
		t.Errorf("%v", w.Header())
	}
	file := NewFileResponse(200, http.Header{"Content-Type": {"text/plain"}}, 7)
	done := 0
	var x Exchange
	x.Reset(Request{Method: "GET"})
	x.SendFileAs(file, File{File: new(os.File), Len: 7, Done: func() { done++ }})
	x.SendInstead(file.With(set))
	a := x.Finish()
	if a.File.Len != 7 || done != 0 || a.Ready.Header().Get("X-Set") != "1" || a.Ready.Header().Get("Content-Length") != "7" {
		t.Errorf("%+v, %d", a, done)
	}
	defer func() {
		if recover() == nil {
			t.Error("a Response of another kind replaced one of a file")
		}
	}()
	x.Reset(Request{Method: "HEAD"})
	x.Send(file)
	x.SendInstead(w)
}

// taken is a Watcher that has to give something back.
type taken struct{ forgotten, sent int }

func (t *taken) Keep()         {}
func (t *taken) Sent(Delivery) { t.sent++ }
func (t *taken) Forget()       { t.forgotten++ }

// noted is another Watcher.
type noted struct{ sent int }

func (n *noted) Keep()         {}
func (n *noted) Sent(Delivery) { n.sent++ }

// A response that is discarded is forgotten by Forgetters alone, wherever they are.
func TestForget(t *testing.T) {
	t.Parallel()
	for _, end := range []func(x *Exchange){(*Exchange).Forget, (*Exchange).Discard} {
		var x Exchange
		end(&x) // without any
		for order := range 3 {
			a, b, n := &taken{}, &taken{}, &noted{}
			all := []Watcher{a, b, n}
			for i := range all {
				x.Watch(all[(i+order)%len(all)])
			}
			end(&x)
			end(&x)
			x.Drop()
			if a.forgotten != 1 || b.forgotten != 1 || a.sent+b.sent != 0 || n.sent != 1 {
				t.Errorf("order %d: %+v, %+v, %+v", order, a, b, n)
			}
		}
	}
}
