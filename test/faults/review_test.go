package faults

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// A handler hijacks while goroutines of its own are in Read of the body, and
// then returns or panics: the end of the request must not touch a connection
// that is no longer its own.
func TestFaultsHijackUnderBodyReaders(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			done := make(chan struct{})
			for range 2 {
				go func() {
					defer func() { done <- struct{}{} }()
					for range 300 {
						if _, err := r.Body.Read(make([]byte, 10)); !errors.Is(err, http.ErrBodyReadAfterClose) {
							t.Errorf("Read gives %v", err)
							return
						}
					}
				}()
			}
			go func() {
				<-done
				<-done
				io.WriteString(c, "x")
				c.Close()
			}()
			if r.URL.Path == "/panic" {
				panic(http.ErrAbortHandler)
			}
		})
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: h})
		for i := range 100 {
			c := ts.Dial()
			c.Send([]string{"POST /", "POST /panic"}[i%2] + " HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n")
			if got := c.Rest(); got != "x" {
				t.Fatalf("got %q, want what the hijacker wrote", got)
			}
			c.Close()
		}
		if s := ts.Log.String(); s != "" {
			t.Errorf("logged: %s", s)
		}
	})
}

// The usual watchdog: a deadline set from another goroutine ends a Write that
// waits for a client that does not read.
func TestFaultsDeadlineEndsWrite(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		ended := make(chan error, 1)
		ts := engines.Start(t, &chert.Server{Engine: e, WriteStallTimeout: -1, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			rc := http.NewResponseController(w)
			defer time.AfterFunc(50*time.Millisecond, func() {
				if err := rc.SetWriteDeadline(time.Now()); err != nil {
					t.Error(err)
				}
			}).Stop()
			_, err := w.Write(make([]byte, 64<<20))
			ended <- err
		})})
		c := ts.Dial()
		c.Send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		if err := servertest.Await(t, ended, "the end of Write"); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Write gives %v", err)
		}
	})
}

// A client trickles the rest of a body that the handler does not want, each
// byte in time: it gets its answer all the same, and the connection ends.
func TestFaultsTrickledRest(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "no", http.StatusUnauthorized)
		})})
		c := ts.Dial()
		c.Send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 262144\r\n\r\n")
		stop := make(chan struct{})
		defer close(stop)
		go func() {
			for tick := time.NewTicker(100 * time.Millisecond); ; {
				select {
				case <-stop:
					tick.Stop()
					return
				case <-tick.C:
					fmt.Fprint(c, "x")
				}
			}
		}()
		if res, _ := c.Response("POST"); res.StatusCode != http.StatusUnauthorized || !res.Close {
			t.Errorf("got %v, close %v", res.Status, res.Close)
		}
	})
}
