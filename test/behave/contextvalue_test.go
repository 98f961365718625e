package behave

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

type ctxKey string

func TestContextBaseAndConn(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		why := errors.New("the base ends")
		base, cancel := context.WithCancelCause(context.WithValue(context.Background(), ctxKey("base"), "b"))
		defer cancel(nil)
		base, cancelDeadline := context.WithDeadline(base, time.Now().Add(time.Hour))
		defer cancelDeadline()
		var conns atomic.Int32
		seen, listens := make(chan string, 1), make(chan string, 1)
		ts := engines.Start(t, &chert.Server{Engine: e,
			BaseContext: func(l net.Listener) context.Context {
				listens <- l.Addr().String()
				return base
			},
			ConnContext: func(ctx context.Context, c net.Conn) context.Context {
				if ctx.Value(ctxKey("base")) != "b" {
					t.Error("ConnContext's context is not the base's")
				}
				if _, ok := ctx.Value(http.ServerContextKey).(*http.Server); !ok {
					t.Error("ConnContext's context has no server")
				}
				seen <- c.RemoteAddr().String() + " " + c.LocalAddr().String()
				return context.WithValue(ctx, ctxKey("conn"), conns.Add(1))
			},
			Handler: hf(func(w http.ResponseWriter, r *http.Request) {
				ctx := r.Context()
				if ctx.Value(ctxKey("base")) != "b" || ctx.Value(ctxKey("none")) != nil {
					t.Error("values are missing")
				}
				if want, ok := base.Deadline(); !ok {
					t.Error("no deadline")
				} else if d, ok := ctx.Deadline(); !ok || d != want {
					t.Errorf("Deadline is %v, %v", d, ok)
				}
				if r.URL.Path == "/cancel" {
					child, stop := context.WithCancel(ctx)
					defer stop()
					cancel(why)
					servertest.WaitDone(t, ctx, "the context is done")
					servertest.WaitDone(t, child, "its child is done")
					if ctx.Err() != context.Canceled || context.Cause(ctx) != why {
						t.Errorf("Err is %v, Cause is %v", ctx.Err(), context.Cause(ctx))
					}
				}
				put(w, string('0'+ctx.Value(ctxKey("conn")).(int32)))
			})})
		for _, want := range []string{"1", "2"} {
			c := ts.Dial()
			for range 2 {
				if _, body := c.Get("/"); body != want {
					t.Errorf("connection %s has the value %s", want, body)
				}
			}
			if s := servertest.Await(t, seen, "ConnContext"); s != c.LocalAddr().String()+" "+ts.ListenAddr {
				t.Errorf("ConnContext saw %s", s)
			}
		}
		if l := servertest.Await(t, listens, "BaseContext"); l != ts.ListenAddr {
			t.Errorf("BaseContext saw %s", l)
		}
		c := ts.Dial()
		c.Get("/cancel")
		<-seen
		if _, body := c.Get("/"); body != "3" { // the connection does not end with its context
			t.Errorf("got %q", body)
		}
	})
}

func TestCloseNotify(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		running, over := make(chan struct{}), make(chan struct{})
		kept := make(chan (<-chan bool), 1)
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			//lint:ignore SA1019 frameworks still use it
			ch := w.(http.CloseNotifier).CloseNotify()
			//lint:ignore SA1019 frameworks still use it
			if again := w.(http.CloseNotifier).CloseNotify(); again != ch {
				t.Error("two channels")
			}
			if r.URL.Path == "/return" {
				kept <- ch
				return
			}
			running <- struct{}{}
			if !servertest.Await(t, ch, "CloseNotify") {
				t.Error("false was sent")
			}
			over <- struct{}{}
		})})
		for _, leave := range leavings {
			c := ts.Dial()
			c.Send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
			servertest.Await(t, running, "the handler")
			leave(c)
			servertest.Await(t, over, "the handler's end")
		}
		c := ts.Dial()
		c.Get("/return")
		ch := servertest.Await(t, kept, "the handler")
		c.Get("/return") // now the first has certainly ended
		<-kept
		select {
		case <-ch:
			t.Error("the handler's end was notified")
		default:
		}
	})
}

// TestServerIsNetHTTPs compares the fields and methods of the two servers.
func TestServerIsNetHTTPs(t *testing.T) {
	t.Parallel()
	theirs, ours := reflect.TypeFor[http.Server](), reflect.TypeFor[chert.Server]()
	for i := range theirs.NumField() {
		f := theirs.Field(i)
		if !f.IsExported() {
			continue
		}
		if g, ok := ours.FieldByName(f.Name); !ok || g.Type != f.Type {
			t.Errorf("field %s is a %v, want %v", f.Name, g.Type, f.Type)
		}
	}
	signature := func(m reflect.Method) string {
		s := m.Name
		for i := 1; i < m.Type.NumIn(); i++ { // 0 is the receiver
			s += fmt.Sprint(" ", m.Type.In(i))
		}
		s += fmt.Sprint(" ", m.Type.IsVariadic(), " gives")
		for i := range m.Type.NumOut() {
			s += fmt.Sprint(" ", m.Type.Out(i))
		}
		return s
	}
	theirs, ours = reflect.PointerTo(theirs), reflect.PointerTo(ours)
	for i := range theirs.NumMethod() {
		m := theirs.Method(i)
		if g, ok := ours.MethodByName(m.Name); !ok || signature(g) != signature(m) {
			t.Errorf("method %s is missing or not %s", m.Name, signature(m))
		}
	}
}
