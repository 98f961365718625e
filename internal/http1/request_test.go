package http1

import (
	"strings"
	"testing"
)

const h = "Host: a\r\n" // most cases need one

func TestAccept(t *testing.T) {
	for _, c := range []struct{ in, want, why string }{
		// Request line.
		{"GET / HTTP/1.1\r\n" + h + "\r\n", "GET / origin 1.1 host=a keep", "the least"},
		{"\r\nGET / HTTP/1.1\r\n" + h + "\r\n", "GET / origin 1.1 host=a keep", "one empty line before is skipped"},
		{"GET / HTTP/1.1\r\n" + h + "\r\nGET /2", "GET / origin 1.1 host=a keep", "what follows is left"},
		{"GET / HTTP/1.0\r\n\r\n", "GET / origin 1.0", "1.0 needs no Host and does not persist"},
		{"GET / HTTP/1.9\r\n" + h + "\r\n", "GET / origin 1.9 host=a keep", "higher minor behaves as 1.1"},
		{"g!#$%&'*+-.^_`|~9 / HTTP/1.1\r\n" + h + "\r\n", "g!#$%&'*+-.^_`|~9 / origin 1.1 host=a keep", "every tchar"},
		{"GET /a?b=c;d&e#f HTTP/1.1\r\n" + h + "\r\n", "GET /a?b=c;d&e#f origin 1.1 host=a keep", "fragment as net/http"},
		{"GET /\x80\xff HTTP/1.1\r\n" + h + "\r\n", "GET /\x80\xff origin 1.1 host=a keep", "high bytes as net/http"},
		{"GET /%zz\"<>\\^`{|} HTTP/1.1\r\n" + h + "\r\n", "GET /%zz\"<>\\^`{|} origin 1.1 host=a keep", "the path is net/url's to judge"},
		{"GET //x HTTP/1.1\r\n" + h + "\r\n", "GET //x origin 1.1 host=a keep", "two slashes are a path"},
		{"GET http://b/c HTTP/1.1\r\n" + h + "\r\n", "GET http://b/c absolute 1.1 host=a keep", "absolute-form"},
		{"GET HTTP://b:80?q HTTP/1.1\r\n" + h + "\r\n", "GET HTTP://b:80?q absolute 1.1 host=a keep", "absolute-form without a path"},
		{"GET a+-.9://[::1]:80 HTTP/1.1\r\n" + h + "\r\n", "GET a+-.9://[::1]:80 absolute 1.1 host=a keep", "every scheme byte"},
		{"OPTIONS * HTTP/1.1\r\n" + h + "\r\n", "OPTIONS * asterisk 1.1 host=a keep", "asterisk-form"},
		{"GET * HTTP/1.1\r\n" + h + "\r\n", "GET * asterisk 1.1 host=a keep", "asterisk-form of another method"},
		{"CONNECT b:443 HTTP/1.1\r\n" + h + "\r\n", "CONNECT b:443 authority 1.1 host=a keep", "authority-form"},
		{"CONNECT [::1]:65535 HTTP/1.1\r\n" + h + "\r\n", "CONNECT [::1]:65535 authority 1.1 host=a keep", "authority-form, IPv6"},
		{"CONNECT /rpc HTTP/1.1\r\n" + h + "\r\n", "CONNECT /rpc origin 1.1 host=a keep", "net/rpc"},
		// Host.
		{"GET / HTTP/1.1\r\nHost:\r\n\r\n", "GET / origin 1.1 host= keep", "empty Host is allowed"},
		{"GET / HTTP/1.1\r\nhOST: \t b:8080 \t\r\n\r\n", "GET / origin 1.1 host=b:8080 keep", "any case, OWS around"},
		{"GET / HTTP/1.1\r\nHost: b:\r\n\r\n", "GET / origin 1.1 host=b: keep", "RFC 3986: port is *DIGIT"},
		{"GET / HTTP/1.1\r\nHost: [fe80::1%25en0]:1\r\n\r\n", "GET / origin 1.1 host=[fe80::1%25en0]:1 keep", "zone, RFC 6874"},
		{"GET / HTTP/1.1\r\nHost: a_b.c~!$&'()*+,;=%7e\r\n\r\n", "GET / origin 1.1 host=a_b.c~!$&'()*+,;=%7e keep", "every reg-name byte"},
		{"GET / HTTP/1.0\r\nHost: b\r\n\r\n", "GET / origin 1.0 host=b", "1.0 may have one"},
		{"GET / HTTP/1.1\r\nHost: ::1\r\n\r\n", "GET / origin 1.1 host=::1 keep", "an address that lacks its brackets"},
		{"CONNECT a:1 HTTP/1.1\r\n\r\n", "CONNECT a:1 authority 1.1 keep", "CONNECT may lack a Host"},
		{"CONNECT /_goRPC_ HTTP/1.0\n\n", "CONNECT /_goRPC_ origin 1.0", "net/rpc's DialHTTP"},
		{"\r\n\r\nGET / HTTP/1.0\r\n\r\n", "GET / origin 1.0", "two empty lines before"},
		{"PRI * HTTP/2.0\r\n\r\n", "PRI * asterisk 1.1", "HTTP/2's preface"},
		// Connection.
		{"GET / HTTP/1.1\r\n" + h + "Connection: close\r\n\r\n", "GET / origin 1.1 host=a", "close"},
		{"GET / HTTP/1.1\r\n" + h + "Connection: x,, CLOSE ,y\r\n\r\n", "GET / origin 1.1 host=a", "close in a list"},
		{"GET / HTTP/1.1\r\n" + h + "Connection: keep-alive\r\nConnection: close\r\n\r\n", "GET / origin 1.1 host=a", "close wins"},
		{"GET / HTTP/1.1\r\n" + h + "Connection: closed, xclose\r\n\r\n", "GET / origin 1.1 host=a keep", "not close"},
		{"GET / HTTP/1.1\r\n" + h + "Connection: 0 Close\r\n\r\n", "GET / origin 1.1 host=a", "close among words: in doubt, close"},
		{"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", "GET / origin 1.0 keep", "1.0 asks"},
		{"GET / HTTP/1.0\r\nConnection: close, keep-alive\r\n\r\n", "GET / origin 1.0", "close wins in 1.0"},
		{"GET / HTTP/1.1\r\n" + h + "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n", "GET / origin 1.1 host=a keep upgrade", "upgrade"},
		{"GET / HTTP/1.1\r\n" + h + "Upgrade: websocket\r\n\r\n", "GET / origin 1.1 host=a keep", "Upgrade not named in Connection"},
		{"GET / HTTP/1.1\r\n" + h + "Connection: upgrade\r\n\r\n", "GET / origin 1.1 host=a keep", "no Upgrade field"},
		{"GET / HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", "GET / origin 1.0", "RFC 9110 7.8: ignored in 1.0"},
		// Expect.
		{"PUT / HTTP/1.1\r\n" + h + "Expect: 100-Continue\r\n\r\n", "PUT / origin 1.1 host=a keep continue", "any case"},
		{"PUT / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n", "PUT / origin 1.0", "RFC 9110 10.1.1: ignored in 1.0"},
		{"PUT / HTTP/1.1\r\n" + h + "Expect: magic\r\n\r\n", "PUT / origin 1.1 host=a keep expect-other", "417"},
		{"PUT / HTTP/1.1\r\n" + h + "Expect: a, 100-continue\r\n\r\n", "PUT / origin 1.1 host=a keep continue expect-other", "both"},
		{"PUT / HTTP/1.1\r\n" + h + "Expect:\r\n\r\n", "PUT / origin 1.1 host=a keep", "an empty list expects nothing"},
		// Body framing.
		{"PUT / HTTP/1.1\r\n" + h + "Content-Length: 0\r\n\r\n", "PUT / origin 1.1 host=a len=0 keep", "zero is not absent"},
		{"PUT / HTTP/1.1\r\n" + h + "Content-Length: 007\r\n\r\n", "PUT / origin 1.1 host=a len=7 keep", "1*DIGIT"},
		{"PUT / HTTP/1.1\r\n" + h + "Content-Length: 9223372036854775807\r\n\r\n", "PUT / origin 1.1 host=a len=9223372036854775807 keep", "largest"},
		{"PUT / HTTP/1.0\r\nContent-Length: 5\r\n\r\n", "PUT / origin 1.0 len=5", "1.0 body"},
		{"PUT / HTTP/1.1\r\n" + h + "Transfer-Encoding: chunked\r\n\r\n", "PUT / origin 1.1 host=a chunked keep", "chunked"},
		{"PUT / HTTP/1.1\r\n" + h + "transfer-encoding:CHUNKED\r\n\r\n", "PUT / origin 1.1 host=a chunked keep", "any case"},
		{"PUT / HTTP/1.1\r\n" + h + "Transfer-Encoding: , ,chunked,\r\n\r\n", "PUT / origin 1.1 host=a chunked keep", "RFC 9110 5.6.1.2: empty elements"},
		{"PUT / HTTP/1.1\r\n" + h + "Transfer-Encoding:\r\nTransfer-Encoding: chunked\r\n\r\n", "PUT / origin 1.1 host=a chunked keep", "fields combine"},
		{"PUT / HTTP/1.1\r\n" + h + "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n", "PUT / origin 1.1 host=a chunked keep trailer", "trailer announced"},
		{"GET / HTTP/1.1\r\n" + h + "Trailer: Host\r\n\r\n", "GET / origin 1.1 host=a keep trailer", "without chunked it announces nothing"},
	} {
		a := checkSplits(t, []byte(c.in), nil)
		if a.err != nil || a.n == 0 {
			t.Errorf("%s: %q: got %d, %v", c.why, c.in, a.n, a.err)
			continue
		}
		// Only one case has anything after its head.
		if head := strings.TrimSuffix(c.in, "GET /2"); a.n != len(head) {
			t.Errorf("%s: %q: n = %d, want %d", c.why, c.in, a.n, len(head))
		}
		if got := describe([]byte(c.in), &a.req); got != c.want {
			t.Errorf("%s: %q\n got %s\nwant %s", c.why, c.in, got, c.want)
		}
	}
}

func TestFields(t *testing.T) {
	for _, c := range []struct{ in, want, why string }{
		{"", "", "none"},
		{"A:b\r\n", "A=b", "no space"},
		{"A: b\r\n", "A=b", "one space"},
		{"A: \t b c \t \r\n", "A=b c", "OWS around, kept within"},
		{"A:\r\n", "A=", "empty value"},
		{"A: \t \r\n", "A=", "only OWS"},
		{"A: b:c: d\r\n", "A=b:c: d", "colons in the value"},
		{"A: 1\r\na: 2\r\nB: 3\r\n", "A=1|a=2|B=3", "order and case are kept"},
		{"A: b\tc\td\te\tf\tg\th\ti\tj\r\n", "A=b\tc\td\te\tf\tg\th\ti\tj", "HTAB at each offset of a word"},
		{"A: \x80\xff\xe2\x82\xac obs-text\r\n", "A=\x80\xff\xe2\x82\xac obs-text", "obs-text"},
		{"A: ~}|{\"(),/:;<=>?@[\\]{}\r\n", "A=~}|{\"(),/:;<=>?@[\\]{}", "delimiters"},
		{"!#$%&'*+-.^_`|~19azAZ: x\r\n", "!#$%&'*+-.^_`|~19azAZ=x", "every tchar"},
	} {
		in := []byte("GET / HTTP/1.0\r\n" + c.in + "\r\n")
		a := checkSplits(t, in, nil)
		if got := describeFields(in, a.req.Fields); a.n != len(in) || got != c.want {
			t.Errorf("%s: %q: got %d, %v, %q, want %q", c.why, c.in, a.n, a.err, got, c.want)
		}
		// The same lines as a trailer section.
		in = []byte(c.in + "\r\n")
		n, out, err := ParseTrailer(in, nil, nil, nil)
		if got := describeFields(in, out); n != len(in) || err != nil || got != c.want {
			t.Errorf("trailer: %s: %q: got %d, %v, %q, want %q", c.why, c.in, n, err, got, c.want)
		}
	}
}

func TestIncomplete(t *testing.T) {
	for _, c := range []struct{ in, why string }{
		{"", "nothing yet"},
		{"\r", "half of a leading CRLF"},
		{"\r\n", "a leading CRLF alone"},
		{"G", "part of a method"},
		{"GET / HTTP/1.1", "no line end"},
		{"GET / HTTP/1.1\r", "half a line end"},
		{"GET / HTTP/1.1\r\n", "no fields yet"},
		{"GET / HTTP/1.1\r\nHost: a\r\n", "no empty line"},
		{"GET / HTTP/1.1\r\nHost: a\r\n\r", "half an empty line"},
		{"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: x\r\n", "fields are judged at the end"},
		{"GET\x00", "a line is judged when it is complete"},
		{"GET / HTTP/9.9", "a line is judged when it is complete"},
		{"GET / HTTP/1.1\r\nA b", "a line is judged when it is complete"},
	} {
		if a := checkSplits(t, []byte(c.in), nil); a.n != 0 || a.err != nil {
			t.Errorf("%s: %q: got %d, %v", c.why, c.in, a.n, a.err)
		}
	}
}

// A Request is reused; nothing of the last head may show in the next.
func TestReuse(t *testing.T) {
	var r Request
	heads := []string{
		"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
		"PUT /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue, y\r\nConnection: upgrade, close\r\nUpgrade: x\r\nTrailer: y\r\n\r\n",
		"PUT /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
		"GET / HTTP/1.0\r\n\r\n",
	}
	for _, a := range heads {
		for _, b := range heads {
			r.Parse([]byte(a), nil, nil)
			r.Parse([]byte(b), nil, nil)
			want := parseOnce([]byte(b), nil, nil)
			if got := describe([]byte(b), &r); got != describe([]byte(b), &want.req) || len(r.Fields) != len(want.req.Fields) {
				t.Errorf("after %q: %s", a, got)
			}
		}
	}
}
