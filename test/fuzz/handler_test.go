//go:build linux || darwin

package fuzz

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/testing/servertest"
)

// This file is the handler of FuzzExchange: it performs the request's field Do
// and records what it observes.

// call is what one call of the handler has observed.
type call struct {
	request  int      // which of the script's, -1 if unknown
	saw      string   // the request
	did      []string // operations and their results
	hijacked bool
}

func (c *call) String() string {
	if c == nil {
		return "no call of the handler"
	}
	return "handler saw " + c.saw + "\n\t\t" + strings.Join(c.did, "\n\t\t")
}

// stage is a server under comparison and the notes of its handler.
type stage struct {
	name string
	line *pairListener
	file string // of fileSize bytes

	mu      sync.Mutex
	calls   []*call
	running int
	kept    io.Reader // the last request's body
}

func newStage(t testing.TB, name string) *stage {
	st := &stage{name: name, line: newPairListener(), file: t.TempDir() + "/file"}
	if err := os.WriteFile(st.file, servertest.Pattern(fileSize), 0o600); err != nil {
		t.Fatal(err)
	}
	return st
}

// likeTCP listens to l and gives its connections the ReadFrom of *net.TCPConn:
// net/http treats connections without it differently.
type likeTCP struct{ *pairListener }

func (l likeTCP) Accept() (net.Conn, error) {
	nc, err := l.pairListener.Accept()
	if err != nil {
		return nil, err
	}
	return tcpConn{nc.(*net.UnixConn)}, nil
}

type tcpConn struct{ *net.UnixConn }

func (c tcpConn) ReadFrom(src io.Reader) (int64, error) { return io.Copy(writerAlone{c.UnixConn}, src) }

type writerAlone struct{ io.Writer }

type readerAlone struct{ io.Reader }

// reset clears what the last exchange has left.
func (st *stage) reset() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.calls, st.kept = nil, nil
}

// over waits until no handler runs and returns the calls.
func (st *stage) over(t testing.TB) []*call {
	servertest.Eventually(t, "the handlers of "+st.name+" have returned", func() bool {
		st.mu.Lock()
		defer st.mu.Unlock()
		return st.running == 0
	})
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.calls
}

// late describes what a goroutine that retains the last request's body beyond
// the end of the connection should not see; "" if there is nothing. net/http
// gives the same, but its body may still try to send 100 (Continue) to a
// connection that is closed.
func (st *stage) late() string {
	st.mu.Lock()
	defer st.mu.Unlock()
	if n := len(st.calls); n == 0 || st.calls[n-1].hijacked {
		return ""
	}
	want := http.ErrBodyReadAfterClose
	if st.kept == http.NoBody {
		want = io.EOF
	}
	if n, err := st.kept.Read(make([]byte, 1)); n != 0 || err != want {
		return fmt.Sprintf("%s: a late reader of the last body gets %d bytes and %v, not %v", st.name, n, err, want)
	}
	return ""
}

func (st *stage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{saw: describeRequest(r)}
	number, program, _ := strings.Cut(r.Header.Get("Do"), " ")
	var err error
	if c.request, err = strconv.Atoi(number); err != nil {
		c.request = -1
	}
	st.mu.Lock()
	st.calls = append(st.calls, c)
	st.running++
	kept := st.kept
	st.kept = r.Body
	st.mu.Unlock()
	defer func() {
		st.mu.Lock()
		st.running--
		st.mu.Unlock()
	}()
	p := performer{w: w, r: r, rc: http.NewResponseController(w), call: c, kept: kept, file: st.file}
	for op := range strings.SplitSeq(program, ";") {
		if op != "" {
			p.do(op)
		}
	}
	if r.Trailer != nil {
		c.note("trailers", "%s", headerText(r.Trailer))
	}
}

// describeRequest describes everything in a request that a handler can see at
// once.
func describeRequest(r *http.Request) string {
	return fmt.Sprintf("%q %q %q %d.%d host %q url %#v %q length %d coding %q close %t nobody %t trailer %s header %s",
		r.Method, r.RequestURI, r.Proto, r.ProtoMajor, r.ProtoMinor, r.Host, *r.URL, r.URL, r.ContentLength, r.TransferEncoding,
		r.Close, r.Body == http.NoBody, headerText(r.Trailer), headerText(r.Header))
}

// headerText writes h sorted by name, and shortens long values.
func headerText(h http.Header) string {
	if h == nil {
		return "none"
	}
	var b strings.Builder
	b.WriteString("[")
	for _, k := range slices.Sorted(maps.Keys(h)) {
		fmt.Fprintf(&b, " %s:", digest([]byte(k)))
		for _, v := range h[k] {
			fmt.Fprintf(&b, " %s", digest([]byte(v)))
		}
	}
	b.WriteString("]")
	return b.String()
}

// digest returns b, or a hash of it if it is long.
func digest(b []byte) string {
	if len(b) <= 100 {
		return strconv.Quote(string(b))
	}
	return fmt.Sprintf("%q...(%d bytes, %08x)", b[:20], len(b), crc32.ChecksumIEEE(b))
}

// errorName names an error as far as a handler could distinguish it.
func errorName(err error) string {
	var maxBytes *http.MaxBytesError
	var ne net.Error
	switch {
	case err == nil:
		return "ok"
	case err == io.EOF:
		return "EOF"
	case err == io.ErrUnexpectedEOF || err.Error() == "http: unexpected EOF reading trailer":
		return "cut short"
	case err == http.ErrBodyReadAfterClose || err == http.ErrContentLength || err == http.ErrBodyNotAllowed || err == http.ErrHijacked:
		return err.Error()
	case errors.As(err, &maxBytes):
		return "too large"
	case errors.As(err, &ne):
		return "net: " + err.Error()
	}
	return "malformed" // its texts vary
}

// performer runs a program.
type performer struct {
	w    http.ResponseWriter
	r    *http.Request
	rc   *http.ResponseController
	call *call
	kept io.Reader
	file string
	// began: some of the body may have been read. failed: no more will come,
	// the last Read returned an error or the end.
	began, failed bool
}

func (c *call) note(op, format string, args ...any) {
	c.did = append(c.did, op+": "+fmt.Sprintf(format, args...))
}

func (p *performer) do(op string) {
	verb, arg, _ := strings.Cut(op, " ")
	n, _ := strconv.Atoi(arg)
	if p.call.hijacked && verb != "write" && verb != "string" && verb != "raw" && verb != "head" && verb != "panic" && verb != "abort" && verb != "exit" {
		return // net/http's own response would be a nil pointer, or worse
	}
	switch verb {
	case "write", "string", "raw", "from", "file", "whole", "tail", "flush", "head":
		p.began = true // the server may read the body before it sends the head
	}
	switch verb {
	case "read", "readall":
		if verb == "readall" {
			n = 1 << 30
		}
		p.read(op, n)
	case "close":
		err := p.r.Body.Close()
		p.call.note(op, "%s", errorName(err))
	case "limit":
		p.r.Body = http.MaxBytesReader(p.w, p.r.Body, int64(n))
	case "late":
		if p.kept != nil {
			m, err := p.kept.Read(make([]byte, 1))
			p.call.note(op, "%d %s", m, errorName(err))
		}
	case "write":
		m, err := p.w.Write(servertest.Pattern(n))
		p.call.note(op, "%d %s", m, errorName(err))
	case "raw":
		m, err := io.WriteString(p.w, unescape(arg))
		p.call.note(op, "%d %s", m, errorName(err))
	case "string":
		m, err := io.WriteString(p.w, content(n))
		p.call.note(op, "%d %s", m, errorName(err))
	case "from":
		p.readFrom(op, readerAlone{bytes.NewReader(servertest.Pattern(n))})
	case "file", "whole", "tail":
		p.sendFile(op, verb, n)
	case "flush":
		p.call.note(op, "%s", errorName(p.rc.Flush()))
	case "head":
		p.w.WriteHeader(n)
	case "set", "add", "put", "nil", "clear":
		p.header(verb, arg)
	case "full":
		p.call.note(op, "%s", errorName(p.rc.EnableFullDuplex()))
	case "deadline":
		p.call.note(op, "%s", errorName(p.rc.SetReadDeadline(time.Now().Add(time.Hour))))
	case "watch":
		p.r.Context().Done()
	case "hijack":
		p.hijack(op, arg)
	case "panic":
		panic("as the program says")
	case "abort":
		panic(http.ErrAbortHandler)
	case "exit":
		runtime.Goexit()
	default:
		p.call.note(op, "not understood")
	}
}

// read reads up to n bytes. How many one Read returns depends on how they
// arrive, so it reads on until it has them.
func (p *performer) read(op string, n int) {
	p.began = true
	var got bytes.Buffer
	var err error
	room := make([]byte, min(n, 32<<10))
	for got.Len() < n && err == nil {
		var m int
		m, err = p.r.Body.Read(room[:min(len(room), n-got.Len())])
		got.Write(room[:m])
	}
	if n == 0 {
		p.r.Body.Read(nil) // a Reader may or may not read from its source then
		return
	}
	if got.Len() == n {
		err = nil // it may come with the last bytes or after them
	}
	if p.failed && got.Len() == 0 && err != nil {
		// io.Reader does not define which error follows an error.
		p.call.note(op, "nothing more")
		return
	}
	p.failed = err != nil
	p.call.note(op, "%s %s", digest(got.Bytes()), errorName(err))
}

func (p *performer) readFrom(op string, src io.Reader) {
	n, err := p.w.(io.ReaderFrom).ReadFrom(src)
	p.call.note(op, "%d %s", n, errorName(err))
}

func (p *performer) sendFile(op, verb string, n int) {
	f, err := os.Open(p.file)
	if err != nil {
		p.call.note(op, "%v", err)
		return
	}
	defer f.Close()
	switch verb {
	case "whole":
		p.readFrom(op, f)
	case "tail":
		f.Seek(int64(-n), io.SeekEnd)
		p.readFrom(op, f)
	default:
		lim := &io.LimitedReader{R: f, N: int64(n)}
		p.readFrom(op, lim)
		at, _ := f.Seek(0, io.SeekCurrent)
		p.call.note(op, "%d are left, the file is at %d", lim.N, at)
	}
}

func (p *performer) header(verb, arg string) {
	k, v, _ := strings.Cut(arg, " ")
	k, v = unescape(k), unescape(v)
	h := p.w.Header()
	switch verb {
	case "set":
		h.Set(k, v)
	case "add":
		h.Add(k, v)
	case "put":
		h[k] = []string{v}
	case "nil":
		h[k] = nil
	case "clear":
		clear(h)
	}
}

func unescape(s string) string {
	if u, err := strconv.Unquote(`"` + s + `"`); err == nil {
		return u
	}
	return s
}

func (p *performer) hijack(op, how string) {
	nc, rw, err := p.w.(http.Hijacker).Hijack()
	p.call.note(op, "%s", errorName(err))
	if err != nil {
		return
	}
	p.call.hijacked = true
	defer nc.Close()
	switch how {
	case "say":
		rw.WriteString("HTTP/1.1 299 Mine\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")
		p.call.note(op, "flush %s", errorName(rw.Flush()))
	case "rest":
		p.rest(op, nc, rw)
	case "twice":
		_, _, err := p.w.(http.Hijacker).Hijack()
		p.call.note(op, "%s", errorName(err))
	}
}

// rest reads everything that is still to come.
func (p *performer) rest(op string, nc net.Conn, rw *bufio.ReadWriter) {
	all, err := io.ReadAll(rw)
	if p.began && len(p.r.TransferEncoding) > 0 {
		// How far a chunked body has been read beyond what the handler has
		// received depends on how it arrived.
		all = nil
	}
	p.call.note(op, "%s %s", digest(all), errorName(err))
	fmt.Fprintf(nc, "rest %s", digest(all))
}
