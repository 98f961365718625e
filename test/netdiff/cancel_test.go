package netdiff

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/chert-http/chert/test/internal/unlike"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/servertest"
)

func TestDiffCancel(t *testing.T) { diffRun(t, diffCancels) }

// waits waits until the request's context is done, and records the reason.
func waits(s *scene, w rw, r *http.Request) {
	done := r.Context().Done()
	s.point("in")
	servertest.WaitDone(s.t, r.Context(), "the context is done")
	<-done
	s.note("%v, cause %v", r.Context().Err(), context.Cause(r.Context()))
	put(w, "done")
}

// firstReads reads the body to its end before f.
func firstReads(f diffHandler) diffHandler {
	return func(s *scene, w rw, r *http.Request) {
		s.readBody(r)
		f(s, w, r)
	}
}

// writesOn writes until it fails.
func writesOn(s *scene, w rw, r *http.Request) {
	s.point("in")
	for {
		if _, err := w.Write(servertest.Pattern(100_000)); err != nil {
			s.note("%s", errNote(err))
			break
		}
	}
	servertest.WaitDone(s.t, r.Context(), "the context is done")
	n, err := w.Write(servertest.Pattern(100_000))
	s.note("then %d %s, %v", n, errNote(err), r.Context().Err())
}

var diffCancels = []diffCase{
	// The client leaves while the handler waits
	{name: "half-close", do: say(ask("GET /")).reach("in").halfClose(), h: waits},
	{name: "half-close in 1.0", do: say(ask10("GET /")).reach("in").halfClose(), h: waits},
	{name: "half-close before the handler asks", do: say(ask("GET /")).halfClose(), h: waits},
	{name: "half-close after a body", do: say(post("/", "hello")).reach("in").halfClose(), h: firstReads(waits)},
	{name: "half-close after chunks", do: say(postChunks("/", servertest.Chunks("hello", 2))).reach("in").halfClose(), h: firstReads(waits)},
	{name: "half-close on the second request", do: say(ask("GET /quiet") + ask("GET /")).reach("in").halfClose(), h: func(s *scene, w rw, r *http.Request) {
		if r.URL.Path == "/" {
			waits(s, w, r)
		}
	}},
	{name: "a FIN", do: say(ask("GET /")).reach("in").leave(), h: waits},
	{name: "a reset", do: say(ask("GET /")).reach("in").reset(), h: waits},
	{name: "a reset after a body", do: say(post("/", "hello")).reach("in").reset(), h: firstReads(waits)},
	{name: "a derived context", do: say(ask("GET /")).reach("in").halfClose(), h: func(s *scene, w rw, r *http.Request) {
		ctx, cancel := context.WithTimeout(context.WithValue(r.Context(), ctxKey("a"), 1), time.Hour)
		defer cancel()
		waits(s, w, r.WithContext(ctx))
	}},
	{name: "AfterFunc", do: say(ask("GET /")).reach("in").halfClose(), h: func(s *scene, w rw, r *http.Request) {
		called := make(chan struct{})
		stop := context.AfterFunc(r.Context(), func() { close(called) })
		s.point("in")
		servertest.Await(s.t, called, "AfterFunc")
		s.note("called, stop says %v", stop())
	}},
	{name: "CloseNotify", do: say(ask("GET /")).reach("in").halfClose(), h: func(s *scene, w rw, r *http.Request) {
		//lint:ignore SA1019 frameworks still use it
		notify := w.(http.CloseNotifier).CloseNotify()
		s.point("in")
		s.note("notified %v", servertest.Await(s.t, notify, "CloseNotify"))
	}},
	{name: "CloseNotify on leaving", do: say(ask("GET /")).reach("in").leave(), h: func(s *scene, w rw, r *http.Request) {
		//lint:ignore SA1019 frameworks still use it
		notify := w.(http.CloseNotifier).CloseNotify()
		s.point("in")
		s.note("notified %v", servertest.Await(s.t, notify, "CloseNotify"))
	}},
	{name: "CloseNotify after the context's end", do: say(ask("GET /")).reach("in").halfClose(), h: func(s *scene, w rw, r *http.Request) {
		s.point("in")
		servertest.Await(s.t, r.Context().Done(), "the context's end")
		//lint:ignore SA1019 frameworks still use it
		s.note("notified %v", servertest.Await(s.t, w.(http.CloseNotifier).CloseNotify(), "CloseNotify"))
	}},

	// The client leaves while the handler reads
	{name: "half-close while it reads", do: say(ask("POST /", length5) + "he").reach("in").halfClose(), h: readsOn, unlike: like(unlike.CutBody, sight{wire: closing("read"), states: "new active closed"})},
	{name: "a FIN while it reads", do: say(ask("POST /", length5) + "he").reach("in").leave(), h: readsOn, unlike: like(unlike.CutBody, sight{states: "new active closed"})},
	{name: "a reset while it reads", do: say(ask("POST /", length5) + "he").reach("in").reset(), h: readsOn},
	{name: "half-close while it reads chunks", do: say(postChunks("/", "5\r\nhe")).reach("in").halfClose(), h: readsOn},
	{name: "a reset while it reads chunks", do: say(postChunks("/", "5\r\nhe")).reach("in").reset(), h: readsOn},

	// The client leaves while the handler writes
	{name: "a reset while it writes", do: say(ask("GET /")).reach("in").reset(), h: writesOn},
	{name: "a FIN while it writes", do: say(ask("GET /")).reach("in").leave(), h: writesOn},
	{name: "a reset while it writes a length", do: say(ask("GET /")).reach("in").reset(), h: func(s *scene, w rw, r *http.Request) {
		set(w, "Content-Length", "1000000000000")
		writesOn(s, w, r)
	}},

	// It does not leave
	{name: "a further request is no end", do: say(ask("GET /")).reach("in").say(ask("GET /quiet")).settle().let("in"), n: 2, h: func(s *scene, w rw, r *http.Request) {
		if r.URL.Path == "/quiet" {
			return
		}
		done := r.Context().Done()
		s.hold("in")
		select {
		case <-done:
			s.note("done")
		default:
			s.note("not done, %v", r.Context().Err())
		}
	}},
	{name: "the end after a further request", do: say(ask("GET /") + ask("GET /quiet")).halfClose()},
	{name: "the handler's end ends it", do: say(ask("GET /")).reach("done"), h: func(s *scene, w rw, r *http.Request) {
		ctx := r.Context()
		s.spawn(func() {
			servertest.WaitDone(s.t, ctx, "the context is done")
			s.note("%v, cause %v", ctx.Err(), context.Cause(ctx))
			s.point("done")
		})
	}},
	{name: "a panic ends it", do: say(ask("GET /")).reach("done"), h: func(s *scene, w rw, r *http.Request) {
		ctx := r.Context()
		s.spawn(func() {
			servertest.WaitDone(s.t, ctx, "the context is done")
			s.note("%v, cause %v", ctx.Err(), context.Cause(ctx))
			s.point("done")
		})
		panic(http.ErrAbortHandler)
	}},
	{name: "a new context with each request", send: ask("GET /") + ask("GET /"), n: 2, h: func(s *scene, w rw, r *http.Request) {
		s.note("%v", r.Context().Err())
	}},

	// Its content
	{name: "its values", send: ask("GET /"), set: func(s *chert.Server) {
		s.BaseContext = func(net.Listener) context.Context {
			return context.WithValue(context.Background(), ctxKey("base"), "b")
		}
		s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
			srv, ok := ctx.Value(http.ServerContextKey).(*http.Server)
			return context.WithValue(ctx, ctxKey("conn"), ok && srv != nil && ctx.Value(http.LocalAddrContextKey) == nil)
		}
	}, h: func(s *scene, w rw, r *http.Request) {
		ctx := r.Context()
		_, server := ctx.Value(http.ServerContextKey).(*http.Server)
		_, local := ctx.Value(http.LocalAddrContextKey).(*net.TCPAddr)
		_, deadline := ctx.Deadline()
		s.note("%v %v %v %v %v %v", ctx.Value(ctxKey("base")), ctx.Value(ctxKey("conn")), ctx.Value(ctxKey("none")), server, local, deadline)
	}},
	{name: "a base context that is done", send: ask("GET /"), set: func(s *chert.Server) {
		s.BaseContext = func(net.Listener) context.Context {
			ctx, cancel := context.WithCancelCause(context.Background())
			cancel(io.ErrNoProgress)
			return ctx
		}
	}, h: func(s *scene, w rw, r *http.Request) {
		s.note("%v, cause %v", r.Context().Err(), context.Cause(r.Context()))
	}},
	{name: "a base context with a deadline", send: ask("GET /"), set: func(s *chert.Server) {
		s.BaseContext = func(net.Listener) context.Context {
			ctx, cancel := context.WithDeadline(context.Background(), time.Unix(1, 0))
			cancel()
			return ctx
		}
	}, h: func(s *scene, w rw, r *http.Request) {
		at, ok := r.Context().Deadline()
		s.note("%v %v %v, cause %v", at.Unix(), ok, r.Context().Err(), context.Cause(r.Context()))
	}},
	{name: "a base context that is done meanwhile", do: say(ask("GET /")), set: func(s *chert.Server) {
		s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
			ctx, cancel := context.WithCancelCause(ctx)
			return context.WithValue(ctx, ctxKey("cancel"), cancel)
		}
	}, h: func(s *scene, w rw, r *http.Request) {
		ctx := r.Context()
		done := ctx.Done()
		ctx.Value(ctxKey("cancel")).(context.CancelCauseFunc)(io.ErrNoProgress)
		<-done
		s.note("%v, cause %v", ctx.Err(), context.Cause(ctx))
	}},
}

// readsOn reads the body until it fails.
func readsOn(s *scene, w rw, r *http.Request) {
	done := r.Context().Done()
	b := make([]byte, 2)
	io.ReadFull(r.Body, b)
	s.point("in")
	n, err := r.Body.Read(make([]byte, 10))
	s.note("%q, then %d %s", b, n, errNote(err))
	servertest.Await(s.t, done, "the context is done")
	s.note("%v", r.Context().Err())
	put(w, "read")
}
