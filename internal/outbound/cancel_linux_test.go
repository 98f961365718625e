package outbound

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/http1"
	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/reason"
	"github.com/chert-http/chert/internal/retry"
	"github.com/chert-http/chert/internal/sys"
)

// leaving is a client whose connection ends while it is called, at one of the calls, and the Route
// of its request.
type leaving struct {
	x      Exchange
	at     string
	server *Server
	done   chan reason.Code
}

func (c *leaving) Gone()              {}
func (c *leaving) Spoilt(int, string) {}
func (c *leaving) Room()              {}
func (c *leaving) call(what string) {
	if what == c.at {
		c.x.Cancel()
	}
}

func (c *leaving) Response([]byte, *http1.Response, []byte) error { c.call("response"); return nil }
func (c *leaving) Body([]byte) error                              { c.call("body"); return nil }
func (c *leaving) Flush() (bool, error)                           { c.call("flush"); return c.at == "flush", nil }
func (c *leaving) End([]byte, []http1.Field)                      {}
func (c *leaving) Fail(reason.Code)                               {}

func (c *leaving) Wait(*Exchange) (*Server, bool)                      { return c.server, false }
func (c *leaving) Failed(*retry.Attempt, int64, error) (*Server, bool) { return nil, false }
func (c *leaving) Answered(int, uint8, bool) ([]byte, *Server)         { return nil, nil }
func (c *leaving) Done(why reason.Code)                                { c.done <- why }
func (c *leaving) Instead() *direct.Response                           { return nil }

// TestCancelInside: a client may end the exchange while it is called with a part of the response. The
// connection to the server ends once, by its own Data.
func TestCancelInside(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"response", "body", "flush"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			left := make(chan error, 1)
			go func() {
				nc, err := listener.Accept()
				if err != nil {
					left <- err
					return
				}
				defer nc.Close()
				r := bufio.NewReader(nc)
				if _, err = http.ReadRequest(r); err == nil {
					io.WriteString(nc, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello")
					_, err = r.ReadByte()
				}
				left <- err
			}()
			l, err := loop.New()
			if err != nil {
				t.Fatal(err)
			}
			ran := make(chan error, 1)
			go func() { ran <- l.Run() }()
			remote, err := sys.NewRemote("tcp", listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			c := &leaving{at: at, done: make(chan reason.Code, 2), server: NewServer(remote, nil, retry.NewIdleLimit(0))}
			l.Do(func() {
				p := NewPlan()
				p.Route, p.Terms = c, NewTerms(&Terms{})
				p.Out = buf.Get(64)
				p.Out.B = append(p.Out.B, "GET / HTTP/1.1\r\nHost: h\r\n\r\n"...)
				c.x.Begin(l, p, c)
			})
			within := time.After(time.Minute)
			select {
			case err := <-left:
				if err == nil {
					t.Error("the server received more")
				}
			case <-within:
				t.Fatal("the connection to the server did not end")
			}
			if why := <-c.done; why != reason.ClientGone {
				t.Errorf("done: %v", why)
			}
			l.Do(l.Retire)
			select {
			case err := <-ran:
				if err != nil {
					t.Error(err)
				}
			case <-within:
				t.Fatal("the loop did not end: something is attached")
			}
			if len(c.done) > 0 {
				t.Error("Done was called twice")
			}
		})
	}
}
