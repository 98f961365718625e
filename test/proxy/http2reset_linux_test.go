package proxy

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// largeFirst answers /large itself, and leaves other requests to a proxy.
type largeFirst struct{ http.Handler }

func (h largeFirst) ServeDirect(x *direct.Exchange) bool {
	if string(x.Path()) != "/large" {
		return h.Handler.(direct.Handler).ServeDirect(x)
	}
	x.Write(make([]byte, 48<<10))
	return true
}

// TestCountedOnceHTTP2: a request that is to be forwarded when the server has found, by another response, that the
// client has gone is counted once.
func TestCountedOnceHTTP2(t *testing.T) {
	t.Parallel()
	o := start(t, each("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
	p := &setup{}
	s := &chert.Server{Engine: chert.EngineAuto, Handler: largeFirst{p.handler(t, o.addr())}, Protocols: new(http.Protocols)}
	s.Protocols.SetUnencryptedHTTP2(true)
	l, err := s.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	b.WriteString(http2.ClientPreface)
	fr := http2.NewFramer(&b, nil)
	fr.WriteSettings()
	for i, path := range []string{"/large", "/"} {
		fr.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(2*i + 1), EndHeaders: true, EndStream: true, BlockFragment: block(
			[]string{":method: GET", ":scheme: http", ":authority: h", ":path: " + path})})
	}
	// All has come, and the client has gone, before the server reads.
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c.Write(b.Bytes())
	c.(*net.TCPConn).SetLinger(0)
	c.Close()
	ts := engines.StartOn(t, s, l)
	requests := func() (n uint64) {
		for _, r := range ts.Server.Stats().Requests {
			n += r.N
		}
		return n
	}
	servertest.Eventually(t, "the connection has ended", func() bool {
		st := ts.Server.Stats().Connections
		return st.Accepted > 0 && st.Open == 0
	})
	servertest.Eventually(t, "both requests are counted", func() bool { return requests() >= 2 })
	if n := requests(); n != 2 {
		t.Errorf("%d requests were counted", n)
	}
}

// watched tells what becomes of a proxy's responses.
type watched struct {
	http.Handler
	deliveries chan wire.Delivery
}

func (h watched) Keep()                {}
func (h watched) Sent(d wire.Delivery) { h.deliveries <- d }

func (h watched) ServeDirect(x *direct.Exchange) bool {
	x.Wire().Watch(h)
	return h.Handler.(direct.Handler).ServeDirect(x)
}

// TestResetIsNotSentHTTP2: what a client that resets the stream has left no window for is not counted as sent.
func TestResetIsNotSentHTTP2(t *testing.T) {
	t.Parallel()
	const window = 1000
	o := start(t, each("HTTP/1.1 200 OK\r\nContent-Length: 30000\r\n\r\n"+strings.Repeat("x", 30000)))
	p := &setup{}
	h := watched{p.handler(t, o.addr()), make(chan wire.Delivery, 1)}
	c, err := net.Dial("tcp", http2Server(t, chert.EngineAuto, h).ListenAddr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, http2.ClientPreface)
	fr := http2.NewFramer(c, c)
	fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window})
	fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true, EndStream: true, BlockFragment: block(
		[]string{":method: GET", ":scheme: http", ":authority: h", ":path: /"})})
	for n := 0; n < window; {
		f, err := fr.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := f.(*http2.DataFrame); ok {
			n += len(d.Data())
		}
	}
	fr.WriteRSTStream(1, http2.ErrCodeCancel)
	if d := servertest.Await(t, h.deliveries, "the end"); d.Body != window || d.Complete {
		t.Errorf("%+v", d)
	}
}
