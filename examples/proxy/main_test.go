package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strings"
	"testing"

	"github.com/chert-http/chert/examples/internal/engines"
	"github.com/chert-http/chert/examples/internal/wscheck"
	"github.com/gorilla/websocket"
)

func TestMain(m *testing.M) { engines.Main(m) }

// chain is a proxy before a backend, both on the same engine.
func chain(t *testing.T, e engines.Engine, backend http.Handler) *engines.Server {
	t.Helper()
	b := e.Start(t, backend)
	return e.Start(t, before(t, b.URL))
}

func before(t *testing.T, to string) http.Handler {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return handler(target, tr, log.New(io.Discard, "", 0))
}

type hf = http.HandlerFunc

func TestForward(t *testing.T) {
	backend := hf(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		w.Header().Set("X-Backend", "yes")
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, "%s %s from %v to %s: %d bytes, %v", r.Method, r.RequestURI, r.Header["X-Forwarded-For"],
			r.Header.Get("X-Forwarded-Host"), len(body), err)
	})
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		s := chain(t, e, backend)
		for _, n := range []int{0, 1, 100000, 5 << 20} {
			res := s.Expect(t, "POST", "/a%2Fb?c=d", strings.Repeat("x", n), 418,
				fmt.Sprintf("POST /a%%2Fb?c=d from [127.0.0.1] to %s: %d bytes, <nil>", s.Addr, n))
			if res.Header.Get("X-Backend") != "yes" {
				t.Error("a field was lost")
			}
		}
	})
}

// The client sees each piece before the backend writes the next.
func TestStreaming(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		next := make(chan string)
		s := chain(t, e, hf(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Trailer", "X-Count")
			http.NewResponseController(w).Flush()
			n := 0
			for piece := range next {
				io.WriteString(w, piece+"\n")
				http.NewResponseController(w).Flush()
				n++
			}
			w.Header().Set("X-Count", fmt.Sprint(n))
		}))
		res, err := s.Client.Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		r := bufio.NewReader(res.Body)
		for i := range 50 {
			want := fmt.Sprint("piece ", i)
			next <- want
			if got, err := r.ReadString('\n'); got != want+"\n" {
				t.Fatalf("got %q, %v, want %q", got, err, want)
			}
		}
		close(next)
		if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 {
			t.Errorf("at the end: %q, %v", rest, err)
		}
		if got := res.Trailer.Get("X-Count"); got != "50" {
			t.Errorf("trailer %q", got)
		}
	})
}

// The request's body streams too: the backend sees each piece before the client
// sends the next.
func TestUploadStreaming(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		seen := make(chan string)
		s := chain(t, e, hf(func(w http.ResponseWriter, r *http.Request) {
			lines := bufio.NewScanner(r.Body)
			for lines.Scan() {
				seen <- lines.Text()
			}
			fmt.Fprint(w, "end ", lines.Err())
		}))
		pr, pw := io.Pipe()
		answer := make(chan string, 1)
		go func() {
			res, err := s.Client.Post(s.URL, "text/plain", pr)
			if err != nil {
				answer <- err.Error()
				return
			}
			defer res.Body.Close()
			b, _ := io.ReadAll(res.Body)
			answer <- string(b)
		}()
		for i := range 20 {
			fmt.Fprintln(pw, "piece", i)
			if got := engines.Await(t, seen, "a piece"); got != fmt.Sprint("piece ", i) {
				t.Fatalf("got %q", got)
			}
		}
		pw.Close()
		if got := engines.Await(t, answer, "the response"); got != "end <nil>" {
			t.Errorf("got %q", got)
		}
	})
}

// When the client leaves, the backend's context ends, before the response and
// in the middle of it.
func TestCancel(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		entered, left := make(chan struct{}), make(chan struct{})
		s := chain(t, e, hf(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/midst" {
				io.WriteString(w, "some")
				http.NewResponseController(w).Flush()
			}
			entered <- struct{}{}
			<-r.Context().Done()
			left <- struct{}{}
		}))
		for _, path := range []string{"/before", "/midst"} {
			ctx, cancel := context.WithCancel(context.Background())
			req, _ := http.NewRequestWithContext(ctx, "GET", s.URL+path, nil)
			done := make(chan error, 1)
			go func() {
				res, err := s.Client.Do(req)
				if err == nil {
					_, err = io.ReadAll(res.Body)
					res.Body.Close()
				}
				done <- err
			}()
			engines.Await(t, entered, "the backend")
			cancel()
			engines.Await(t, left, "the backend's context")
			if err := engines.Await(t, done, "the client"); err == nil {
				t.Error("the client got a complete response")
			}
		}
	})
}

// A backend that aborts in the middle of its response: the proxy must not make
// the response look complete.
func TestBrokenBackend(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		s := chain(t, e, hf(func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "some")
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}))
		res, err := s.Client.Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if b, err := io.ReadAll(res.Body); err == nil || string(b) != "some" {
			t.Errorf("got %q, %v", b, err)
		}
	})
}

func TestDeadBackend(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		dead := e.Start(t, hf(nil))
		dead.Close()
		s := e.Start(t, before(t, dead.URL))
		s.Expect(t, "GET", "/", "", 502, "")
		s.Expect(t, "POST", "/", "body", 502, "")
	})
}

// Interim responses pass.
func TestEarlyHints(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		s := chain(t, e, hf(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", "</style.css>")
			w.WriteHeader(http.StatusEarlyHints)
			io.WriteString(w, "page")
		}))
		var hints []string
		ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{
			Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
				hints = append(hints, fmt.Sprint(code, h["Link"]))
				return nil
			},
		})
		req, _ := http.NewRequestWithContext(ctx, "GET", s.URL, nil)
		res, err := s.Client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if b, err := io.ReadAll(res.Body); string(b) != "page" || err != nil {
			t.Errorf("got %q, %v", b, err)
		}
		if len(hints) != 1 || hints[0] != "103 [</style.css>]" {
			t.Errorf("hints: %q", hints)
		}
	})
}

// A WebSocket passes through, and its end in both directions.
func TestUpgrade(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		ended := make(chan error, 100)
		s := chain(t, e, hf(func(w http.ResponseWriter, r *http.Request) {
			c, err := new(websocket.Upgrader).Upgrade(w, r, nil)
			if err != nil {
				ended <- err
				return
			}
			defer c.Close()
			for {
				kind, p, err := c.ReadMessage()
				if err == nil && string(p) == "break off" {
					err = io.EOF
				}
				if err == nil {
					err = c.WriteMessage(kind, p)
				}
				if err != nil {
					ended <- err
					return
				}
			}
		}))
		wscheck.Echo(t, s, "/")
		for range 6 { // one for each connection
			engines.Await(t, ended, "a backend's end")
		}
		// The client closes the connection without a close frame.
		c := wscheck.Dial(t, s, "/")
		c.Close()
		engines.Await(t, ended, "the backend's end")
		// The backend does.
		c = wscheck.Dial(t, s, "/")
		c.Send(1, true, "break off")
		c.ExpectEnd()
	})
}

func TestSame(t *testing.T) {
	backend := engines.NetHTTP.Start(t, hf(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/empty":
			w.WriteHeader(http.StatusNoContent)
		case "/large":
			w.Write(engines.Random(100000))
		case "/trailer":
			w.Header().Set("Trailer", "X-End")
			io.WriteString(w, "body")
			w.Header().Set("X-End", "now")
		case "/unannounced":
			io.WriteString(w, "body")
			w.Header().Set(http.TrailerPrefix+"X-End", "now")
		case "/switch":
			w.Header().Set("Connection", "Upgrade")
			w.Header().Set("Upgrade", "other")
			w.WriteHeader(http.StatusSwitchingProtocols)
		default:
			body, _ := io.ReadAll(r.Body)
			fmt.Fprintf(w, "%s %s %q", r.Method, r.RequestURI, body)
		}
	}))
	engines.Same(t, func() http.Handler { return before(t, backend.URL) }, nil,
		"GET / HTTP/1.1\nHost: h\n\n",
		"HEAD / HTTP/1.1\nHost: h\n\n",
		"GET / HTTP/1.0\n\n",
		"POST /x HTTP/1.1\nHost: h\nContent-Length: 3\n\nabc",
		"POST /x HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\n\n3\nabc\n0\n\n",
		"POST /x HTTP/1.1\nHost: h\nExpect: 100-continue\nContent-Length: 3\n\nabc",
		"GET /empty HTTP/1.1\nHost: h\n\n",
		"GET /large HTTP/1.1\nHost: h\n\n",
		"HEAD /large HTTP/1.1\nHost: h\n\n",
		"GET /large HTTP/1.0\n\n",
		"GET /trailer HTTP/1.1\nHost: h\nTE: trailers\n\n",
		"GET /unannounced HTTP/1.1\nHost: h\nTE: trailers\n\n",
		"GET /switch HTTP/1.1\nHost: h\nConnection: Upgrade\nUpgrade: another\n\n",
		"GET http://h/absolute HTTP/1.1\nHost: h\n\n",
	)
}
