package static_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/chertest"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/race"
	"github.com/chert-http/chert/static"
)

// The files wire_*_test.go are a client's view: bytes over a socket, and none of
// the package's insides. internal/sys reports whether there are event loops.

// patience bounds every wait for something that must happen. Nothing passes by
// waiting it out.
const patience = 60 * time.Second

// effort is how long a test tries what may happen or not; half as long with the
// race detector, which sees by one time what it would see by many.
func effort(d time.Duration) time.Duration {
	if race.Enabled {
		d /= 2
	}
	return d
}

// A way is a server that runs a handler.
type way struct {
	name  string
	serve func(t testing.TB, h http.Handler) (addr string)
}

// ways are all servers; the last is net/http's.
func ways() (all []way) {
	on := func(name string, e chert.Engine, p chert.Placement) {
		all = append(all, way{name, func(t testing.TB, h http.Handler) string { return onChert(t, h, e, p) }})
	}
	if sys.HavePoller {
		on("inline", chert.EngineLoops, chert.PlacementInline)
		on("adaptive", chert.EngineLoops, chert.PlacementAdaptive)
		on("pooled", chert.EngineLoops, chert.PlacementPooled)
	}
	on("goroutines", chert.EngineGoroutines, chert.PlacementAdaptive)
	return append(all, way{"nethttp", onNetHTTP})
}

func onChert(t testing.TB, h http.Handler, e chert.Engine, p chert.Placement) string {
	s := chertest.NewUnstartedServer(h)
	s.Config.Engine, s.Config.Placement = e, p
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func onNetHTTP(t testing.TB, h http.Handler) string {
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// everyWay runs f on each server.
func everyWay(t *testing.T, f func(t *testing.T, w way)) {
	t.Helper()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			f(t, w)
		})
	}
}

// serveDir is a handler over dir that ends with the test.
func serveDir(t testing.TB, dir string, o *static.Options) *static.Handler {
	t.Helper()
	h, err := static.New(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// makeTree makes files, by path, of contents; a path that ends in a slash is a
// folder, and a content of "-> x" a link to x.
func makeTree(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		p := filepath.Join(dir, filepath.FromSlash(name))
		err := os.MkdirAll(filepath.Dir(p), 0o777)
		to, link := strings.CutPrefix(content, "-> ")
		switch {
		case err != nil:
		case link:
			err = os.Symlink(to, p)
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(p, 0o777)
		default:
			err = os.WriteFile(p, []byte(content), 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// settle waits until the files that were made before made are no more taken to
// be in the middle of being written: a large one then gets the tag that it keeps.
func settle(t testing.TB, made time.Time) {
	t.Helper()
	eventually(t, "the files have settled", func() bool { return time.Since(made) > 2200*time.Millisecond })
}

// An answer is what came back.
type answer struct {
	status int
	head   http.Header
	length int64 // Content-Length; -1 without
	body   string
	cut    error // why the body is not whole
	closes bool  // the connection ends after it
}

func (a *answer) field(name string) string { return a.head.Get(name) }

func (a *answer) String() string {
	body := a.body
	if len(body) > 200 {
		body = fmt.Sprintf("%s... (%d bytes)", body[:200], len(body))
	}
	return fmt.Sprintf("%d %v %q, cut: %v", a.status, a.head, body, a.cut)
}

// A client sends one request after the other on a connection, and opens another
// when that has ended. It is used by one goroutine.
type client struct {
	t    testing.TB
	addr string
	c    net.Conn
	r    *bufio.Reader
}

func newClient(t testing.TB, addr string) *client {
	c := &client{t: t, addr: addr}
	t.Cleanup(c.close)
	return c
}

func (c *client) close() {
	if c.c != nil {
		c.c.Close()
		c.c = nil
	}
}

func (c *client) dial() error {
	if c.c != nil {
		return nil
	}
	nc, err := net.Dial("tcp", c.addr)
	if err != nil {
		return err
	}
	nc.SetDeadline(time.Now().Add(patience))
	c.c, c.r = nc, bufio.NewReaderSize(nc, 64<<10)
	return nil
}

// head is a request's, raw.
func head(method, target string, lines ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: example.com\r\n", method, target)
	for _, l := range lines {
		b.WriteString(l)
		b.WriteString("\r\n")
	}
	b.WriteString("\r\n")
	return b.String()
}

// ask sends a request and reads the answer, whose body may be cut. A failure of
// anything else ends the test: call it from the test's goroutine only.
func (c *client) ask(method, target string, lines ...string) *answer {
	c.t.Helper()
	a, err := c.try(method, target, lines...)
	if err != nil {
		c.t.Fatalf("%s %.200q %.200q: %v", method, target, lines, err)
	}
	return a
}

// try is ask for any goroutine.
func (c *client) try(method, target string, lines ...string) (*answer, error) {
	if err := c.dial(); err != nil {
		return nil, err
	}
	c.c.SetDeadline(time.Now().Add(patience)) // of this answer: how long all take depends on the machine
	if _, err := io.WriteString(c.c, head(method, target, lines...)); err != nil {
		c.close()
		return nil, err
	}
	a, err := c.answer(method)
	if err != nil || a.cut != nil || a.closes {
		c.close()
	}
	return a, err
}

// answer reads one.
func (c *client) answer(method string) (*answer, error) {
	res, err := http.ReadResponse(c.r, &http.Request{Method: method})
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(res.Body)
	res.Body.Close()
	var late net.Error
	if errors.As(err, &late) && late.Timeout() {
		return nil, err
	}
	return &answer{res.StatusCode, res.Header, res.ContentLength, string(body), err, res.Close}, nil
}

// bytesOver sends s, which asks the server to close, and gives whatever comes
// back. half: it may not ask for that, so the client says that this is all.
func bytesOver(addr, s string, half bool) (string, error) {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return "", err
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(patience))
	// A fuzzer would soon have all ports in TIME_WAIT.
	nc.(*net.TCPConn).SetLinger(0)
	// The server may answer and close before it has read all.
	if _, err := io.WriteString(nc, s); err == nil && half {
		nc.(*net.TCPConn).CloseWrite()
	}
	b, err := io.ReadAll(nc)
	var late net.Error
	if errors.As(err, &late) && late.Timeout() {
		return "", err
	}
	return string(b), nil
}

// eventually polls until f holds.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !f(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long until %s", what)
		}
		time.Sleep(5 * time.Millisecond) // polling, not synchronising
	}
}

// pattern is n bytes any part of which identifies the version, and where in it
// they are.
func pattern(version byte, n int) string {
	b := make([]byte, n)
	x := uint32(version)*2654435761 + 1
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x>>24)&0x3e | 1 | version<<6 // never 0, which is what holes are
	}
	return string(b)
}

// spin runs f again and again until the test's end, or until the function that
// it returns is called.
func spin(t *testing.T, f func() error) (stop func()) {
	done := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if err := f(); err != nil {
				t.Error(err)
				return
			}
		}
	})
	stop = sync.OnceFunc(func() {
		close(done)
		all.Wait()
	})
	t.Cleanup(stop)
	return stop
}

// A served is a handler on a server.
type served struct{ name, addr string }

// serveAll serves dir with all options on all servers.
func serveAll(t *testing.T, dir string, options map[string]*static.Options) (all []served) {
	for name, o := range options {
		for _, w := range ways() {
			all = append(all, served{name + " on " + w.name, w.serve(t, serveDir(t, dir, o))})
		}
	}
	return all
}

// clients runs n for each server, and waits.
func clients(t *testing.T, all []served, n int, f func(c *client, i int) error) {
	var running sync.WaitGroup
	for _, s := range all {
		for i := range n {
			c := newClient(t, s.addr)
			running.Go(func() {
				if err := f(c, i); err != nil {
					t.Errorf("%s: %v", s.name, err)
				}
			})
		}
	}
	running.Wait()
}
