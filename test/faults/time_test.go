package faults

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

func TestFaultsIdleTimeout(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		fs := engines.StartCounting(t, &chert.Server{Engine: e, Handler: faultOK, IdleTimeout: 50 * time.Millisecond, ReadHeaderTimeout: time.Hour})
		c := fs.Dial()
		c.Send(servertest.GET)
		c.Status(200)
		c.Ended()
		fs.Settled(1)
	})
}

// The timer that was set before the handler began fires while it runs.
func TestFaultsIdleTimeoutAfterLongHandler(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		const idle = 50 * time.Millisecond
		fs := engines.StartCounting(t, &chert.Server{
			Engine: e, IdleTimeout: idle, ReadHeaderTimeout: time.Hour,
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(4 * idle) // longer than the timer is set for
			}),
		})
		c := fs.Dial()
		c.Send(servertest.GET + servertest.GET)
		c.Status(200)
		c.Status(200)
		c.Ended()
		fs.Settled(1)
	})
}

// stalledRead is what a handler observed of a body that stopped arriving.
type stalledRead struct {
	n   int64
	err error
}

func TestFaultsBodyStall(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, in string
		n        int64
	}{
		{"length", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc", 3},
		{"length, nothing sent", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n", 0},
		{"in chunk", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nA\r\nabc", 3},
		{"between chunks", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", 3},
		{"in chunk line", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4", 3},
		{"in trailers", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nA: b\r\n", 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			engines.Each(t, func(t *testing.T, e chert.Engine) {
				got := make(chan stalledRead, 2)
				fs := engines.StartCounting(t, &chert.Server{
					Engine: e, ReadStallTimeout: 50 * time.Millisecond,
					Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						n, err := io.Copy(io.Discard, r.Body)
						got <- stalledRead{n, err}
						if r.URL.Path != "/" {
							http.Error(w, "too slow", http.StatusTeapot)
						}
					}),
				})
				c := fs.Dial()
				c.Send(tt.in)
				if r := servertest.Await(t, got, "the read's error"); r.n != tt.n || !servertest.IsTimeout(r.err) {
					t.Errorf("the handler read %d bytes, %v", r.n, r.err)
				}
				c.Refused(408)
				// A handler's own response wins.
				c = fs.Dial()
				c.Send(strings.Replace(tt.in, "POST /", "POST /x", 1))
				servertest.Await(t, got, "the read's error")
				c.Refused(http.StatusTeapot)
				fs.Settled(2)
			})
		})
	}
}

func TestFaultsTricklingBodyIsNotCut(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		const stall = 3 * time.Second // a busy machine must not look like a stall
		got := make(chan int)
		fs := engines.StartCounting(t, &chert.Server{
			Engine: e, ReadStallTimeout: stall,
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var b [64]byte
				for {
					n, err := r.Body.Read(b[:])
					if err != nil {
						if err != io.EOF {
							t.Errorf("read: %v", err)
						}
						close(got)
						return
					}
					got <- n
				}
			}),
		})
		c := fs.Dial()
		c.Send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
		for begin := time.Now(); time.Since(begin) < 2*stall; {
			c.Send("1\r\nx\r\n")
			if n := servertest.Await(t, got, "the byte"); n != 1 {
				t.Fatalf("read %d bytes", n)
			}
			time.Sleep(20 * time.Millisecond) // a slow client
		}
		c.Send("0\r\n\r\n")
		servertest.Await(t, got, "the end")
		c.Status(200)
	})
}

// endless writes until it fails, and reports the error.
func endless(got chan<- error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		b := make([]byte, 64<<10)
		for {
			if _, err := w.Write(b); err != nil {
				<-r.Context().Done()
				got <- err
				return
			}
		}
	}
}

func TestFaultsWriteStall(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		got := make(chan error, 1)
		fs := engines.StartCounting(t, &chert.Server{Engine: e, WriteStallTimeout: 50 * time.Millisecond, Handler: endless(got)})
		c := fs.Dial()
		c.Send(servertest.GET)
		if err := servertest.Await(t, got, "the write's error"); !servertest.IsTimeout(err) {
			t.Errorf("Write returned %v", err)
		}
		fs.Settled(1)
		if _, err := io.Copy(io.Discard, c.R); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the client saw %v, want a reset", err)
		}
	})
}

// A write is limited by the time in which nothing drains, not as a whole.
func TestFaultsSlowReaderIsNotCut(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		// Less than the 5 s that all takes. Much more than TCP takes to repeat what a small buffer had no room for,
		// several times in a row if the machine is busy.
		const stall = 4 * time.Second
		want := noise(4<<20, 7)
		fs := new(engines.Counting)
		s := &chert.Server{Engine: e, WriteStallTimeout: stall, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := w.Write(want); err != nil {
				t.Errorf("Write: %v", err)
			}
		})}
		fs.Count(s)
		fs.Server = engines.StartOn(t, s, servertest.ListenSmall(t, 16<<10))
		c := fs.DialSmall(16 << 10)
		c.Send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
		res, err := http.ReadResponse(c.R, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b := make([]byte, 8<<10)
		at := 0
		for {
			n, err := io.ReadFull(res.Body, b)
			if at+n > len(want) || string(b[:n]) != string(want[at:at+n]) {
				t.Fatalf("wrong bytes at %d", at)
			}
			if at += n; err != nil {
				break
			}
			time.Sleep(10 * time.Millisecond) // a slow client
		}
		if at != len(want) {
			t.Errorf("got %d of %d bytes", at, len(want))
		}
	})
}

// ReadTimeout ends the reading of a body that makes progress.
func TestFaultsReadTimeout(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		send func(c *servertest.Client, head string)
	}{
		{"slow", func(c *servertest.Client, head string) { c.Trickle(head, "1\r\nx\r\n") }},
		{"fast", func(c *servertest.Client, head string) { flood(c, head, "1000\r\n"+strings.Repeat("x", 0x1000)+"\r\n") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			engines.Each(t, func(t *testing.T, e chert.Engine) {
				got := make(chan error, 1)
				fs := engines.StartCounting(t, &chert.Server{
					Engine: e, ReadTimeout: servertest.Soon,
					Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						// Slower than the fast client, so that there is always
						// something to read.
						var err error
						for b := make([]byte, 4<<10); err == nil; time.Sleep(time.Millisecond) {
							_, err = io.ReadFull(r.Body, b)
						}
						got <- err
					}),
				})
				c := fs.Dial()
				tt.send(c, "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
				if err := servertest.Await(t, got, "the read's error"); !servertest.IsTimeout(err) {
					t.Errorf("the read ended with %v", err)
				}
				c.Status(408)
				c.Close()
				fs.Settled(1)
			})
		})
	}
}

// flood sends head and then tail again and again until the connection fails.
func flood(c *servertest.Client, head, tail string) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, err := io.WriteString(c, head)
		for err == nil {
			_, err = io.WriteString(c, tail)
		}
	}()
	c.T.Cleanup(func() {
		c.Close()
		<-done
	})
}

// WriteTimeout ends a response that is read as fast as it is sent.
func TestFaultsWriteTimeout(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		got := make(chan error, 1)
		fs := engines.StartCounting(t, &chert.Server{Engine: e, WriteTimeout: 200 * time.Millisecond, Handler: endless(got)})
		c := fs.Dial()
		c.Send(servertest.GET)
		io.Copy(io.Discard, c.R)
		if err := servertest.Await(t, got, "the write's error"); !servertest.IsTimeout(err) {
			t.Errorf("Write returned %v", err)
		}
		fs.Settled(1)
	})
}

// A negative value is no limit; it must never be treated as zero or as a time
// long past.
func TestFaultsNoLimits(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		fs := engines.StartCounting(t, &chert.Server{
			Engine: e, Handler: faultOK, ReadHeaderTimeout: -1, IdleTimeout: -1, ReadStallTimeout: -1,
			WriteStallTimeout: -1, ReadTimeout: -1, WriteTimeout: -1, MaxHeaderBytes: -1, MaxHeaderFields: -1,
			MaxConns: -1, MaxConnsPerAddr: -1,
		})
		c := fs.Dial()
		for range 3 {
			c.SendSlowly("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc", 7)
			c.Status(200)
		}
		c.Send("GET / HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("v", 1<<20) + "\r\n" + strings.Repeat("A: b\r\n", 300) + "\r\n")
		c.Status(200)
	})
}

// The same with buffers that have grown: the kernel then reports room only when
// megabytes of it are free, which takes a slow reader longer than the stall's
// time. Loops ask how much is queued; a net.Conn cannot, see
// Server.WriteStallTimeout.
func TestFaultsSlowReaderWithLargeBuffers(t *testing.T) {
	t.Parallel()
	if !sys.HavePoller {
		t.Skip("needs event loops, which this system has not")
	}
	t.Run("loops", func(t *testing.T) {
		const stall = 3 * time.Second // long for a loaded machine, short for a buffer that drains
		got := make(chan error, 1)
		fs := engines.StartCounting(t, &chert.Server{Engine: chert.EngineLoops, WriteStallTimeout: stall, Handler: endless(got)})
		c := fs.Dial()
		c.Send(servertest.GET)
		// At first the client is fast, so that the buffers grow.
		if _, err := io.CopyN(io.Discard, c.R, 64<<20); err != nil {
			t.Fatal(err)
		}
		for begin := time.Now(); time.Since(begin) < 2*stall; {
			// As much as loopback's largest segment: for less the kernel may announce no room, and
			// sixteen turns of a client on a busy machine can last as long as the stall.
			if _, err := io.CopyN(io.Discard, c.R, 64<<10); err != nil {
				t.Fatal(err)
			}
			time.Sleep(160 * time.Millisecond) // a slow client
		}
		select {
		case err := <-got:
			t.Errorf("a client that reads steadily was cut: %v", err)
		default:
		}
		c.Close()
		servertest.Await(t, got, "the write's error")
	})
}

// A common watchdog: a deadline set from another goroutine ends a Write that
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
