package behave

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
)

// These pass on what another server sends, by splice and by copying. Source and
// client are in the same process, so their cost is in ns/op; copy-cpu-ns/op is
// the processor time of the handler's io.Copy alone.

// BenchmarkProxyMove is the moving alone: the source has sent everything
// before, and the client reads when all of it has come.
func BenchmarkProxyMove(b *testing.B) {
	for _, size := range []int{8 << 10, 32 << 10, 128 << 10} {
		benchProxy(b, size, true)
	}
}

// BenchmarkProxyStream moves while the source sends and the client reads.
func BenchmarkProxyStream(b *testing.B) {
	for _, size := range []int{8 << 10, 128 << 10, 1 << 20, 16 << 20} {
		benchProxy(b, size, false)
	}
}

func benchProxy(b *testing.B, size int, apart bool) {
	for _, how := range []string{"splice", "copy"} {
		b.Run(fmt.Sprintf("%dKiB/%s", size>>10, how), func(b *testing.B) {
			near, far := pairOf(b, "tcp")
			var src io.Reader = near
			if how == "copy" {
				src = struct{ io.Reader }{near}
			}
			body := make([]byte, size)
			sent, moved := make(chan bool, 1), make(chan bool, 1)
			var spent atomic.Int64
			ts := engines.Start(b, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/" {
					return
				}
				w.Header().Set("Content-Length", fmt.Sprint(size))
				flush(w)
				go func() {
					far.Write(body)
					sent <- true
				}()
				if apart {
					<-sent
					defer func() { moved <- true }()
				}
				// On a thread of its own, whose time is the copy's.
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				before := threadTime()
				if n, err := io.CopyN(w, src, int64(size)); err != nil {
					b.Error(n, err)
				}
				spent.Add(int64(threadTime() - before))
				if !apart {
					<-sent
				}
			})})
			ts.Dial().Get("/other") // now it listens
			c := ts.Dial()
			c.SetDeadline(time.Time{})
			room := make([]byte, 256<<10)
			b.SetBytes(int64(size))
			for b.Loop() {
				c.Send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
				c.Head()
				if apart {
					<-moved
				}
				for left := size; left > 0; {
					n, err := c.R.Read(room[:min(left, len(room))])
					if err != nil {
						b.Fatal(err)
					}
					left -= n
				}
			}
			b.ReportMetric(float64(spent.Load())/float64(b.N), "copy-cpu-ns/op")
		})
	}
}

// threadTime is the current processor time of the calling thread; getrusage has
// it as of the last tick.
func threadTime() time.Duration {
	var ts unix.Timespec
	unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts)
	return time.Duration(ts.Nano())
}
