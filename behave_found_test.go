package chert

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
)

// Close of a net.Conn may take long; the server's lock is not held meanwhile.
func TestSlowCloseHoldsUpNobody(t *testing.T) {
	alikeInMemory(t, func(t *testing.T, e Engine) {
		release, closing := make(chan struct{}), make(chan struct{}, 8)
		m := newMemory()
		ts := startOn(t, &Server{Engine: e, Handler: memoryEcho(t)}, m)
		client, server := net.Pipe()
		defer client.Close()
		m.conns <- &slowClose{Conn: server, closing: closing, release: release}
		newRaw(t, client).get("/")
		go ts.ctl.Close()
		<-closing
		defer close(release)
		if err := await(t, ts.errc, "Serve"); err != http.ErrServerClosed {
			t.Error(err)
		}
		ts.errc <- http.ErrServerClosed
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
	cert, roots := certificate(t)
	alikeOthers(t, func(t *testing.T, e Engine) {
		closed := make(chan struct{}, 1)
		ts := startTLS(t, &Server{Engine: e,
			TLSConfig: &tls.Config{NextProtos: []string{"x"}},
			TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){
				"x": func(*http.Server, *tls.Conn, http.Handler) { runtime.Goexit() },
			},
			ConnState: func(_ net.Conn, s http.ConnState) {
				if s == http.StateClosed {
					closed <- struct{}{}
				}
			},
		}, listenTCP(t), cert)
		c, _ := tlsOver(t, ts.dial().Conn, roots, "x")
		c.SetDeadline(time.Now().Add(5 * time.Second))
		c.closed()
		await(t, closed, "StateClosed")
	})
}

// Sockets on their way to a loop are waited for by Serve.
func TestStateNewOnLoopsBeforeServeReturns(t *testing.T) {
	alike(t, func(t *testing.T, e Engine) {
		late := 0
		for range 200 {
			l := listenTCP(t)
			var seen atomic.Int32
			ctl := controlOf(&Server{Engine: e, ConnState: func(_ net.Conn, st http.ConnState) {
				if st == http.StateNew {
					seen.Add(1)
				}
			}})
			end := make(chan error, 1)
			go func() { end <- ctl.Serve(&onceListener{Listener: l}) }()
			c := (&testServer{t: t, addr: l.Addr().String()}).dial()
			if err := await(t, end, "Serve"); err != io.EOF {
				t.Fatal(err)
			}
			if seen.Load() != 1 {
				late++
			}
			c.get("/")
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
		ts, m := startMemory(t, &Server{Workers: 1, QueueLength: 3, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			running <- struct{}{}
			<-release
		})})
		active := m.patient(t)
		active.send(faultGet)
		<-running
		for range 3 {
			m.patient(t)
		}
		synctest.Wait()
		ended := make(chan time.Duration)
		go func() { ended <- took(func() { ts.Shutdown(context.Background()) }) }()
		time.Sleep(2 * time.Second)
		close(release)
		active.response("GET")
		if d := <-ended; d != 5*time.Second {
			t.Errorf("Shutdown took %v", d) // 17 s
		}
	})
}

// Connections are refused once Close of Listen's listener has returned.
func TestListenerCloseRefuses(t *testing.T) {
	alike(t, func(t *testing.T, e Engine) {
		accepted := 0
		for range 100 {
			s := &Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {})}
			l, err := s.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			ctl := controlOf(s)
			end := make(chan error, 1)
			go func() { end <- ctl.Serve(l) }()
			c := (&testServer{t: t, addr: l.Addr().String()}).dial()
			c.get("/")
			l.Close()
			if nc, err := net.Dial("tcp", l.Addr().String()); err == nil {
				accepted++
				nc.Close()
			}
			c.Close()
			await(t, end, "Serve")
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
	bubbles(t, func(t *testing.T, e Engine) {
		if e == oracle {
			return // drains for as long as it takes
		}
		seen := make(chan error, 1)
		_, m := startMemory(t, &Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/closed" {
				r.Body.Close()
				return
			}
			w.Write(pattern(5000)) // the head goes, and before it the body is drained
			seen <- r.Context().Err()
		})})
		for _, path := range []string{"/written", "/closed"} {
			c := m.patient(t)
			c.sendAside("POST " + path + " HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\nslow")
			if res, _ := c.response("POST"); res.StatusCode != 200 {
				t.Errorf("%s: got %s", path, res.Status)
			}
			c.Close()
		}
		if err := await(t, seen, "the handler"); err != nil {
			t.Errorf("the context of a client that is there: %v", err)
		}
	})
}
