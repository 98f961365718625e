package proxy

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/http1"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// conversation sends in to a server and returns all that it sends until it closes.
func conversation(t testing.TB, ts *engines.Server, in []byte) []byte {
	c := servertest.Dial(t, ts.ListenAddr)
	defer c.Close()
	c.SetDeadline(time.Now().Add(servertest.Patience))
	go c.Write(in) // no FIN after it: that would be a client that is gone
	out, err := io.ReadAll(c.R)
	if servertest.IsTimeout(err) {
		t.Fatalf("no end after %q: %q", in, out)
	}
	return out
}

// FuzzRequests sends anything to the proxy. Each connection to the server carries exactly one
// request, which the strict parser and net/http's understand in the same way, and of which
// there are no more than responses.
func FuzzRequests(f *testing.F) {
	for _, s := range []string{
		get, post("abc"), get + get, post("x") + get, upgrade + get,
		"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n" + get,
		"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\nHost: h\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\nContent-Length: 4\r\n\r\n1\r\na\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\nConnection: content-length, upgrade\r\nUpgrade: h2c\r\nContent-Length: 30\r\n\r\nGET /x HTTP/1.1\r\nHost: h\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx", "GET http://h/#x HTTP/1.1\r\nHost: h\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\nX: a\n\r\nGET /x HTTP/1.1\r\n\r\n", "GET / HTTP/1.0\r\nContent-Length: 1\r\n\r\nxGET / HTTP/1.1\r\nHost: h\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTrailer: A\r\n\r\n1;x=\"\r\n\"\r\na\r\n0\r\nA: b\r\nX-Forwarded-For: c\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	var mu sync.Mutex
	var conns []string // what each has sent, but for those that have sent nothing
	ended := 0
	o := start(f, func(c *conn) {
		if _, _, complete := c.request(); complete {
			c.put(ok)
		}
		io.Copy(io.Discard, c.r)
		c.o.mu.Lock()
		seen := c.seen.String()
		c.o.mu.Unlock()
		mu.Lock()
		defer mu.Unlock()
		if ended++; seen != "" {
			conns = append(conns, seen)
		}
	})
	s := &setup{}
	s.up.MaxIdle = -1
	h := s.handler(f, o.addr())
	servers := onBoth(func(e chert.Engine) *engines.Server {
		return engines.Start(f, &chert.Server{Engine: e, Handler: h,
			IdleTimeout: 20 * time.Millisecond, ReadHeaderTimeout: 20 * time.Millisecond, ReadStallTimeout: 20 * time.Millisecond})
	})
	check := func(t *testing.T, ts *engines.Server, in []byte) {
		mu.Lock()
		conns = nil
		mu.Unlock()
		out := conversation(t, ts, in)
		o.settle(t) // the server may not have accepted yet what the proxy has given up
		var got []string
		servertest.Eventually(t, "the ends of connections to the server", func() bool {
			mu.Lock()
			defer mu.Unlock()
			got = conns
			return ended == o.dials()
		})
		responses := bytes.Count(out, []byte("HTTP/1.")) // more than there are, if a body has it
		if len(got) > responses && bytes.HasSuffix(in, []byte("\n")) {
			t.Errorf("%d requests, %d responses: %q", len(got), responses, out)
		}
		for _, raw := range got {
			single(t, raw)
		}
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, ts := range servers {
			check(t, ts, in)
		}
	})
}

// onBoth starts a server with each of the forms of the proxy: on goroutines, and on loops where
// there are any.
func onBoth(start func(e chert.Engine) *engines.Server) [2]*engines.Server {
	return [2]*engines.Server{start(chert.EngineGoroutines), start(chert.EngineAuto)}
}

// single checks that raw is one request, or the beginning of one.
func single(t *testing.T, raw string) {
	var r http1.Request
	n, err := r.Parse([]byte(raw), nil, nil)
	if err != nil {
		t.Errorf("server received %q: %v", raw, err)
	}
	if n == 0 {
		return
	}
	br := bufio.NewReader(strings.NewReader(raw))
	std, err := http.ReadRequest(br)
	if err != nil {
		t.Errorf("net/http does not read %q: %v", raw, err)
		return
	}
	if std.ContentLength >= 0 && r.Chunked || r.ContentLength >= 0 && std.ContentLength != r.ContentLength {
		t.Errorf("framing of %q: %d, %d", raw, std.ContentLength, r.ContentLength)
	}
	if _, err := io.ReadAll(std.Body); err != nil {
		return // the client has not sent all
	}
	if rest, _ := io.ReadAll(br); len(rest) > 0 {
		t.Errorf("server received %q after a request: %q", rest, raw)
	}
}

// FuzzResponses answers with anything. The client gets exactly the response that the strict
// parser understands, or one of the proxy, or one that does not end as if it were whole.
func FuzzResponses(f *testing.F) {
	for _, s := range []string{
		ok, ok + ok, "HTTP/1.1 200 OK\r\n\r\nrest", "HTTP/1.0 200 OK\r\n\r\nrest", "HTTP/1.1 204 No\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nA: b\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n", "HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n" + ok,
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
		"HTTP/1.1 200 OK\r\nConnection: content-length, x\r\nX: y\r\nContent-Length: 2\r\n\r\nok", "HTTP/1.1 304 No\r\nContent-Length: 2\r\n\r\n",
		switching, "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	answer := make(chan []byte, 9)
	o := start(f, func(c *conn) {
		if c.head() != "" {
			c.Write(<-answer)
		}
	})
	s := &setup{}
	s.up.Retry.Off = true
	s.up.Health.Off, s.up.MaxIdle = true, -1
	h := s.handler(f, o.addr())
	servers := onBoth(func(e chert.Engine) *engines.Server {
		return engines.Start(f, &chert.Server{Engine: e, Handler: h})
	})
	check := func(t *testing.T, ts *engines.Server, in []byte) {
		answer <- in
		out := conversation(t, ts, []byte("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"))
		status, body, whole := understand(in)
		br := bufio.NewReader(bytes.NewReader(out))
		res, err := http.ReadResponse(br, nil)
		for err == nil && res.StatusCode < 200 {
			res, err = http.ReadResponse(br, nil)
		}
		if err != nil {
			if whole {
				t.Errorf("%q became %q", in, out)
			}
			return
		}
		got, err := io.ReadAll(res.Body)
		if rest, _ := io.ReadAll(br); len(rest) > 0 {
			t.Errorf("%q became %q, with %q after it", in, out, rest)
		}
		switch {
		case res.Header.Get("Proxy-Status") != "":
			if status != 0 && whole {
				t.Errorf("%q became %q", in, out)
			}
		case status != res.StatusCode || !bytes.HasPrefix(body, got) || whole != (err == nil) || whole && !bytes.Equal(body, got):
			t.Errorf("%q is %d %q, whole: %v; it became %q", in, status, body, whole, out)
		}
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 60_000 {
			return // beyond the limit of a head
		}
		for _, ts := range servers {
			check(t, ts, in)
		}
	})
}

// understand returns what the strict parser makes of a response, after which the connection
// ends.
func understand(in []byte) (status int, body []byte, whole bool) {
	var r http1.Response
	var want http1.Expected
	for {
		n, err := r.Parse(in, &want, nil, nil)
		if n == 0 || err != nil {
			return 0, nil, false
		}
		if in = in[n:]; !r.Interim() {
			break
		}
	}
	d := r.Body()
	for !d.Done() {
		if d.InTrailer() {
			n, _, err := d.Trailer(in, nil, nil, nil)
			if n == 0 || err != nil {
				return r.Status, body, false
			}
			continue
		}
		b := make([]byte, len(in))
		n, used, err := d.Decode(b, in)
		body, in = append(body, b[:n]...), in[used:]
		if err != nil {
			return r.Status, body, false
		}
		if len(in) == 0 && !d.InTrailer() {
			break
		}
	}
	return r.Status, body, d.Closed() == nil
}
