package behave

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// Close of a net.Conn may take long; the server's lock is not held meanwhile.
func TestSlowCloseHoldsUpNobody(t *testing.T) {
	alikeInMemory(t, func(t *testing.T, e chert.Engine) {
		release, closing := make(chan struct{}), make(chan struct{}, 8)
		m := servertest.NewMemory()
		ts := engines.StartOn(t, &chert.Server{Engine: e, Handler: memoryEcho(t)}, m)
		client, server := net.Pipe()
		defer client.Close()
		m.Conns <- &slowClose{Conn: server, closing: closing, release: release}
		servertest.Wrap(t, client).Get("/")
		go ts.Control.Close()
		<-closing
		defer close(release)
		if err := servertest.Await(t, ts.Served, "Serve"); err != http.ErrServerClosed {
			t.Error(err)
		}
		ts.Served <- http.ErrServerClosed
	})
}

type slowClose struct {
	net.Conn
	closing chan struct{}
	release chan struct{}
}

func (c *slowClose) Close() error {
	c.closing <- struct{}{}
	<-c.release
	return c.Conn.Close()
}

// An entry of TLSNextProto may end its goroutine; the connection ends with it.
func TestNextProtoGoexit(t *testing.T) {
	cert, roots := servertest.Certificate(t)
	alikeOthers(t, func(t *testing.T, e chert.Engine) {
		closed := make(chan struct{}, 1)
		ts := engines.StartTLS(t, &chert.Server{Engine: e,
			TLSConfig: &tls.Config{NextProtos: []string{"x"}},
			TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){
				"x": func(*http.Server, *tls.Conn, http.Handler) { runtime.Goexit() },
			},
			ConnState: func(_ net.Conn, s http.ConnState) {
				if s == http.StateClosed {
					closed <- struct{}{}
				}
			},
		}, servertest.ListenTCP(t), cert)
		c, _ := servertest.TLSOver(t, ts.Dial().Conn, roots, "x")
		c.SetDeadline(time.Now().Add(5 * time.Second))
		c.Ended()
		servertest.Await(t, closed, "StateClosed")
	})
}

// Sockets on their way to a loop are waited for by Serve.
func TestStateNewOnLoopsBeforeServeReturns(t *testing.T) {
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		late := 0
		for range 200 {
			l := servertest.ListenTCP(t)
			var seen atomic.Int32
			ctl := engines.ControlOf(&chert.Server{Engine: e, ConnState: func(_ net.Conn, st http.ConnState) {
				if st == http.StateNew {
					seen.Add(1)
				}
			}})
			end := make(chan error, 1)
			go func() { end <- ctl.Serve(&onceListener{Listener: l}) }()
			c := servertest.Dial(t, l.Addr().String())
			if err := servertest.Await(t, end, "Serve"); err != io.EOF {
				t.Fatal(err)
			}
			if seen.Load() != 1 {
				late++
			}
			c.Get("/")
			c.Close()
		}
		if late > 0 {
			t.Errorf("StateNew came late %d times", late)
		}
	})
}

// Connections that wait for a worker share the time that Shutdown gives to new ones.
func TestQueueAtShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running, release := make(chan struct{}), make(chan struct{})
		ts, m := engines.StartMemory(t, &chert.Server{Workers: 1, QueueLength: 3, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			running <- struct{}{}
			<-release
		})})
		active := m.Patient(t)
		active.Send(servertest.GET)
		<-running
		for range 3 {
			m.Patient(t)
		}
		synctest.Wait()
		ended := make(chan time.Duration)
		go func() { ended <- servertest.Took(func() { ts.Shutdown(context.Background()) }) }()
		time.Sleep(2 * time.Second)
		close(release)
		active.Response("GET")
		if d := <-ended; d != 5*time.Second {
			t.Errorf("Shutdown took %v", d) // 17 s
		}
	})
}

// Connections are refused once Close of Listen's listener has returned.
func TestListenerCloseRefuses(t *testing.T) {
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		accepted := 0
		for range 100 {
			s := &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {})}
			l, err := s.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			ctl := engines.ControlOf(s)
			end := make(chan error, 1)
			go func() { end <- ctl.Serve(l) }()
			c := servertest.Dial(t, l.Addr().String())
			c.Get("/")
			l.Close()
			if nc, err := net.Dial("tcp", l.Addr().String()); err == nil {
				accepted++
				nc.Close()
			}
			c.Close()
			servertest.Await(t, end, "Serve")
		}
		if accepted > 0 {
			t.Errorf("%d connections were made behind Close", accepted)
		}
	})
}

// A body that comes too slowly to be drained says nothing of its client, which
// waits for the answer.
func TestOwnDrainIsNoTimeout(t *testing.T) {
	t.Parallel()
	bubbles(t, func(t *testing.T, e chert.Engine) {
		if e == engines.NetHTTP {
			return // drains for as long as it takes
		}
		seen := make(chan error, 1)
		_, m := engines.StartMemory(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/closed" {
				r.Body.Close()
				return
			}
			w.Write(servertest.Pattern(5000)) // the head goes, and before it the body is drained
			seen <- r.Context().Err()
		})})
		for _, path := range []string{"/written", "/closed"} {
			c := m.Patient(t)
			c.SendAside("POST " + path + " HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\nslow")
			if res, _ := c.Response("POST"); res.StatusCode != 200 {
				t.Errorf("%s: got %s", path, res.Status)
			}
			c.Close()
		}
		if err := servertest.Await(t, seen, "the handler"); err != nil {
			t.Errorf("the context of a client that is there: %v", err)
		}
	})
}
