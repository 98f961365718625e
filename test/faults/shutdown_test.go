package faults

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

func TestFaultsShutdownForced(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		entered, ended := make(chan bool, 1), make(chan error, 1)
		fs := engines.StartCounting(t, &chert.Server{Engine: e, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			entered <- true
			<-r.Context().Done()
			ended <- r.Context().Err()
		})})
		c := fs.Dial()
		c.Send(servertest.GET)
		servertest.Await(t, entered, "the handler")
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
		servertest.Await(t, ended, "the handler's end")
		c.Ended()
		fs.Settled(1)
	})
}

// Close also ends connections that were accepted while it ran.
func TestFaultsCloseEndsLateConns(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		for range 10 {
			fs := engines.StartCounting(t, &chert.Server{Engine: e, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
						nc, err := net.Dial("tcp", fs.ListenAddr)
						if err != nil {
							return
						}
						defer nc.Close()
						io.WriteString(nc, servertest.GET)
						if dialed.Add(1) > 200 {
							return
						}
					}
				})
			}
			servertest.Eventually(t, "some clients have come", func() bool { return dialed.Load() > 20 })
			fs.Close()
			// While the clients are still open.
			ctx, cancel := context.WithTimeout(t.Context(), servertest.Patience)
			defer cancel()
			if err := fs.Shutdown(ctx); err != nil && !errors.Is(err, net.ErrClosed) {
				t.Errorf("Shutdown after Close: %v", err)
			}
			fs.Settled(0)
			close(stop)
			dialing.Wait()
		}
	})
}

// keptClient sends requests over one connection, as wrk does, until it is
// closed, and reports a response that was cut or wrong.
func keptClient(addr string, id int, first func()) error {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return nil // the listener is closed
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(servertest.Patience))
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
			return nil // closed before any byte of the response: may be retried
		}
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			return fmt.Errorf("%s: a partial answer: %w", path, err)
		}
		body, err := io.ReadAll(res.Body)
		if err != nil || !strings.HasPrefix(string(body), path+"\n") || len(body) != 20000 {
			return fmt.Errorf("%s: a response of %d bytes, %w", path, len(body), err)
		}
		if i == 0 {
			first()
		}
		if res.Close {
			if b, err := io.ReadAll(r); len(b) > 0 {
				return fmt.Errorf("%s: %q after the last response, %w", path, b, err)
			}
			return nil
		}
	}
}

// loadHandler responds with 20,000 bytes that begin with the path, some of them
// with a pause in the middle.
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
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		const n = 32
		var entered, left atomic.Int64
		fs := engines.StartCounting(t, &chert.Server{Engine: e, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			entered.Add(1)
			loadHandler(w, r)
			left.Add(1)
		})})
		errs := make(chan error, n)
		var ready sync.WaitGroup
		ready.Add(n)
		for id := range n {
			go func() { errs <- keptClient(fs.ListenAddr, id, ready.Done) }()
		}
		ready.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), servertest.Patience)
		defer cancel()
		if err := fs.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if entered.Load() != left.Load() {
			t.Errorf("%d handlers began, %d have ended after Shutdown", entered.Load(), left.Load())
		}
		for range n {
			if err := servertest.Await(t, errs, "the clients"); err != nil {
				t.Error(err)
			}
		}
		fs.Settled(n)
	})
}

// Requests that were sent before the shutdown are all served when they are
// pipelined on connections that the server has begun to read.
func TestFaultsShutdownFinishesRequestAtHand(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		h := newPhased()
		blocked := newBlocking()
		fs := engines.StartCounting(t, &chert.Server{Engine: e, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/block" {
				blocked.ServeHTTP(w, r)
				w.Write(h.answer)
			}
		})})
		c := fs.Dial()
		// The second request is not served any more, and its bytes must not
		// cost the first one its response.
		c.Send(blockGet + servertest.GET)
		servertest.Await(t, blocked.entered, "the handler")
		idle, fresh := fs.Dial(), fs.Dial()
		idle.Send(servertest.GET)
		idle.Status(200)
		servertest.Eventually(t, "all are accepted", func() bool { return fs.Opened.Load() == 3 })
		done := make(chan error, 1)
		go func() { done <- fs.Shutdown(context.Background()) }()
		idle.Ended()
		idle.Close()
		// A connection that has not sent a request yet may still do so.
		fresh.Send(servertest.GET)
		fresh.Status(200)
		fresh.Ended()
		fresh.Close()
		close(blocked.leave)
		if got := c.Status(200); got != "ok"+string(h.answer) {
			t.Errorf("the response's %d bytes are wrong", len(got))
		}
		if err := servertest.Await(t, done, "Shutdown"); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
}

func TestFaultsSIGTERMUnderLoad(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		const n = 32
		c := servertest.StartChild(t, "TestFaultsChildSIGTERM", fmt.Sprint(int(e)))
		errs := make(chan error, n)
		var ready sync.WaitGroup
		ready.Add(n)
		for id := range n {
			go func() { errs <- keptClient(c.Addr, id, ready.Done) }()
		}
		ready.Wait()
		c.Cmd.Process.Signal(syscall.SIGTERM)
		for range n {
			if err := servertest.Await(t, errs, "the clients"); err != nil {
				t.Error(err)
			}
		}
		c.Ends()
	})
}

func TestFaultsChildSIGTERM(t *testing.T) {
	e, ok := childEngine()
	if !ok {
		t.Skip("a part of TestFaultsSIGTERMUnderLoad")
	}
	ctx, stop := signal.NotifyContext(t.Context(), syscall.SIGTERM)
	defer stop()
	ts := engines.Start(t, &chert.Server{Engine: e, Handler: http.HandlerFunc(loadHandler)})
	fmt.Println("addr", ts.ListenAddr)
	<-ctx.Done()
	if err := ts.Shutdown(context.Background()); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
}

// childEngine returns the engine that this process tests, if it is a child.
func childEngine() (chert.Engine, bool) {
	var n int
	_, err := fmt.Sscan(os.Getenv(servertest.ChildEnv), &n)
	return chert.Engine(n), err == nil
}
