package proxy

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/middleware"
	"github.com/chert-http/chert/proxy"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// TestRequest compares what a server receives with what a client has sent, as bytes.
func TestRequest(t *testing.T) {
	const forwardedFor = "X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Host: h\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Port: PORT\r\n" +
		"X-Real-Ip: 127.0.0.1\r\n"
	const added = forwardedFor + "Via: 1.1 chert\r\n\r\n"
	table := []struct {
		name string
		o    proxy.Options
		in   string
		want string // what the server receives; "400" for a refusal that it does not see
	}{
		{"plain", proxy.Options{}, "GET /a?b HTTP/1.1\r\nHost: h\r\nAccept: x\r\n\r\n", "GET /a?b HTTP/1.1\r\nHost: h\r\nAccept: x\r\n" + added},
		{"hop by hop", proxy.Options{}, "GET / HTTP/1.1\r\nHost: h\r\nKeep-Alive: timeout=5\r\nProxy-Connection: x\r\nProxy-Authorization: x\r\n" +
			"Proxy-Authenticate: y\r\nTE: gzip\r\nA: b\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n" + added},
		{"listed", proxy.Options{}, "GET / HTTP/1.1\r\nHost: h\r\nConnection: x-a, keep-alive\r\nX-A: b\r\nX-B: c\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: h\r\nX-B: c\r\n" + added},
		{"lists Host", proxy.Options{}, "GET / HTTP/1.1\r\nHost: h\r\nConnection: Host\r\n\r\n", "400"},
		{"lists Content-Length", proxy.Options{}, "POST / HTTP/1.1\r\nHost: h\r\nConnection: content-length\r\nContent-Length: 1\r\n\r\nx", "400"},
		{"lists Cookie", proxy.Options{}, "GET / HTTP/1.1\r\nHost: h\r\nConnection: cookie\r\nCookie: a=b\r\n\r\n", "400"},
		{"lists Authorization", proxy.Options{}, "GET / HTTP/1.1\r\nHost: h\r\nConnection: authorization\r\n\r\n", "400"},
		{"lists X-Forwarded-For", proxy.Options{}, "GET / HTTP/1.1\r\nHost: h\r\nConnection: close, x-forwarded-for\r\n\r\n", "400"},
		{"lists X-Real-IP", proxy.Options{}, "GET / HTTP/1.1\r\nHost: h\r\nConnection: x-real-ip\r\n\r\n", "400"},
		{"TE trailers", proxy.Options{}, "GET / HTTP/1.1\r\nHost: h\r\nTE: gzip, trailers\r\nConnection: TE\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: h\r\nConnection: TE\r\nTE: trailers\r\n" + added},
		{"target bytes", proxy.Options{}, "GET /%7Ea//b/%2f;x?a;b=%zz&%41 HTTP/1.1\r\nHost: h\r\n\r\n",
			"GET /%7Ea//b/%2f;x?a;b=%zz&%41 HTTP/1.1\r\nHost: h\r\n" + added},
		{"fragment", proxy.Options{}, "GET /a#b HTTP/1.1\r\nHost: h\r\n\r\n", "400"},
		{"fragment in the query", proxy.Options{}, "GET /a?b#c HTTP/1.1\r\nHost: h\r\n\r\n", "400"},
		{"absolute form", proxy.Options{}, "GET http://h/a?b HTTP/1.1\r\nHost: h\r\n\r\n", "GET /a?b HTTP/1.1\r\nHost: h\r\n" + added},
		{"absolute form, another host", proxy.Options{}, "GET http://h/a HTTP/1.1\r\nHost: other\r\n\r\n", "GET /a HTTP/1.1\r\nHost: h\r\n" + added},
		{"asterisk", proxy.Options{}, "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: h\r\n" + added},
		{"Content-Length", proxy.Options{}, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc",
			"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n" + added + "abc"},
		{"chunked", proxy.Options{}, "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\n\r\n",
			"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n" + added + "3\r\nabc\r\n0\r\n\r\n"},
		{"trailers", proxy.Options{}, "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTrailer: A\r\n\r\n3\r\nabc\r\n0\r\nA: b\r\n\r\n",
			"POST / HTTP/1.1\r\nHost: h\r\nTrailer: A\r\nTransfer-Encoding: chunked\r\n" + added + "3\r\nabc\r\n0\r\nA: b\r\n\r\n"},
		{"empty POST", proxy.Options{}, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n",
			"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n" + added},
		{"empty Content-Length", proxy.Options{}, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: \r\n\r\n", "400"},
		{"both framings", proxy.Options{}, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "any"},
		{"1.0", proxy.Options{}, "GET / HTTP/1.0\r\nHost: h\r\nTE: trailers\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: h\r\n" + forwardedFor + "Via: 1.0 chert\r\n\r\n"},
		{"not trusted", proxy.Options{}, "GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Prefix: /x\r\n" +
			"X-Forwarded-Foo: y\r\nX-Real-IP: 1.2.3.4\r\nForwarded: for=1.2.3.4\r\nX_Forwarded_For: 1.2.3.4\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\n" + added},
		{"trusted", proxy.Options{Trusted: loopback}, "GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Proto: https\r\n" +
			"X-Forwarded-Port: 443\r\nX-Real-IP: 1.2.3.4\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-Port: 443\r\nX-Forwarded-Proto: https\r\nX-Real-Ip: 1.2.3.4\r\n" +
				"X-Forwarded-For: 1.2.3.4, 127.0.0.1\r\nX-Forwarded-Host: h\r\nVia: 1.1 chert\r\n\r\n"},
		{"Forwarded", proxy.Options{Forwarded: true, NoXForwarded: true}, "GET / HTTP/1.1\r\nHost: h\r\nForwarded: for=1.2.3.4\r\nX-Forwarded-For: 1.2.3.4\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: h\r\nForwarded: for=127.0.0.1;host=\"h\";proto=http\r\nVia: 1.1 chert\r\n\r\n"},
		{"Via", proxy.Options{Via: "edge"}, "GET / HTTP/1.1\r\nHost: h\r\nVia: 1.0 fred, 1.1 edge\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: h\r\nVia: 1.0 fred, 1.1 edge\r\n" + strings.Replace(added, "chert", "edge", 1)},
		{"loop", proxy.Options{}, "GET / HTTP/1.1\r\nHost: h\r\nVia: 1.1 chert, 1.0 x\r\nVia: 1.1 chert (y)\r\n\r\n", "508"},
		{"Max-Forwards", proxy.Options{}, "OPTIONS /a HTTP/1.1\r\nHost: h\r\nMax-Forwards: 3\r\n\r\n", "OPTIONS /a HTTP/1.1\r\nHost: h\r\nMax-Forwards: 2\r\n" + added},
		{"Max-Forwards 0", proxy.Options{}, "OPTIONS /a HTTP/1.1\r\nHost: h\r\nMax-Forwards: 0\r\n\r\n", "501"},
		{"CONNECT", proxy.Options{}, "CONNECT h:80 HTTP/1.1\r\nHost: h:80\r\n\r\n", "501"},
		{"Host upstream", proxy.Options{Host: "upstream"}, "GET / HTTP/1.1\r\nHost: h\r\n\r\n", "GET / HTTP/1.1\r\nHost: SERVER\r\n" + added},
		{"Host fixed", proxy.Options{Host: "other"}, "GET / HTTP/1.1\r\nHost: h\r\n\r\n", "GET / HTTP/1.1\r\nHost: other\r\n" + added},
		{"prefix", proxy.Options{StripPrefix: "/api"}, "GET /api/%61?b HTTP/1.1\r\nHost: h\r\n\r\n",
			"GET /%61?b HTTP/1.1\r\nHost: h\r\n" + strings.Replace(added, "PORT\r\n", "PORT\r\nX-Forwarded-Prefix: /api\r\n", 1)},
		{"prefix, encoded", proxy.Options{StripPrefix: "/api"}, "GET /%61pi HTTP/1.1\r\nHost: h\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: h\r\n" + strings.Replace(added, "PORT\r\n", "PORT\r\nX-Forwarded-Prefix: /api\r\n", 1)},
		{"prefix, absolute", proxy.Options{StripPrefix: "/api"}, "GET http://h/api/x HTTP/1.1\r\nHost: i\r\n\r\n",
			"GET /x HTTP/1.1\r\nHost: h\r\n" + strings.Replace(added, "PORT\r\n", "PORT\r\nX-Forwarded-Prefix: /api\r\n", 1)},
		{"another prefix", proxy.Options{StripPrefix: "/api"}, "GET /apix HTTP/1.1\r\nHost: h\r\n\r\n", "404"},
		{"dots below a prefix", proxy.Options{StripPrefix: "/api"}, "GET /api/%2e%2E/x HTTP/1.1\r\nHost: h\r\n\r\n", "400"},
		{"unknown upgrade", proxy.Options{}, "GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: h\r\n" + added},
		{"Upgrade without option", proxy.Options{}, "GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\n" + added},
		{"upgrade", proxy.Options{}, "GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: websocket, \r\n\r\n",
			"GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" + added},
		{"rewritten to no host, as with httputil", proxy.Options{Rewrite: func(r *proxy.Request) { r.Out.Host = "" }},
			"GET / HTTP/1.1\r\nHost: h\r\n\r\n", "GET / HTTP/1.1\r\nHost: SERVER\r\n" + added},
		{"rewritten", proxy.Options{Rewrite: func(r *proxy.Request) {
			r.Out.URL.Path, r.Out.URL.RawQuery = "/new", "q"
			r.Out.Header.Set("A", "b\r\nc")
			r.Out.Header.Del("B")
			r.Out.Header.Set("Connection", "x")
			r.Out.Host = "z"
		}}, "POST /a HTTP/1.1\r\nHost: h\r\nB: c\r\nContent-Length: 1\r\n\r\nx", "400"},
		{"rewritten well", proxy.Options{Rewrite: func(r *proxy.Request) {
			r.Out.URL.Path, r.Out.URL.RawQuery = "/new", "q"
			r.Out.Header.Set("A", "b")
			r.Out.Header.Del("B")
			r.Out.Header.Set("Connection", "x")
			r.Out.Header.Set("Content-Length", "7")
			r.Out.Header = map[string][]string{"A": r.Out.Header["A"], "Connection": {"x"}}
			r.Out.Host = "z"
		}}, "POST /a HTTP/1.1\r\nHost: h\r\nB: c\r\nContent-Length: 1\r\n\r\nx", "POST /new?q HTTP/1.1\r\nHost: z\r\nA: b\r\nContent-Length: 1\r\n\r\nx"},
	}
	for _, c := range table {
		t.Run(c.name, func(t *testing.T) {
			alike(t, func(t *testing.T, e chert.Engine) {
				o := start(t, each(ok))
				s := &setup{o: c.o}
				ts := s.start(t, e, o.addr())
				client := ts.Dial()
				client.Send(c.in)
				method, _, _ := strings.Cut(c.in, " ")
				res, body := client.Response(method)
				switch want := c.want; {
				case want == "any":
				case len(want) == 3:
					if got := o.received(); !strings.HasPrefix(res.Status, want) || got != "" {
						t.Errorf("%s, server received %q", res.Status, got)
					}
					own := res.Header.Get("Cache-Control") == "no-store" // not the server's, before the handler
					if s := res.Header.Get("Proxy-Status"); own && want[0] == '4' && !strings.HasSuffix(s, "; error=http_request_error") {
						t.Errorf("%s, Proxy-Status: %q", res.Status, s)
					}
					s.notTried(t)
				default:
					_, port, _ := strings.Cut(ts.ListenAddr, ":")
					want = strings.NewReplacer("PORT", port, "SERVER", o.addr()).Replace(want)
					if got := o.received(); got != want && sorted(got) != sorted(want) {
						t.Errorf("server received\n%q, want\n%q", got, want)
					}
					if res.StatusCode != 200 || body != "ok" {
						t.Errorf("%s %q", res.Status, body)
					}
				}
			})
		})
	}
}

// notTried says that no request was for a server, nor has its client gone.
func (s *setup) notTried(t *testing.T) {
	t.Helper()
	if n := s.pool.Status()[0].Servers[0].Requests; n != 0 || strings.Contains(s.log.String(), "client gone") {
		t.Errorf("%d requests at the server; %s", n, s.log)
	}
}

// sorted returns a head with its lines in order and names in lower case: net/http's handlers do
// not see the client's order.
func sorted(head string) string {
	lines := strings.Split(strings.TrimSuffix(head, "\r\n\r\n"), "\r\n")
	for i, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ":")
		lines[i+1] = strings.ToLower(name) + ":" + value
	}
	slices.Sort(lines[1:])
	return strings.Join(lines, "\r\n")
}

// TestBehindRealIP: after RealIP a log has the client's address, and a server learns of the
// client and of the proxy in front.
func TestBehindRealIP(t *testing.T) {
	real, err := middleware.RealIP(&middleware.RealIPOptions{Trusted: loopback})
	if err != nil {
		t.Fatal(err)
	}
	alike(t, func(t *testing.T, e chert.Engine) {
		o := start(t, each(ok))
		s := &setup{}
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: real(s.handler(t, o.addr()))})
		client := ts.Dial()
		client.Send("GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 9.9.9.9, 1.2.3.4\r\nX-Forwarded-Proto: https\r\n" +
			"X-Real-IP: 6.6.6.6\r\n\r\n") // which the client has sent, and the proxy has passed on
		client.Status(200)
		if strings.Contains(o.received(), "6.6.6.6") {
			t.Errorf("server received %q", o.received())
		}
		for _, want := range []string{"X-Forwarded-For: 9.9.9.9, 1.2.3.4, 127.0.0.1\r\n", "X-Forwarded-Proto: https\r\n", "X-Real-Ip: 1.2.3.4\r\n"} {
			if got := o.received(); !strings.Contains(got, want) {
				t.Errorf("server received %q", got)
			}
		}
	})
}
