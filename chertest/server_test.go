package chertest

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/servertest"
)

type hf = http.HandlerFunc

var hello = hf(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello") })

// like is what this package's Server and httptest's have in common.
type like interface {
	Start()
	StartTLS()
	Close()
	CloseClientConnections()
	Client() *http.Client
}

// side is a server of one kind, not yet started.
type side struct {
	like
	url     func() string
	addr    func() string
	onState func(func(net.Conn, http.ConnState))
}

// alike runs f on this package's Server, with each engine, and on httptest's.
func alike(t *testing.T, h http.Handler, f func(t *testing.T, s *side)) {
	t.Helper()
	for name, e := range map[string]chert.Engine{"auto": chert.EngineAuto, "goroutines": chert.EngineGoroutines} {
		t.Run(name, func(t *testing.T) {
			s := NewUnstartedServer(h)
			defer s.Close()
			s.Config.Engine = e
			f(t, &side{like: s, url: func() string { return s.URL }, addr: func() string { return s.Listener.Addr().String() },
				onState: func(hook func(net.Conn, http.ConnState)) { s.Config.ConnState = hook }})
		})
	}
	t.Run("httptest", func(t *testing.T) {
		s := httptest.NewUnstartedServer(h)
		defer s.Close()
		f(t, &side{like: s, url: func() string { return s.URL }, addr: func() string { return s.Listener.Addr().String() },
			onState: func(hook func(net.Conn, http.ConnState)) { s.Config.ConnState = hook }})
	})
}

func get(t *testing.T, c *http.Client, url string) string {
	t.Helper()
	res, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(servertest.Patience))
	t.Cleanup(func() { c.Close() })
	return c
}

// ended fails unless the server ends the connection, in any way.
func ended(t *testing.T, c net.Conn) {
	t.Helper()
	_, err := io.Copy(io.Discard, c)
	var ne net.Error
	if errors.As(err, &ne) && ne.Timeout() {
		t.Fatal("the connection was not closed")
	}
}

func TestServe(t *testing.T) {
	alike(t, hello, func(t *testing.T, s *side) {
		s.Start()
		for _, url := range []string{s.url(), "http://example.com/x", "http://www.example.com/"} {
			if got := get(t, s.Client(), url); got != "hello" {
				t.Errorf("%s: got %q", url, got)
			}
		}
		if got := get(t, http.DefaultClient, s.url()); got != "hello" {
			t.Errorf("default client: got %q", got)
		}
	})
}

func TestServeTLS(t *testing.T) {
	h := hf(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s", r.TLS.ServerName, r.TLS.NegotiatedProtocol)
	})
	alike(t, h, func(t *testing.T, s *side) {
		s.StartTLS()
		if !strings.HasPrefix(s.url(), "https://127.0.0.1:") {
			t.Errorf("URL is %s", s.url())
		}
		for url, want := range map[string]string{s.url(): " ", "https://example.com/": "example.com ", "https://a.example.com": "a.example.com "} {
			if got := get(t, s.Client(), url); got != want {
				t.Errorf("%s: got %q, want %q", url, got, want)
			}
		}
		if _, err := (&http.Client{Transport: &http.Transport{}}).Get(s.url()); err == nil {
			t.Error("a client that does not know the certificate trusts it")
		}
	})
}

func TestCertificate(t *testing.T) {
	s := NewTLSServer(hello)
	defer s.Close()
	for _, host := range []string{"127.0.0.1", "::1", "example.com", "www.example.com"} {
		if err := s.Certificate().VerifyHostname(host); err != nil {
			t.Error(err)
		}
	}
	again := NewTLSServer(hello)
	defer again.Close()
	if !again.Certificate().Equal(s.Certificate()) {
		t.Error("two servers have different certificates")
	}
	plain := NewServer(hello)
	defer plain.Close()
	if plain.Certificate() != nil {
		t.Error("a server without TLS has a certificate")
	}
}

// A configuration given before StartTLS is kept, its certificates included.
func TestOwnTLSConfig(t *testing.T) {
	s := NewUnstartedServer(hello)
	defer s.Close()
	mine := &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{selfSigned()}}
	s.TLS = mine
	s.StartTLS()
	if s.TLS == mine {
		t.Error("TLS was not cloned")
	}
	if got := get(t, s.Client(), s.URL); got != "hello" {
		t.Errorf("got %q", got)
	}
	c, err := tls.Dial("tcp", s.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})
	if err == nil {
		c.Close()
		t.Error("MinVersion was lost")
	}
}

func TestStartTwice(t *testing.T) {
	s := NewServer(hello)
	defer s.Close()
	for name, start := range map[string]func(){"Start": s.Start, "StartTLS": s.StartTLS} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s did not panic", name)
				}
			}()
			start()
		}()
	}
}

func TestCloseUnstarted(t *testing.T) {
	s := NewUnstartedServer(hello)
	addr := s.Listener.Addr().String()
	s.Close()
	s.Close()
	if c, err := net.Dial("tcp", addr); err == nil {
		c.Close()
		t.Error("it still listens")
	}
}

// As with httptest, some tests build the struct themselves.
func TestLiteral(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Listener: l, Config: &chert.Server{Handler: hello}}
	s.Start()
	defer s.Close()
	if got := get(t, s.Client(), s.URL); got != "hello" {
		t.Errorf("got %q", got)
	}
}

func TestOwnListener(t *testing.T) {
	s := NewUnstartedServer(hello)
	s.Listener.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Listener = l
	s.Start()
	defer s.Close()
	if s.URL != "http://"+l.Addr().String() {
		t.Errorf("URL is %s", s.URL)
	}
	if got := get(t, s.Client(), s.URL); got != "hello" {
		t.Errorf("got %q", got)
	}
}

// Close waits for a request under way, and for its whole response.
func TestCloseWaits(t *testing.T) {
	entered, release := make(chan struct{}, 1), make(chan struct{})
	h := hf(func(w http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		<-release
		io.WriteString(w, "late")
	})
	alike(t, h, func(t *testing.T, s *side) {
		s.Start()
		got := make(chan string, 1)
		go func() {
			res, err := s.Client().Get(s.url())
			if err != nil {
				got <- err.Error()
				return
			}
			defer res.Body.Close()
			b, _ := io.ReadAll(res.Body)
			got <- string(b)
		}()
		servertest.Await(t, entered, "the request")
		var over atomic.Bool
		closed := make(chan struct{})
		go func() {
			s.Close()
			over.Store(true)
			close(closed)
		}()
		// Nothing listens any more as soon as Close has begun.
		for {
			c, err := net.Dial("tcp", s.addr())
			if err != nil {
				break
			}
			c.Close()
		}
		if over.Load() {
			t.Error("Close did not wait")
		}
		release <- struct{}{}
		servertest.Await(t, closed, "Close")
		if body := servertest.Await(t, got, "the response"); body != "late" {
			t.Errorf("got %q", body)
		}
	})
}

// Close does not wait for connections without a request.
func TestCloseEndsUnused(t *testing.T) {
	alike(t, hello, func(t *testing.T, s *side) {
		states := make(chan http.ConnState, 100)
		s.onState(func(_ net.Conn, state http.ConnState) { states <- state })
		s.Start()
		fresh := dial(t, s.addr())
		if state := servertest.Await(t, states, "the first connection"); state != http.StateNew {
			t.Fatalf("state %v", state)
		}
		idle := dial(t, s.addr())
		io.WriteString(idle, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		for servertest.Await(t, states, "the second to be idle") != http.StateIdle {
		}
		began := time.Now()
		s.Close()
		if d := time.Since(began); d > 4*time.Second {
			t.Errorf("Close took %v", d)
		}
		ended(t, fresh)
		ended(t, idle)
	})
}

// A client that has begun a TLS handshake delays no other.
func TestCloseDuringHandshake(t *testing.T) {
	alike(t, hello, func(t *testing.T, s *side) {
		s.StartTLS()
		c := dial(t, s.addr())
		if _, err := c.Write([]byte{22, 3, 1, 1, 0}); err != nil {
			t.Fatal(err)
		}
		get(t, s.Client(), s.url()) // the other was accepted too, as a rule
		s.Close()
		ended(t, c)
	})
}

func TestCloseManyAtOnce(t *testing.T) {
	alike(t, hello, func(t *testing.T, s *side) {
		s.Start()
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 20 {
					res, err := s.Client().Get(s.url())
					if err != nil {
						return // closed meanwhile
					}
					io.Copy(io.Discard, res.Body)
					res.Body.Close()
				}
			})
		}
		for range 3 {
			wg.Go(s.Close)
		}
		wg.Wait()
	})
}

func TestCloseClientConnections(t *testing.T) {
	entered := make(chan struct{}, 1)
	gone := make(chan struct{}, 1)
	h := hf(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			entered <- struct{}{}
			<-r.Context().Done()
			gone <- struct{}{}
		}
	})
	alike(t, h, func(t *testing.T, s *side) {
		s.Start()
		idle, busy := dial(t, s.addr()), dial(t, s.addr())
		io.WriteString(idle, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		if res, err := http.ReadResponse(bufio.NewReader(idle), nil); err != nil || res.StatusCode != 200 {
			t.Fatal(res, err)
		}
		io.WriteString(busy, "GET /wait HTTP/1.1\r\nHost: h\r\n\r\n")
		servertest.Await(t, entered, "the request")
		s.CloseClientConnections()
		ended(t, idle)
		ended(t, busy)
		servertest.Await(t, gone, "the request's context")
		if res, err := s.Client().Get(s.url()); err != nil {
			t.Errorf("it does not serve any more: %v", err)
		} else {
			res.Body.Close()
		}
	})
}

// Close leaves hijacked connections to their owner.
func TestCloseLeavesHijacked(t *testing.T) {
	hijacked := make(chan net.Conn, 1)
	h := hf(func(w http.ResponseWriter, r *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
		}
		hijacked <- c
	})
	alike(t, h, func(t *testing.T, s *side) {
		s.Start()
		c := dial(t, s.addr())
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		mine := servertest.Await(t, hijacked, "the hijack")
		defer mine.Close()
		s.CloseClientConnections()
		s.Close()
		if _, err := io.WriteString(mine, "still here\n"); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(c).ReadString('\n'); line != "still here\n" {
			t.Errorf("got %q, %v", line, err)
		}
	})
}

// Who serves a hijacked connection may tell its states to the server's hook, as x/net's
// h2c does, and not its end.
func TestCloseIgnoresStatesOfHijacked(t *testing.T) {
	told := make(chan net.Conn, 1)
	h := hf(func(w http.ResponseWriter, r *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
		}
		hook := r.Context().Value(http.ServerContextKey).(*http.Server).ConnState
		hook(c, http.StateActive)
		hook(c, http.StateIdle)
		told <- c
	})
	alike(t, h, func(t *testing.T, s *side) {
		s.Start()
		io.WriteString(dial(t, s.addr()), "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		defer servertest.Await(t, told, "the hijack").Close()
		s.Close()
	})
}

// The hook of a test sees the same states as without this package.
func TestConnStateHook(t *testing.T) {
	alike(t, hello, func(t *testing.T, s *side) {
		var mu sync.Mutex
		var seen []string
		s.onState(func(c net.Conn, state http.ConnState) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, state.String())
		})
		s.Start()
		get(t, s.Client(), s.url())
		get(t, s.Client(), s.url())
		s.Close()
		mu.Lock()
		defer mu.Unlock()
		if got := strings.Join(seen, " "); got != "new active idle active idle closed" {
			t.Errorf("saw %s", got)
		}
	})
}
