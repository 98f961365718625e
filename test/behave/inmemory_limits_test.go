package behave

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// Temporary Accept errors are waited out, longer each time.
func TestBubbleAcceptErrors(t *testing.T) {
	t.Parallel()
	bubbles(t, func(t *testing.T, e chert.Engine) {
		m := servertest.NewMemory()
		l := &failing{Memory: m}
		l.left.Store(10)
		engines.StartOn(t, &chert.Server{Engine: e, Handler: memoryEcho(t)}, l)
		const ms = time.Millisecond
		if d := servertest.Took(func() { m.Patient(t).Get("/") }); d != (5+10+20+40+80+160+320+640+1000+1000)*ms {
			t.Errorf("accepted after %v", d)
		}
		l.left.Store(1)
		m.Patient(t).Get("/") // ends the Accept under way
		if d := servertest.Took(func() { m.Patient(t).Get("/") }); d != 5*ms {
			t.Errorf("accepted after %v", d)
		}
	})
}

// failing is a listener whose Accept fails a few times.
type failing struct {
	*servertest.Memory
	left atomic.Int32
}

func (f *failing) Accept() (net.Conn, error) {
	if f.left.Add(-1) >= 0 {
		return nil, passing{}
	}
	return f.Memory.Accept()
}

// passing is a temporary error.
type passing struct{}

func (passing) Error() string { return "no luck" }

func (passing) Timeout() bool { return false }

func (passing) Temporary() bool { return true }

// Limits that only chert has follow a bubble's time too.
func TestBubbleLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, m := engines.StartMemory(t, &chert.Server{MaxConns: 2, Handler: memoryEcho(t)})
		c := [2]*servertest.Client{m.Patient(t), m.Patient(t)}
		c[0].Get("/")
		time.Sleep(time.Second) // c[0] is idle before c[1]: at the same instant either may be closed
		c[1].Get("/")
		// The one that has been idle longest is closed; those with requests are
		// not.
		newcomer := m.Patient(t)
		newcomer.Get("/")
		c[0].Ended()
		c[0] = newcomer
		for _, c := range c {
			c.Send("GET / HTTP/1.1\r\n")
		}
		synctest.Wait()
		refused := m.Patient(t)
		if d := servertest.Took(func() {
			if got := refused.UpToEnd(); !strings.HasPrefix(got, "HTTP/1.1 503 ") {
				t.Errorf("got %q", got)
			}
		}); d != 100*time.Millisecond {
			t.Errorf("refused after %v", d)
		}
		waiting := m.Patient(t)
		go c[0].Close()
		if d := servertest.Took(func() { waiting.Get("/") }); d != 0 {
			t.Errorf("the place was taken after %v", d)
		}
	})
}

// A request waits for a slot for as long as the handlers before it run.
func TestBubbleHandlers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		running, release := make(chan struct{}), make(map[string]chan struct{})
		for _, path := range []string{"/0", "/1", "/2"} {
			release[path] = make(chan struct{})
		}
		ts, m := engines.StartMemory(t, &chert.Server{MaxHandlers: 2, QueueLength: 1, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			running <- struct{}{}
			<-release[r.URL.Path]
			put(w, "answer")
		})})
		var c [3]*servertest.Client
		for i := range c {
			c[i] = m.Patient(t)
			c[i].SendAside(fmt.Sprintf("GET /%d HTTP/1.1\r\nHost: h\r\n\r\n", i))
			if i < 2 {
				<-running
			}
		}
		synctest.Wait() // the third is in the queue
		if res, _ := m.Patient(t).Get("/3"); res.StatusCode != 503 || res.Close {
			t.Errorf("got %v", res)
		}
		for i, c := range c {
			time.Sleep(time.Hour)
			close(release[fmt.Sprintf("/%d", i)])
			if _, body := c.Response("GET"); body != "answer" {
				t.Errorf("got %q", body)
			}
			if i == 0 {
				<-running // the one that waited
			}
		}
		if err := ts.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
}
