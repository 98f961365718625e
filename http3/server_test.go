package http3_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/chert-http/chert"
	chert3 "github.com/chert-http/chert/http3"
	codec "github.com/chert-http/chert/internal/http3"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/stats"
)

// waits is a handler that begins, and returns when it is released. Paths other than "/wait" do not
// wait.
func waits() (h hf, begun, release chan bool) {
	begun, release = make(chan bool, 1000), make(chan bool)
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			begun <- true
			<-release
		}
		io.WriteString(w, "hello")
	}, begun, release
}

// Requests beyond MaxHandlers wait, beyond QueueLength they are refused, and one whose client goes
// away leaves the queue.
func TestMaxHandlers(t *testing.T) {
	t.Parallel()
	h, begun, release := waits()
	s := serve(t, &chert.Server{Handler: h, MaxHandlers: 1, QueueLength: 2})
	c := s.raw()
	waiting := func(n int64) {
		t.Helper()
		servertest.Eventually(t, "requests wait", func() bool { return s.Stats().Waiting == n })
	}
	first := c.open(true, headers(path(get, "/wait")...))
	servertest.Await(t, begun, "the handler")
	second := c.open(true, headers(get...))
	waiting(1)
	gone := c.open(true, headers(path(get, "/wait")...))
	waiting(2)
	var stages []string
	for _, r := range s.RunningRequests(10) {
		stages = append(stages, r.Target+" "+r.Stage)
	}
	if want := []string{"/wait handler", "/ waiting", "/wait waiting"}; !slices.Equal(stages, want) {
		t.Errorf("%q are running, want %q", stages, want)
	}
	if a := c.get("/"); a.ending() != "503" {
		t.Errorf("%+v", a)
	}
	gone.CancelRead(quic.StreamErrorCode(codec.RequestCancelled))
	waiting(1)
	third := c.open(true, headers(get...))
	waiting(2)
	close(release)
	for _, e := range []*exchange{first, second, third} {
		if a := e.read(); a.body != "hello" {
			t.Errorf("%+v", a)
		}
	}
	if len(begun) != 0 {
		t.Error("the handler of the request that is gone has run")
	}
	// A client that leaves with all its requests frees their places.
	bad := s.raw()
	for range 3 {
		bad.open(true, headers(get...))
	}
	bad.CloseWithError(0x100, "")
	if a := c.get("/"); a.body != "hello" {
		t.Errorf("%+v", a)
	}
}

// An idle connection gives way to another, and one with a request does not.
func TestGivesWay(t *testing.T) {
	t.Parallel()
	t.Run("of the server", func(t *testing.T) {
		t.Parallel()
		givesWay(t, &chert.Server{MaxConns: 2})
	})
	t.Run("of HTTP/3", func(t *testing.T) {
		t.Parallel()
		s := givesWay(t, &chert.Server{HTTP3: chert3.New(&chert3.Options{MaxConns: 2})})
		// Those of TCP are not among them.
		c, err := tls.Dial("tcp", s.addr, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		if b, err := io.ReadAll(c); err != nil || !strings.HasSuffix(string(b), "\r\n\r\nhello") {
			t.Errorf("over TCP: %q, %v", b, err)
		}
	})
}

// givesWay leaves a server with as many connections as may be.
func givesWay(t *testing.T, srv *chert.Server) *running {
	h, begun, release := waits()
	srv.Handler = h
	s := serve(t, srv)
	refused := 0
	dial := func() (c *raw) {
		servertest.Eventually(t, "there is a place", func() bool {
			var err error
			if c, err = s.tryDial(nil); err != nil {
				var e *quic.TransportError
				if !errors.As(err, &e) || e.ErrorCode != quic.ConnectionRefused {
					t.Fatal(err)
				}
				refused++
				return false
			}
			return c.get("/").body == "hello"
		})
		return c
	}
	busy := s.raw()
	e := busy.open(true, headers(path(get, "/wait")...))
	servertest.Await(t, begun, "the handler")
	// The second packet of a handshake counts as a connection of its own for a moment if it comes together with the first.
	idle := dial()
	refused = 0
	dial()
	if got := idle.ended(); got != "CLOSE H3_NO_ERROR" || refused == 0 {
		t.Errorf("the idle one: %s, %d were refused", got, refused)
	}
	close(release)
	if a := e.read(); a.body != "hello" {
		t.Errorf("the busy one: %+v", a)
	}
	return s
}

func TestMaxConnsPerAddr(t *testing.T) {
	t.Parallel()
	refusals := make(chan chert.Refusal, 100)
	s := serve(t, &chert.Server{Handler: hf(hello), MaxConnsPerAddr: 2, Refused: func(r chert.Refusal) { refusals <- r }})
	one, two := s.raw(), s.raw()
	for _, c := range []*raw{one, two} {
		if a := c.get("/"); a.body != "hello" {
			t.Fatalf("%+v", a)
		}
	}
	if got := s.raw().ended(); got != "CLOSE H3_EXCESSIVE_LOAD" {
		t.Errorf("a third: %s", got)
	}
	if r := servertest.Await(t, refusals, "Refused"); r.Status != 503 || !strings.HasPrefix(r.RemoteAddr, "127.") {
		t.Errorf("%+v", r)
	}
	one.CloseWithError(0x100, "")
	servertest.Eventually(t, "there is a place again", func() bool { return s.raw().get("/").body == "hello" })
}

// An idle connection ends, with GOAWAY, and one with a request does not.
func TestIdleTimeout(t *testing.T) {
	t.Parallel()
	h, begun, release := waits()
	s := serve(t, &chert.Server{Handler: h, IdleTimeout: 2 * time.Second}) // within which a busy machine makes each request
	busy := s.raw()
	e := busy.open(true, headers(path(get, "/wait")...))
	servertest.Await(t, begun, "the handler")
	silent := s.raw()
	aways := map[string]chan []uint64{"silent": silent.goAways()}
	used := s.raw()
	aways["used"] = used.goAways()
	used.get("/")
	for name, c := range map[string]*raw{"silent": silent, "used": used} {
		if got := c.ended(); got != "CLOSE H3_NO_ERROR" {
			t.Errorf("%s: %s", name, got)
		}
		want := []uint64{0}
		if name == "used" {
			want[0] = 4
		}
		if got := servertest.Await(t, aways[name], "GOAWAY"); !slices.Equal(got, want) {
			t.Errorf("%s: GOAWAY %v, want %v", name, got, want)
		}
	}
	close(release)
	if a := e.read(); a.body != "hello" {
		t.Errorf("%+v", a)
	}
	if n := s.Stats().Timeouts; len(n) != 1 || n[0].Name != "idle" {
		t.Errorf("%v", n)
	}
}

// goAways reads the server's control stream to its end, and returns the IDs of GOAWAY.
func (c *raw) goAways() chan []uint64 {
	all := make(chan []uint64, 1)
	go func() {
		var ids []uint64
		defer func() { all <- ids }()
		str, err := c.AcceptUniStream(c.Context())
		if err != nil {
			return
		}
		var p [1]byte
		str.Read(p[:]) // its type
		var in codec.Control
		for {
			n, err := str.Read(p[:])
			if err != nil {
				return
			}
			if h, payload, _, ok, err := in.Next(p[:n]); err != nil {
				c.t.Error(err)
				return
			} else if ok && h.Type == codec.FrameGoAway {
				id, _ := codec.ParseID(payload)
				ids = append(ids, id)
			}
		}
	}()
	return all
}

// Limits of time for heads: of what has come in part 408, of what has not nothing.
func TestReadHeaderTimeout(t *testing.T) {
	t.Parallel()
	s := serve(t, &chert.Server{Handler: hf(hello), ReadHeaderTimeout: time.Second})
	c := s.shaken()
	part := c.open(false, headers(get...)[:10])
	header := c.open(false, headers(get...)[:1])
	none := c.open(false, frame(0x21, nil))
	if got := part.read().ending(); got != "408" {
		t.Errorf("a part: %s", got)
	}
	if got := header.read().ending(); got != "408" {
		t.Errorf("a part of a header: %s", got)
	}
	if got := none.read().ending(); got != "RESET H3_REQUEST_INCOMPLETE" {
		t.Errorf("none: %s", got)
	}
	if a := c.get("/"); a.body != "hello" {
		t.Errorf("%+v", a)
	}
}

// Shutdown lets requests end that are on their way, and rejects later ones (RFC 9114 section 5.2).
func TestShutdown(t *testing.T) {
	t.Parallel()
	h, begun, release := waits()
	s := serve(t, &chert.Server{Handler: h})
	busy, idle := s.raw(), s.raw()
	away, idleAway := busy.goAways(), idle.goAways()
	// One that has never had a request ends at once, and a client that is slow does not read its second GOAWAY.
	if got := idle.get("/").ending(); got != "200" {
		t.Fatal(got)
	}
	e := busy.open(true, headers(path(get, "/wait")...))
	half := busy.open(false, headers(post...)[:5])
	servertest.Await(t, begun, "the handler")
	servertest.Eventually(t, "both are there", func() bool { return len(s.OpenConnections(10)) == 2 })
	ctx, cancel := context.WithTimeout(context.Background(), servertest.Patience)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.Shutdown(ctx) }()
	// What comes between the two GOAWAYs is served; all later ones are rejected.
	rejected := "RESET H3_REQUEST_REJECTED"
	servertest.Eventually(t, "requests are rejected", func() bool {
		got := busy.get("/").ending()
		if got != "200" && got != rejected {
			t.Fatal(got)
		}
		return got == rejected
	})
	half.Write(headers(post...)[5:])
	half.Close()
	if a := half.read(); a.ending() != "200" {
		t.Errorf("one that had begun: %+v", a)
	}
	select {
	case err := <-done:
		t.Errorf("Shutdown has not waited: %v", err)
	default:
	}
	close(release)
	if a := e.read(); a.body != "hello" {
		t.Errorf("%+v", a)
	}
	if err := servertest.Await(t, done, "Shutdown"); err != nil {
		t.Error(err)
	}
	for _, c := range []*raw{busy, idle} {
		if got := c.ended(); got != "CLOSE H3_NO_ERROR" {
			t.Error(got)
		}
	}
	if ids := <-away; len(ids) != 2 || ids[0] != 1<<62-4 || ids[1] < 8 || ids[1]%4 != 0 {
		t.Errorf("GOAWAY %v", ids)
	}
	if ids := <-idleAway; !slices.Equal(ids, []uint64{1<<62 - 4, 4}) {
		t.Errorf("GOAWAY %v of the idle one", ids)
	}
}

// The socket is closed when the last connection has ended, and that is told.
func TestEnded(t *testing.T) {
	t.Parallel()
	h3 := &kept{HTTP3: chert3.New(nil)}
	s := serve(t, &chert.Server{Handler: hf(hello), HTTP3: h3})
	c := s.raw()
	if a := c.get("/"); a.body != "hello" {
		t.Fatalf("%+v", a)
	}
	ended := h3.server.(interface{ Ended() <-chan struct{} }).Ended()
	h3.server.Close()
	if a := c.get("/"); a.body != "hello" {
		t.Errorf("after Close: %+v", a)
	}
	select {
	case <-ended:
		t.Error("it has ended with a connection")
	default:
	}
	c.CloseWithError(0x100, "")
	servertest.Await(t, ended, "the end")
	u, err := net.ListenPacket("udp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	u.Close()
}

// Connection: close of a handler ends the connection after its requests.
func TestConnectionClose(t *testing.T) {
	t.Parallel()
	s := serve(t, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		io.WriteString(w, "hello")
	})})
	c := s.raw()
	if a := c.get("/"); a.body != "hello" || a.field("connection") != "" {
		t.Errorf("%+v", a)
	}
	if got := c.ended(); got != "CLOSE H3_NO_ERROR" {
		t.Error(got)
	}
}

// Close ends connections and the contexts of their requests.
func TestClose(t *testing.T) {
	t.Parallel()
	begun, ended := make(chan bool), make(chan bool)
	s := serve(t, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
		begun <- true
		<-r.Context().Done()
		ended <- true
	})})
	c := s.raw()
	e := c.open(false, headers(post...))
	<-begun
	s.Close()
	servertest.Await(t, ended, "the context's end")
	if got := c.ended(); got != "CLOSE H3_NO_ERROR" {
		t.Error(got)
	}
	if a := e.read(); a.err == nil {
		t.Errorf("%+v", a)
	}
}

// ConnState is told of states in their order.
func TestConnState(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	all := make(map[net.Conn][]http.ConnState)
	s := serve(t, &chert.Server{Handler: hf(hello), ConnState: func(c net.Conn, state http.ConnState) {
		mu.Lock()
		defer mu.Unlock()
		all[c] = append(all[c], state)
		if state == http.StateNew {
			if _, err := c.Write(nil); err == nil || c.RemoteAddr().Network() != "udp" {
				t.Error(err, c.RemoteAddr())
			}
		}
	}})
	idle := func(n int) {
		t.Helper()
		servertest.Eventually(t, "it is idle", func() bool {
			mu.Lock()
			defer mu.Unlock()
			for _, states := range all {
				return len(states) == n
			}
			return false
		})
	}
	c := s.raw()
	c.get("/")
	idle(3)
	c.get("/")
	idle(5)
	c.CloseWithError(0x100, "")
	idle(6)
	const want = "[new active idle active idle closed]"
	for _, states := range all {
		var got []string
		for _, st := range states {
			got = append(got, st.String())
		}
		if len(all) != 1 || "["+strings.Join(got, " ")+"]" != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
	// A hook may close a connection.
	two := serve(t, &chert.Server{Handler: hf(hello), ConnState: func(c net.Conn, state http.ConnState) {
		if state == http.StateActive {
			c.Close()
		}
	}}).raw()
	if a := two.get("/"); a.err == nil {
		t.Errorf("%+v", a)
	}
}

// A hook that ends its goroutine ends its connection, if anything, and no other.
func TestConnStateGoexit(t *testing.T) {
	t.Parallel()
	for _, at := range []http.ConnState{http.StateNew, http.StateActive, http.StateIdle, http.StateClosed} {
		var once sync.Once
		s := serve(t, &chert.Server{Handler: hf(hello), ConnState: func(_ net.Conn, state http.ConnState) {
			if state == at {
				once.Do(runtime.Goexit)
			}
		}})
		c := s.raw()
		c.get("/")
		c.CloseWithError(0x100, "")
		if a := s.raw().get("/"); a.body != "hello" {
			t.Errorf("%v: %+v", at, a)
		}
		servertest.Eventually(t, "both are counted", func() bool {
			n := s.Stats().Connections
			return n.Accepted == 2 && n.Closed >= 1 && n.HTTP3 <= 1
		})
	}
}

// What a server tells of its connections and requests.
func TestInspected(t *testing.T) {
	t.Parallel()
	refusals := make(chan chert.Refusal, 10)
	h, begun, release := waits()
	s := serve(t, &chert.Server{Handler: h, Refused: func(r chert.Refusal) { refusals <- r }})
	c := s.raw()
	e := c.open(true, headers(path(get, "/wait")...))
	servertest.Await(t, begun, "the handler")
	if r := s.RunningRequests(10); len(r) != 1 || r[0].Protocol != "HTTP/3.0" || r[0].Target != "/wait" || r[0].Stage != "handler" || r[0].Method != "GET" {
		t.Errorf("%+v", r)
	}
	if o := s.OpenConnections(10); len(o) != 1 || o[0].Protocol != "HTTP/3" || o[0].State != "active" || o[0].TLS != "1.3" && o[0].TLS != "TLS 1.3" || o[0].Local != s.addr {
		t.Errorf("%+v", o)
	}
	if n := s.Stats(); n.Connections.HTTP3 != 1 || n.Connections.Open != 1 || n.Connections.Active != 1 || n.Running != 1 {
		t.Errorf("%+v", n.Connections)
	}
	close(release)
	e.read()
	for range 2 {
		c.get("/")
	}
	c.do(headers(without(get, ":path")...))
	if r := servertest.Await(t, refusals, "Refused"); r.Status != 400 || r.LocalAddr != s.addr || r.Reason == "" {
		t.Errorf("%+v", r)
	}
	servertest.Eventually(t, "the connection is idle", func() bool {
		o := s.OpenConnections(10)
		return len(o) == 1 && o[0].State == "idle" && !o[0].Since.IsZero()
	})
	c.do(data("x")) // ends it
	if r := servertest.Await(t, refusals, "Refused"); r.Status != 400 || !strings.Contains(r.Reason, "H3_FRAME_UNEXPECTED") {
		t.Errorf("%+v", r)
	}
	servertest.Eventually(t, "it is counted", func() bool {
		n := s.Stats().Connections
		return n.HTTP3 == 0 && n.Open == 0 && n.Accepted == 1 && n.Closed == 1
	})
	got := make(map[int]uint64)
	for _, r := range s.Stats().Requests {
		if r.Protocol != "HTTP/3.0" || r.Way != stats.Goroutine {
			t.Errorf("%+v", r)
		}
		got[r.Class] += r.N
	}
	if got[2] != 3 || got[4] != 1 || got[0] != 1 {
		t.Errorf("%v", got)
	}
	if len(refusals) != 0 {
		t.Errorf("%+v", <-refusals)
	}
}

// A client that closes its connection as it should has made no error.
func TestQuietEnd(t *testing.T) {
	t.Parallel()
	s := serve(t, &chert.Server{Handler: hf(hello), Refused: func(r chert.Refusal) { t.Errorf("%+v", r) }})
	for range 20 {
		c := s.raw()
		c.uni(codec.StreamQPACKEncoder, nil)
		c.uni(codec.StreamQPACKDecoder, nil)
		c.get("/")
		c.CloseWithError(0x100, "")
	}
	servertest.Eventually(t, "all have ended", func() bool { return s.Stats().Connections.Open == 0 })
}

// A client that does not speak HTTP/3 is refused by TLS, with no_application_protocol (RFC 9001 section 8.1).
func TestNoProtocol(t *testing.T) {
	t.Parallel()
	s := serve(t, &chert.Server{Handler: hf(hello)})
	to, err := net.ResolveUDPAddr("udp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), servertest.Patience)
	defer cancel()
	_, err = dialer(t).Dial(ctx, to, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}, nil)
	var refused *quic.TransportError
	if !errors.As(err, &refused) || !refused.Remote || refused.ErrorCode != 0x100+120 {
		t.Errorf("%v", err)
	}
}
