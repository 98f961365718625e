package forward

import (
	"strings"
	"testing"

	"github.com/chert-http/chert/internal/http1"
)

const (
	get = "GET /a?b HTTP/1.1\r\nHost: h\r\n"
	put = "PUT /a?b HTTP/1.1\r\nHost: h\r\n"
)

// The request line and Host.
func TestRequestLine(t *testing.T) {
	for _, c := range []struct {
		in   string
		o    Request
		want string
		why  string
	}{
		{get, Request{}, "GET /a?b HTTP/1.1|Host: h", "the least"},
		{"get /a HTTP/1.1\r\nHost: h\r\n", Request{}, "get /a HTTP/1.1|Host: h", "methods have a case"},
		{"GET /%2e%2E/%zz/a;b?c=%ff&d;e\"{}\x80 HTTP/1.1\r\nHost: h\r\n", Request{}, "GET /%2e%2E/%zz/a;b?c=%ff&d;e\"{}\x80 HTTP/1.1|Host: h", "bytes unchanged"},
		{"GET //a/../b HTTP/1.1\r\nHost: h\r\n", Request{}, "GET //a/../b HTTP/1.1|Host: h", "bytes unchanged"},
		{"GET http://t:8080/a?b HTTP/1.1\r\nHost: h\r\n", Request{}, "GET /a?b HTTP/1.1|Host: t:8080", "absolute form: Host is the target's"},
		{"GET http://t HTTP/1.1\r\nHost: h\r\n", Request{}, "GET / HTTP/1.1|Host: t", "RFC 9112 3.2.1: empty path"},
		{"GET http://t?b HTTP/1.1\r\nHost: h\r\n", Request{}, "GET /?b HTTP/1.1|Host: t", "RFC 9112 3.2.1: empty path"},
		{"OPTIONS http://t HTTP/1.1\r\nHost: h\r\n", Request{}, "OPTIONS * HTTP/1.1|Host: t", "RFC 9112 3.2.4"},
		{"OPTIONS http://t?b HTTP/1.1\r\nHost: h\r\n", Request{}, "OPTIONS /?b HTTP/1.1|Host: t", "RFC 9112 3.2.4: without a query only"},
		{"OPTIONS * HTTP/1.1\r\nHost: h\r\n", Request{}, "OPTIONS * HTTP/1.1|Host: h", "asterisk form"},
		{"GET / HTTP/1.0\r\n", Request{}, "GET / HTTP/1.1|Host: ", "1.0 without Host"},
		{"GET / HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n", Request{}, "GET / HTTP/1.1|Host: h", "1.0"},
		{get, Request{Host: []byte("u:80"), Target: []byte("/x")}, "GET /x HTTP/1.1|Host: u:80", "of the caller"},
		{"GET http://t/a HTTP/1.1\r\nHost: h\r\n", Request{Host: []byte("u")}, "GET /a HTTP/1.1|Host: u", "of the caller"},
		{"GET http://t/ HTTP/1.1\r\nHost: h\r\n", Request{XForwarded: true}, "GET / HTTP/1.1|Host: t|X-Forwarded-Host: t", "the host that was asked for"},
		{"GET http://t/ HTTP/1.1\r\nHost: h\r\n", Request{XForwarded: true, Host: []byte("u")}, "GET / HTTP/1.1|Host: u|X-Forwarded-Host: t", "the host that was asked for"},
		{"GET / HTTP/1.0\r\n", Request{Forwarded: true}, `GET / HTTP/1.1|Host: |Forwarded: for=unknown`, "RFC 7239 6.2"},
	} {
		if got, _, err := send(t, c.in+"\r\n", c.o); lines(got) != c.want || !strings.HasSuffix(got, "\r\n\r\n") || err != nil {
			t.Errorf("%s: %q\n got %q, %v\nwant %s", c.why, c.in, got, err, c.want)
		}
	}
}

// The lines after Host.
func TestRequestFields(t *testing.T) {
	peer := Request{Peer: []byte("192.0.2.1"), Proto: "https", XForwarded: true}
	trusted := peer
	trusted.Trusted = true
	up := Request{Upgrade: true}
	via := Request{Via: "chert"}
	for _, c := range []struct {
		in   string
		o    Request
		want string
		why  string
	}{
		// Fields that stay.
		{get + "A: b\r\nc:\r\nA:\t d \r\n", Request{}, "A: b|c: |A: d", "order, case and duplicates are kept"},
		{get + "Cookie: a\r\nAuthorization: b\r\nX-Real_Thing: c\r\n", Request{}, "Cookie: a|Authorization: b|X-Real_Thing: c", "end to end"},
		{get + "Proxy-Foo: a\r\nKeep-Alive-X: b\r\nXX-Forwarded-For: c\r\n", Request{}, "Proxy-Foo: a|Keep-Alive-X: b|XX-Forwarded-For: c", "similar names"},
		// Hop by hop.
		{get + "Connection: close\r\nKeep-Alive: a\r\nProxy-Connection: b\r\nProxy-Authenticate: c\r\nproxy-authorization: d\r\nUpgrade: e\r\nTrailer: f\r\n",
			Request{}, "", "all of them"},
		{get + "X-A: 1\r\nConnection: x-a, ,X-B\r\nx-b: 2\r\nCONNECTION: x-c\r\nX-C: 3\r\nX-D: 4\r\n", Request{}, "X-D: 4", "listed, in any case, before and after"},
		{get + "Connection: keep-alive, te, upgrade, transfer-encoding, close, keep-alive\r\n", Request{}, "", "listed, but removed anyway"},
		{get + "Connection: x-a x-b\r\nX-A: 1\r\n", Request{}, "X-A: 1", "two words are no option"},
		{get + manyOptions(16) + "X0: a\r\nX15: b\r\nX16: c\r\n", Request{}, "X16: c", "as many as may be"},
		{get + "Connection: " + strings.Repeat("x,", 60) + ",,,x\r\n", Request{}, "", "the same again is not another"},
		{get + "Connection: HTTP2-Settings\r\nHTTP2-Settings: a\r\n", Request{}, "", "h2c"},
		{get + "HTTP2-Settings: a\r\n", Request{}, "", "h2c, not listed"},
		{get + "Early-Data: 1\r\n", Request{}, "Early-Data: 1", "RFC 8470 5.1: it stays"},
		{get + "A: b\r\n", Request{Early: true}, "A: b|Early-Data: 1", "RFC 8470 5.1: it is added"},
		{get + "early-data: 0\r\nearly-data: 1\r\n", Request{Early: true}, "early-data: 0|early-data: 1", "any means what 1 does"},
		{get + "Early_Data: 1\r\n", Request{}, "", "an imitation"},
		// TE and Trailer.
		{get + "TE: trailers\r\nConnection: TE\r\n", Request{}, "Connection: TE|TE: trailers", "made anew"},
		{get + "TE: gzip, Trailers;q=1\r\nTE: deflate, TRAILERS\r\n", Request{}, "Connection: TE|TE: trailers", "nothing else is passed on"},
		{get + "TE: gzip, trailers;q=1\r\n", Request{}, "", "codings are for this connection"},
		{"GET / HTTP/1.0\r\nHost: h\r\nTE: trailers\r\n", Request{}, "", "1.0 has no trailers"},
		{put + "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n", Request{}, "Trailer: X-Sum|Transfer-Encoding: chunked", "announced"},
		{put + "Content-Length: 1\r\nTrailer: X-Sum\r\n", Request{}, "Content-Length: 1", "nothing to announce"},
		// Framing.
		{put + "Content-Length: 007\r\n", Request{}, "Content-Length: 7", "made anew"},
		{put + "content-length:0\r\n", Request{}, "Content-Length: 0", "zero is not absent"},
		{put, Request{}, "Content-Length: 0", "none, of a method that anticipates content"},
		{put + "transfer-encoding: , CHUNKED ,\r\n", Request{}, "Transfer-Encoding: chunked", "made anew"},
		{put + "Content-Length: 1\r\nExpect: 100-continue\r\n", Request{}, "Content-Length: 1", "the body has been read"},
		{put + "Content-Length: 1\r\nExpect: 100-Continue\r\n", Request{Expect: true}, "Content-Length: 1|Expect: 100-continue", "passed on"},
		{put + "Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n", Request{Expect: true}, "Transfer-Encoding: chunked|Expect: 100-continue", "passed on"},
		{put + "Content-Length: 0\r\nExpect: 100-continue\r\n", Request{Expect: true}, "Content-Length: 0", "there is no body to wait with"},
		{get + "Expect: 100-continue\r\n", Request{Expect: true}, "", "there is no body to wait with"},
		// Upgrade.
		{get + "Connection: upgrade\r\nUpgrade: websocket\r\n", up, "Upgrade: websocket|Connection: Upgrade", "asked for"},
		{get + "Connection: upgrade, TE\r\nUpgrade: foo/2,,\r\nUpgrade: bar\r\nTE: trailers\r\n", up, "Upgrade: foo/2, bar|Connection: Upgrade, TE|TE: trailers", "a list"},
		{get + "Connection: upgrade\r\nUpgrade: websocket\r\n", Request{}, "", "the caller does not pass it on"},
		{get + "Upgrade: websocket\r\n", up, "", "not listed in Connection"},
		{get + "Connection: upgrade, http2-settings\r\nUpgrade: h2c\r\nHTTP2-Settings: a\r\n", up, "", "a tunnel past the rules for requests"},
		{get + "Connection: upgrade\r\nUpgrade: H2C, h2c-14, h2, http/1.1, HTTPS, TLS/1.0, websocket\r\n", up, "Upgrade: websocket|Connection: Upgrade", "only that one"},
		{get + "Connection: upgrade\r\nUpgrade: web socket, a/b/c, /a, b/, \"x\"\r\n", up, "", "no protocol"},
		{get + "Connection: upgrade\r\nUpgrade: h2c,a,b,c,d\r\nUpgrade: e,f,g,h,i,j\r\nUpgrade: k\r\n", up, "Upgrade: a, b, c, d, e, f, g, h|Connection: Upgrade", "as many as are passed on"},
		{put + "Content-Length: 1\r\nConnection: upgrade\r\nUpgrade: websocket\r\n", up, "Content-Length: 1", "with a body"},
		{put + "Transfer-Encoding: chunked\r\nConnection: upgrade\r\nUpgrade: websocket\r\n", up, "Transfer-Encoding: chunked", "with a body"},
		{put + "Content-Length: 0\r\nConnection: upgrade\r\nUpgrade: websocket\r\n", up, "Upgrade: websocket|Connection: Upgrade|Content-Length: 0", "with an empty one"},
		// The client, of an untrusted peer: removed, then added.
		{get, peer, "X-Forwarded-For: 192.0.2.1|X-Forwarded-Host: h|X-Forwarded-Proto: https", "set"},
		{get + "X-Forwarded-For: evil\r\nX-Forwarded-Proto: ftp\r\nX-Forwarded-Host: evil\r\nX-Forwarded-Port: 1\r\nx-forwarded-prefix: /\r\nX-Forwarded-Client-Cert: x\r\nX-Real-IP: evil\r\nForwarded: for=evil\r\n",
			peer, "X-Forwarded-For: 192.0.2.1|X-Forwarded-Host: h|X-Forwarded-Proto: https", "replaced"},
		{get + "X-Forwarded-For: evil\r\n", Request{}, "", "removed although nothing replaces it"},
		{get + "X_Forwarded_For: evil\r\nX-Forwarded_Proto: evil\r\nX_Real_IP: evil\r\nContent_Length: 9\r\nTransfer_Encoding: x\r\nX_Forwarded-Whatever: evil\r\nA_b: c\r\n",
			peer, "A_b: c|X-Forwarded-For: 192.0.2.1|X-Forwarded-Host: h|X-Forwarded-Proto: https", "what CGI would take for them"},
		{get + "X-Forwarded-: a\r\nX-Forwarded: b\r\n", Request{}, "X-Forwarded: b", "the prefix decides"},
		{get, Request{Peer: []byte("::1"), RealIP: true}, "X-Real-Ip: ::1", "IPv6"},
		{get + "X-Real-IP: evil\r\n", Request{Peer: []byte("::1"), RealIP: true}, "X-Real-Ip: ::1", "replaced"},
		// The client, of a trusted peer.
		{get, trusted, "X-Forwarded-For: 192.0.2.1|X-Forwarded-Host: h|X-Forwarded-Proto: https", "it sent none"},
		{get + "X-Forwarded-For: a, b\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: c\r\nX-Forwarded-For:\r\nX-Forwarded-Port: 81\r\nx-forwarded-for: d\r\nX-Real-IP: e\r\n",
			trusted, "X-Forwarded-Proto: http|X-Forwarded-Host: c|X-Forwarded-Port: 81|X-Real-IP: e|X-Forwarded-For: a, b, d, 192.0.2.1", "appended to, in one field"},
		{get + "X-Forwarded-For: a\r\n", Request{Trusted: true}, "X-Forwarded-For: a", "a peer without an address"},
		{get + "X_Forwarded_For: evil\r\n", trusted, "X-Forwarded-For: 192.0.2.1|X-Forwarded-Host: h|X-Forwarded-Proto: https", "an imitation is no proxy's"},
		// Forwarded.
		{get + "Forwarded: for=evil\r\n", Request{Peer: []byte("192.0.2.1"), Proto: "http", Forwarded: true},
			`Forwarded: for=192.0.2.1;host="h";proto=http`, "replaced"},
		{get + "Forwarded: for=a\r\n", Request{Peer: []byte("2001:db8::1"), Trusted: true, Forwarded: true},
			`Forwarded: for=a|Forwarded: for="[2001:db8::1]";host="h"`, "appended"},
		// Via.
		{get + "Via: 1.0 a, 1.1 b\r\n", via, "Via: 1.0 a, 1.1 b|Via: 1.1 chert", "added"},
		{"GET / HTTP/1.0\r\nHost: h\r\n", via, "Via: 1.0 chert", "the version that was received"},
		{get + "Via: 1.1 chert\r\n", via, "Via: 1.1 chert|Via: 1.1 chert", "once may be another of that name"},
		{get + "Via: 1.1 chertx, 1.1 xchert, chert, 1.1 x (chert), 1.1 y chert\r\n", via, "Via: 1.1 chertx, 1.1 xchert, chert, 1.1 x (chert), 1.1 y chert|Via: 1.1 chert", "not the pseudonym"},
		{get + "Via: 1.1 chert, 1.1 chert, 1.1 chert\r\n", Request{}, "Via: 1.1 chert, 1.1 chert, 1.1 chert", "no pseudonym, no loop"},
		// Max-Forwards.
		{"TRACE / HTTP/1.1\r\nHost: h\r\nMax-Forwards: 10\r\n", Request{}, "Max-Forwards: 9", "one less"},
		{"OPTIONS / HTTP/1.1\r\nHost: h\r\nMax-Forwards: 1\r\n", Request{}, "Max-Forwards: 0", "one less"},
		{get + "Max-Forwards: x\r\n", Request{}, "Max-Forwards: x", "means nothing to other methods"},
		// What middleware adds comes after what is removed.
		{get + "Connection: x-user\r\nX-User: evil\r\n", Request{Add: []byte("X-User: me\r\n")}, "X-User: me", "listed by the client"},
	} {
		line := strings.Fields(c.in)
		want := line[0] + " " + line[1] + " HTTP/1.1|Host: h"
		if c.want != "" {
			want += "|" + c.want
		}
		got, _, err := send(t, c.in+"\r\n", c.o)
		if lines(got) != want || !strings.HasSuffix(got, "\r\n\r\n") || err != nil {
			t.Errorf("%s: %q\n got %q, %v\nwant %s", c.why, c.in, got, err, want)
		}
	}
}

func TestAppendRequestRefuse(t *testing.T) {
	via := Request{Via: "chert"}
	for _, c := range []struct {
		in   string
		o    Request
		want *http1.Error
		why  string
	}{
		{"CONNECT a:443 HTTP/1.1\r\nHost: a\r\n", Request{}, errMethod, "a tunnel to anywhere"},
		{"CONNECT /x HTTP/1.1\r\nHost: a\r\n", Request{}, errMethod, "net/rpc"},
		{"PRI * HTTP/2.0\r\n", Request{}, errMethod, "HTTP/2's preface"},
		{"GET * HTTP/1.1\r\nHost: h\r\n", Request{}, errAsterisk, "asterisk form is for OPTIONS"},
		{"GET /a#b HTTP/1.1\r\nHost: h\r\n", Request{}, errFragment, "CVE-2023-45539"},
		{"GET /a?b# HTTP/1.1\r\nHost: h\r\n", Request{}, errFragment, "an empty one"},
		{"GET http://t#b HTTP/1.1\r\nHost: h\r\n", Request{}, errFragment, "absolute form"},
		{get, Request{Target: []byte("/a b")}, errTarget, "of the caller: SP"},
		{get, Request{Target: []byte("/a\r\nX: y")}, errTarget, "of the caller: CR"},
		{get, Request{Target: []byte("a")}, errTarget, "of the caller: no slash"},
		{get, Request{Target: []byte{}}, errTarget, "of the caller: empty"},
		{get, Request{Target: []byte("/#")}, errFragment, "of the caller: fragment"},
		{put + "Expect: magic\r\n", Request{Expect: true}, errExpect, "RFC 9110 10.1.1: 417"},
		// Connection must not take away what all recipients rely on.
		{get + "Connection: close, Host\r\n", Request{}, errListed, "Host"},
		{get + "Connection: Content-Length\r\n", Request{}, errListed, "Content-Length"},
		{get + "Connection: cookie\r\n", Request{}, errListed, "Cookie"},
		{get + "Connection: AUTHORIZATION\r\n", Request{}, errListed, "Authorization"},
		{get + "Early-Data: 1\r\nConnection: early-data\r\n", Request{}, errListed, "RFC 8470 5.1"},
		{get + "Connection: x\r\nConnection: X-Forwarded-For\r\n", Request{}, errListed, "CVE-2021-32813"},
		{get + "Connection: x-forwarded-host\r\n", Request{}, errListed, "CVE-2024-45410"},
		{get + "Connection: X-Forwarded-Tls-Client-Cert\r\n", Request{}, errListed, "the same"},
		{get + "Connection: X-Real-IP\r\n", Request{}, errListed, "the same"},
		{get + "Connection: Forwarded\r\n", Request{}, errListed, "the same"},
		{get + "Connection: X-Forwarded-For\r\n", Request{Trusted: true}, errListed, "a trusted peer passes it on"},
		{get + "Connection: Via\r\n", Request{}, errListed, "it ends loops"},
		{get + "Connection: Max-Forwards\r\n", Request{}, errListed, "it ends loops"},
		{get + manyOptions(17), Request{}, errManyOptions, "one more than may be"},
		{get + "Connection: close" + strings.Repeat(",close", 60) + "\r\nConnection: te,te,te,te\r\n", Request{}, errManyOptions, "of all kinds"},
		{get + "Connection: " + strings.Repeat(",", 65) + "\r\n", Request{}, errManyOptions, "empty ones too"},
		{get + "Via: 1.1 chert, 1.1 x\r\nVia: 1.0 Chert (c)\r\n", via, errLoop, "twice"},
		{get + "Via: HTTP/1.1 \t chert,1.1 chert\r\n", via, errLoop, "twice"},
		{"TRACE / HTTP/1.1\r\nHost: h\r\nMax-Forwards: 0\r\n", Request{}, ErrLastHop, "the gateway answers"},
		{"OPTIONS * HTTP/1.1\r\nHost: h\r\nMax-Forwards: 00\r\n", Request{}, ErrLastHop, "the gateway answers"},
		{"TRACE / HTTP/1.1\r\nHost: h\r\nMax-Forwards: -1\r\n", Request{}, errMaxForwards, "sign"},
		{"TRACE / HTTP/1.1\r\nHost: h\r\nMax-Forwards:\r\n", Request{}, errMaxForwards, "empty"},
		{"TRACE / HTTP/1.1\r\nHost: h\r\nMax-Forwards: 99999999999999999999\r\n", Request{}, errMaxForwards, "too large"},
		{"TRACE / HTTP/1.1\r\nHost: h\r\nMax-Forwards: 1\r\nMax-Forwards: 2\r\n", Request{}, errManyForwards, "two"},
	} {
		if got, _, err := send(t, c.in+"\r\n", c.o); err != c.want {
			t.Errorf("%s: %q: got %q, %v, want %v", c.why, c.in, got, err, c.want)
		}
	}
}

func TestSent(t *testing.T) {
	_, sent, _ := send(t, "HEAD / HTTP/1.1\r\nHost: h\r\nTE: trailers\r\n\r\n", Request{})
	if want := sent.Expected; !want.Head || want.Connect || want.Upgrade != nil || !sent.Trailers {
		t.Errorf("HEAD: got %+v", sent)
	}
	_, sent, _ = send(t, get+"Connection: upgrade\r\nUpgrade: h2c, a\r\nUpgrade: websocket\r\n\r\n", Request{Upgrade: true})
	if sent.Expected.Head || string(sent.Expected.Upgrade) != "a, websocket" || sent.Trailers {
		t.Errorf("Upgrade: got %+v", sent)
	}
	// What was taken out is not accepted from the upstream either.
	var r http1.Response
	for protocol, accepted := range map[string]bool{"WebSocket": true, "h2c": false} {
		in := "HTTP/1.1 101 x\r\nConnection: upgrade\r\nUpgrade: " + protocol + "\r\n\r\n"
		if n, err := r.Parse([]byte(in), &sent.Expected, nil, nil); (n > 0) != accepted {
			t.Errorf("%s: got %d, %v", protocol, n, err)
		}
	}
}

// A caller that has the whole of a chunked body sends its length.
func TestAppendRequestLengthOfCaller(t *testing.T) {
	in := []byte(put + "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n")
	var r http1.Request
	r.Parse(in, nil, nil)
	r.Chunked, r.ContentLength = false, 5
	out, _, err := AppendRequest(nil, in, &r, &Request{})
	if want := "PUT /a?b HTTP/1.1|Host: h|Content-Length: 5"; lines(string(out)) != want || err != nil {
		t.Errorf("got %s, %v", lines(string(out)), err)
	}
}

func TestAppendTrailer(t *testing.T) {
	in := []byte("X-Sum: 1\r\nX-Forwarded-For: evil\r\nx_forwarded_for: evil\r\nAuthorization: evil\r\nCookie: evil\r\nSet-Cookie: evil\r\n" +
		"Proxy-Authorization: evil\r\nVia: evil\r\nServer-Timing: a\r\n\r\n")
	n, fields, err := http1.ParseTrailer(in, nil, nil, nil)
	if n != len(in) || err != nil {
		t.Fatal(n, err)
	}
	if got := AppendTrailer([]byte("0\r\n"), in, fields); string(got) != "0\r\nX-Sum: 1\r\nServer-Timing: a\r\n\r\n" {
		t.Errorf("got %q", got)
	}
	if got := AppendTrailer(nil, nil, nil); string(got) != "\r\n" {
		t.Errorf("none: got %q", got)
	}
}
