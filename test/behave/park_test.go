package behave

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"log"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/park"
)

// ahead is a hijacked connection with what Hijack has returned beside it.
type ahead struct {
	net.Conn
	r *bufio.Reader
}

func (a *ahead) Buffered() int     { return a.r.Buffered() }
func (a *ahead) NetConn() net.Conn { return a.Conn }
func (a *ahead) Read(p []byte) (int, error) {
	if a.Buffered() > 0 {
		return a.r.Read(p)
	}
	return a.Conn.Read(p)
}

// parkedEcho hijacks, and echoes one Read at a time. ended gets the error of the last
// one.
func parkedEcho(t *testing.T, ended chan<- error) http.Handler {
	var readable func(nc net.Conn)
	park := func(nc net.Conn) {
		if err := park.Park(nc, readable); err != nil {
			ended <- err
			nc.Close()
		}
	}
	readable = func(nc net.Conn) {
		b := make([]byte, 100)
		n, err := nc.Read(b)
		if err != nil {
			ended <- err
			nc.Close()
			return
		}
		nc.Write(b[:n])
		park(nc)
	}
	return hf(func(w http.ResponseWriter, r *http.Request) {
		nc, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		put(nc, switched)
		if rw.Reader.Buffered() > 0 {
			nc = &ahead{nc, rw.Reader}
		}
		park(nc)
	})
}

func TestPark(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		ended := make(chan error, 10)
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: parkedEcho(t, ended)})
		for _, early := range []string{"", "early", string(servertest.Pattern(20_000))} {
			c := ts.Dial()
			c.Send(upgrade + early)
			c.Want(switched + early)
			for range 3 {
				c.Send("later")
				c.Want("later")
			}
			c.CloseWrite()
			c.Ended()
			if err := servertest.Await(t, ended, "the end"); err.Error() != "EOF" {
				t.Errorf("the last Read returned %v", err)
			}
		}
	})
}

// What TLS has read from the socket and not returned yet makes a connection readable.
func TestParkTLS(t *testing.T) {
	t.Parallel()
	cert, roots := servertest.Certificate(t)
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		ended := make(chan error, 10)
		ts := engines.StartTLS(t, &chert.Server{Engine: e, Handler: parkedEcho(t, ended)}, servertest.ListenTCP(t), cert)
		nc, err := net.Dial("tcp", ts.ListenAddr)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		nc.SetDeadline(time.Now().Add(servertest.Patience))
		held := &holding{Conn: nc}
		c, _ := servertest.TLSOver(t, held, roots, "http/1.1")
		c.Send(upgrade)
		c.Want(switched)
		for n := range 5 {
			// In one segment: several records, and one that is longer than the
			// server's Read.
			held.hold()
			for range n {
				c.Send("record")
			}
			c.Send(string(servertest.Pattern(250)))
			held.send(t)
			c.Want(strings.Repeat("record", n) + string(servertest.Pattern(250)))
			// A record in two parts.
			held.hold()
			c.Send("parts")
			held.sendParts(t)
			c.Want("parts")
		}
		c.Conn.(*tls.Conn).CloseWrite()
		c.Ended()
		if err := servertest.Await(t, ended, "the end"); err.Error() != "EOF" {
			t.Errorf("the last Read returned %v", err)
		}
	})
}

// holding is a connection that gathers what is written.
type holding struct {
	net.Conn
	holds bool
	b     []byte
}

func (h *holding) hold() { h.holds = true }

func (h *holding) Write(p []byte) (int, error) {
	if !h.holds {
		return h.Conn.Write(p)
	}
	h.b = append(h.b, p...)
	return len(p), nil
}

func (h *holding) send(t *testing.T) {
	t.Helper()
	if _, err := h.Conn.Write(h.b); err != nil {
		t.Fatal(err)
	}
	h.holds, h.b = false, nil
}

func (h *holding) sendParts(t *testing.T) {
	t.Helper()
	b := h.b
	h.b = b[:7]
	h.send(t)
	h.b = b[7:]
	h.send(t)
}

// Types that cannot be watched have a goroutine.
func TestParkOtherTypes(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]chert.Engine{"goroutines": chert.EngineGoroutines, "nethttp": engines.NetHTTP} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ended := make(chan error, 10)
			_, m := engines.StartMemory(t, &chert.Server{Engine: e, Handler: parkedEcho(t, ended)})
			c := servertest.Wrap(t, m.Dial(t))
			c.SendAside(upgrade)
			c.Want(switched)
			for range 3 {
				c.SendAside("later")
				c.Want("later")
			}
			c.Close()
			servertest.Await(t, ended, "the end")
		})
	}
}

func TestParkMisuse(t *testing.T) {
	t.Parallel()
	a, b := servertest.TCPConns(t)
	defer b.Close()
	never := func(net.Conn) { t.Error("called") }
	if err := park.Park(nil, never); err == nil {
		t.Error("nil is parked")
	}
	if err := park.Park(a, nil); err == nil {
		t.Error("parked without a function")
	}
	called := make(chan struct{}, 2)
	if err := park.Park(a, func(net.Conn) { called <- struct{}{} }); err != nil {
		t.Error(err)
	}
	if runtime.GOOS == "linux" {
		if err := park.Park(a, never); err == nil || !strings.HasPrefix(err.Error(), "park: ") {
			t.Errorf("parked twice: %v", err)
		}
		if err := park.Park(&ahead{a, bufio.NewReader(a)}, never); err == nil {
			t.Error("parked twice, in another type")
		}
	}
	a.Close()
	servertest.Await(t, called, "the call after Close")
	if err := park.Park(a, never); !errors.Is(err, net.ErrClosed) {
		t.Errorf("parked after Close: %v", err)
	}
}

// A panic ends the connection, and not the process. Not parallel: package log's logger
// is the process's.
func TestParkPanic(t *testing.T) {
	var b lockedBuffer
	log.SetOutput(&b)
	defer log.SetOutput(os.Stderr)
	for _, tt := range []struct {
		name string
		end  func()
		logs bool
	}{
		{"panic", func() { panic("an error of the program") }, true},
		{"abort", func() { panic(http.ErrAbortHandler) }, false},
		{"goexit", runtime.Goexit, false},
	} {
		b.take()
		a, client := servertest.TCPConns(t)
		defer client.Close()
		if err := park.Park(a, func(net.Conn) { tt.end() }); err != nil {
			t.Fatal(err)
		}
		c := servertest.NewClient(t, client)
		c.Send("x")
		c.Ended()
		if got := b.take(); strings.Contains(got, "an error of the program") != tt.logs || strings.Contains(got, "park_test.go") != tt.logs {
			t.Errorf("%s: logged %q", tt.name, got)
		}
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.b.Reset()
	return l.b.String()
}

// Shutdown neither closes nor awaits parked connections, which a function can close.
func TestParkShutdown(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		ended, hijacked := make(chan error, 10), make(chan net.Conn, 1)
		h := parkedEcho(t, ended)
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			h.ServeHTTP(keeping{w, hijacked}, r)
		})})
		c := ts.Dial()
		c.Send(upgrade)
		c.Want(switched)
		nc := servertest.Await(t, hijacked, "the connection")
		ctx, cancel := context.WithTimeout(t.Context(), servertest.Patience)
		defer cancel()
		if err := ts.Control.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		c.Send("still there")
		c.Want("still there")
		nc.Close()
		c.Ended()
		if err := servertest.Await(t, ended, "the call"); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Read returned %v", err)
		}
	})
}

// keeping sends hijacked connections to a channel.
type keeping struct {
	http.ResponseWriter
	to chan net.Conn
}

func (k keeping) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	nc, rw, err := http.NewResponseController(k.ResponseWriter).Hijack()
	k.to <- nc
	return nc, rw, err
}

// TestParkedAreSmall: a parked connection has no goroutine and, with its net.Conn, less
// than 1 KiB of the heap. Not parallel: the heap is the process's.
func TestParkedAreSmall(t *testing.T) {
	if runtime.GOOS != "linux" || engines.Layered {
		t.Skip("a goroutine each")
	}
	for name, e := range map[string]chert.Engine{"loops": chert.EngineLoops, "goroutines": chert.EngineGoroutines, "nethttp": engines.NetHTTP} {
		t.Run(name, func(t *testing.T) {
			n := min(1000, sys.MaxFiles()/8)
			ended := make(chan error, n)
			ts := engines.Start(t, &chert.Server{Engine: e, MaxConns: -1, Handler: parkedEcho(t, ended)})
			conns := make([]net.Conn, n)
			b := make([]byte, len(switched))
			open := func() {
				for i := range conns {
					nc, err := net.Dial("tcp", ts.ListenAddr)
					if err != nil {
						t.Fatal(err)
					}
					conns[i] = nc
					nc.SetDeadline(time.Now().Add(servertest.Patience))
					for _, s := range [][2]string{{upgrade, switched}, {"hello", "hello"}} {
						put(nc, s[0])
						if _, err := nc.Read(b[:len(s[1])]); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			shut := func() {
				for _, nc := range conns {
					nc.Close()
				}
				for range conns {
					servertest.Await(t, ended, "the end of a connection")
				}
			}
			open() // what the server keeps for the next ones
			shut()
			clear(conns)
			before := heap()
			goroutines := runtime.NumGoroutine()
			open()
			// The server's own goroutines come and go.
			servertest.Eventually(t, "connections have no goroutines", func() bool { return runtime.NumGoroutine() < goroutines+n/10 })
			// Both ends are in this process; the client's has a net.Conn and nothing else.
			if each := (heap() - before) / n; each > 1<<10 {
				t.Errorf("%d bytes for both ends of a connection", each)
			} else {
				t.Logf("%d bytes for both ends of a connection", each)
			}
			shut()
		})
	}
}

func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
