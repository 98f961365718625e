package faults

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

const chunkedPost = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"

// heapNow returns the heap in use after a collection.
func heapNow() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}

// inTurn is for tests that must run alone, since they observe the whole
// process: they do not run in parallel.
func inTurn(t *testing.T, f func(t *testing.T, e chert.Engine)) {
	t.Helper()
	if sys.HavePoller {
		t.Run("loops", func(t *testing.T) { f(t, chert.EngineLoops) })
	}
	t.Run("goroutines", func(t *testing.T) { f(t, chert.EngineGoroutines) })
}

// A body that does not end, in chunks of all sizes: 256 MiB go through a
// handler that discards them, and memory does not grow.
func TestFaultsEndlessBodyMemory(t *testing.T) {
	total := int64(256 << 20)
	if testing.Short() {
		total = 32 << 20
	}
	inTurn(t, func(t *testing.T, e chert.Engine) {
		got := make(chan int64, 1)
		fs := engines.StartCounting(t, &chert.Server{Engine: e, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b := make([]byte, 32<<10)
			var most, n int64
			for next := total / 4; n < total; {
				k, err := r.Body.Read(b)
				if err != nil {
					t.Errorf("read: %v", err)
					break
				}
				if n += int64(k); n >= next {
					most = max(most, heapNow())
					next += total / 4
				}
			}
			got <- most
		})})
		before := heapNow()
		var piece bytes.Buffer
		for _, n := range []int{1, 100, 4095, 4096, 4097, 65536, 100000, 256 << 10} {
			fmt.Fprintf(&piece, "%x\r\n%s\r\n", n, noise(n, 9))
		}
		c := fs.Dial()
		flood(c, chunkedPost, piece.String())
		if grown := servertest.Await(t, got, "256 MiB") - before; grown > 16<<20 {
			t.Errorf("the heap grew by %d bytes", grown)
		}
		// The server does not read the rest: the connection ends with the
		// handler.
		c.Status(200)
		c.Close()
		fs.Settled(1)
	})
}

// Overhead that costs the sender little and gives the handler nothing is
// refused.
func TestFaultsEndlessOverhead(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, head, tail string }{
		{"extension", chunkedPost + "1;a=", "bbbbbbbb"},
		{"quoted extension", chunkedPost + "1;a=\"", "bbbbbbbb"},
		{"many extensions", chunkedPost + "1", ";a=b"},
		{"extensions of one-byte chunks", chunkedPost, "1;" + strings.Repeat("a", 200) + "\r\nx\r\n"},
		{"zeros", chunkedPost, "0"},
		{"trailer fields", chunkedPost + "0\r\n", "A: b\r\n"},
		{"trailer value", chunkedPost + "0\r\nA: ", "bbbbbbbb"},
		{"trailer name", chunkedPost + "0\r\n", "AAAAAAAA"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			engines.Each(t, func(t *testing.T, e chert.Engine) {
				fs := engines.StartCounting(t, &chert.Server{Engine: e, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if _, err := io.Copy(io.Discard, r.Body); err == nil {
						t.Error("the body ended well")
					}
				})})
				c := fs.Dial()
				flood(c, tt.head, strings.Repeat(tt.tail, 512))
				c.Refused(400)
				fs.Settled(1)
			})
		})
	}
}

// The unread rest of a body is drained if it is small, so that the connection
// can be kept; otherwise the response survives the client's sending.
func TestFaultsUnreadBody(t *testing.T) {
	t.Parallel()
	length := func(n int) string {
		return fmt.Sprintf("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n", n) + strings.Repeat("x", n)
	}
	inChunks := func(n int) string {
		return chunkedPost + strings.Repeat("1000\r\n"+strings.Repeat("x", 0x1000)+"\r\n", n/0x1000) + "0\r\n\r\n"
	}
	for _, tt := range []struct {
		name, in string
		kept     bool
	}{
		{"small", length(100), true},
		{"one byte", length(1), true},
		{"100 KiB", length(100 << 10), true},
		{"256 KiB less a byte", length(256<<10 - 1), true},
		{"256 KiB", length(256 << 10), false},
		{"8 MiB", length(8 << 20), false},
		{"chunks of 100 KiB", inChunks(100 << 10), true},
		{"chunks of 8 MiB", inChunks(8 << 20), false},
	} {
		for name, h := range map[string]http.HandlerFunc{
			"nothing read": func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") },
			"closed":       func(w http.ResponseWriter, r *http.Request) { r.Body.Close(); io.WriteString(w, "ok") },
			"a little read": func(w http.ResponseWriter, r *http.Request) {
				r.Body.Read(make([]byte, 1))
				io.WriteString(w, "ok")
			},
			"nothing written": func(w http.ResponseWriter, r *http.Request) {},
		} {
			if name == "a little read" && tt.name == "256 KiB" {
				continue // then it is less
			}
			if name == "closed" && tt.name == "256 KiB" {
				continue // then Close has read it whole
			}
			t.Run(tt.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				engines.Each(t, func(t *testing.T, e chert.Engine) {
					fs := engines.StartCounting(t, &chert.Server{Engine: e, Handler: h})
					c := fs.Dial()
					// All is sent before anything is read, as many clients do.
					c.Send(tt.in)
					if !tt.kept {
						c.Refused(200)
						fs.Settled(1)
						return
					}
					c.Status(200)
					c.Send(tt.in)
					c.Status(200)
				})
			})
		}
	}
}

// 10,000 requests are sent before the first response is read.
func TestFaultsPipelinedFlood(t *testing.T) {
	const n = 10000
	inTurn(t, func(t *testing.T, e chert.Engine) {
		var served atomic.Int64
		fs := engines.StartCounting(t, &chert.Server{Engine: e, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			served.Add(1)
			io.WriteString(w, r.URL.Path)
		})})
		before := heapNow()
		var in strings.Builder
		for i := range n {
			fmt.Fprintf(&in, "GET /%d HTTP/1.1\r\nHost: h\r\n\r\n", i)
		}
		c := fs.Dial()
		sent := make(chan error, 1)
		go func() {
			_, err := io.WriteString(c, in.String())
			sent <- err
		}()
		// Until all have been served, or neither side can continue: then the
		// kernel's buffers are full both ways, which is back-pressure at work.
		last, same := int64(-1), 0
		servertest.Eventually(t, "the server has done what it can", func() bool {
			if now := served.Load(); now != last {
				last, same = now, 0
			}
			same++
			return last == n || same > 200
		})
		if grown := heapNow() - before; grown > 16<<20 {
			t.Errorf("the heap grew by %d bytes", grown)
		}
		for i := range n {
			if got := c.Status(200); got != fmt.Sprintf("/%d", i) {
				t.Fatalf("answer %d is %q", i, got)
			}
		}
		if err := servertest.Await(t, sent, "the end of sending"); err != nil {
			t.Error(err)
		}
	})
}

// A client trickles the rest of a body that the handler does not read, each
// byte in time: it gets its response all the same, and the connection ends.
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
