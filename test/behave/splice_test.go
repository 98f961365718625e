package behave

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// These tests call ReadFrom with sockets, as a proxy does that passes on
// responses of another server, here called the source.

// pairOf is a stream connection and its other end.
func pairOf(t testing.TB, network string) (near, far net.Conn) {
	t.Helper()
	addr := "127.0.0.1:0"
	if network == "unix" {
		// Not in t.TempDir: the test's name would make the path too long.
		dir, err := os.MkdirTemp("", "chert")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		addr = filepath.Join(dir, "s")
	}
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if near, err = net.Dial(network, l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close() })
	if far, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { far.Close() })
	return near, far
}

// feed writes p to far and then calls end, all on a goroutine that ends with
// the test.
func feed(t testing.TB, far net.Conn, p []byte, end func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		far.Write(p)
		end()
	}()
	t.Cleanup(func() {
		far.Close()
		<-done
	})
}

// copied is the result of a ReadFrom.
type copied struct {
	n   int64
	err error
}

// proxy is a server whose handler declares length, if it is one, and passes on
// what src sends, with c as its client.
func proxy(t *testing.T, e chert.Engine, length string, src io.Reader) (*engines.Server, *servertest.Client, <-chan copied) {
	got := make(chan copied, 1)
	ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			put(w, "other")
			return
		}
		if length != "" {
			w.Header().Set("Content-Length", length)
		}
		n, err := io.Copy(w, src)
		got <- copied{n, err}
	})})
	return ts, ts.Dial(), got
}

// sourceKinds are the sources that can be spliced from.
var sourceKinds = []string{"tcp", "unix"}

func TestReadFromSocket(t *testing.T) {
	t.Parallel()
	const size = 8 << 20
	content := servertest.Pattern(size)
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		for _, network := range sourceKinds {
			for _, tt := range []struct {
				why, request   string
				sent           int
				limit          int64 // < 0: the socket itself
				length, before string
				n              int64
				want           []byte
			}{
				{"nothing", "GET / HTTP/1.1", 0, -1, "0", "", 0, nil},
				{"nothing without a length", "GET / HTTP/1.1", 0, -1, "", "", 0, nil},
				{"less than is sniffed", "GET / HTTP/1.1", 100, -1, "100", "", 100, content[:100]},
				{"what is sniffed", "GET / HTTP/1.1", 512, -1, "512", "", 512, content[:512]},
				{"a byte more", "GET / HTTP/1.1", 513, -1, "513", "", 513, content[:513]},
				{"much", "GET / HTTP/1.1", size, -1, "8388608", "", size, content},
				{"much without a length", "GET / HTTP/1.1", size, -1, "", "", size, content},
				{"much to 1.0", "GET / HTTP/1.0", size, -1, "", "", size, content},
				{"little to 1.0", "GET / HTTP/1.0", 1000, -1, "", "", 1000, content[:1000]},
				{"to HEAD", "HEAD / HTTP/1.1", 10_000, -1, "10000", "", 10_000, nil},
				{"to HEAD without a length", "HEAD / HTTP/1.1", 10_000, -1, "", "", 10_000, nil},
				{"limited", "GET / HTTP/1.1", size, 5000, "5000", "", 5000, content[:5000]},
				{"limited without a length", "GET / HTTP/1.1", size, 5000, "", "", 5000, content[:5000]},
				{"limited to what is sniffed", "GET / HTTP/1.1", size, 512, "512", "", 512, content[:512]},
				{"limited to nothing", "GET / HTTP/1.1", size, 0, "0", "", 0, nil},
				{"a limit beyond the end", "GET / HTTP/1.1", 5000, 6000, "5000", "", 5000, content[:5000]},
				{"behind a write", "GET / HTTP/1.1", 5000, -1, "5003", "abc", 5000, append([]byte("abc"), content[:5000]...)},
				{"behind a large write", "GET / HTTP/1.1", 5000, -1, "15000", string(content[:10_000]), 5000, append(content[:10_000:10_000], content[:5000]...)},
			} {
				near, far := pairOf(t, network)
				feed(t, far, content[:tt.sent], func() { far.Close() })
				type result struct {
					n, left int64
					err     error
				}
				done := make(chan result, 1)
				ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
					if tt.length != "" {
						w.Header().Set("Content-Length", tt.length)
					}
					put(w, tt.before)
					var res result
					if tt.limit < 0 {
						res.n, res.err = io.Copy(w, near)
					} else {
						lim := &io.LimitedReader{R: near, N: tt.limit}
						res.n, res.err = w.(io.ReaderFrom).ReadFrom(lim)
						res.left = lim.N
					}
					done <- res
				})})
				c := ts.Dial()
				c.Send(tt.request + "\r\nHost: h\r\n\r\n")
				if _, body := c.Response(tt.request[:strings.IndexByte(tt.request, ' ')]); body != string(tt.want) {
					t.Errorf("%s: %s: body is %s", network, tt.why, servertest.Brief(body))
				}
				want := result{n: tt.n, left: max(tt.limit, tt.n) - tt.n}
				if res := servertest.Await(t, done, "the handler"); res != want {
					t.Errorf("%s: %s: got %+v, want %+v", network, tt.why, res, want)
				}
				near.Close()
			}
		}
	})
}

// TestReadFromSocketMoves checks how the bytes are moved. It runs alone: it
// observes the whole process.
func TestReadFromSocketMoves(t *testing.T) {
	if !sys.HaveSplice {
		t.Skip("needs splice")
	}
	const size = 1 << 20
	content := servertest.Pattern(size)
	cert, roots := servertest.Certificate(t)
	for _, e := range []chert.Engine{chert.EngineLoops, chert.EngineGoroutines} {
		for _, tt := range []struct {
			why, network, request, length string
			wrap                          func(net.Conn) io.Reader
			tls                           bool
			spliced                       int64
		}{
			{"tcp", "tcp", "GET / HTTP/1.1", "1048576", nil, false, size - 512},
			{"unix", "unix", "GET / HTTP/1.1", "1048576", nil, false, size - 512},
			{"to 1.0", "tcp", "GET / HTTP/1.0", "", nil, false, size - 512},
			{"limited", "tcp", "GET / HTTP/1.1", "1048576", func(c net.Conn) io.Reader { return io.LimitReader(c, size) }, false, size - 512},
			{"chunked", "tcp", "GET / HTTP/1.1", "", nil, false, 0},
			{"HEAD", "tcp", "HEAD / HTTP/1.1", "1048576", nil, false, 0},
			{"a Read of its own", "tcp", "GET / HTTP/1.1", "1048576", func(c net.Conn) io.Reader { return io.LimitReader(ownRead{c.(*net.TCPConn)}, size) }, false, 0},
			{"a client with TLS", "tcp", "GET / HTTP/1.1", "1048576", nil, true, 0},
		} {
			near, far := pairOf(t, tt.network)
			feed(t, far, content, func() { far.Close() })
			var src io.Reader = near
			if tt.wrap != nil {
				src = tt.wrap(near)
			}
			got := make(chan copied, 1)
			s := &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
				if tt.length != "" {
					w.Header().Set("Content-Length", tt.length)
				}
				n, err := io.Copy(w, src)
				got <- copied{n, err}
			})}
			l, err := s.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			if tt.tls {
				l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}})
				s.Engine = chert.EngineAuto
			}
			ts := engines.StartOn(t, s, l)
			c := ts.Dial()
			if tt.tls {
				c = servertest.Wrap(t, tls.Client(c.Conn, &tls.Config{RootCAs: roots, ServerName: "example.com"}))
			}
			before := sys.Spliced()
			c.Send(tt.request + "\r\nHost: h\r\n\r\n")
			want := string(content)
			if strings.HasPrefix(tt.request, "HEAD") {
				want = ""
			}
			if _, body := c.Response(tt.request[:strings.IndexByte(tt.request, ' ')]); body != want {
				t.Errorf("%v, %s: body is %s", e, tt.why, servertest.Brief(body))
			}
			if res := servertest.Await(t, got, "the handler"); res != (copied{size, nil}) {
				t.Errorf("%v, %s: Copy gave %+v", e, tt.why, res)
			}
			if n := sys.Spliced() - before; n != tt.spliced {
				t.Errorf("%v, %s: %d bytes were spliced, want %d", e, tt.why, n, tt.spliced)
			}
		}
	}
}

// ownRead is a source whose Read must be called.
type ownRead struct{ *net.TCPConn }

func (r ownRead) Read(p []byte) (int, error) { return r.TCPConn.Read(p) }

// Without free pipes, at first or later, bytes are copied, and with free pipes
// again they are spliced.
func TestReadFromSocketWithoutPipes(t *testing.T) {
	if !sys.HaveSplice {
		t.Skip("needs splice")
	}
	for _, e := range []chert.Engine{chert.EngineLoops, chert.EngineGoroutines} {
		for _, tt := range []struct{ with, without, again int }{
			{0, 100_000, 0},
			{1000, 100_000, 0},
			{1000, 100_000, 100_000},
			{0, 600, 100_000},
		} {
			size := tt.with + tt.without + tt.again
			content := string(servertest.Pattern(size))
			near, far := pairOf(t, "tcp")
			_, c, got := proxy(t, e, fmt.Sprint(size), near)
			c.Send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
			begun := false
			// pass sends n bytes of content and returns how many were spliced
			// when the client has them and the handler waits for more.
			pass := func(n int) int64 {
				before := sys.Spliced()
				io.WriteString(far, content[:n])
				if n > 0 && !begun {
					c.Head()
					begun = true
				}
				c.Want(content[:n])
				content = content[n:]
				servertest.Eventually(t, "the handler waits", func() bool { used, _ := sys.Pipes(); return used == 0 })
				return sys.Spliced() - before
			}
			pass(tt.with)
			release := takePipes(t)
			before := sys.Spliced()
			io.WriteString(far, content[:600])
			if !begun {
				c.Head()
				begun = true
			}
			c.Want(content[:600]) // at once, as before
			io.WriteString(far, content[600:tt.without])
			c.Want(content[600:tt.without])
			if content = content[tt.without:]; sys.Spliced() != before {
				t.Errorf("%v, %v: %d bytes were spliced without a pipe", e, tt, sys.Spliced()-before)
			}
			release()
			pass(tt.again / 2) // the handler is in a read
			if n := pass(tt.again / 2); n != int64(tt.again/2) {
				t.Errorf("%v, %v: %d bytes were spliced when there were pipes again", e, tt, n)
			}
			far.Close()
			if res := servertest.Await(t, got, "the handler"); res != (copied{int64(size), nil}) {
				t.Errorf("%v, %v: Copy gave %+v", e, tt, res)
			}
		}
	}
}

// takePipes uses up all pipes.
func takePipes(t *testing.T) (release func()) {
	near, far := pairOf(t, "unix")
	raw, err := near.(*net.UnixConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var relays []*sys.Relay
	for none := false; !none; {
		far.Write([]byte("x"))
		r := new(sys.Relay)
		relays = append(relays, r)
		raw.Read(func(fd uintptr) bool {
			_, e := r.Take(int(fd), 1)
			none = e != 0 && !sys.Again(e)
			return !sys.Again(e)
		})
	}
	return func() {
		for _, r := range relays {
			r.Close()
		}
	}
}

// The declared length is never exceeded, whatever the source sends.
func TestReadFromSocketTooMuch(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		for _, length := range []int{600, 1000, 300_000} {
			near, far := pairOf(t, "tcp")
			feed(t, far, servertest.Pattern(1<<20), func() { far.Close() })
			_, c, got := proxy(t, e, fmt.Sprint(length), near)
			c.Send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
			c.Head()
			c.Want(string(servertest.Pattern(length)))
			if res := servertest.Await(t, got, "the handler"); res != (copied{int64(length), nil}) {
				t.Errorf("Copy gave %+v", res)
			}
			if _, body := c.Get("/other"); body != "other" {
				t.Errorf("then came %s", servertest.Brief(body))
			}
		}
	})
}

// A source that ends too early: the client must be able to notice.
func TestReadFromSocketShort(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		for _, network := range sourceKinds {
			for _, n := range []int{0, 100, 512, 600, 1 << 20} {
				near, far := pairOf(t, network)
				feed(t, far, servertest.Pattern(n), func() { far.Close() })
				_, c, got := proxy(t, e, "2000000", near)
				c.Send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
				c.Head()
				if body := c.Rest(); body != string(servertest.Pattern(n)) {
					t.Errorf("%s, %d: body is %s", network, n, servertest.Brief(body))
				}
				if res := servertest.Await(t, got, "the handler"); res != (copied{int64(n), nil}) {
					t.Errorf("%s, %d: Copy gave %+v", network, n, res)
				}
			}
		}
	})
}

// An error of the source ends the ReadFrom, which returns how much was sent and
// the source's error.
func TestReadFromSocketFails(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		for _, tt := range []struct {
			why, network string
			end          func(near, far net.Conn)
			want         error
		}{
			{"reset", "tcp", func(_, far net.Conn) { far.(*net.TCPConn).SetLinger(0); far.Close() }, syscall.ECONNRESET},
			{"deadline", "tcp", func(near, _ net.Conn) { near.SetReadDeadline(time.Unix(1, 0)) }, os.ErrDeadlineExceeded},
			{"deadline", "unix", func(near, _ net.Conn) { near.SetReadDeadline(time.Unix(1, 0)) }, os.ErrDeadlineExceeded},
			{"close", "tcp", func(near, _ net.Conn) { near.Close() }, net.ErrClosed},
			{"close", "unix", func(near, _ net.Conn) { near.Close() }, net.ErrClosed},
		} {
			near, far := pairOf(t, tt.network)
			_, c, got := proxy(t, e, "5000", near)
			c.Send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
			far.Write(servertest.Pattern(1000))
			c.Head()
			c.Want(string(servertest.Pattern(1000)))
			tt.end(near, far)
			res := servertest.Await(t, got, "the handler")
			if res.n != 1000 || !errors.Is(res.err, tt.want) {
				t.Errorf("%s, %s: Copy gave %+v", tt.network, tt.why, res)
			}
			var oe *net.OpError
			if !errors.As(res.err, &oe) {
				t.Errorf("%s, %s: the error is a %T", tt.network, tt.why, res.err)
			} else if e != engines.NetHTTP && (oe.Op != "read" || oe.Net != tt.network) {
				// net/http wraps it in errors that say readfrom and writeto.
				if inner := (*net.OpError)(nil); !errors.As(oe.Err, &inner) || inner.Op != "read" {
					t.Errorf("%s, %s: the error is %v", tt.network, tt.why, res.err)
				}
			}
			c.Ended()
		}
	})
}

// A deadline loses nothing: the copy may continue when it has been moved.
func TestReadFromSocketGoesOn(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		near, far := pairOf(t, "tcp")
		got := make(chan copied)
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "3000")
			for range 3 {
				n, err := io.Copy(w, near)
				near.SetReadDeadline(time.Time{})
				got <- copied{n, err}
			}
		})})
		c := ts.Dial()
		c.Send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		for i := range 3 {
			far.Write(servertest.Pattern(3000)[i*1000:][:1000])
			if i == 0 {
				c.Head()
			}
			c.Want(string(servertest.Pattern(3000)[i*1000:][:1000]))
			if i == 2 {
				far.Close() // net/http waits for the source's end, chert for the length
			} else {
				near.SetReadDeadline(time.Unix(1, 0))
			}
			if res := servertest.Await(t, got, "the handler"); res.n != 1000 || servertest.IsTimeout(res.err) != (i < 2) {
				t.Errorf("Copy gave %+v", res)
			}
		}
	})
}

// What the source sends is passed on at once, even if it is little.
func TestReadFromSocketTrickle(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		for _, network := range sourceKinds {
			for _, request := range []string{"GET / HTTP/1.1", "GET / HTTP/1.0"} {
				near, far := pairOf(t, network)
				length := ""
				if strings.HasSuffix(request, "1.1") {
					length = "1012"
				}
				_, c, got := proxy(t, e, length, near)
				c.Send(request + "\r\nHost: h\r\n\r\n")
				far.Write(servertest.Pattern(512))
				c.Head()
				c.Want(string(servertest.Pattern(512)))
				for _, b := range servertest.Pattern(1012)[512:] {
					far.Write([]byte{b})
					c.Want(string(b))
				}
				far.Close()
				if res := servertest.Await(t, got, "the handler"); res != (copied{1012, nil}) {
					t.Errorf("Copy gave %+v", res)
				}
			}
		}
	})
}

// A silent source is not a stalled client: it may be silent for longer than a
// client may stall.
func TestReadFromSocketSilence(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		near, far := pairOf(t, "tcp")
		got := make(chan copied, 1)
		const stall = 500 * time.Millisecond // on a busy machine even a write that nothing holds up takes a while
		ts := engines.Start(t, &chert.Server{Engine: e, WriteStallTimeout: stall, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "2000")
			n, err := io.Copy(w, near)
			got <- copied{n, err}
		})})
		c := ts.Dial()
		c.Send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		far.Write(servertest.Pattern(1000))
		c.Head()
		c.Want(string(servertest.Pattern(1000)))
		time.Sleep(2 * stall)
		far.Write(servertest.Pattern(2000)[1000:])
		c.Want(string(servertest.Pattern(2000)[1000:]))
		if res := servertest.Await(t, got, "the handler"); res != (copied{2000, nil}) {
			t.Errorf("Copy gave %+v", res)
		}
	})
}

// A copy that outlives its handler does not delay the handler's end, nor does
// it reach later responses.
func TestReadFromSocketTooLate(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		near, far := pairOf(t, "tcp")
		got := make(chan copied, 1)
		leave := make(chan struct{})
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/" {
				put(w, "other")
				return
			}
			w.Header().Set("Content-Length", "1000")
			go func() {
				n, err := io.Copy(w, near)
				got <- copied{n, err}
			}()
			<-leave
		})})
		c := ts.Dial()
		c.Send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		far.Write(servertest.Pattern(600))
		c.Head()
		c.Want(string(servertest.Pattern(600)))
		close(leave)
		c.Ended() // less than was declared
		c = ts.Dial()
		if _, body := c.Get("/other"); body != "other" {
			t.Errorf("got %s", servertest.Brief(body))
		}
		far.Write(servertest.Pattern(1000)[600:])
		if res := servertest.Await(t, got, "the copy"); res.n != 600 || res.err == nil {
			t.Errorf("Copy gave %+v", res)
		}
		if _, body := c.Get("/other"); body != "other" {
			t.Errorf("got %s", servertest.Brief(body))
		}
	})
}

// A slow client gets all bytes.
func TestReadFromSocketSlowClient(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		const size = 1 << 20
		near, far := pairOf(t, "tcp")
		feed(t, far, servertest.Pattern(size), func() { far.Close() })
		got := make(chan copied, 1)
		fs := &engines.Counting{Server: engines.StartOn(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(size))
			n, err := io.Copy(w, near)
			got <- copied{n, err}
		})}, servertest.ListenSmall(t, 16<<10))}
		c := fs.DialSmall(16 << 10)
		c.Send(servertest.GET)
		c.Head()
		for at := 0; at < size; at += 8 << 10 {
			c.Want(string(servertest.Pattern(size)[at:][:8<<10]))
			time.Sleep(time.Millisecond) // a slow client
		}
		if res := servertest.Await(t, got, "the handler"); res != (copied{size, nil}) {
			t.Errorf("Copy gave %+v", res)
		}
	})
}

// A client that accepts nothing, or is gone, ends the ReadFrom as it ends a
// Write.
func TestReadFromSocketClientFails(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		for _, tt := range []struct {
			why     string
			server  *chert.Server
			before  func(w http.ResponseWriter)
			fail    func(ts *engines.Server, c *servertest.Client)
			timeout bool
		}{
			{"a stall", &chert.Server{WriteStallTimeout: 50 * time.Millisecond}, nil, nil, true},
			{"WriteTimeout", &chert.Server{WriteTimeout: 200 * time.Millisecond}, nil, nil, true},
			{"SetWriteDeadline", &chert.Server{}, func(w http.ResponseWriter) {
				http.NewResponseController(w).SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
			}, nil, true},
			{"a reset", &chert.Server{}, nil, func(_ *engines.Server, c *servertest.Client) { c.Reset() }, false},
			{"Close", &chert.Server{}, nil, func(ts *engines.Server, _ *servertest.Client) { ts.Server.Close() }, false},
		} {
			near, far := pairOf(t, "tcp")
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for {
					if _, err := far.Write(servertest.Pattern(64 << 10)); err != nil {
						return
					}
				}
			}()
			got := make(chan copied, 1)
			cancelled := make(chan error, 1)
			tt.server.Engine = e
			tt.server.Handler = hf(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Length", fmt.Sprint(int64(1)<<40))
				if tt.before != nil {
					tt.before(w)
				}
				n, err := io.Copy(w, near)
				cancelled <- r.Context().Err()
				got <- copied{n, err}
			})
			ts := engines.Start(t, tt.server)
			c := ts.Dial()
			c.Send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
			if tt.fail != nil {
				c.Head()
				c.Want(string(servertest.Pattern(64 << 10)))
				tt.fail(ts, c)
			}
			if err := servertest.Await(t, cancelled, "the handler"); err == nil {
				t.Errorf("%s: the context is not done", tt.why)
			}
			if res := servertest.Await(t, got, "the handler"); tt.fail != nil && res.n < 64<<10 || res.err == nil || servertest.IsTimeout(res.err) != tt.timeout {
				t.Errorf("%s: Copy gave %+v", tt.why, res)
			}
			near.Close()
			servertest.Await(t, ended, "the source")
		}
	})
}

// While the source is silent, the client's end ends the context, and the
// handler then ends the copy.
func TestReadFromSocketClientLeaves(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		near, far := pairOf(t, "tcp")
		got := make(chan copied, 1)
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "2000")
			defer context.AfterFunc(r.Context(), func() { near.Close() })()
			n, err := io.Copy(w, near)
			got <- copied{n, err}
		})})
		c := ts.Dial()
		c.Send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		far.Write(servertest.Pattern(1000))
		c.Head()
		c.Want(string(servertest.Pattern(1000)))
		c.Reset()
		if res := servertest.Await(t, got, "the handler"); res.n != 1000 || !errors.Is(res.err, net.ErrClosed) {
			t.Errorf("Copy gave %+v", res)
		}
	})
}

// Shutdown waits for a copy in progress.
func TestReadFromSocketShutdown(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		near, far := pairOf(t, "tcp")
		ts, c, got := proxy(t, e, "2000", near)
		c.Send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		far.Write(servertest.Pattern(1000))
		c.Head()
		c.Want(string(servertest.Pattern(1000)))
		down := make(chan error, 1)
		go func() { down <- ts.Control.Shutdown(t.Context()) }()
		ts.Refuses()
		far.Write(servertest.Pattern(2000)[1000:])
		far.Close()
		c.Want(string(servertest.Pattern(2000)[1000:]))
		if res := servertest.Await(t, got, "the handler"); res != (copied{2000, nil}) {
			t.Errorf("Copy gave %+v", res)
		}
		if err := servertest.Await(t, down, "Shutdown"); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		c.Ended()
	})
}

// Many copies at once, complete and broken ones, leak no pipe.
func TestReadFromSocketLeavesNoPipes(t *testing.T) {
	if !sys.HaveSplice {
		t.Skip("needs splice")
	}
	var turn atomic.Int32
	for _, e := range []chert.Engine{chert.EngineLoops, chert.EngineGoroutines} {
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			near, far := pairOf(t, sourceKinds[turn.Add(1)%2])
			defer near.Close()
			go func() {
				defer far.Close()
				far.Write(servertest.Pattern(1 << 20))
			}()
			w.Header().Set("Content-Length", fmt.Sprint(1<<20))
			io.Copy(w, near)
		})})
		done := make(chan struct{})
		for i := range 64 {
			go func() {
				defer func() { done <- struct{}{} }()
				nc, err := net.Dial("tcp", ts.ListenAddr)
				if err != nil {
					t.Error(err)
					return
				}
				defer nc.Close()
				nc.SetDeadline(time.Now().Add(servertest.Patience))
				io.WriteString(nc, "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
				if i%2 == 0 {
					io.CopyN(io.Discard, nc, 100_000)
					nc.(*net.TCPConn).SetLinger(0)
				} else if n, err := io.Copy(io.Discard, nc); n < 1<<20 || err != nil {
					t.Errorf("got %d bytes, %v", n, err)
				}
			}()
		}
		for range 64 {
			servertest.Await(t, done, "the clients")
		}
	}
	servertest.Eventually(t, "the pipes are closed", func() bool {
		used, idle := sys.Pipes()
		return used+idle == 0
	})
}
