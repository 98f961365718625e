package http3_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/quic-go/quic-go"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	chert3 "github.com/chert-http/chert/http3"
	"github.com/chert-http/chert/internal/accept"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/proxy"
)

// ran is a handler, of both kinds, that counts its requests by method and path, and answers whether
// each has come early.
type ran struct {
	mu  sync.Mutex
	all map[string]int
}

func (c *ran) note(method, path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = make(map[string]int)
	}
	c.all[method+" "+path]++
}

func (c *ran) times(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[what]
}

func (c *ran) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.note(r.Method, r.URL.Path)
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Early", fmt.Sprint(r.TLS != nil && !r.TLS.HandshakeComplete))
	fmt.Fprintf(w, "%s %s", r.Method, body)
}

func (c *ran) ServeDirect(x *direct.Exchange) bool {
	if !strings.HasPrefix(string(x.Path()), "/direct") {
		return false
	}
	c.note(x.Method(), string(x.Path()))
	x.SetHeader("Early", fmt.Sprint(x.Wire().Early()))
	x.WriteString(x.Method() + " ")
	return true
}

// earlier serves h with early data, unless o says otherwise.
func earlier(t testing.TB, s *chert.Server) *running {
	t.Helper()
	s.HTTP3 = chert3.New(&chert3.Options{EarlyData: true})
	return serve(t, s)
}

func asks(method, p string) []string {
	return []string{":method: " + method, ":scheme: https", ":authority: example.com", ":path: " + p}
}

// Before the handshake ends requests run that change nothing, and no others, which run afterwards.
func TestEarlyData(t *testing.T) {
	t.Parallel()
	h := new(ran)
	s := earlier(t, &chert.Server{Handler: h, ExtendedConnect: true})
	c := s.returns(true)
	c.relay.hold(completes)
	c.relay.mute()
	conn := c.dial()
	waits := map[string]*exchange{
		"POST":            conn.open(true, headers(asks("POST", "/w")...), data("body")),
		"DELETE":          conn.open(true, headers(asks("DELETE", "/w")...)),
		"TRACE":           conn.open(true, headers(asks("TRACE", "/w")...)),
		"PROPFIND":        conn.open(true, headers(asks("PROPFIND", "/w")...)),
		"get":             conn.open(true, headers(asks("get", "/w")...)),
		"GET":             conn.open(true, headers(asks("GET", "/w/body")...), data("body")),
		"GET of no end":   conn.open(false, headers(asks("GET", "/w/none")...)),
		"GET of http":     conn.open(true, headers(":method: GET", ":scheme: http", ":authority: example.com", ":path: /w/http")),
		"POST, direct":    conn.open(true, headers(asks("POST", "/direct/w")...)),
		"CONNECT":         conn.open(false, headers(with(asks("CONNECT", "/w"), ":protocol: websocket")...)),
		"a head in parts": conn.open(false, headers(asks("POST", "/w/parts")...)[:9]),
	}
	early := make(map[string]*exchange)
	for _, p := range []string{"/", "/direct"} {
		for _, method := range []string{"GET", "HEAD", "OPTIONS"} {
			early[method+" "+p] = conn.open(true, headers(asks(method, p)...))
		}
	}
	part := conn.open(false, headers(asks("GET", "/parts")...)[:9])
	part.Write(headers(asks("GET", "/parts")...)[9:])
	early["GET /parts"] = part
	waits["a head in parts"].Write(headers(asks("POST", "/w/parts")...)[9:])
	part.Close()
	waits["a head in parts"].Close()
	for what := range early {
		servertest.Eventually(t, what, func() bool { return h.times(what) == 1 })
	}
	c.relay.unmute()
	for what, e := range early {
		if a := e.read(); a.ending() != "200" || a.field("early") != "true" {
			t.Errorf("%s: %+v", what, a)
		}
	}
	if o := s.OpenConnections(10); len(o) != 1 || o[0].State != "active" {
		t.Errorf("%+v", o)
	}
	h.mu.Lock()
	for what := range h.all {
		if strings.Contains(what, "/w") {
			t.Errorf("%s has run", what)
		}
	}
	h.mu.Unlock()
	select {
	case <-conn.HandshakeComplete():
	case <-conn.Context().Done():
		t.Fatal("the connection has ended")
	}
	c.relay.release()
	for name, e := range waits {
		if name == "CONNECT" || name == "GET of no end" {
			e.Write(data(""))
			e.Close()
		}
		if a := e.read(); a.ending() != "200" || a.field("early") != "false" {
			t.Errorf("%s: %+v", name, a)
		}
	}
	if a := conn.get("/after"); a.field("early") != "false" {
		t.Errorf("%+v", a)
	}
	h.mu.Lock()
	for what, n := range h.all {
		if n != 1 {
			t.Errorf("%s has run %d times", what, n)
		}
	}
	h.mu.Unlock()
	servertest.Eventually(t, "it is counted", func() bool {
		n := s.Stats()
		return n.TLS.EarlyRequests == uint64(len(early)) && n.Connections.HTTP3 == 1 && len(n.TLS.Versions) == 1 && n.TLS.Versions[0].N == 2 && n.TLS.Resumed == 1 && n.TLS.Running == 0
	})
	if d := s.Stats().TLS.Duration; d.N() != 2 || d.Counts[0] != 0 {
		t.Errorf("handshakes have taken no time: %v", d.Counts)
	}
}

// kept keeps the server that it opens.
type kept struct {
	*chert3.HTTP3
	server accept.PacketServer
}

func (k *kept) OpenPackets(l net.Listener, upgrades bool) (accept.PacketServer, error) {
	var err error
	k.server, err = k.HTTP3.OpenPackets(l, upgrades)
	return k.server, err
}

// stale is a cache that keeps the ticket that it has.
type stale struct{ tls.ClientSessionCache }

func (stale) Put(string, *tls.ClientSessionState) {}

// Nothing runs early without all that early data needs, and what a client has sent early in vain runs
// once.
func TestNotEarly(t *testing.T) {
	t.Parallel()
	cert, _ := servertest.Certificate(t)
	config := func() *tls.Config {
		c := &tls.Config{Certificates: []tls.Certificate{cert}}
		c.SetSessionTicketKeys([][32]byte{{1}})
		return c
	}
	for _, tt := range []struct {
		name       string
		off, token bool
		before     func(s *running, h3 *kept, c *returning)
	}{
		{name: "off", off: true, token: true},
		{name: "no token"},
		{name: "a ticket of another process", token: true, before: func(s *running, _ *kept, c *returning) {
			c.tls = earlier(s.t, &chert.Server{Handler: hf(hello), TLSConfig: config()}).returns(true).tls
		}},
		{name: "a ticket the second time", token: true, before: func(s *running, _ *kept, c *returning) {
			c.tls.ClientSessionCache = stale{c.tls.ClientSessionCache}
			first := c.dial()
			if a := first.get("/first"); a.ending() != "200" {
				s.t.Errorf("%+v", a)
			}
			if !first.ConnectionState().Used0RTT {
				s.t.Error("the ticket gives no early data the first time")
			}
			servertest.Await(s.t, c.tokened, "a token")
			first.CloseWithError(0x100, "")
			servertest.Eventually(s.t, "it has ended", func() bool { return s.Stats().Connections.Open == 0 })
		}},
		{name: "switched off", token: true, before: func(s *running, h3 *kept, _ *returning) {
			if !h3.server.(interface{ SetEarlyData(on bool) bool }).SetEarlyData(false) {
				s.t.Error("it is not switched off")
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := new(ran)
			h3 := &kept{HTTP3: chert3.New(&chert3.Options{EarlyData: !tt.off, Secret: &[32]byte{2}})}
			s := serve(t, &chert.Server{Handler: h, HTTP3: h3, TLSConfig: config()})
			c := s.returns(tt.token)
			if tt.before != nil {
				tt.before(s, h3, c)
			}
			c.relay.hold(completes)
			if !tt.off {
				c.relay.mute()
			}
			conn := c.dial()
			send := func() (all []*exchange) {
				for _, method := range []string{"GET", "POST"} {
					all = append(all, conn.open(true, headers(asks(method, "/x")...)))
				}
				return all
			}
			sent := send()
			if !tt.off {
				servertest.Eventually(t, "early data is sent", c.relay.hasEarly)
			}
			if a := s.raw().get("/now"); a.ending() != "200" { // the server has received that before
				t.Errorf("%+v", a)
			}
			if h.times("GET /x")+h.times("POST /x") > 0 {
				t.Error("it has run early")
			}
			c.relay.unmute()
			if !tt.off && conn.rejected() {
				sent = send()
			}
			c.relay.release()
			for _, e := range sent {
				if a := e.read(); a.ending() != "200" || a.field("early") != "false" {
					t.Errorf("%+v", a)
				}
			}
			if h.times("GET /x") != 1 || h.times("POST /x") != 1 {
				t.Errorf("%v", h.all)
			}
		})
	}
}

// rejected reports whether what was sent early is to be sent again.
func (c *raw) rejected() bool {
	c.t.Helper()
	select {
	case <-c.HandshakeComplete():
	case <-c.Context().Done():
		c.t.Fatal(ending(context.Cause(c.Context())))
	}
	if c.ConnectionState().Used0RTT {
		return false
	}
	if _, err := c.NextConnection(c.Context()); err != nil {
		c.t.Fatal(err)
	}
	return true
}

// A copy of what a client has sent runs nothing when that has run.
func TestReplay(t *testing.T) {
	t.Parallel()
	h := new(ran)
	s := earlier(t, &chert.Server{Handler: h})
	c := s.returns(true)
	c.relay.hold(completes)
	c.relay.mute()
	conn := c.dial()
	get, post := conn.open(true, headers(asks("GET", "/x")...)), conn.open(true, headers(asks("POST", "/x")...))
	servertest.Eventually(t, "GET", func() bool { return h.times("GET /x") == 1 })
	c.relay.unmute()
	if a := get.read(); a.field("early") != "true" {
		t.Errorf("%+v", a)
	}
	flight := c.relay.flight()
	c.relay.release()
	if a := post.read(); a.field("early") != "false" {
		t.Errorf("%+v", a)
	}
	conn.CloseWithError(0x100, "")
	servertest.Eventually(t, "it has ended", func() bool { return s.Stats().Connections.Open == 0 })
	at := s.copier()
	// Until the server has forgotten the connection, these are packets of that.
	servertest.Eventually(t, "the server answers", func() bool {
		at.send(flight)
		return at.answered()
	})
	at.send(flight)
	if a := s.raw().get("/now"); a.ending() != "200" {
		t.Errorf("%+v", a)
	}
	if h.times("GET /x") != 1 || h.times("POST /x") != 1 {
		t.Errorf("%v", h.all)
	}
}

// A copy that comes first runs what is safe, and nothing else.
func TestReplayFirst(t *testing.T) {
	t.Parallel()
	h := new(ran)
	s := earlier(t, &chert.Server{Handler: h})
	c := s.returns(true)
	c.relay.hold(everything)
	conn := c.dial()
	conn.open(true, headers(asks("POST", "/x")...))
	conn.open(true, headers(asks("GET", "/x")...))
	at := s.copier()
	servertest.Eventually(t, "the copy runs", func() bool {
		at.send(c.relay.flight())
		return h.times("GET /x") > 0
	})
	at = s.copier()
	at.send(c.relay.flight())
	if a := s.raw().get("/now"); a.ending() != "200" {
		t.Errorf("%+v", a)
	}
	if h.times("GET /x") != 1 || h.times("POST /x") != 0 {
		t.Errorf("%v", h.all)
	}
}

// A client that falls silent before the handshake ends has run nothing that waits, and leaves nothing.
func TestEarlySilent(t *testing.T) {
	t.Parallel()
	h := new(ran)
	s := earlier(t, &chert.Server{Handler: h})
	c := s.returns(true)
	c.relay.hold(completes)
	c.relay.mute()
	conn := c.dial()
	for range 90 {
		conn.open(true, headers(asks("POST", "/x")...))
	}
	get := conn.open(true, headers(get...))
	servertest.Eventually(t, "GET", func() bool { return h.times("GET /") == 1 })
	c.relay.unmute()
	if a := get.read(); a.field("early") != "true" {
		t.Errorf("%+v", a)
	}
	c.relay.hold(everything)
	servertest.Eventually(t, "it has ended", func() bool { return s.Stats().Connections.Open == 0 })
	if h.times("POST /x") > 0 {
		t.Errorf("%v", h.all)
	}
}

// Requests that are cancelled while they wait leave nothing.
func TestEarlyReset(t *testing.T) {
	t.Parallel()
	h := new(ran)
	s := earlier(t, &chert.Server{Handler: h})
	c := s.returns(true)
	c.relay.hold(completes)
	c.relay.mute()
	conn := c.dial()
	var all []*exchange
	for range 90 {
		all = append(all, conn.open(true, headers(asks("POST", "/x")...)))
	}
	get := conn.open(true, headers(get...))
	servertest.Eventually(t, "GET", func() bool { return h.times("GET /") == 1 })
	c.relay.unmute()
	if a := get.read(); a.field("early") != "true" {
		t.Errorf("%+v", a)
	}
	for _, e := range all {
		cancel(e.Stream)
	}
	c.relay.release()
	servertest.Eventually(t, "it is not early any more", func() bool { return conn.get("/").field("early") == "false" })
	servertest.Eventually(t, "none is under way", func() bool {
		o := s.OpenConnections(10)
		return len(o) == 1 && o[0].State == "idle"
	})
}

// An early connection is one of its address before anything of it runs.
func TestEarlyMaxConnsPerAddr(t *testing.T) {
	t.Parallel()
	h := new(ran)
	s := earlier(t, &chert.Server{Handler: h, MaxConnsPerAddr: 1})
	c := s.returns(true)
	other := &returning{t: t, relay: newRelay(t, s.addr), tr: dialer(t), tls: clientTLS(), quic: &quic.Config{}}
	if a := other.dial().get("/"); a.ending() != "200" {
		t.Fatalf("%+v", a)
	}
	c.relay.hold(completes)
	c.relay.mute()
	conn := c.dial()
	conn.open(true, headers(asks("GET", "/x")...))
	c.relay.unmute()
	// RFC 9000 section 10.2.3: the code is not told before the handshake has ended.
	if got := conn.ended(); !strings.HasPrefix(got, "APPLICATION_ERROR") {
		t.Error(got)
	}
	if h.times("GET /x") > 0 {
		t.Error("it has run")
	}
}

// A proxy forwards early requests if its servers know what they are, and says so; otherwise it refuses them.
func TestEarlyProxy(t *testing.T) {
	t.Parallel()
	for _, on := range []bool{false, true} {
		h := new(ran)
		backend := httptest.NewServer(hf(func(w http.ResponseWriter, r *http.Request) {
			h.note(r.Method, r.URL.Path)
			w.Header().Set("Said", strings.Join(r.Header["Early-Data"], ","))
			if r.Header["Early-Data"] != nil && r.URL.Path == "/too" {
				w.WriteHeader(http.StatusTooEarly)
			}
		}))
		t.Cleanup(backend.Close)
		pool := proxy.NewPool(nil)
		t.Cleanup(func() { pool.Close() })
		up, err := pool.Upstream(&proxy.UpstreamOptions{Name: "up", Servers: []proxy.Server{{Addr: backend.Listener.Addr().String()}}})
		if err != nil {
			t.Fatal(err)
		}
		forward, err := proxy.New(&proxy.Options{Upstream: up, EarlyData: on})
		if err != nil {
			t.Fatal(err)
		}
		s := earlier(t, &chert.Server{Handler: forward})
		c := s.returns(true)
		c.relay.hold(completes)
		c.relay.mute()
		conn := c.dial()
		plain, too := conn.open(true, headers(asks("GET", "/x")...)), conn.open(true, headers(asks("GET", "/too")...))
		of := conn.open(true, headers(with(asks("GET", "/of"), "early-data: 1")...))
		post := conn.open(true, headers(asks("POST", "/x")...), data("body"))
		// "/first" too, which the client has asked for before.
		servertest.Eventually(t, "the three are answered", func() bool { return answered(s) == 4 })
		c.relay.unmute()
		want := map[*exchange]string{plain: "200 1", too: "425 1", of: "200 1"}
		if !on {
			want = map[*exchange]string{plain: "425 ", too: "425 ", of: "425 "}
		}
		for e, want := range want {
			if a := e.read(); a.ending()+" "+a.field("said") != want {
				t.Errorf("%v: %+v, want %s", on, a, want)
			}
		}
		if !on && h.times("GET /x") > 0 || h.times("POST /x") > 0 {
			t.Errorf("%v: %v", on, h.all)
		}
		c.relay.release()
		if a := post.read(); a.ending() != "200" || a.field("said") != "" {
			t.Errorf("%v: %+v", on, a)
		}
		if a := conn.get("/too"); a.ending() != "200" || a.field("said") != "" {
			t.Errorf("%v: %+v", on, a)
		}
	}
}

// answered is how many requests have been answered.
func answered(s *running) (n uint64) {
	for _, r := range s.Stats().Requests {
		n += r.N
	}
	return n
}
