package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/examples/internal/engines"
	"github.com/chert-http/chert/middleware"
	"github.com/chert-http/chert/router"
	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
)

// An app is the handler that the matrix wraps in middleware.
type app struct {
	entered chan struct{} // sent to by /hold
	leave   chan struct{} // lets /hold and /events continue
}

// page is large enough to be compressed, and small enough to get a tag.
var page = strings.Repeat("the same words again ", 200)

// wait waits for leave, or until the client leaves, so that a failing test
// ends.
func (a *app) wait(r *http.Request) {
	select {
	case <-a.leave:
	case <-r.Context().Done():
	}
}

// plain returns the routes that cannot be direct handlers.
func (a *app) plain() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"GET /hold": func(w http.ResponseWriter, r *http.Request) {
			a.entered <- struct{}{}
			a.wait(r)
			io.WriteString(w, "held")
		},
		"GET /slow": func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"GET /events": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "one\n")
			w.(http.Flusher).Flush()
			a.wait(r)
			io.WriteString(w, "two\n")
			if err := http.NewResponseController(w).Flush(); err != nil {
				io.WriteString(w, err.Error())
			}
			a.wait(r)
		},
		"GET /hijack": func(w http.ResponseWriter, r *http.Request) {
			hijack := http.NewResponseController(w).Hijack
			if r.URL.RawQuery == "asserted" {
				hijack = w.(http.Hijacker).Hijack
			}
			c, rw, err := hijack()
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			defer c.Close()
			rw.WriteString("mine")
			rw.Flush()
		},
		"GET /controller": func(w http.ResponseWriter, r *http.Request) {
			c, later := http.NewResponseController(w), time.Now().Add(time.Hour)
			fmt.Fprint(w, errors.Join(c.EnableFullDuplex(), c.SetReadDeadline(later), c.SetWriteDeadline(later), c.Flush()))
		},
	}
}

// either returns the routes that could be direct handlers, in both forms.
func (a *app) either() map[string]direct.HandlerFunc {
	return map[string]direct.HandlerFunc{
		"GET /page": func(x *direct.Exchange) {
			x.SetHeader("Content-Type", "text/plain; charset=utf-8")
			x.WriteString(page)
		},
		"GET /teapot": func(x *direct.Exchange) { x.SetStatus(http.StatusTeapot); x.WriteString("tea") },
		"GET /panic":  func(*direct.Exchange) { panic("on purpose") },
		"GET /who": func(x *direct.Exchange) {
			fmt.Fprintf(x, "%s %s %s", middleware.UserOf(x), x.RemoteAddr(), middleware.RequestIDOf(x))
		},
		"POST /echo": func(x *direct.Exchange) { x.Write(x.Body()) },
	}
}

// handlers returns the routes of either and plain as plain handlers.
func (a *app) handlers() map[string]http.HandlerFunc {
	all := a.plain()
	all["GET /page"] = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		io.WriteString(w, page)
	}
	all["GET /teapot"] = func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		io.WriteString(w, "tea")
	}
	all["GET /panic"] = func(http.ResponseWriter, *http.Request) { panic("on purpose") }
	all["GET /who"] = func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s %s", middleware.UserOf(r.Context()), r.RemoteAddr, middleware.RequestIDOf(r.Context()))
	}
	all["POST /echo"] = func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			http.Error(w, http.StatusText(http.StatusRequestEntityTooLarge), http.StatusRequestEntityTooLarge)
			return
		}
		w.Write(b)
	}
	return all
}

type wrapper = func(http.Handler) http.Handler

// shapes are the ways to wrap an app in a middleware.
var shapes = []struct {
	name string
	make func(t *testing.T, a *app, mw wrapper) http.Handler
}{
	{"plain", func(t *testing.T, a *app, mw wrapper) http.Handler {
		mux := http.NewServeMux()
		for pattern, h := range a.handlers() {
			mux.Handle(pattern, h)
		}
		return mw(mux)
	}},
	{"direct", func(t *testing.T, a *app, mw wrapper) http.Handler {
		r := router.New()
		for pattern, h := range a.plain() {
			r.Handle(pattern, h)
		}
		for pattern, h := range a.either() {
			r.HandleDirect(pattern, h)
		}
		h := mw(r)
		if _, ok := h.(direct.Handler); !ok {
			t.Errorf("a %T is no direct.Handler", h)
		}
		return h
	}},
	{"chi", func(t *testing.T, a *app, mw wrapper) http.Handler {
		r := chi.NewRouter()
		r.Use(mw)
		for pattern, h := range a.handlers() {
			method, path, _ := strings.Cut(pattern, " ")
			r.Method(method, path, h)
		}
		return r
	}},
	{"gin", func(t *testing.T, a *app, mw wrapper) http.Handler {
		gin.SetMode(gin.ReleaseMode)
		r := gin.New()
		r.SetTrustedProxies(nil)
		r.Use(ginned(mw))
		for pattern, h := range a.handlers() {
			method, path, _ := strings.Cut(pattern, " ")
			switch path {
			case "/page": // as gin's handlers respond: first the status, then the fields
				r.Handle(method, path, func(c *gin.Context) { c.String(http.StatusOK, "%s", page) })
			case "/teapot":
				r.Handle(method, path, func(c *gin.Context) { c.String(http.StatusTeapot, "tea") })
			default:
				r.Handle(method, path, gin.WrapH(h))
			}
		}
		// gin runs middleware only for known routes.
		r.NoRoute(func(c *gin.Context) { c.String(http.StatusNotFound, "not here") })
		r.NoMethod(func(c *gin.Context) { c.Status(http.StatusMethodNotAllowed) })
		return r
	}},
}

// A site is an app that is served.
type site struct {
	*app
	*engines.Server
}

// flushes checks that an event arrives before the handler returns.
func (s *site) flushes(t *testing.T, fields []string) {
	t.Helper()
	res := s.open(t, "/events", fields)
	defer res.Body.Close()
	s.events(t, res.Body)
}

// events reads the events of /events from body.
func (s *site) events(t *testing.T, body io.Reader) {
	t.Helper()
	r := bufio.NewReader(body)
	for _, want := range []string{"one\n", "two\n"} {
		if got, err := r.ReadString('\n'); got != want {
			t.Errorf("got %q, %v, before the handler went on; want %q", got, err, want)
			return
		}
		select {
		case s.leave <- struct{}{}:
		case <-time.After(engines.Patience):
			t.Fatal("the handler does not wait for its client")
		}
	}
	if rest, err := io.ReadAll(r); len(rest) > 0 || err != nil {
		t.Errorf("then %q, %v", rest, err)
	}
}

// open sends a request and leaves the body unread.
func (s *site) open(t *testing.T, path string, fields []string) *http.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), engines.Patience)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "GET", s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(fields); i += 2 {
		req.Header.Set(fields[i], fields[i+1])
	}
	res, err := s.Client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// hijacks checks that the handler can take over the connection.
func (s *site) hijacks(t *testing.T, fields []string) {
	t.Helper()
	for _, query := range []string{"", "?asserted"} {
		c := s.Dial(t)
		head := "GET /hijack" + query + " HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
		for i := 0; i < len(fields); i += 2 {
			head += fields[i] + ": " + fields[i+1] + "\r\n"
		}
		io.WriteString(c, head+"\r\n")
		if b, err := io.ReadAll(c); string(b) != "mine" || err != nil && !errors.Is(err, net.ErrClosed) {
			t.Errorf("hijacked%s: got %q, %v", query, b, err)
		}
	}
}
