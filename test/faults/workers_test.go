package faults

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// blocking is a handler that signals when it runs and ends on request.
type blocking struct{ entered, leave chan bool }

func newBlocking() *blocking {
	return &blocking{make(chan bool, 100), make(chan bool)}
}

func (h *blocking) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/block" {
		h.entered <- true
		<-h.leave
	}
	io.WriteString(w, "ok")
}

const blockGet = "GET /block HTTP/1.1\r\nHost: h\r\n\r\n"

func TestFaultsWorkersAndQueue(t *testing.T) {
	t.Parallel()
	h := newBlocking()
	fs := engines.StartCounting(t, &chert.Server{Engine: chert.EngineGoroutines, Handler: h, Workers: 2, QueueLength: 2})
	busy := []*servertest.Client{fs.Dial(), fs.Dial()}
	for _, c := range busy {
		c.Send(blockGet)
		servertest.Await(t, h.entered, "the handler")
	}
	var waiting []*servertest.Client
	for range 2 {
		c := fs.Dial()
		c.Send(blockGet)
		waiting = append(waiting, c)
	}
	// The connections are accepted in order, so the queue is full now.
	for range 3 {
		refusedPlace(fs.Dial())
	}
	select {
	case <-h.entered:
		t.Error("more handlers run than there are workers")
	default:
	}
	close(h.leave)
	// All are served. Connections that others waited for are not kept.
	for _, c := range busy {
		c.Status(200)
		c.Ended()
	}
	for _, c := range waiting {
		c.Status(200)
		c.Close()
	}
	fs.Alive()
}

// A worker that waits for the next request of a kept connection closes it when
// another connection waits.
func TestFaultsWorkersKeptConnGivesWay(t *testing.T) {
	t.Parallel()
	fs := engines.StartCounting(t, &chert.Server{Engine: chert.EngineGoroutines, Handler: faultOK, Workers: 1, IdleTimeout: -1})
	var last *servertest.Client
	for range 5 {
		c := fs.Dial()
		c.Send(servertest.GET)
		c.Status(200)
		if last != nil {
			last.Ended()
		}
		last = c
	}
	// No connection waits: it is kept.
	last.Send(servertest.GET)
	last.Status(200)
}

// A handler that ends its goroutine must not take a worker with it.
func TestFaultsWorkersGoexit(t *testing.T) {
	t.Parallel()
	fs := engines.StartCounting(t, &chert.Server{Engine: chert.EngineGoroutines, Workers: 1, Handler: goexits})
	for range 3 {
		c := fs.Dial()
		c.Send("GET /goexit HTTP/1.1\r\nHost: h\r\n\r\n")
		c.Ended()
		fs.Alive()
	}
}

// A client that occupies a worker without a whole head is closed five seconds
// after another connection has begun to wait, however it does so.
func TestAttackWorkers(t *testing.T) {
	t.Parallel()
	cert, _ := servertest.Certificate(t)
	const workers = 4
	for name, attack := range map[string]func(c *servertest.Client){
		"nothing sent": func(c *servertest.Client) {},
		"a byte":       func(c *servertest.Client) { c.Send("G") },
		"a byte a second": func(c *servertest.Client) {
			go func() {
				for _, b := range "GET / HTTP/1.1\r\nHost: " + strings.Repeat("h", 1000) {
					if _, err := io.WriteString(c, string(b)); err != nil {
						return
					}
					time.Sleep(time.Second)
				}
			}()
		},
		"the second head": func(c *servertest.Client) {
			c.Get("/")
			c.Send("G")
		},
		"pipelined heads": func(c *servertest.Client) {
			go func() {
				for rest := ""; ; rest = "T / HTTP/1.1\r\nHost: h\r\n\r\n" {
					if _, err := io.WriteString(c, rest+"GE"); err != nil {
						return
					}
					time.Sleep(time.Second)
				}
			}()
		},
		"TLS: nothing sent":    func(c *servertest.Client) {},
		"TLS: part of a hello": func(c *servertest.Client) { c.Send("\x16\x03\x01\x02\x00\x01") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &chert.Server{Workers: workers, QueueLength: 100, Handler: faultOK}
				var m *servertest.Memory
				if strings.HasPrefix(name, "TLS") {
					m = servertest.NewMemory()
					engines.StartTLS(t, s, m, cert)
				} else {
					_, m = engines.StartMemory(t, s)
				}
				for range workers {
					c := m.Patient(t)
					attack(c)
					go io.Copy(io.Discard, c.R) // a pipe has no room for a response
				}
				synctest.Wait()
				// Further waiting connections do not extend it.
				go func() {
					for range 8 {
						time.Sleep(time.Second)
						m.Patient(t)
					}
				}()
				innocent := m.Patient(t)
				if strings.HasPrefix(name, "TLS") {
					innocent.SendAside("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
				}
				d := servertest.Took(func() {
					if strings.HasPrefix(name, "TLS") {
						innocent.UpToEnd() // the response says that this is not TLS
					} else {
						innocent.Get("/")
					}
				})
				if d > 5*time.Second+20*time.Millisecond {
					t.Errorf("the innocent waited for %v", d)
				}
				time.Sleep(time.Minute)
			})
		})
	}
}

// A worker that accepts a connection while others wait closes it after its
// first request.
func TestWorkersFirstRequestGivesWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, m := engines.StartMemory(t, &chert.Server{Workers: 1, QueueLength: 3, IdleTimeout: -1, Handler: faultOK})
		var all []*servertest.Client
		for range 3 { // all of them may come before the worker takes the first
			c := m.Patient(t)
			c.SendAside("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
			all = append(all, c)
		}
		for i, c := range all {
			c.Response("GET")
			if i < 2 {
				c.Ended()
			}
		}
	})
}
