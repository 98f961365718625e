package h2_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/websocket"
)

// end half-closes: to close while something is unread would be a reset, which may overtake what was sent.
func (c *raw) end() { c.Conn.(interface{ CloseWrite() error }).CloseWrite() }

// What has come of a body is there for its handler when the client has left meanwhile, as over HTTP/1: all of it
// with its trailers and io.EOF, or the part that came, and then why there is no more.
func TestBodyOfAGoneClient(t *testing.T) {
	t.Parallel()
	const size = 20_000
	type result struct {
		n       int
		err     error
		trailer string
	}
	each(t, "inline", func(t *testing.T, kind string) {
		got := make(chan result, 1)
		s := serve(t, kind, &chert.Server{HTTP2: &http.HTTP2Config{MaxReceiveBufferPerConnection: 65535},
			Handler: hf(func(w http.ResponseWriter, r *http.Request) {
				<-r.Context().Done()
				b, err := io.ReadAll(r.Body)
				got <- result{len(b), err, r.Trailer.Get("X-T")}
			})})
		for name, leave := range map[string]func(c *raw, id uint32){
			"reset": func(c *raw, id uint32) { c.fr.WriteRSTStream(id, http2.ErrCodeCancel); c.send() },
			"end":   func(c *raw, _ uint32) { c.send(); c.end() },
			"goaway": func(c *raw, _ uint32) {
				c.fr.WriteGoAway(0, http2.ErrCodeNo, nil)
				c.send()
				c.end()
			},
		} {
			for _, whole := range []bool{true, false} {
				c := s.raw()
				for i := range uint32(6) { // more than the connection's window, which is given back
					id := 2*i + 1
					c.headers(id, false, with(post, "trailer: x-t")...)
					c.fr.WriteData(id, false, make([]byte, size/2))
					c.fr.WriteData(id, false, make([]byte, size/2))
					if whole {
						c.headers(id, true, "x-t: there")
					}
					leave(c, id)
					r := servertest.Await(t, got, "the handler")
					var reset http2.StreamError
					switch {
					case r.n != size || (r.err == nil) != whole || whole && r.trailer != "there":
						t.Errorf("%s, whole %v: %+v", name, whole, r)
					case !whole && name == "reset" && (!errors.As(r.err, &reset) ||
						reset.StreamID != id || reset.Code != http2.ErrCodeCancel):
						t.Errorf("%v is no StreamError", r.err)
					}
					if name != "reset" {
						break
					}
				}
			}
		}
	})
}

// A handler that runs beyond its write deadline without writing loses its stream, as on net/http: its context and
// its reads end. One that has moved the deadline goes on.
func TestDeadlineOfASilentHandler(t *testing.T) {
	t.Parallel()
	each(t, "inline", func(t *testing.T, kind string) {
		ended, moved, goOn := make(chan error, 1), make(chan bool, 1), make(chan bool)
		// It bounds the handshake, too.
		cs := &chert.Server{WriteTimeout: time.Second, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			rc := http.NewResponseController(w)
			switch r.URL.Path {
			case "/far":
				rc.SetWriteDeadline(time.Now().AddDate(1000, 0, 0))
				return
			case "/past":
				rc.SetWriteDeadline(time.Unix(1, 0))
				<-r.Context().Done()
				return
			case "/moved":
				rc.SetWriteDeadline(time.Time{})
				moved <- true
				<-goOn
				return
			}
			_, err := io.ReadAll(r.Body)
			<-r.Context().Done()
			ended <- err
		})}
		s := serve(t, kind, cs)
		c := s.raw()
		if a := c.get(5, "/far"); a.outcome() != "200" {
			t.Errorf("far: %+v", a)
		}
		if a := c.get(7, "/past"); a.outcome() != "RST INTERNAL_ERROR" {
			t.Errorf("past: %+v", a)
		}
		c.headers(9, true, path(get, "/moved")...)
		c.send()
		servertest.Await(t, moved, "the first handler")
		c.headers(11, false, post...)
		c.send()
		if err := servertest.Await(t, ended, "the second"); err == nil || kind != "oracle" && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a read: %v", err)
		}
		if a := c.read(11); a.outcome() != "RST INTERNAL_ERROR" {
			t.Errorf("%+v", a)
		}
		if kind != "oracle" {
			if n := engines.UpToDate(t, cs).Timeouts; len(n) != 1 || n[0].Name != "write" || n[0].N != 2 {
				t.Errorf("limits of time: %+v", n) // each once, though one has read since
			}
		}
		close(goOn)
		if a := c.read(9); a.outcome() != "200" {
			t.Errorf("the other one: %+v", a)
		}
	})
}

// WebSockets of Options.Serve keep no slot of MaxHandlers, as over HTTP/1.
func TestServedTunnelsHaveNoSlots(t *testing.T) {
	t.Parallel()
	each(t, "oracle inline", func(t *testing.T, kind string) {
		opened := make(chan bool, 1)
		h, err := websocket.New(&websocket.Options{Serve: func(c *websocket.Conn, _ *http.Request) {
			opened <- true
			c.Read(context.Background())
		}})
		if err != nil {
			t.Fatal(err)
		}
		mux := http.NewServeMux()
		mux.Handle("/", h)
		mux.HandleFunc("/hello", hello)
		s := serve(t, kind, &chert.Server{Handler: mux, ExtendedConnect: true, MaxHandlers: 1, QueueLength: -1})
		c := s.raw()
		for i := range uint32(3) {
			c.headers(2*i+1, false, connect...)
			c.send()
			servertest.Await(t, opened, "the WebSocket")
		}
		servertest.Eventually(t, "a request of another client is answered", func() bool {
			return s.raw().get(1, "/hello").status() == "200"
		})
	})
}

// An upload that its client has reset keeps no window from others, though its handler has read nothing: it may wait for them.
func TestWindowOfAnAbandonedUpload(t *testing.T) {
	t.Parallel()
	const frame = 16 << 10
	each(t, "inline", func(t *testing.T, kind string) {
		done := make(chan bool)
		s := serve(t, kind, &chert.Server{
			HTTP2:   &http.HTTP2Config{MaxReceiveBufferPerConnection: 4 * frame, MaxReceiveBufferPerStream: 4 * frame},
			Handler: hf(func(http.ResponseWriter, *http.Request) { <-done }),
		})
		t.Cleanup(func() { close(done) })
		c := s.raw()
		sent := 0
		for id := uint32(1); id < 9; id += 2 { // what is kept is bounded, too
			c.headers(id, false, post...)
			for range 3 {
				c.fr.WriteData(id, false, make([]byte, frame))
				sent += frame
			}
			c.fr.WriteRSTStream(id, http2.ErrCodeCancel)
			c.send()
			for 65535+c.opened-sent < 3*frame {
				if c.next() == nil {
					t.Fatal("the connection has ended")
				}
			}
		}
	})
}
