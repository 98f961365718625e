package behave

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/websocket"
)

const (
	proxyV1    = "PROXY TCP4 192.0.2.7 10.0.0.2 1234 443\r\n"
	proxySix   = "PROXY TCP6 2001:db8::7 2001:db8::1 1234 443\r\n"
	proxyPlain = "PROXY UNKNOWN\r\n"
	sign       = "\r\n\r\n\x00\r\nQUIT\n"
	proxyV2    = sign + "\x21\x11\x00\x0c\xc0\x00\x02\x07\x0a\x00\x00\x02\x04\xd2\x01\xbb"
	proxyTLV   = sign + "\x21\x11\x00\x13\xc0\x00\x02\x07\x0a\x00\x00\x02\x04\xd2\x01\xbb\x04\x00\x04abcd"
	proxyLocal = sign + "\x20\x00\x00\x00"
)

// tellsPeer answers with the client's address, on both paths.
type tellsPeer struct{}

func (tellsPeer) ServeHTTP(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.RemoteAddr) }

func (tellsPeer) ServeDirect(x *direct.Exchange) bool {
	if strings.HasPrefix(string(x.Path()), "/plain") {
		return false
	}
	x.SetStatus(200)
	x.Write([]byte(x.RemoteAddr()))
	return true
}

func fromLoopback() func(net.Listener, netip.Addr) bool {
	return chert.ProxiesFrom(netip.MustParsePrefix("127.0.0.0/8"))
}

// The client's address is the header's, for all requests of a connection on both paths, however
// the bytes arrive; the peer's own where the header has none.
func TestProxyHeader(t *testing.T) {
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: tellsPeer{}, ProxyProtocol: fromLoopback()})
		for header, want := range map[string]string{
			proxyV1: "192.0.2.7:1234", proxySix: "[2001:db8::7]:1234", proxyPlain: "", proxyV2: "192.0.2.7:1234",
			proxyTLV: "192.0.2.7:1234", proxyLocal: "",
		} {
			for _, slowly := range []bool{false, true} {
				c := ts.Dial()
				want := want
				if want == "" {
					want = c.LocalAddr().String()
				}
				if first := header + "GET / HTTP/1.1\r\nHost: a\r\n\r\n"; slowly {
					c.SendSlowly(first, 1)
				} else {
					c.Send(first)
				}
				if _, body := c.Response("GET"); body != want {
					t.Errorf("%q: %q, not %q", header, body, want)
				}
				if _, body := c.Get("/plain"); body != want {
					t.Errorf("%q, plain: %q, not %q", header, body, want)
				}
				c.Close()
			}
		}
		if log := ts.Log.String(); log != "" {
			t.Errorf("logged %s", log)
		}
	})
}

// A connection from a proxy whose header is wrong or missing is closed without an answer, and
// logged; one that ends before its first byte, as that of a check, is not.
func TestProxyHeaderWrong(t *testing.T) {
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: tellsPeer{}, ProxyProtocol: fromLoopback()})
		for _, sent := range []string{
			"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "G", "PROXY TCP4 192.0.2.7\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
			"PROXY " + strings.Repeat("x", 200), sign + "\x21\x11\xff\xff" + strings.Repeat("x", 100), sign + "\x31\x11\x00\x0c",
			"\x16\x03\x01\x02\x00\x01",
		} {
			ts.Log.Reset()
			if got := ts.Exchange(sent, false); got != "" {
				t.Errorf("%q: answered %q", sent, got)
			}
			servertest.Eventually(t, "a line", func() bool {
				return strings.HasPrefix(ts.Log.String(), "chert: PROXY protocol error from 127.0.0.1:")
			})
		}
		ts.Log.Reset()
		for _, part := range []string{proxyV1[:9], proxyV2[:14]} {
			c := ts.Dial()
			c.Send(part)
			c.CloseWrite()
			c.Ended()
			servertest.Eventually(t, "a line", func() bool { return strings.Contains(ts.Log.String(), io.ErrUnexpectedEOF.Error()) })
			ts.Log.Reset()
		}
		c := ts.Dial()
		c.CloseWrite()
		c.Ended()
		if log := ts.Log.String(); log != "" {
			t.Errorf("a check was logged: %s", log)
		}
	})
}

// Headers of others than proxies are malformed requests, which every peer is where the function
// panics.
func TestProxyHeaderOfOthers(t *testing.T) {
	for name, f := range map[string]func(net.Listener, netip.Addr) bool{
		"other":  chert.ProxiesFrom(netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("::/0")),
		"nobody": chert.ProxiesFrom(), "panics": func(net.Listener, netip.Addr) bool { panic("p") },
	} {
		t.Run(name, func(t *testing.T) {
			engines.Each(t, func(t *testing.T, e chert.Engine) {
				ts := engines.Start(t, &chert.Server{Engine: e, Handler: tellsPeer{}, ProxyProtocol: f})
				for _, header := range []string{proxyV1, proxyV2, proxyPlain, proxyLocal} {
					got := ts.Exchange(header+"GET / HTTP/1.1\r\nHost: a\r\n\r\n", false)
					if !strings.HasPrefix(got, "HTTP/1.1 400 ") || strings.Count(got, "HTTP/1.1") != 1 {
						t.Errorf("%q: %q", header, got)
					}
				}
				c := ts.Dial()
				if _, body := c.Get("/"); body != c.LocalAddr().String() {
					t.Errorf("without a header: %q", body)
				}
			})
		})
	}
}

// The function sees the listener that was passed to Serve, and the address of its peers.
func TestProxyPeer(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		type call struct {
			l    net.Listener
			peer netip.Addr
		}
		calls := make(chan call, 1)
		serve := func(l net.Listener) *engines.Server {
			s := &chert.Server{Engine: e, Handler: tellsPeer{}}
			s.ProxyProtocol = func(l net.Listener, peer netip.Addr) bool { calls <- call{l, peer}; return true }
			return engines.StartOn(t, s, l)
		}
		l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
		if err != nil {
			t.Skip(err)
		}
		serve(l)
		nc, err := net.Dial("unix", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c := servertest.NewClient(t, nc)
		c.Send(proxyV1)
		if _, body := c.Get("/"); body != "192.0.2.7:1234" {
			t.Errorf("got %q", body)
		}
		if one := <-calls; one.peer.IsValid() {
			t.Errorf("called with %v, not that of a unix socket", one.peer)
		}
		tcp := servertest.ListenTCP(t)
		c = serve(tcp).Dial()
		c.Send(proxyLocal)
		c.Get("/")
		if one := <-calls; one.peer != netip.MustParseAddr("127.0.0.1") {
			t.Errorf("called with %v", one.peer)
		}
	})
}

// The header comes before TLS, and before the preface of HTTP/2.
func TestProxyHeaderTLS(t *testing.T) {
	t.Parallel()
	cert, roots := servertest.Certificate(t)
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		var shook sync.Map
		s := &chert.Server{Engine: e, Handler: tellsPeer{}, ProxyProtocol: fromLoopback()}
		s.TLSConfig = &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			shook.Store(h.Conn.RemoteAddr().String(), true)
			return nil, nil
		}}
		l, err := s.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ts := engines.StartTLS(t, s, l, cert)
		for _, header := range []string{proxyV1, proxyTLV} {
			c := ts.Dial()
			c.Send(header)
			over, _ := servertest.TLSOver(t, c.Conn, roots, "http/1.1")
			if _, body := over.Get("/"); body != "192.0.2.7:1234" {
				t.Errorf("%q: %q", header, body)
			}
			tr := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "example.com"}}
			tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
				nc, err := new(net.Dialer).DialContext(ctx, network, addr)
				if err == nil {
					_, err = io.WriteString(nc, header)
				}
				return nc, err
			}
			for _, path := range []string{"/", "/plain"} {
				res, err := (&http.Client{Transport: tr}).Get("https://" + ts.ListenAddr + path)
				if err != nil {
					t.Fatal(err)
				}
				body, _ := io.ReadAll(res.Body)
				if res.Body.Close(); res.ProtoMajor != 2 || string(body) != "192.0.2.7:1234" {
					t.Errorf("%q: %s %q", header, res.Proto, body)
				}
			}
			tr.CloseIdleConnections()
		}
		if _, client := shook.Load("192.0.2.7:1234"); !client && e == chert.EngineLoops {
			t.Error("functions of the tls.Config did not see the client's address")
		}
		// In plain text, as a proxy whose listener has no TLS sends it.
		c := ts.Dial()
		c.Send("GET / HTTP/1.1\r\n\r\n")
		if got := c.UpToEnd(); got != "" {
			t.Errorf("without a header: %q", got)
		}
	})
}

// Limits of connections count the clients, and not the proxy.
func TestProxyHeaderPerAddr(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		s := &chert.Server{Engine: e, Handler: tellsPeer{}, ProxyProtocol: fromLoopback(), MaxConnsPerAddr: 2}
		ts := engines.Start(t, s)
		header := func(i string) string { return strings.Replace(proxyV1, "192.0.2.7", i, 1) }
		silent := []*servertest.Client{ts.Dial(), ts.Dial(), ts.Dial(), ts.Dial()} // from one address
		open := func(addr string) *servertest.Client {
			c := ts.Dial()
			c.Send(header(addr))
			c.Get("/")
			return c
		}
		first, second := open("192.0.2.1"), open("192.0.2.1")
		third := ts.Dial()
		third.Send(header("192.0.2.1") + "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		if got := third.UpToEnd(); !strings.HasPrefix(got, "HTTP/1.1 503 ") {
			t.Errorf("a third connection of a client: %q", got)
		}
		open("192.0.2.2").Get("/")
		first.Close()
		servertest.Eventually(t, "there is room for another", func() bool {
			c := ts.Dial()
			defer c.Close()
			c.Send(header("192.0.2.1") + "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
			return strings.HasPrefix(c.UpToEnd(), "HTTP/1.1 200 ")
		})
		second.Get("/")
		for _, c := range silent {
			c.Send(header("192.0.2.3"))
		}
		served := 0
		for _, c := range silent {
			c.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			if res, err := http.ReadResponse(bufio.NewReader(c.Conn), nil); err == nil && res.StatusCode == 200 {
				served++
			}
		}
		if served != 2 {
			t.Errorf("%d connections of a client were served", served)
		}
		ts.Close()
		servertest.Eventually(t, "no connection counts", func() bool { return ts.Inside().Conns() == 0 })
	})
}

// WebSockets have the client's address.
func TestProxyHeaderWebSocket(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		addrs := make(chan string, 1)
		h, err := websocket.New(&websocket.Options{
			OnOpen: func(c *websocket.Conn, _ *http.Request) { addrs <- c.RemoteAddr().String() },
		})
		if err != nil {
			t.Fatal(err)
		}
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: h, ProxyProtocol: fromLoopback()})
		c := ts.Dial()
		c.Send(proxyV1 + "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
		if got := servertest.Await(t, addrs, "the WebSocket"); got != "192.0.2.7:1234" {
			t.Errorf("got %q", got)
		}
	})
}

// Shutdown waits for headers as it does for first requests, and Close ends them.
func TestProxyHeaderShutdown(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: tellsPeer{}, ProxyProtocol: fromLoopback()})
		c, silent := ts.Dial(), ts.Dial()
		c.Send(proxyV1[:7])
		servertest.Eventually(t, "both are open", func() bool { return ts.Inside().Conns() == 2 })
		done := make(chan error, 1)
		go func() { done <- ts.Shutdown(context.Background()) }()
		servertest.Eventually(t, "it stops", func() bool { return ts.Inside().Ending() })
		c.Send(proxyV1[7:] + "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		if _, body := c.Response("GET"); body != "192.0.2.7:1234" {
			t.Errorf("got %q", body)
		}
		silent.Close()
		if err := servertest.Await(t, done, "Shutdown"); err != nil {
			t.Error(err)
		}
		if log := ts.Log.String(); log != "" {
			t.Errorf("logged %s", log)
		}
	})
}

// A header has ten seconds. Listeners of other packages have headers too.
func TestBubbleProxyHeaderTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := servertest.NewMemory()
		s := &chert.Server{Handler: tellsPeer{}, ProxyProtocol: func(net.Listener, netip.Addr) bool { return true }}
		ts := engines.StartOn(t, s, m)
		c := m.Patient(t)
		c.Send(proxyV1[:7])
		if d := servertest.Took(func() { c.UpToEnd() }); d != 10*time.Second {
			t.Errorf("closed after %v", d)
		}
		synctest.Wait()
		if log := ts.Log.String(); !strings.HasPrefix(log, "chert: PROXY protocol error from pipe: ") {
			t.Errorf("log is %q", log)
		}
		c = m.Patient(t)
		c.Send(proxyV2)
		if _, body := c.Get("/plain"); body != "192.0.2.7:1234" {
			t.Errorf("got %q", body)
		}
	})
}

// wrapping is a listener whose connections wrap makes.
type wrapping struct {
	net.Listener
	wrap func(net.Conn) net.Conn
}

func (l wrapping) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.wrap(c), nil
}

// A connection without deadlines has no more time for its header.
func TestBubbleProxyHeaderUntimed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := servertest.NewMemory()
		s := &chert.Server{Handler: tellsPeer{}, ProxyProtocol: func(net.Listener, netip.Addr) bool { return true }}
		ts := engines.StartOn(t, s, wrapping{m, func(c net.Conn) net.Conn { return noDeadlines{c} }})
		c := m.Patient(t)
		c.Send(proxyV1[:7])
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := ts.Inside().Conns(); n != 0 {
			t.Errorf("%d connections are open", n)
		}
		if log := ts.Log.String(); log != "chert: PROXY protocol error from pipe: i/o timeout\n" {
			t.Errorf("log is %q", log)
		}
		c = m.Patient(t)
		c.Send(proxyV1)
		time.Sleep(time.Hour)
		if _, body := c.Get("/"); body != "192.0.2.7:1234" {
			t.Errorf("got %q", body)
		}
	})
}

// Shutdown gives a client with TLS five seconds for its header and its handshake together, and no more time than
// it had before.
func TestBubbleProxyHeaderShutdown(t *testing.T) {
	t.Parallel()
	cert, _ := servertest.Certificate(t)
	for _, tt := range []struct {
		why           string
		before, after time.Duration // how long before and after Shutdown begins the header is waited for
		sent          string
		want          time.Duration // from the header to the end
	}{
		{"with a header", time.Second, 4 * time.Second, proxyV1, time.Second},
		{"without", 9 * time.Second, 0, "", time.Second},
	} {
		t.Run(tt.why, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := servertest.NewMemory()
				s := &chert.Server{Handler: tellsPeer{}, ProxyProtocol: func(net.Listener, netip.Addr) bool { return true }}
				ts := engines.StartTLS(t, s, m, cert)
				c := m.Patient(t)
				time.Sleep(tt.before)
				go ts.Shutdown(context.Background())
				time.Sleep(tt.after)
				c.Send(tt.sent)
				if d := servertest.Took(func() { c.UpToEnd() }); d != tt.want {
					t.Errorf("closed after %v, want %v", d, tt.want)
				}
			})
		})
	}
}
