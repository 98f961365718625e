package forward

import (
	"bufio"
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/chert-http/chert/internal/http1"
)

// pair is a field's name and value.
type pair struct{ name, value string }

func pairs(b []byte, fields []http1.Field) (list []pair) {
	for _, f := range fields {
		list = append(list, pair{string(f.Name.Bytes(b)), string(f.Value.Bytes(b))})
	}
	return list
}

// ownedByGateway are fields that the gateway may write, in lower case.
var ownedByGateway = []string{"host", "content-length", "transfer-encoding", "connection", "te", "upgrade", "expect", "max-forwards",
	"x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "forwarded", "via", "x-added"}

func owned(name string) bool { return slices.Contains(ownedByGateway, strings.ToLower(name)) }

// optionsFrom makes options of arbitrary bits.
func optionsFrom(bits uint8) Request {
	on := func(n int) bool { return bits>>n&1 != 0 }
	o := Request{Trusted: on(0), XForwarded: on(1), RealIP: on(2), Forwarded: on(3), Upgrade: on(4), Expect: on(5)}
	if on(6) {
		o.Peer, o.Proto = []byte("2001:db8::1"), "https"
	}
	if on(7) {
		o.Via, o.Add = "chert", []byte("X-Added: me\r\n")
	}
	return o
}

var requestSeeds = []string{
	"POST / HTTP/1.0\r\nA: b\r\n\r\n",
	"GET /a?b HTTP/1.1\r\nHost: h\r\nConnection: x-a, close\r\nX-A: 1\r\nX-B: 2\r\nX-Forwarded-For: evil\r\n\r\n",
	"POST http://t?x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: ,chunked\r\nTrailer: X\r\nTE: trailers\r\n\r\n0\r\nX: y\r\n\r\n",
	"PUT / HTTP/1.0\r\nContent-Length: 007\r\nContent_Length: 9\r\nExpect: 100-continue\r\n\r\nhello",
	"GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: h2c, websocket\r\nVia: 1.1 chert\r\n\r\nGET / HTTP/1.1\r\n\r\n",
	"OPTIONS * HTTP/1.1\r\nHost:\r\nMax-Forwards: 2\r\nX_Forwarded_For: evil\r\nForwarded: for=evil\r\n\r\n",
	"GET /a#b HTTP/1.1\r\nHost: h\r\nConnection: Host\r\n\r\n",
}

// What is written is exactly one request, for this package's parser and for net/http's,
// with the method, target, framing and fields that were received.
func FuzzForward(f *testing.F) {
	for _, s := range requestSeeds {
		for _, bits := range []uint8{0, 0xff, 0xfe, 0x92} {
			f.Add([]byte(s), bits)
		}
	}
	f.Fuzz(func(t *testing.T, in []byte, bits uint8) {
		var r http1.Request
		if n, _ := r.Parse(in, nil, nil); n == 0 {
			return
		}
		o := optionsFrom(bits)
		out, sent, err := AppendRequest(nil, in, &r, &o)
		if err != nil {
			asError(t, err)
			return
		}
		var got http1.Request
		limits := &http1.Limits{HeadBytes: 1 << 20, Fields: 1000} // both may grow by what is added
		// What follows must not belong to it.
		const next = "GET /next HTTP/1.1\r\nHost: n\r\n\r\n"
		if n, err := got.Parse(append(slices.Clone(out), next...), nil, limits); n != len(out) || err != nil {
			t.Fatalf("%q became %q, of which %d bytes are a head: %v", in, out, n, err)
		}
		checkSame(t, in, out, &r, &got, &o)
		checkFields(t, in, out, &r, &got, &o)
		if up := string(sent.Expected.Upgrade); got.Upgrade != (up != "") || got.Upgrade && !o.Upgrade || strings.Contains(", "+strings.ToLower(up), ", h2") {
			t.Errorf("%q became %q, which upgrades to %q", in, out, up)
		}
		checkNetHTTP(t, in, out, &got)
	})
}

// checkSame compares what the two heads mean.
func checkSame(t *testing.T, in, out []byte, r, got *http1.Request, o *Request) {
	t.Helper()
	if m, g := r.Method.Bytes(in), got.Method.Bytes(out); !bytes.Equal(m, g) {
		t.Errorf("%q became %q: method", in, out)
	}
	target, sent := string(r.Target.Bytes(in)), string(got.Target.Bytes(out))
	if r.Form == http1.FormAbsolute {
		_, rest, _ := strings.Cut(target, "://")
		host, path := rest, ""
		if i := strings.IndexAny(rest, "/?"); i >= 0 {
			host, path = rest[:i], rest[i:]
		}
		if !strings.HasPrefix(path, "/") {
			path = "/" + path
		}
		if path == "/" && sent == "*" && string(r.Method.Bytes(in)) == "OPTIONS" {
			path = sent
		}
		if sent != path || string(got.Host.Bytes(out)) != host {
			t.Errorf("%q became %q: target", in, out)
		}
	} else if target != sent || r.Form != got.Form {
		t.Errorf("%q became %q: target", in, out)
	}
	length := r.ContentLength
	if m := string(r.Method.Bytes(in)); length < 0 && !r.Chunked && (m == "POST" || m == "PUT" || m == "PATCH") {
		length = 0 // RFC 9110 section 8.6: said, where content is anticipated
	}
	if got.Chunked != (r.Chunked && r.ContentLength < 0) || got.ContentLength != length || got.Minor != 1 || !got.KeepAlive || got.ExpectOther {
		t.Errorf("%q became %q: framing", in, out)
	}
	if got.ExpectContinue && !(r.ExpectContinue && o.Expect) {
		t.Errorf("%q became %q: expectation", in, out)
	}
}

// checkFields requires the fields that the gateway does not own in their order, none
// that is removed, and none of the client's words about itself.
func checkFields(t *testing.T, in, out []byte, r, got *http1.Request, o *Request) {
	t.Helper()
	listed := map[string]bool{}
	for _, p := range pairs(in, r.Fields) {
		if strings.EqualFold(p.name, "Connection") {
			for elem := range strings.SplitSeq(p.value, ",") {
				listed[strings.ToLower(strings.Trim(elem, " \t"))] = true
			}
		}
	}
	removed := func(name string) bool {
		dashed := strings.ReplaceAll(strings.ToLower(name), "_", "-")
		switch dashed {
		case "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization", "http2-settings":
			return true
		case "trailer":
			return !r.Chunked || strings.Contains(name, "_")
		}
		own := strings.HasPrefix(dashed, "x-forwarded-") || owned(dashed) && dashed != "x-added"
		if strings.Contains(name, "_") {
			own = own || dashed == "cookie" || dashed == "authorization"
		}
		return listed[strings.ToLower(name)] || own && strings.Contains(name, "_") || own && !o.Trusted && strings.HasPrefix(dashed, "x-forwarded-")
	}
	var want, have []pair
	for _, p := range pairs(in, r.Fields) {
		if !owned(p.name) && !removed(p.name) {
			want = append(want, p)
		}
	}
	for _, p := range pairs(out, got.Fields) {
		if !owned(p.name) {
			have = append(have, p)
		}
		forwarded := strings.HasPrefix(strings.ToLower(p.name), "x-forwarded-") || strings.EqualFold(p.name, "X-Real-Ip") || strings.EqualFold(p.name, "Forwarded")
		if forwarded && !o.Trusted && strings.Contains(p.value, "evil") && !strings.Contains(string(got.Host.Bytes(out)), "evil") {
			t.Errorf("%q became %q: %s is the client's", in, out, p.name)
		}
	}
	if !slices.Equal(want, have) {
		t.Errorf("%q became %q:\nfields %q\nwant   %q", in, out, have, want)
	}
}

// checkNetHTTP requires net/http to read the same request.
func checkNetHTTP(t *testing.T, in, out []byte, got *http1.Request) {
	t.Helper()
	rd := bytes.NewReader(out)
	br := bufio.NewReader(rd)
	req, err := http.ReadRequest(br)
	if err != nil {
		// A target that is no URL: the parser does not check what paths consist of.
		if !strings.Contains(err.Error(), "parse ") && !strings.Contains(err.Error(), "invalid URI") {
			t.Errorf("%q became %q, net/http says: %v", in, out, err)
		}
		return
	}
	if rd.Len()+br.Buffered() != 0 || req.Method != string(got.Method.Bytes(out)) || req.RequestURI != string(got.Target.Bytes(out)) ||
		req.Host != string(got.Host.Bytes(out)) || (len(req.TransferEncoding) == 1) != got.Chunked ||
		max(got.ContentLength, 0) != max(req.ContentLength, 0) || req.Close {
		t.Errorf("%q became %q, which net/http reads as %+v", in, out, req)
	}
}

var responseSeeds = []string{
	"HTTP/1.1 200 OK\r\nContent-Length: 005\r\nConnection: x-a, close\r\nX-A: 1\r\nX-B: 2\r\n\r\nhello",
	"HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\nKeep-Alive: timeout=5\r\n\r\n0\r\nX-Sum: 1\r\n\r\n",
	"HTTP/1.0 404 x\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nDate: then\r\n\r\nhello",
	"HTTP/1.1 204 x\r\nContent-Length: 5\r\n\r\nhello",
	"HTTP/1.1 304 x\r\nTransfer-Encoding: chunked\r\nVia: 1.1 a\r\n\r\n",
	"HTTP/1.1 101 x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x00",
	"HTTP/1.1 103 x\r\nLink: </a>\r\n\r\nHTTP/1.1 426 x\r\nConnection: upgrade\r\nUpgrade: a\r\nContent-Length: 0\r\n\r\n",
}

// What is written is one response head with the status, the reason and the fields that
// were received, for this package's parser and for net/http's, and its framing is the one
// that AppendResponse returns.
func FuzzForwardBack(f *testing.F) {
	for _, s := range responseSeeds {
		for _, bits := range []uint8{0, 0xff, 1, 3, 9} {
			f.Add([]byte(s), bits)
		}
	}
	f.Fuzz(func(t *testing.T, in []byte, bits uint8) {
		req := http1.Expected{Head: bits&8 != 0}
		if bits&16 != 0 {
			req.Upgrade = []byte("websocket")
		}
		want := req
		var r, got http1.Response
		if n, _ := r.Parse(in, &req, nil, nil); n == 0 {
			return
		}
		o := Response{Minor: bits & 1, Close: bits&2 != 0, Trailers: bits&4 != 0}
		if bits&32 != 0 {
			o.Via, o.Date, o.Add = "chert", []byte("now"), []byte("X-Added: me\r\n")
		}
		out, framing, err := AppendResponse(nil, in, &r, &o)
		if err != nil || len(out) == 0 {
			asError(t, err)
			if err == nil && !(r.Interim() && o.Minor == 0) {
				t.Errorf("%q: nothing was written", in)
			}
			return
		}
		limits := &http1.Limits{HeadBytes: 1 << 20, Fields: 1000}
		if n, err := got.Parse(append(slices.Clone(out), "HTTP/1.1 599 next\r\n\r\n"...), &want, nil, limits); n != len(out) {
			if r.Framing == http1.FramingTunnel && o.Minor == 0 {
				return // 101 is for 1.1; the request that asked for it was one
			}
			t.Fatalf("%q became %q, of which %d bytes are a head: %v", in, out, n, err)
		}
		if got.Status != r.Status || !bytes.Equal(got.Reason.Bytes(out), r.Reason.Bytes(in)) || got.Minor != o.Minor || got.Framing != framing {
			t.Errorf("%q became %q: %+v, framing %d", in, out, got, framing)
		}
		if framing <= http1.FramingLength && (framing != r.Framing || r.Status != 204 && r.Status >= 200 && got.ContentLength != r.ContentLength) {
			t.Errorf("%q became %q: length", in, out)
		}
		if !r.Interim() && framing < http1.FramingClose && got.KeepAlive == o.Close {
			t.Errorf("%q became %q: persistence", in, out)
		}
		resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(out)), &http.Request{Method: map[bool]string{true: "HEAD", false: "GET"}[want.Head]})
		if err != nil || resp.StatusCode != r.Status || (len(resp.TransferEncoding) == 1) != (framing == http1.FramingChunked) {
			t.Errorf("%q became %q, which net/http reads as %+v, %v", in, out, resp, err)
		}
		checkBackFields(t, in, out, &r, &got)
	})
}

func checkBackFields(t *testing.T, in, out []byte, r, got *http1.Response) {
	t.Helper()
	const list = "|connection|keep-alive|proxy-connection|proxy-authenticate|proxy-authorization|te|trailer|transfer-encoding|upgrade|" +
		"content-length|date|via|x-added|expect|http2-settings|"
	listed := map[string]bool{}
	var want, have []pair
	for _, p := range pairs(in, r.Fields) {
		if strings.EqualFold(p.name, "Connection") {
			for elem := range strings.SplitSeq(p.value, ",") {
				listed[strings.ToLower(strings.Trim(elem, " \t"))] = true
			}
		}
	}
	for _, p := range pairs(in, r.Fields) {
		if name := strings.ToLower(p.name); !strings.Contains(list, "|"+name+"|") && !listed[name] {
			want = append(want, p)
		}
	}
	for _, p := range pairs(out, got.Fields) {
		if !strings.Contains(list, "|"+strings.ToLower(p.name)+"|") {
			have = append(have, p)
		}
	}
	if !slices.Equal(want, have) {
		t.Errorf("%q became %q:\nfields %q\nwant   %q", in, out, have, want)
	}
}
