package netdiff

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"testing"

	"github.com/chert-http/chert/internal/testing/servertest"
)

func TestDiffErrors(t *testing.T) { diffRun(t, diffErrors) }

func panics(v any) diffHandler { return func(*scene, rw, *http.Request) { panic(v) } }

// status responds with a code that may not be allowed.
func status(code int) diffHandler {
	return func(s *scene, w rw, r *http.Request) {
		defer func() { s.note("panic: %v", recover()) }()
		w.WriteHeader(code)
	}
}

var diffErrors = []diffCase{
	{name: "a panic", h: panics("boom")},
	{name: "a panic with an error", h: panics(io.ErrClosedPipe)},
	{name: "a panic with something odd", h: panics([]int{1})},
	{name: "a panic with two lines", h: panics("one\ntwo")},
	{name: "a panic with nil", h: panics(nil)},
	{name: "a panic of the runtime", h: func(s *scene, w rw, r *http.Request) { _ = []int{}[len(r.Host):][3] }},
	{name: "an abort", h: panics(http.ErrAbortHandler)},
	{name: "a wrapped abort", h: panics(fmt.Errorf("wrapped: %w", http.ErrAbortHandler))},
	{name: "Goexit", h: func(s *scene, w rw, r *http.Request) { runtime.Goexit() }},
	{name: "a panic with the response held back", h: func(s *scene, w rw, r *http.Request) { put(w, "held"); panic("boom") }},
	{name: "a panic with a status held back", h: func(s *scene, w rw, r *http.Request) { w.WriteHeader(500); panic("boom") }},
	{name: "a panic after a flush", h: func(s *scene, w rw, r *http.Request) { put(w, "a"); s.flushed(w); put(w, "b"); panic("boom") }},
	{name: "an abort after a flush", h: func(s *scene, w rw, r *http.Request) { put(w, "a"); s.flushed(w); panic(http.ErrAbortHandler) }},
	{name: "Goexit after a flush", h: func(s *scene, w rw, r *http.Request) { put(w, "a"); s.flushed(w); runtime.Goexit() }},
	{name: "a panic after hints", h: func(s *scene, w rw, r *http.Request) { w.WriteHeader(103); panic("boom") }},
	{name: "a panic after a long write", h: func(s *scene, w rw, r *http.Request) { w.Write(servertest.Pattern(10_000)); panic("boom") }},
	{name: "a panic after a long write of a length", h: func(s *scene, w rw, r *http.Request) {
		set(w, "Content-Length", "10000")
		w.Write(servertest.Pattern(10_000))
		panic("boom")
	}},
	{name: "a panic after 3000 bytes", h: func(s *scene, w rw, r *http.Request) { w.Write(servertest.Pattern(3000)); panic("boom") }},
	{name: "a panic after 2000 bytes", h: func(s *scene, w rw, r *http.Request) { w.Write(servertest.Pattern(2000)); panic("boom") }},
	{name: "a panic after two writes of 2000 bytes", h: func(s *scene, w rw, r *http.Request) {
		w.Write(servertest.Pattern(2000))
		w.Write(servertest.Pattern(2000))
		panic("boom")
	}},
	{name: "a panic after a complete response", h: func(s *scene, w rw, r *http.Request) {
		set(w, "Content-Length", "1")
		put(w, "a")
		s.flushed(w)
		panic("boom")
	}},
	{name: "a panic in the second request", send: ask("GET /") + ask("GET /quiet") + ask("GET /"), n: 3, h: func(s *scene, w rw, r *http.Request) {
		if r.URL.Path == "/quiet" {
			panic("boom")
		}
	}},
	{name: "a panic over an unread body", send: post("/", smuggled), h: panics("boom")},
	{name: "a panic over an unread body in chunks", send: postChunks("/", servertest.Chunks(smuggled, 10)), h: panics("boom")},
	{name: "a panic over a body of which some was read", send: post("/", "hello, world"), h: func(s *scene, w rw, r *http.Request) { s.readSome(r, 5); panic("boom") }},
	{name: "a panic to 1.0", send: ask10("GET /", keepAlive), h: panics("boom")},
	{name: "a panic that the handler recovers", h: func(s *scene, w rw, r *http.Request) {
		defer func() { http.Error(w, fmt.Sprint(recover()), 500) }()
		panic("boom")
	}},
	{name: "the last resort of a panic", h: func(s *scene, w rw, r *http.Request) {
		defer func() { panic(fmt.Sprint("again ", recover())) }()
		panic("boom")
	}},

	{name: "status 0", h: status(0)},
	{name: "status 99", h: status(99)},
	{name: "status 1000", h: status(1000)},
	{name: "status -1", h: status(-1)},
	{name: "a bad status that is not recovered", h: func(s *scene, w rw, r *http.Request) { w.WriteHeader(0) }},
	{name: "a bad status after a good one", h: func(s *scene, w rw, r *http.Request) { w.WriteHeader(200); status(0)(s, w, r) }},
	{name: "status 100", h: status(100)},
	{name: "status 600", h: status(600)},

	{name: "what a response can do", h: func(s *scene, w rw, r *http.Request) {
		_, flusher := w.(http.Flusher)
		_, hijacker := w.(http.Hijacker)
		_, pusher := w.(http.Pusher)
		_, from := w.(io.ReaderFrom)
		_, str := w.(io.StringWriter)
		//lint:ignore SA1019 frameworks still ask
		_, notifier := w.(http.CloseNotifier)
		_, flushError := w.(interface{ FlushError() error })
		_, unwrap := w.(interface{ Unwrap() http.ResponseWriter })
		s.note("%v %v %v %v %v %v %v %v", flusher, hijacker, pusher, from, str, notifier, flushError, unwrap)
	}},
	{name: "Hijack too late", do: say(ask("GET /")).idle(1).let("late").reach("over"), h: func(s *scene, w rw, r *http.Request) {
		s.spawn(func() {
			defer s.point("over")
			defer func() { s.note("panic: %v", recover()) }()
			s.hold("late")
			w.(http.Hijacker).Hijack()
		})
	}},
	{name: "CloseNotify too late", do: say(ask("GET /")).idle(1).let("late").reach("over"), h: func(s *scene, w rw, r *http.Request) {
		s.spawn(func() {
			defer s.point("over")
			defer func() { s.note("panic: %v", recover()) }()
			s.hold("late")
			//lint:ignore SA1019 frameworks still use it
			w.(http.CloseNotifier).CloseNotify()
		})
	}},
	{name: "the body too late", do: say(post("/", "hello")).idle(1).let("late").reach("over"), h: func(s *scene, w rw, r *http.Request) {
		s.spawn(func() {
			defer s.point("over")
			s.hold("late")
			s.readSome(r, 1)
		})
	}},
	{name: "a response that a client may not understand", h: func(s *scene, w rw, r *http.Request) { set(w, "Content-Type", "text/html"); http.Error(w, "<b>", 400) }},
}
