package main

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/sys"
)

// bigSize is more than the kernel's buffers on both sides hold together, so that the server is not done with the file
// before the client has read some of it.
const bigSize = 32 << 20

// until polls until the condition holds.
func until(t *testing.T, done func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !done(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("waited in vain")
		}
	}
}

// download is a response whose body the client has not begun to read.
type download struct {
	res *http.Response
	sum [sha256.Size]byte // of the file
}

// slowDownload starts chert with a big file and asks for it.
func slowDownload(t *testing.T, args ...string) (*proc, *download) {
	t.Helper()
	p := &proc{t: t, cmd: command(t, append([]string{"serve"}, args...)...)}
	return p, p.slowDownload()
}

// slowDownload is that for a command that has no folder yet.
func (p *proc) slowDownload() *download {
	t := p.t
	t.Helper()
	dir := t.TempDir()
	content := make([]byte, bigSize)
	rand.NewChaCha8([32]byte{1}).Read(content)
	if err := os.WriteFile(filepath.Join(dir, "big"), content, 0o644); err != nil {
		t.Fatal(err)
	}
	p.cmd.Args = append(p.cmd.Args, dir, "--listen", "127.0.0.1:0")
	p.begin()
	c := dial(t, p.urls[0])
	if err := c.SetReadBuffer(256 << 10); err != nil {
		t.Fatal(err)
	}
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(c, "GET /big HTTP/1.1\r\nHost: x\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return &download{res, sha256.Sum256(content)}
}

// finish reads the rest and reports whether it is the whole file.
func (d *download) finish() error {
	h := sha256.New()
	n, err := io.Copy(h, d.res.Body)
	if err != nil {
		return fmt.Errorf("after %d bytes: %w", n, err)
	}
	if [sha256.Size]byte(h.Sum(nil)) != d.sum {
		return fmt.Errorf("%d bytes, not those of the file", n)
	}
	return nil
}

func TestDrain(t *testing.T) {
	needSignals(t)
	for name, sig := range map[string]os.Signal{"SIGTERM": syscall.SIGTERM, "SIGINT": os.Interrupt} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, d := slowDownload(t)
			p.signal(sig)
			if line := p.line(); !strings.Contains(line, "finishing running requests for up to 30s") {
				t.Errorf("stop line %q", line)
			}
			u, err := url.Parse(p.urls[0])
			if err != nil {
				t.Fatal(err)
			}
			until(t, func() bool { // no new connection is accepted
				c, err := net.Dial("tcp", u.Host)
				if err == nil {
					c.Close()
				}
				return err != nil
			})
			if err := d.finish(); err != nil {
				t.Error(err)
			}
			p.waitFor(exitOK)
			if len(p.stderr.String()) > 0 {
				t.Errorf("stderr: %s", p.stderr.String())
			}
		})
	}
}

func TestSecondSignal(t *testing.T) {
	needSignals(t)
	t.Parallel()
	p, d := slowDownload(t)
	p.signal(syscall.SIGTERM)
	p.line()
	p.signal(os.Interrupt)
	p.waitFor(exitFailure)
	if got, want := p.stderr.String(), "chert: second signal (interrupt): stopped at once, requests were cut off\n"; got != want {
		t.Errorf("stderr %q, want %q", got, want)
	}
	if err := d.finish(); err == nil {
		t.Error("the download was not cut off")
	}
}

func TestShutdownTimeout(t *testing.T) {
	needSignals(t)
	for _, timeout := range []string{"0s", "50ms"} {
		t.Run(timeout, func(t *testing.T) {
			t.Parallel()
			p, _ := slowDownload(t, "--shutdown-timeout", timeout)
			p.signal(syscall.SIGTERM)
			p.waitFor(exitFailure)
			want := "chert: requests were cut off after " + timeout + "; --shutdown-timeout gives them longer\n"
			if got := p.stderr.String(); got != want {
				t.Errorf("stderr %q, want %q", got, want)
			}
		})
	}
}

// Shutdown does not wait for a keep-alive connection without a request.
func TestIdleConnectionDoesNotHold(t *testing.T) {
	needSignals(t)
	t.Parallel()
	p := start(t, folder(t, map[string]string{"f": "x"}), "--listen", "127.0.0.1:0", "--shutdown-timeout", "40s")
	if status, _ := get(t, newClient(t, ""), p.urls[0]+"f"); status != 200 {
		t.Errorf("status %d", status)
	}
	p.signal(syscall.SIGTERM)
	p.waitFor(exitOK)
}

// A script starts background jobs with the interrupt ignored; they must survive a Ctrl-C that ends the script.
func TestIgnoredInterruptStaysIgnored(t *testing.T) {
	needSignals(t)
	t.Parallel()
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	p := &proc{t: t, cmd: command(t)}
	p.cmd.Path = "/bin/sh"
	p.cmd.Args = []string{"sh", "-c", `trap '' INT; exec "$@"`, "sh",
		bin, "serve", folder(t, map[string]string{"f": "alive"}), "--listen", "127.0.0.1:0"}
	p.begin()
	p.signal(os.Interrupt)
	if status, body := get(t, newClient(t, ""), p.urls[0]+"f"); status != 200 || body != "alive" {
		t.Errorf("%d %q", status, body)
	}
	p.signal(syscall.SIGTERM)
	if line := p.line(); !strings.HasPrefix(line, "chert: terminated: ") {
		t.Errorf("stop line %q, want the first signal to be SIGTERM", line)
	}
	p.waitFor(exitOK)
}

// A listener that fails ends the server with an error, and the other listeners too.
func TestListenerFails(t *testing.T) {
	t.Parallel()
	s := &service{srv: &chert.Server{Handler: http.NotFoundHandler()}}
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		s.bindings = append(s.bindings, &binding{listener: listener{Listener: l}})
	}
	s.bindings[0].Listener.Close()
	err := s.serveUntil(nil, nil)
	if err == nil || !strings.HasPrefix(err.Error(), "the server failed: ") {
		t.Errorf("error %v", err)
	}
	// Serve may begin only after Close, and then closes its listener itself; either way no connection is accepted.
	until(t, func() bool {
		c, err := net.Dial("tcp", s.bindings[1].Addr().String())
		if err == nil {
			c.Close()
		}
		return err != nil
	})
}

// closedListener is a listener whose owner has closed it, while Accept has yet to return.
type closedListener struct {
	address
	accepting, closed chan struct{}
}

func (l *closedListener) Accept() (net.Conn, error) {
	close(l.accepting)
	<-l.closed
	return nil, net.ErrClosed
}

func (l *closedListener) Close() error {
	close(l.closed)
	return &net.OpError{Op: "close", Net: "unix", Err: net.ErrClosed}
}

// A stop right after a reload that has removed an address is a clean one.
func TestDrainAfterReload(t *testing.T) {
	t.Parallel()
	s := &service{srv: new(chert.Server)}
	s.timeout.Store(int64(patience))
	at := address{&net.UnixAddr{Name: "s", Net: "unix"}}
	l := &closedListener{at, make(chan struct{}), make(chan struct{})}
	served := make(chan error, 1)
	go func() { served <- s.srv.Serve(l) }()
	<-l.accepting
	if err := s.drain(nil, false); err != nil {
		t.Error(err)
	}
	if err := <-served; err != http.ErrServerClosed {
		t.Error(err)
	}
}

// Requests for redirects to TLS are finished too.
func TestDrainOfRedirects(t *testing.T) {
	t.Parallel()
	began, finish := make(chan struct{}), make(chan struct{})
	s := &service{srv: new(chert.Server)}
	s.timeout.Store(int64(patience))
	s.plain = &chert.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(began)
		select {
		case <-finish:
		case <-r.Context().Done():
		}
	})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.plain.Serve(l) }()
	c := dial(t, "http://"+l.Addr().String())
	c.SetDeadline(time.Now().Add(patience))
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	<-began
	ends := make(chan struct{})
	s.srv.RegisterOnShutdown(func() { close(ends) })
	drained := make(chan error, 1)
	go func() { drained <- s.drain(nil, false) }()
	if err := <-served; err != http.ErrServerClosed {
		t.Error(err)
	}
	<-ends
	for range 10000 { // nothing else holds the drain
		if runtime.Gosched(); len(drained) > 0 {
			t.Fatal("drained before the request was finished")
		}
	}
	close(finish)
	if res, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || res.StatusCode != 200 {
		t.Errorf("%v %v", res, err)
	}
	c.Close()
	if err := <-drained; err != nil {
		t.Error(err)
	}
}

// The service manager is to know of an event loop that does not go on.
func TestLoopsRespond(t *testing.T) {
	t.Parallel()
	if !sys.HavePoller {
		t.Skip("no event loops")
	}
	entered, goOn := make(chan struct{}), make(chan struct{})
	s := &service{srv: &chert.Server{Handler: http.NotFoundHandler(), ProxyProtocol: func(net.Listener, netip.Addr) bool {
		close(entered)
		<-goOn
		return false
	}}}
	l, err := s.srv.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.srv.Serve(l) }()
	dial(t, "http://"+l.Addr().String())
	<-entered
	if s.responds() {
		t.Error("a loop that waits is not noticed")
	}
	close(goOn)
	until(t, s.responds)
	s.srv.Close()
	<-served
}
