package proxy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/freeport"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/proxy"
)

// h2c returns a client that speaks HTTP/2 without TLS.
func h2c(t testing.TB) *http.Client {
	tr := &http.Transport{Protocols: new(http.Protocols), DisableCompression: true}
	tr.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// http2Server serves h by HTTP/2 without TLS.
func http2Server(t testing.TB, e chert.Engine, h http.Handler) *engines.Server {
	s := &chert.Server{Engine: e, Handler: h, Protocols: new(http.Protocols)}
	s.Protocols.SetUnencryptedHTTP2(true)
	s.Protocols.SetHTTP1(true)
	return engines.Start(t, s)
}

// TestFromHTTP2 tests what a server of HTTP/1 receives of a request by HTTP/2.
func TestFromHTTP2(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		o := start(t, each("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: x\r\nX: y\r\n\r\n2\r\nok\r\n0\r\nA: b\r\n\r\n"))
		s := &setup{}
		ts := http2Server(t, e, s.handler(t, o.addr()))
		hints := ""
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			hints += fmt.Sprint(code, h["Link"])
			return nil
		}})
		r, err := http.NewRequestWithContext(ctx, "POST", "http://"+ts.ListenAddr+"/a%2Fb?c;d", strings.NewReader("abc"))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "h"
		r.Header["Cookie"] = []string{"a=b; c=d"}
		r.Header.Set("User-Agent", "u")
		res, err := h2c(t).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if string(body) != "ok" || res.Header.Get("X") != "" || res.Trailer.Get("A") != "b" || hints != "103 [x]" || res.Header.Get("Content-Type") != "" {
			t.Errorf("%q %v %v %s", body, res.Header, res.Trailer, hints)
		}
		_, port, _ := strings.Cut(ts.ListenAddr, ":")
		want := "POST /a%2Fb?c;d HTTP/1.1\r\nHost: h\r\nCookie: a=b; c=d\r\nUser-Agent: u\r\nContent-Length: 3\r\n" +
			"X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Host: h\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Port: " + port +
			"\r\nX-Real-Ip: 127.0.0.1\r\nVia: 2 chert\r\n\r\nabc"
		if got := o.received(); got != want {
			t.Errorf("server received\n%q, want\n%q", got, want)
		}
	})
}

// TestCutHTTP2: a body that ends early ends a stream with an error.
func TestCutHTTP2(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		o := start(t, func(c *conn) {
			c.head()
			c.put("HTTP/1.1 200 OK\r\n" + map[string]string{"/length": "Content-Length: 9\r\n\r\nok", "/chunked": "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n"}[strings.Fields(c.seen.String())[1]])
		})
		s := &setup{}
		ts := http2Server(t, e, s.handler(t, o.addr()))
		for _, path := range []string{"/length", "/chunked"} {
			res, err := h2c(t).Get("http://" + ts.ListenAddr + path)
			if err != nil {
				continue // nothing was sent before the reset
			}
			if b, err := io.ReadAll(res.Body); err == nil {
				t.Errorf("%s: %q ended as if it were whole", path, b)
			}
			res.Body.Close()
		}
	})
}

// TestHTTP2Upstream forwards to servers of HTTP/2: streams in both directions with trailers,
// as gRPC has them, and errors.
func TestHTTP2Upstream(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		up := http2Server(t, engines.NetHTTP, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/cut":
				io.WriteString(w, "part")
				http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			case "/503":
				http.Error(w, "busy", http.StatusServiceUnavailable)
				return
			}
			w.Header().Set("Seen", fmt.Sprintf("%s %s %s te=%s xff=%s via=%s", r.Proto, r.Host, r.RequestURI, r.Header.Get("Te"), r.Header.Get("X-Forwarded-For"), r.Header.Get("Via")))
			w.Header().Set("Trailer", "Grpc-Status")
			http.NewResponseController(w).Flush()
			b := make([]byte, 10)
			for {
				n, err := r.Body.Read(b)
				w.Write(b[:n])
				http.NewResponseController(w).Flush()
				if err != nil {
					break
				}
			}
			w.Header().Set("Grpc-Status", "0")
			w.Header().Set(http.TrailerPrefix+"Got", r.Trailer.Get("Sent"))
		}))
		s := &setup{}
		s.up.Protocol = proxy.ProtocolHTTP2
		ts := http2Server(t, e, s.handler(t, up.ListenAddr))
		client := h2c(t)
		pr, pw := io.Pipe()
		r, _ := http.NewRequest("POST", "http://"+ts.ListenAddr, pr)
		r.URL = &url.URL{Scheme: "http", Host: ts.ListenAddr, Opaque: "//h/a%2fb?c;%zz"}
		r.Host = "h"
		r.Header.Set("Te", "trailers")
		r.Trailer = http.Header{"Sent": {"x"}}
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(res.Body)
		for _, m := range []string{"one\n", "two\n"} {
			io.WriteString(pw, m)
			if got, err := in.ReadString('\n'); got != m || err != nil {
				t.Fatalf("%q %v", got, err)
			}
		}
		pw.Close()
		io.ReadAll(in)
		res.Body.Close()
		if got, want := res.Header.Get("Seen"), "HTTP/2.0 h /a%2fb?c;%zz te=trailers xff=127.0.0.1 via=2 chert"; got != want {
			t.Errorf("server saw %q, want %q", got, want)
		}
		if res.Trailer.Get("Grpc-Status") != "0" || res.Trailer.Get("Got") != "x" {
			t.Errorf("trailers %v", res.Trailer)
		}
		if res, err := client.Get("http://" + ts.ListenAddr + "/cut"); err == nil {
			if b, err := io.ReadAll(res.Body); err == nil {
				t.Errorf("%q ended as if it were whole", b)
			}
			res.Body.Close()
		}
		res, err = client.Get("http://" + ts.ListenAddr + "/503")
		if err != nil || res.StatusCode != 503 {
			t.Fatal(res, err)
		}
		res.Body.Close()
		// A client that leaves ends the stream to the server.
		ctx, cancel := context.WithCancel(t.Context())
		r, _ = http.NewRequestWithContext(ctx, "POST", "http://"+ts.ListenAddr+"/", pr)
		pr, pw = io.Pipe()
		r.Body = pr
		if res, err = client.Do(r); err != nil {
			t.Fatal(err)
		}
		cancel()
		pw.Close()
		res.Body.Close()
		servertest.Eventually(t, "no request in flight", func() bool { return s.pool.Status()[0].Servers[0].InFlight == 0 })
		// net/http's Transport lists a connection after it has been given to the first request: the next one may
		// come before that.
		if st := s.pool.Status()[0].Servers[0]; st.Dials > 2 || st.Reused < 2 {
			t.Errorf("%+v; log %s", st, s.log)
		}
	})
	t.Run("refused", func(t *testing.T) {
		s := &setup{}
		s.up.Protocol = proxy.ProtocolHTTP2
		ts := s.start(t, chert.EngineGoroutines, freeport.Addr(t))
		client := ts.Dial()
		client.Send(get)
		if res, _ := client.Response("GET"); res.Header.Get("Proxy-Status") != "chert; error=connection_refused" {
			t.Error(res.Status, res.Header, s.log)
		}
	})
	t.Run("refused, then another", func(t *testing.T) {
		up := http2Server(t, engines.NetHTTP, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n, err := io.Copy(io.Discard, r.Body)
			fmt.Fprint(w, n, err)
		}))
		s := &setup{}
		s.up.Protocol = proxy.ProtocolHTTP2
		s.up.Balance.Policy = proxy.PolicyRoundRobin
		ts := s.start(t, chert.EngineGoroutines, freeport.Addr(t), up.ListenAddr)
		client := ts.Dial()
		for _, in := range []string{post("abc"), post(strings.Repeat("x", 100_000)),
			servertest.PostChunks("/", servertest.Chunks(strings.Repeat("x", 100_000), 9999))} {
			client.SendAside(in)
			res, body := client.Response("POST")
			if res.StatusCode != 200 || body != "3 <nil>" && body != "100000 <nil>" {
				t.Error(res.Status, body, s.log)
			}
		}
	})
	t.Run("speaks HTTP/1", func(t *testing.T) {
		o := start(t, func(c *conn) {
			c.r.ReadString('\n')
			c.put("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
		})
		s := &setup{}
		s.up.Protocol = proxy.ProtocolHTTP2
		ts := s.start(t, chert.EngineGoroutines, o.addr())
		client := ts.Dial()
		client.Send(get)
		if res, _ := client.Response("GET"); res.StatusCode != 502 {
			t.Error(res.Status, res.Header, s.log)
		}
	})
	t.Run("silent", func(t *testing.T) {
		hold := make(chan bool)
		defer close(hold)
		up := http2Server(t, engines.NetHTTP, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { <-hold }))
		s := &setup{}
		s.up.Protocol, s.up.ResponseTimeout = proxy.ProtocolHTTP2, 50*time.Millisecond
		ts := s.start(t, chert.EngineGoroutines, up.ListenAddr)
		client := ts.Dial()
		client.Send(get)
		if res, _ := client.Response("GET"); res.StatusCode != 504 {
			t.Error(res.Status, res.Header, s.log)
		}
	})
}

// TestExtendedConnect: a WebSocket on a stream of HTTP/2 (RFC 8441) becomes an upgrade, whose
// answer the proxy checks in the client's place.
func TestExtendedConnect(t *testing.T) {
	const whole = ":status=200 sec-websocket-protocol=p hellogot abc"
	for _, e := range []chert.Engine{chert.EngineLoops, chert.EngineGoroutines} {
		for _, c := range []struct{ name, accept, want string }{
			{"accepted", "", whole}, {"wrong", "Sec-WebSocket-Accept: x\r\n", ":status=502 "}, {"none", "-", ":status=502 "},
		} {
			t.Run(fmt.Sprint(e, "/", c.name), func(t *testing.T) {
				t.Parallel()
				extendedConnect(t, e, c.accept, c.want)
			})
		}
	}
}

// extendedConnect opens a tunnel to a server that sends the field accept; the right one if it
// is empty, none for "-".
func extendedConnect(t *testing.T, e chert.Engine, accept, want string) {
	o := start(t, func(c *conn) {
		h := c.head()
		if !strings.HasPrefix(h, "GET /ws HTTP/1.1\r\n") || !strings.Contains(h, "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n") ||
			!strings.Contains(h, "\r\nSec-WebSocket-Key: ") || strings.Contains(h, ":protocol") {
			t.Errorf("server received %q", h)
		}
		_, key, _ := strings.Cut(h, "\r\nSec-WebSocket-Key: ")
		key, _, _ = strings.Cut(key, "\r\n")
		switch accept {
		case "":
			sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
			accept = "Sec-WebSocket-Accept: " + base64.StdEncoding.EncodeToString(sum[:]) + "\r\n"
		case "-":
			accept = ""
		}
		c.put("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" + accept + "Sec-WebSocket-Protocol: p\r\n\r\nhello")
		b, _ := io.ReadAll(c.r)
		c.put("got " + string(b))
	})
	s := &setup{}
	server := &chert.Server{Engine: e, Handler: s.handler(t, o.addr()), ExtendedConnect: true, Protocols: new(http.Protocols)}
	server.Protocols.SetUnencryptedHTTP2(true)
	ts := engines.Start(t, server)
	c := ts.Dial()
	c.Send(http2.ClientPreface)
	fr := http2.NewFramer(c, c.R)
	fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	fr.WriteSettings()
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for _, f := range [][2]string{{":method", "CONNECT"}, {":protocol", "websocket"}, {":scheme", "http"}, {":authority", "h"}, {":path", "/ws"}} {
		enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
	}
	fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true})
	got := ""
	for {
		f, err := fr.ReadFrame()
		if err != nil {
			t.Fatal(err, s.log)
		}
		switch f := f.(type) {
		case *http2.MetaHeadersFrame:
			for _, h := range f.Fields {
				if h.Name == ":status" || strings.HasPrefix(h.Name, "sec-") || h.Name == "upgrade" {
					got += h.Name + "=" + h.Value + " "
				}
			}
			fr.WriteData(1, true, []byte("abc"))
		case *http2.DataFrame:
			got += string(f.Data())
		case *http2.RSTStreamFrame:
			t.Fatal(f, s.log)
		}
		if f.Header().StreamID == 1 && f.Header().Flags.Has(http2.FlagDataEndStream) {
			break
		}
	}
	if !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
