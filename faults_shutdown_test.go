package chert

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func TestFaultsShutdownForced(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e Engine) {
		entered, ended := make(chan bool, 1), make(chan error, 1)
		fs := faultStart(t, &Server{Engine: e, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			entered <- true
			<-r.Context().Done()
			ended <- r.Context().Err()
		})})
		c := fs.dial()
		c.send(faultGet)
		await(t, entered, "the handler")
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := fs.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Shutdown returned %v", err)
		}
		select {
		case <-ended:
			t.Error("the handler was ended by Shutdown alone")
		default:
		}
		fs.Close()
		await(t, ended, "the handler's end")
		c.closed()
		fs.settled(1)
	})
}

// Close ends also what was accepted while it ran.
func TestFaultsCloseEndsLateConns(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e Engine) {
		for range 10 {
			fs := faultStart(t, &Server{Engine: e, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				<-r.Context().Done()
			})})
			var dialing sync.WaitGroup
			stop := make(chan bool)
			var dialed atomic.Int64
			for range 4 {
				dialing.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
						}
						nc, err := net.Dial("tcp", fs.addr)
						if err != nil {
							return
						}
						defer nc.Close()
						io.WriteString(nc, faultGet)
						if dialed.Add(1) > 200 {
							return
						}
					}
				})
			}
			eventually(t, "some clients have come", func() bool { return dialed.Load() > 20 })
			fs.Close()
			// While the clients are still open.
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := fs.Shutdown(ctx); err != nil && !errors.Is(err, net.ErrClosed) {
				t.Errorf("Shutdown after Close: %v", err)
			}
			fs.settled(0)
			close(stop)
			dialing.Wait()
		}
	})
}

// keptClient sends requests over one connection, as wrk does, until it is
// closed, and reports an answer that was cut or wrong.
func keptClient(addr string, id int, first func()) error {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return nil // the listener is closed
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(patience))
	r := bufio.NewReader(nc)
	for i := 0; ; i++ {
		path := fmt.Sprintf("/%d/%d", id, i)
		if _, err := io.WriteString(nc, "GET "+path+" HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
			return nil // closed between requests
		}
		if _, err := r.Peek(1); err != nil {
			var ne net.Error
			if errors.As(err, &ne) && ne.Timeout() {
				return fmt.Errorf("%s: no answer and no end", path)
			}
			return nil // closed before any byte of the answer: may be retried
		}
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			return fmt.Errorf("%s: a partial answer: %w", path, err)
		}
		body, err := io.ReadAll(res.Body)
		if err != nil || !strings.HasPrefix(string(body), path+"\n") || len(body) != 20000 {
			return fmt.Errorf("%s: an answer of %d bytes, %w", path, len(body), err)
		}
		if i == 0 {
			first()
		}
		if res.Close {
			if b, err := io.ReadAll(r); len(b) > 0 {
				return fmt.Errorf("%s: %q behind the last answer, %w", path, b, err)
			}
			return nil
		}
	}
}

// loadHandler answers 20,000 bytes that begin with the path, some of them with
// a pause in the middle.
func loadHandler(w http.ResponseWriter, r *http.Request) {
	b := make([]byte, 20000)
	copy(b, r.URL.Path+"\n")
	half := len(b) / 2
	w.Write(b[:half])
	if len(r.URL.Path)%2 == 0 {
		w.(http.Flusher).Flush()
		time.Sleep(time.Millisecond) // a handler that works
	}
	w.Write(b[half:])
}

func TestFaultsShutdownUnderLoad(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e Engine) {
		const n = 32
		var entered, left atomic.Int64
		fs := faultStart(t, &Server{Engine: e, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			entered.Add(1)
			loadHandler(w, r)
			left.Add(1)
		})})
		errs := make(chan error, n)
		var ready sync.WaitGroup
		ready.Add(n)
		for id := range n {
			go func() { errs <- keptClient(fs.addr, id, ready.Done) }()
		}
		ready.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if err := fs.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if entered.Load() != left.Load() {
			t.Errorf("%d handlers began, %d have ended after Shutdown", entered.Load(), left.Load())
		}
		for range n {
			if err := await(t, errs, "the clients"); err != nil {
				t.Error(err)
			}
		}
		fs.settled(n)
	})
}

// Requests that were sent before the shutdown are all answered when they are
// pipelined on connections that the server has begun to read.
func TestFaultsShutdownFinishesRequestAtHand(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e Engine) {
		h := newPhased()
		blocked := newBlocking()
		fs := faultStart(t, &Server{Engine: e, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/block" {
				blocked.ServeHTTP(w, r)
				w.Write(h.answer)
			}
		})})
		c := fs.dial()
		// The second request is not served any more, and its bytes must not
		// cost the first one its answer.
		c.send(blockGet + faultGet)
		await(t, blocked.entered, "the handler")
		idle, fresh := fs.dial(), fs.dial()
		idle.send(faultGet)
		idle.status(200)
		eventually(t, "all are accepted", func() bool { return fs.opened.Load() == 3 })
		done := make(chan error, 1)
		go func() { done <- fs.Shutdown(context.Background()) }()
		idle.closed()
		idle.Close()
		// A connection that has not asked anything yet may still do so.
		fresh.send(faultGet)
		fresh.status(200)
		fresh.closed()
		fresh.Close()
		close(blocked.leave)
		if got := c.status(200); got != "ok"+string(h.answer) {
			t.Errorf("the answer's %d bytes are wrong", len(got))
		}
		if err := await(t, done, "Shutdown"); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
}

// childEnv makes the test binary play a part in its own process.
const childEnv = "CHERT_TEST_CHILD"

// child runs the given test of this binary as a process of its own. Its first
// line of output is the server's address.
type child struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	addr string
}

func startChild(t *testing.T, test, arg string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), childEnv+"="+arg)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{t: t, cmd: cmd, in: in, out: bufio.NewReader(out)}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	c.addr = c.line("addr ")
	return c
}

// line reads the child's output as far as a line that begins with prefix.
func (c *child) line(prefix string) string {
	c.t.Helper()
	for {
		s, err := c.out.ReadString('\n')
		if err != nil {
			c.t.Fatalf("the child ended before it said %q", prefix)
		}
		if s, ok := strings.CutPrefix(strings.TrimSpace(s), prefix); ok {
			return s
		}
	}
}

// ends waits for the child's end and checks that it went well.
func (c *child) ends() {
	c.t.Helper()
	rest, _ := io.ReadAll(c.out)
	if err := c.cmd.Wait(); err != nil {
		c.t.Errorf("the child: %v\n%s", err, rest)
	}
}

func TestFaultsSIGTERMUnderLoad(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e Engine) {
		const n = 32
		c := startChild(t, "TestFaultsChildSIGTERM", fmt.Sprint(int(e)))
		errs := make(chan error, n)
		var ready sync.WaitGroup
		ready.Add(n)
		for id := range n {
			go func() { errs <- keptClient(c.addr, id, ready.Done) }()
		}
		ready.Wait()
		c.cmd.Process.Signal(syscall.SIGTERM)
		for range n {
			if err := await(t, errs, "the clients"); err != nil {
				t.Error(err)
			}
		}
		c.ends()
	})
}

func TestFaultsChildSIGTERM(t *testing.T) {
	e, ok := childEngine()
	if !ok {
		t.Skip("a part of TestFaultsSIGTERMUnderLoad")
	}
	ctx, stop := signal.NotifyContext(t.Context(), syscall.SIGTERM)
	defer stop()
	ts := start(t, &Server{Engine: e, Handler: http.HandlerFunc(loadHandler)})
	fmt.Println("addr", ts.addr)
	<-ctx.Done()
	if err := ts.Shutdown(context.Background()); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
}

// childEngine is the engine that this process plays its part with.
func childEngine() (Engine, bool) {
	var n int
	_, err := fmt.Sscan(os.Getenv(childEnv), &n)
	return Engine(n), err == nil
}
