//go:build linux || darwin

package fuzz

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// pairListener accepts one end of socket pairs whose other end is the test's:
// real descriptors, so that loops drive them, without the cost of TCP.
type pairListener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPairListener() *pairListener {
	return &pairListener{conns: make(chan net.Conn), done: make(chan struct{})}
}

func (l *pairListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pairListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *pairListener) Addr() net.Addr { return &net.UnixAddr{Name: "pair", Net: "unix"} }

func (l *pairListener) dial(t testing.TB) *net.UnixConn {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]net.Conn
	for i, fd := range fds {
		syscall.CloseOnExec(fd)
		f := os.NewFile(uintptr(fd), "pair")
		ends[i], err = net.FileConn(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
	}
	l.conns <- ends[0]
	return ends[1].(*net.UnixConn)
}

// fuzzHandler responds with a digest of its request.
func fuzzHandler(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Method", r.Method)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "bad body", http.StatusBadRequest)
		return
	}
	var keys []string
	for k := range r.Header {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	fmt.Fprintf(w, "%q %q %q %d %q %x", r.Method, r.RequestURI, r.Host, r.ContentLength, r.TransferEncoding, sha256.Sum256(body))
	for _, k := range keys {
		fmt.Fprintf(w, " %q=%q", k, r.Header[k])
	}
	keys = keys[:0]
	for k, v := range r.Trailer {
		keys = append(keys, fmt.Sprintf("%q=%q", k, v))
	}
	slices.Sort(keys)
	fmt.Fprint(w, keys)
}

// answer has the parts of a response that count.
type answer struct {
	status int
	body   string
}

// talk sends data in pieces with the sizes in splits, ends the stream, and
// reads all responses.
func talk(t testing.TB, l *pairListener, data, splits []byte) (all []answer) {
	c := l.dial(t)
	defer c.Close()
	c.SetDeadline(time.Now().Add(servertest.Patience))
	sent := make(chan bool)
	go func() {
		defer close(sent)
		for i := 0; len(data) > 0; i++ {
			n := len(data)
			if i < len(splits) {
				n = min(int(splits[i])+1, n)
			}
			if _, err := c.Write(data[:n]); err != nil {
				return
			}
			data = data[n:]
			runtime.Gosched()
		}
		c.CloseWrite()
	}()
	out, err := io.ReadAll(c)
	if ne, ok := err.(net.Error); ok && ne.Timeout() {
		t.Fatalf("no end after %q", out)
	}
	<-sent
	r := bufio.NewReader(bytes.NewReader(out))
	for {
		head, _ := r.Peek(r.Size())
		if len(head) == 0 {
			return all
		}
		end := bytes.Index(head, []byte("\r\n\r\n"))
		method := "GET"
		if end >= 0 && bytes.Contains(head[:end+2], []byte("\r\nX-Method: HEAD\r\n")) {
			method = "HEAD"
		}
		res, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			t.Fatalf("a response does not parse: %v: %q", err, out)
		}
		if res.StatusCode < 200 {
			continue
		}
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatalf("a response's body does not parse: %v: %q", err, out)
		}
		all = append(all, answer{res.StatusCode, string(body)})
	}
}

// served are the responses up to the first that is not a success.
func served(all []answer) []answer {
	i := slices.IndexFunc(all, func(a answer) bool { return a.status < 200 || a.status > 299 })
	if i < 0 {
		return all
	}
	return all[:i]
}

// looser reports whether chert may serve what net/http refuses.
func looser(data []byte) bool {
	// RFC 9112 section 2.2: an empty line before a request line is skipped.
	// net/http does so after a POST only.
	return bytes.HasPrefix(data, []byte("\r\n")) || bytes.Contains(data, []byte("\n\r\n\r\n")) ||
		// net/http requires a whole trailer section in its 4 KiB buffer.
		len(data) > 3500
}

// severalWords is "keep-alive" in an element of several words. That is no
// connection option (RFC 9110 section 7.6.1), so an HTTP/1.0 connection is not
// kept; net/http keeps it.
var severalWords = regexp.MustCompile(`(?i)[^\s,:][ \t]+keep-alive|keep-alive[ \t]+[^\s,]`)

func FuzzConn(f *testing.F) {
	for _, s := range []string{
		"",
		"GET / HTTP/1.1\r\nHost: h\r\n\r\n",
		"\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\n\r\nHEAD /3 HTTP/1.1\r\nHost: h\r\n\r\nGET /4 HTTP/1.1\r\nHost: h\r\n\r\n",
		"GET / HTTP/1.0\r\n\r\n",
		"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET / HTTP/1.0\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\nHost: h\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhell",
		"POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello",
		"POST / HTTP/1.1\r\nHost: h\r\nExpect: more\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTrailer: A\r\n\r\n5;a=b;c=\"d\\\"\"\r\nhello\r\n0\r\nA: b\r\nB: c\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\nCONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n",
		"GET http://a.b:80/c?d#e HTTP/1.1\r\nHost: f\r\n\r\n",
		"GET /%41%zz HTTP/1.1\r\nHost: h\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n c\r\n\r\n",
		"GET / HTTP/1.1\nHost: h\n\n",
		"GET / HTTP/1.1\r\nHost: h\r\nX:" + strings.Repeat(" y", 1500) + "\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: [::1]:80\r\ncookie: a\r\nCookie: b\r\nPragma: no-cache\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03",
	} {
		f.Add([]byte(s), []byte{})
		f.Add([]byte(s), bytes.Repeat([]byte{0}, 400))
		f.Add([]byte(s), []byte{3, 20, 1, 30, 0, 50})
	}
	quiet := log.New(io.Discard, "", 0)
	lines := map[string]*pairListener{}
	for name, e := range map[string]chert.Engine{"loops": chert.EngineLoops, "goroutines": chert.EngineGoroutines} {
		lines[name] = newPairListener()
		engines.StartOn(f, &chert.Server{Engine: e, Handler: http.HandlerFunc(fuzzHandler), ErrorLog: quiet, MaxHeaderBytes: 2 << 10}, lines[name])
	}
	std := &http.Server{Handler: http.HandlerFunc(fuzzHandler), ErrorLog: quiet}
	lines["net/http"] = newPairListener()
	go std.Serve(lines["net/http"])
	f.Cleanup(func() { std.Close() })
	f.Fuzz(func(t *testing.T, data, splits []byte) {
		if len(data) > 16<<10 {
			t.Skip("slow")
		}
		onLoops, onGoroutines := talk(t, lines["loops"], data, splits), talk(t, lines["goroutines"], data, splits)
		if !slices.Equal(onLoops, onGoroutines) {
			t.Errorf("the engines differ:\nloops      %+v\ngoroutines %+v", onLoops, onGoroutines)
		}
		want, got := served(talk(t, lines["net/http"], data, splits)), served(onLoops)
		// Chert is stricter: it may refuse what net/http serves, and then
		// nothing follows. What it serves it must serve alike.
		if refused := len(got) < len(onLoops); refused && len(want) > len(got) {
			want = want[:len(got)]
		}
		if severalWords.Match(data) && len(got) < len(want) {
			want = want[:len(got)]
		}
		if !slices.Equal(got, want) && !looser(data) {
			t.Errorf("chert    %+v\nnet/http %+v", got, want)
		}
		servertest.Eventually(t, "no buffer is held", func() bool { return buf.Live() == 0 })
	})
}
