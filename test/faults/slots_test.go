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

// MaxHandlers bounds the handlers that run, on both engines: further requests wait, and
// those beyond the queue get 503 on a connection that is kept.
func TestFaultsHandlersAndQueue(t *testing.T) {
	engines.EachPlacement(t, func(t *testing.T, fresh func() *chert.Server) {
		h, s := newBlocking(), fresh()
		s.Handler, s.MaxHandlers, s.QueueLength = h, 2, 2
		fs := engines.StartCounting(t, s)
		ask := func() *servertest.Client {
			c := fs.Dial()
			c.Send(blockGet)
			return c
		}
		served := []*servertest.Client{ask(), ask()}
		for range served {
			servertest.Await(t, h.entered, "the handler")
		}
		for i := range 2 {
			served = append(served, ask())
			servertest.Eventually(t, "it waits", func() bool { return fs.Inside().Waiting() == i+1 })
		}
		for range 3 {
			c := ask()
			if res, _ := c.Response("GET"); res.StatusCode != 503 || res.Close || res.Header.Get("Retry-After") != "1" {
				t.Errorf("got %v %v", res.Status, res.Header)
			}
			served = append(served, c) // for a request when there is room
		}
		select {
		case <-h.entered:
			t.Error("more handlers run than may")
		default:
		}
		close(h.leave)
		for i, c := range served {
			if i >= 4 {
				c.Send(servertest.GET)
			}
			c.Status(200)
		}
		fs.Alive()
	})
}

// Clients that have not sent a complete request take nothing from MaxHandlers: the others
// are served at once.
func TestAttackHandlers(t *testing.T) {
	t.Parallel()
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
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				_, m := engines.StartMemory(t, &chert.Server{MaxHandlers: 1, QueueLength: -1, Handler: faultOK})
				var all []*servertest.Client
				for range 4 {
					c := m.Patient(t)
					all = append(all, c)
					attack(c)
					go io.Copy(io.Discard, c.R) // a pipe has no room for a response
				}
				synctest.Wait()
				if d := servertest.Took(func() { m.Patient(t).Get("/") }); d != 0 {
					t.Errorf("the others waited for %v", d)
				}
				for _, c := range all {
					c.Close()
				}
				time.Sleep(time.Minute) // until what attack has begun has noticed that
			})
		})
	}
}
