package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/proxy"
)

// block encodes "name: value" pairs, whatever they are.
func block(all []string) []byte {
	var b bytes.Buffer
	enc := hpack.NewEncoder(&b)
	for _, f := range all {
		name, value, _ := strings.Cut(f[1:], ":")
		enc.WriteField(hpack.HeaderField{Name: f[:1] + name, Value: strings.TrimPrefix(value, " ")})
	}
	return b.Bytes()
}

// What a request by HTTP/2 must not have reaches no server of HTTP/1, which would read another
// request in it (RFC 9113 section 10.3); what it may have is one request there.
func TestSmuggledHTTP2(t *testing.T) {
	t.Parallel()
	line := func(method, authority, path string, more ...string) []string {
		return append([]string{":method: " + method, ":scheme: http", ":authority: " + authority, ":path: " + path}, more...)
	}
	g := func(more ...string) []string { return line("GET", "h", "/", more...) }
	p := func(more ...string) []string { return line("POST", "h", "/", more...) }
	const inside = "0\r\n\r\nGET /evil HTTP/1.1\r\nHost: h\r\n\r\n"
	for _, tt := range []struct {
		name     string
		fields   []string
		body     string
		trailers []string
		want     string // what the server receives, without what the proxy adds; or how it is refused
	}{
		{"crumbs", g("cookie: a=b", "x: y", "cookie: c=d"), "", nil, "get / http/1.1|host: h|cookie: a=b; c=d|x: y||"},
		{"length of nothing", g("content-length: 0"), "", nil, "get / http/1.1|host: h||"},
		{"names like those of the framing", g("content_length: 9", "transfer_encoding: chunked", "x_forwarded_for: 1"), "", nil, "get / http/1.1|host: h||"},
		{"spaces around a value", g("x: \t y \t"), "", nil, "get / http/1.1|host: h|x: y||"},
		{"bytes beyond ASCII", line("GET", "h", "/\u00e9", "x: \u00e9"), "", nil, "get /\u00e9 http/1.1|host: h|x: \u00e9||"},
		{"double slash", line("GET", "h", "//evil/x"), "", nil, "get //evil/x http/1.1|host: h||"},
		{"every byte of a method", line("!#$%&'*+-.^_`|~", "h", "/"), "", nil, "!#$%&'*+-.^_`|~ / http/1.1|host: h||"},
		{"zeros", p("content-length: 0000000003"), "abc", nil, "post / http/1.1|host: h|content-length: 3||abc"},
		{"a request as the body", p(), inside, nil, "post / http/1.1|host: h|transfer-encoding: chunked||24|" + strings.ToLower(strings.ReplaceAll(inside, "\r\n", "|")) + "|0||"},
		{"a body of GET", g(), "abc", nil, "get / http/1.1|host: h|transfer-encoding: chunked||3|abc|0||"},
		{"trailers", p("trailer: x"), "abc", []string{"x: y", "x-forwarded-for: 1", "cookie: a"}, "post / http/1.1|host: h|trailer: x|transfer-encoding: chunked||3|abc|0|x: y||"},

		{"path, CR", line("GET", "h", "/\rx"), "", nil, "400"},
		{"path, LF", line("GET", "h", "/ HTTP/1.1\nx: y"), "", nil, "400"},
		{"path, NUL", line("GET", "h", "/\x00"), "", nil, "400"},
		{"path, DEL", line("GET", "h", "/\x7f"), "", nil, "400"},
		{"path, absolute", line("GET", "h", "http://evil/"), "", nil, "400"},
		{"path, asterisk", line("GET", "h", "*"), "", nil, "400"},
		{"path, query only", line("GET", "h", "?a"), "", nil, "400"},
		{"method, tab", line("GET\t/evil", "h", "/"), "", nil, "400"},
		{"method, CR LF", line("GET / HTTP/1.1\r\nx:", "h", "/"), "", nil, "400"},
		{"method, not ASCII", line("G\u00c9T", "h", "/"), "", nil, "400"},
		{"PRI *", line("PRI", "h", "*"), "", nil, "400"},
		{"CONNECT", []string{":method: CONNECT", ":authority: h:80"}, "", nil, "501"},
		{"authority, space", line("GET", "h x", "/"), "", nil, "400"},
		{"authority, slash", line("GET", "h/x", "/"), "", nil, "400"},
		{"authority, user", line("GET", "a@h", "/"), "", nil, "400"},
		{"authority, not ASCII", line("GET", "h\u00e9", "/"), "", nil, "400"},
		{"authority, brackets", line("GET", "][", "/"), "", nil, "400"},
		{"another Host", g("host: i"), "", nil, "400"},
		{"Transfer-Encoding", g("transfer-encoding: chunked"), "", nil, "400"},
		{"length with a sign", g("content-length: +0"), "", nil, "400"},
		{"lengths in a list", p("content-length: 3, 3"), "abc", nil, "400"},
		{"two lengths", p("content-length: 3", "content-length: 3"), "abc", nil, "400"},
		{"value, CR", g("x: a\rb"), "", nil, "400"},
		{"value, control", g("x: a\x1fb"), "", nil, "400"},
		{"name, not ASCII", g("x\xff: y"), "", nil, "400"},
		{"scheme in capitals", []string{":method: GET", ":scheme: HTTP", ":authority: h", ":path: /"}, "", nil, "400"},
		{"trailers, length", p(), "abc", []string{"content-length: 99"}, "reset"},
		{"trailers, Transfer-Encoding", p(), "abc", []string{"transfer-encoding: chunked"}, "reset"},
		{"trailers, Host", p(), "abc", []string{"host: evil"}, "reset"},
		{"trailers, CR LF", p(), "abc", []string{"x: a\r\ny: b"}, "reset"},
	} {
		for _, e := range []chert.Engine{chert.EngineAuto, chert.EngineGoroutines} {
			o := start(t, each(ok))
			s := &setup{}
			s.o.Via, s.o.NoXForwarded = "v", true
			c := http2Server(t, e, s.handler(t, o.addr())).Dial()
			c.Send(http2.ClientPreface)
			fr := http2.NewFramer(c, c.R)
			fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
			fr.WriteSettings()
			fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block(tt.fields), EndHeaders: true, EndStream: tt.body == ""})
			if tt.body != "" {
				fr.WriteData(1, tt.trailers == nil, []byte(tt.body))
			}
			if tt.trailers != nil {
				fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block(tt.trailers), EndHeaders: true, EndStream: true})
			}
			got := status(t, fr)
			if got == "200" {
				got = strings.ToLower(strings.ReplaceAll(o.received(), "\r\n", "|"))
				got = strings.Replace(got, "via: 2 v|", "", 1)
			} else if r := o.received(); got != "reset" && r != "" || strings.HasSuffix(r, "\r\n0\r\n\r\n") {
				t.Errorf("%v, %s: the server received %q", e, tt.name, r)
			}
			if got == "400" || got == "501" {
				s.notTried(t)
			}
			if got != tt.want {
				t.Errorf("%v, %s: %q, want %q", e, tt.name, got, tt.want)
			}
			c.Close()
		}
	}
}

// status reads up to the status of a final response, or the reset of the stream.
func status(t *testing.T, fr *http2.Framer) string {
	t.Helper()
	for {
		f, err := fr.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		switch f := f.(type) {
		case *http2.RSTStreamFrame:
			return "reset"
		case *http2.GoAwayFrame:
			t.Fatal(f)
		case *http2.MetaHeadersFrame:
			if s := f.PseudoValue("status"); s[0] != '1' {
				return s
			}
		}
	}
}

// An extended CONNECT becomes an upgrade to its protocol or nothing: not a GET without an upgrade, and no
// other status than 101 makes it a tunnel. Clients cannot have a server ejected so.
func TestExtendedConnectRefused(t *testing.T) {
	t.Parallel()
	for _, e := range []chert.Engine{chert.EngineAuto, chert.EngineGoroutines} {
		for _, tt := range []struct{ protocol, response, want string }{
			{"h2c", ok, "501"}, {"TLS", ok, "501"}, {"a b", ok, "501"}, {"a, b", ok, "501"}, {"a/b", ok, "501"}, {"x\r\ny: z", ok, "400"},
			{"websocket", ok, "502"}, {"websocket", "HTTP/1.1 204 No Content\r\n\r\n", "502"}, {"x", ok, "502"},
			{"websocket", "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno", "404"},
		} {
			o := start(t, each(tt.response))
			s := &setup{}
			server := &chert.Server{Engine: e, Handler: s.handler(t, o.addr()), ExtendedConnect: true, Protocols: new(http.Protocols)}
			server.Protocols.SetUnencryptedHTTP2(true)
			c := engines.Start(t, server).Dial()
			c.Send(http2.ClientPreface)
			fr := http2.NewFramer(c, c.R)
			fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
			fr.WriteSettings()
			fields := []string{":method: CONNECT", ":protocol: " + tt.protocol, ":scheme: http", ":authority: h", ":path: /"}
			fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block(fields), EndHeaders: true})
			if got := status(t, fr); got != tt.want {
				t.Errorf("%v, %q, %q: %s, want %s", e, tt.protocol, tt.response, got, tt.want)
			}
			if r := o.received(); (tt.want == "501" || tt.want == "400") && r != "" {
				t.Errorf("%v, %q: the server received %q", e, tt.protocol, r)
			}
			servertest.Eventually(t, "it is counted", func() bool { return s.pool.Status()[0].Servers[0].InFlight == 0 })
			if st := s.pool.Status()[0].Servers[0]; st.Failures != 0 {
				t.Errorf("%v, %q, %q: %+v", e, tt.protocol, tt.response, st)
			}
			c.Close()
		}
	}
}

// HTTP/2 has no Upgrade (RFC 9113 section 8.2.2): clients refuse a response with it.
func TestUpgradeRequiredHTTP2(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		o := start(t, each("HTTP/1.1 426 Upgrade Required\r\nConnection: upgrade\r\nUpgrade: x\r\nContent-Length: 2\r\n\r\nno"))
		s := &setup{}
		ts := http2Server(t, e, s.handler(t, o.addr()))
		res, err := h2c(t).Get("http://" + ts.ListenAddr)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusUpgradeRequired || res.Header["Upgrade"] != nil {
			t.Errorf("%s %v", res.Status, res.Header)
		}
	})
}

// What a server of HTTP/2 must not respond is 502 as from one of HTTP/1, and reaches no client.
func TestMalformedHTTP2Response(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		for _, tt := range []struct {
			want   string
			fields []string
		}{
			{"200 Content-Length=2: ok", []string{":status: 200", "content-length: 2"}},
			{"200 chunked: ok", []string{":status: 200", "upgrade: h2c", "keep-alive: timeout=5", "transfer-encoding: chunked"}},
			{"200 Content-Length=3: ok cut", []string{":status: 200", "content-length: 3"}},
			{"502 http_protocol_error", []string{":status: 0"}},
			{"502 http_protocol_error", []string{":status: 99"}},
			{"502 http_protocol_error", []string{":status: -20"}},
			{"502 http_protocol_error", []string{":status: 600"}},
			{"502 http_protocol_error", []string{":status: 1000"}},
			{"502 http_protocol_error", []string{":status: 0200"}},
			{"502 http_protocol_error", []string{":status: +200"}},
			{"502 http_protocol_error", []string{":status: 200", "content-length: +2"}},
			{"502 http_protocol_error", []string{":status: 200", "content-length: 2", "content-length: 2"}},
			{"502 connection_terminated", []string{":status: 200", "x: a\nb"}},
			{"502 connection_terminated", []string{":status: 200", ":status: 200"}},
		} {
			o := start(t, serveHTTP2(tt.fields))
			s := &setup{}
			s.up.Protocol, s.up.Retry.Off = proxy.ProtocolHTTP2, true
			client := s.start(t, e, o.addr()).Dial()
			client.Send(get)
			if got := summary(client, "GET"); got != tt.want {
				t.Errorf("%q: %q, want %q\n%s", tt.fields, got, tt.want, s.log)
			}
			client.Close()
		}
	})
}

// Trailers of a server of HTTP/2 are those that one of HTTP/1 may have sent: see forward.IsTrailer.
func TestTrailersOfHTTP2(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		o := start(t, serveHTTP2([]string{":status: 200"}, "a: b", "set-cookie: x", "x-forwarded-for: y", "te: z"))
		s := &setup{}
		s.up.Protocol = proxy.ProtocolHTTP2
		client := s.start(t, e, o.addr()).Dial()
		client.Send("GET / HTTP/1.1\r\nHost: h\r\nTE: trailers\r\nConnection: TE\r\n\r\n")
		res, _ := client.Response("GET")
		if len(res.Trailer) != 1 || res.Trailer.Get("A") != "b" {
			t.Errorf("%s %v", res.Status, res.Trailer)
		}
	})
}

// So are the trailers that it receives. What a client announces that is no name of a trailer is not why its request
// fails, nor does it count against the server.
func TestTrailersToHTTP2(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		up := http2Server(t, engines.NetHTTP, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			fmt.Fprint(w, r.Trailer)
		}))
		s := &setup{}
		s.up.Protocol = proxy.ProtocolHTTP2
		client := s.start(t, e, up.ListenAddr).Dial()
		for _, announced := range []string{"A, X-Forwarded-For", "b c, A"} {
			client.Send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTrailer: " + announced +
				"\r\n\r\n2\r\nok\r\n0\r\nA: b\r\nX-Forwarded-For: y\r\n\r\n")
			if res, body := client.Response("POST"); body != "map[A:[b]]" {
				t.Errorf("%s: %s, the server received %s; log %s", announced, res.Status, body, s.log)
			}
		}
		if st := s.pool.Status()[0].Servers[0]; st.Failures > 0 {
			t.Errorf("%+v", st)
		}
	})
}

// serveHTTP2 answers each request with fields, a body and trailers.
func serveHTTP2(fields []string, trailers ...string) func(c *conn) {
	return func(c *conn) {
		if _, err := io.ReadFull(c.r, make([]byte, len(http2.ClientPreface))); err != nil {
			return
		}
		fr := http2.NewFramer(c, c.r)
		fr.WriteSettings()
		for {
			f, err := fr.ReadFrame()
			if err != nil {
				return
			}
			switch f := f.(type) {
			case *http2.SettingsFrame:
				if !f.IsAck() {
					fr.WriteSettingsAck()
				}
			case *http2.HeadersFrame:
				fr.WriteHeaders(http2.HeadersFrameParam{StreamID: f.StreamID, BlockFragment: block(fields), EndHeaders: true})
				fr.WriteData(f.StreamID, trailers == nil, []byte("ok"))
				if trailers != nil {
					fr.WriteHeaders(http2.HeadersFrameParam{StreamID: f.StreamID, BlockFragment: block(trailers), EndHeaders: true, EndStream: true})
				}
			}
		}
	}
}

// TestRewriteHTTP2: what Rewrite makes invalid, perhaps of what a client has sent, is not for a server.
func TestRewriteHTTP2(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		for name, rewrite := range map[string]func(r *http.Request){
			"value":    func(r *http.Request) { r.Header.Set("X", "a\nb") },
			"name":     func(r *http.Request) { r.Header["a b"] = []string{"c"} },
			"method":   func(r *http.Request) { r.Method = "a b" },
			"CONNECT":  func(r *http.Request) { r.Method = http.MethodConnect },
			"host":     func(r *http.Request) { r.Host = "a b" },
			"fragment": func(r *http.Request) { r.URL.Opaque = "/x#y" },
		} {
			o := start(t, serveHTTP2([]string{":status: 200"}))
			s := &setup{}
			s.up.Protocol = proxy.ProtocolHTTP2
			s.o.Rewrite = func(r *proxy.Request) { rewrite(r.Out) }
			client := s.start(t, e, o.addr()).Dial()
			client.Send(get)
			if res, _ := client.Response("GET"); res.StatusCode != http.StatusBadRequest || o.dials() > 0 {
				t.Errorf("%s: %s, %d connections", name, res.Status, o.dials())
			}
			s.notTried(t)
			client.Close()
		}
	})
}
