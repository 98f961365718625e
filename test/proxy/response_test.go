package proxy

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/middleware"
	"github.com/chert-http/chert/proxy"
)

const get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"

// TestResponse compares what a client receives with what a server has sent. The server
// closes the connection after its response.
func TestResponse(t *testing.T) {
	for _, c := range responses {
		t.Run(c.name, func(t *testing.T) {
			overEach(t, func(t *testing.T, secure bool) {
				alike(t, func(t *testing.T, e chert.Engine) {
					o := startOver(t, secure, func(conn *conn) {
						if conn.head() != "" {
							conn.put(c.out)
						}
					})
					s := &setup{}
					s.over(t, secure)
					s.up.Retry.Off = true
					ts := s.start(t, e, o.addr())
					client := ts.Dial()
					client.Send(c.in)
					method, _, _ := strings.Cut(c.in, " ")
					got := summary(client, method)
					if c.name == "304" { // RFC 9110 section 8.6 permits its Content-Length
						got = strings.Replace(got, " Content-Length=5", "", 1)
					}
					if got != c.want {
						t.Errorf("client received %q, want %q\n%s", got, c.want, s.log)
					}
				})
			})
		})
	}
}

var responses = []struct {
	name, in, out string
	// want is a summary of what the client receives; "cut" at the end is a body that ends
	// early.
	want string
}{
	{"length", get, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nA: b\r\n\r\nok", "200 A=b Content-Length=2: ok"},
	{"chunked", get, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", "200 chunked: ok"},
	{"until the end", get, "HTTP/1.1 200 OK\r\n\r\nok", "200 chunked: ok"},
	{"1.0", get, "HTTP/1.0 200 OK\r\n\r\nok", "200 chunked: ok"},
	{"no reason", get, "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", "200 Content-Length=0: "},
	{"hop by hop", get, "HTTP/1.1 200 OK\r\nConnection: x-a\r\nX-A: b\r\nKeep-Alive: timeout=5\r\nProxy-Authenticate: x\r\nContent-Length: 0\r\n\r\n",
		"200 Content-Length=0: "},
	{"Date and Server", get, "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nServer: s\r\nContent-Length: 0\r\n\r\n",
		"200 Content-Length=0 Date=Thu, 01 Jan 1970 00:00:00 GMT Server=s: "},
	{"201", get, "HTTP/1.1 201 Created\r\nLocation: /x\r\nContent-Location: http://h/\r\nSet-Cookie: a=b; path=/y\r\nContent-Length: 0\r\n\r\n",
		"201 Content-Length=0: "},
	{"304", get, "HTTP/1.1 304 Not Modified\r\nEtag: x\r\nContent-Length: 5\r\n\r\n", "304 Etag=x: "},
	{"204 with a body", get, "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello", "204: "},
	{"206", get, "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-1/5\r\nContent-Length: 2\r\n\r\nok",
		"206 Content-Length=2 Content-Range=bytes 0-1/5: ok"},
	{"HEAD", "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "200 Content-Length=5: "},
	{"own 502", get, "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 2\r\nX: y\r\n\r\nno", "502 Content-Length=2 X=y: no"},
	{"short", get, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok", "200 Content-Length=5: ok cut"},
	{"short chunk", get, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nok", "200 chunked: ok cut"},
	{"no last chunk", get, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", "200 chunked: ok cut"},
	{"no end of trailers", get, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nA: b\r\n", "200 chunked: ok cut"},
	{"bad first chunk", get, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n\r\n", "200 chunked:  cut"},
	{"bad chunk", get, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\nx\r\n\r\n", "200 chunked: ok cut"},
	{"nothing", get, "", "502 connection_terminated"},
	{"not HTTP", get, "SSH-2.0-x\r\n", "502 http_protocol_error"},
	{"half a head", get, "HTTP/1.1 200 OK\r\nA: b\r\n", "502 connection_terminated"},
	{"folded", get, "HTTP/1.1 200 OK\r\nA: b\r\n c\r\nContent-Length: 0\r\n\r\n", "502 http_protocol_error"},
	{"space before colon", get, "HTTP/1.1 200 OK\r\nA : b\r\n\r\n", "502 http_protocol_error"},
	{"two lengths", get, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok", "502 http_protocol_error"},
	{"list of lengths", get, "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok", "502 http_protocol_error"},
	{"both framings", get, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "502 http_protocol_error"},
	{"unknown coding", get, "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "502 http_protocol_error"},
	{"bare LF", get, "HTTP/1.1 200 OK\nContent-Length: 0\n\n", "502 http_protocol_error"},
	{"control byte", get, "HTTP/1.1 200 OK\r\nA: \x01\r\nContent-Length: 0\r\n\r\n", "502 http_protocol_error"},
	{"status 600", get, "HTTP/1.1 600 X\r\nContent-Length: 0\r\n\r\n", "502 http_protocol_error"},
	{"status 99", get, "HTTP/1.1 99 X\r\nContent-Length: 0\r\n\r\n", "502 http_protocol_error"},
	{"status 1000", get, "HTTP/1.1 1000 X\r\nContent-Length: 0\r\n\r\n", "502 http_protocol_error"},
	{"signed length", get, "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok", "502 http_protocol_error"},
	{"largest length", get, "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\nok", "200 Content-Length=9223372036854775807: ok cut"},
	{"chunked with HTTP/1.0", get, "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "502 http_protocol_error"},
	{"NUL", get, "HTTP/1.1 200 OK\r\nA: b\x00\r\nContent-Length: 0\r\n\r\n", "502 http_protocol_error"},
	{"large extensions", get, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n2;" + strings.Repeat("x", 5000) + "\r\nok\r\n0\r\n\r\n", "200 chunked: ok cut"},
	{"many extensions", get, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1;"+strings.Repeat("x", 1000)+"\r\na\r\n", 1000) + "0\r\n\r\n",
		"200 chunked: " + strings.Repeat("a", 16) + " cut"},
	{"LF in a trailer", get, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nA: b\nC: d\r\n\r\n", "200 chunked: ok cut"},
	{"large trailers", get, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nA: " + strings.Repeat("x", 70_000) + "\r\n\r\n", "200 chunked: ok cut"},
	{"lists Content-Length", get, "HTTP/1.1 200 OK\r\nConnection: content-length\r\nContent-Length: 2\r\n\r\nok", "200 Content-Length=2: ok"},
	{"many options", get, "HTTP/1.1 200 OK\r\nConnection: " + strings.Repeat("a,", 70) + "\r\nContent-Length: 2\r\n\r\nok", "502 http_protocol_error"},
	{"many options in a 1xx", get, "HTTP/1.1 103 Early Hints\r\nConnection: " + strings.Repeat("a,", 70) + "\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "200 Content-Length=2: ok"},
	{"large head", get, "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", 66000) + "\r\n\r\n", "502 http_response_header_section_size"},
	{"101 unasked", get, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", "502 http_upgrade_failed"},
	{"103", get, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "103 Link=x 200 Content-Length=2: ok"},
	{"102 twice", get, strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 2) + "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "102 102 200 Content-Length=2: ok"},
	{"100 unasked", get, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "200 Content-Length=2: ok"},
	{"too many 1xx", get, strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 17) + "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", strings.Repeat("103 ", 16) + "502 http_protocol_error"},
	{"1xx with a body", get, "HTTP/1.1 103 Early Hints\r\nContent-Length: 2\r\n\r\nok", "502 http_protocol_error"},
	{"103 for 1.0", "GET / HTTP/1.0\r\n\r\n", "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "200 Content-Length=2: ok"},
	{"trailers", "GET / HTTP/1.1\r\nHost: h\r\nTE: trailers\r\nConnection: TE\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: A\r\n\r\n2\r\nok\r\n0\r\nA: b\r\nC: d\r\n\r\n", "200 chunked Trailer: ok A=b C=d"},
	{"trailers, not announced", "GET / HTTP/1.1\r\nHost: h\r\nTE: trailers\r\nConnection: TE\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nA: b\r\nSet-Cookie: x\r\nX-Forwarded-For: y\r\n\r\n", "200 chunked: ok A=b"},
	{"trailers, not accepted", get,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: A\r\n\r\n2\r\nok\r\n0\r\nA: b\r\n\r\n", "200 chunked: ok"},
	{"Content-Length in a trailer", get, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nContent-Length: 2\r\n\r\n", "200 chunked: ok cut"},
}

// summary reads responses up to the final one.
func summary(c *servertest.Client, method string) string {
	var b strings.Builder
	for {
		res, err := http.ReadResponse(c.R, &http.Request{Method: method})
		if err != nil {
			return b.String() + err.Error()
		}
		fmt.Fprint(&b, res.StatusCode)
		if s := res.Header.Get("Proxy-Status"); s != "" {
			io.Copy(io.Discard, res.Body)
			return b.String() + " " + strings.TrimPrefix(s, "chert; error=")
		}
		if len(res.TransferEncoding) > 0 {
			b.WriteString(" chunked")
		}
		for _, name := range []string{"A", "Content-Length", "Content-Range", "Date", "Etag", "Link", "Server", "X", "Connection", "X-A", "Keep-Alive", "Proxy-Authenticate"} {
			v := res.Header.Get(name)
			if v == "" || name == "Date" && !strings.Contains(v, "1970") || name == "Connection" {
				continue
			}
			b.WriteString(" " + name + "=" + v)
		}
		if res.StatusCode < 200 {
			b.WriteByte(' ')
			continue
		}
		if len(res.Trailer) > 0 {
			b.WriteString(" Trailer")
		}
		body, err := io.ReadAll(res.Body)
		b.WriteString(": " + string(body))
		if err != nil {
			b.WriteString(" cut")
		}
		for _, name := range []string{"A", "C", "Set-Cookie", "X-Forwarded-For"} {
			if v := res.Trailer.Get(name); v != "" {
				b.WriteString(" " + name + "=" + v)
			}
		}
		return b.String()
	}
}

// TestCut10 tests the one framing in which the end of a body is that of the connection: it is
// reset.
func TestCut10(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		o := start(t, func(c *conn) {
			c.head()
			c.put("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n")
		})
		s := &setup{}
		client := s.start(t, e, o.addr()).Dial()
		client.Send("GET / HTTP/1.0\r\n\r\n")
		b, err := io.ReadAll(client.R)
		if err == nil {
			t.Errorf("the body ended as if it were whole: %q", b)
		}
	})
}

// TestUpgradeRequired: what a server says that it requires is passed on, and is an option of the connection (RFC 9110
// section 7.8).
func TestUpgradeRequired(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		o := start(t, each("HTTP/1.1 426 Upgrade Required\r\nConnection: upgrade\r\nUpgrade: x\r\nContent-Length: 0\r\n\r\n"))
		client := (&setup{}).start(t, e, o.addr()).Dial()
		for range 2 { // and the connection is kept
			client.Send(get)
			res, _ := client.Response("GET")
			if got := fmt.Sprint(res.StatusCode, res.Header["Upgrade"], res.Header["Connection"]); got != "426 [x] [Upgrade]" {
				t.Errorf("got %s", got)
			}
		}
	})
}

// TestPieces: each read is written at once, and heads of responses too.
func TestPieces(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		next := make(chan string, 4) // all of the pieces
		defer close(next)            // also when the test has failed
		o := start(t, func(c *conn) {
			c.head()
			for s := range next {
				c.put(s)
			}
		})
		s := &setup{}
		client := s.start(t, e, o.addr()).Dial()
		client.Send(get)
		next <- "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		client.Head()
		for _, piece := range []string{"a", "bc"} {
			next <- fmt.Sprintf("%x\r\n%s\r\n", len(piece), piece)
			client.Want(fmt.Sprintf("%x\r\n%s\r\n", len(piece), piece))
		}
		next <- "0\r\n\r\n"
		client.Want("0\r\n\r\n")
	})
}

// TestPrefixComesBack tests what a server says of its own paths.
func TestPrefixComesBack(t *testing.T) {
	for _, c := range []struct{ name, fields, want string }{
		{"all", "Location: /x?y\r\nContent-Location: http://h/z\r\nSet-Cookie: a=b; Path=/; Secure\r\n" +
			"Set-Cookie: c=d; path=/e/\r\nSet-Cookie: f=g\r\n",
			"[/api/x?y] [http://h/api/z] [a=b; Path=/api; Secure c=d; path=/api/e/ f=g]"},
		{"other hosts", "Location: http://hh/x\r\nContent-Location: //i/x\r\n", "[http://hh/x] [//i/x] []"},
		{"two", "Location: /x\r\nLocation: /y\r\n", "[/x /y] [] []"},
		{"relative", "Location: x\r\nContent-Location: https://h\r\nSet-Cookie: a=b; Path=x\r\n", "[x] [https://h/api] [a=b; Path=x]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			alike(t, func(t *testing.T, e chert.Engine) {
				o := start(t, each("HTTP/1.1 302 Found\r\n"+c.fields+"Content-Length: 0\r\n\r\n"))
				s := &setup{o: proxy.Options{StripPrefix: "/api"}}
				client := s.start(t, e, o.addr()).Dial()
				client.Send("GET /api/ HTTP/1.1\r\nHost: h\r\n\r\n")
				res, _ := client.Response("GET")
				got := fmt.Sprint(res.Header["Location"], res.Header["Content-Location"], res.Header["Set-Cookie"])
				if got = strings.ReplaceAll(got, "][", "] ["); got != c.want {
					t.Errorf("got %s, want %s", got, c.want)
				}
			})
		})
	}
}

// TestEdited: middleware changes the fields of a server's response, and those of the proxy's own, and leaves alone what
// frames them.
func TestEdited(t *testing.T) {
	headers := middleware.Must(middleware.Headers(&middleware.HeadersOptions{
		Set: map[string]string{"X-Set": "new", "Server": "", "Vary": "Origin"},
		Rules: []middleware.HeaderRule{
			{Status: []int{4}, Set: map[string]string{"X-Class": "4"}},
			{Add: map[string][]string{"Set-Cookie": {"c=3"}}, Remove: []string{"X-Gone"}},
		},
	}))
	const fields = "Server: s\r\nX-Set: old\r\nX-Gone: 1\r\nVary: Cookie\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nX-Empty:\r\n"
	for _, c := range []struct{ name, out, want string }{
		{"length", "HTTP/1.1 200 OK\r\n" + fields + "Content-Length: 2\r\n\r\nok",
			`200 map[Content-Length:[2] Set-Cookie:[a=1 b=2 c=3] Vary:[Cookie Origin] Via:[1.1 chert] X-Empty:[] X-Set:[new]] []ok`},
		{"chunks", "HTTP/1.1 404 No\r\n" + fields + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
			`404 map[Set-Cookie:[a=1 b=2 c=3] Vary:[Cookie Origin] Via:[1.1 chert] X-Class:[4] X-Empty:[] X-Set:[new]] [chunked]ok`},
		{"its own", "", `502 map[Set-Cookie:[c=3] Vary:[Origin] X-Set:[new]]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			alike(t, func(t *testing.T, e chert.Engine) {
				o := start(t, func(conn *conn) {
					if conn.head(); c.out != "" {
						conn.put(c.out)
						conn.wait(nil)
					}
				})
				s := &setup{}
				s.up.Retry.Off = true
				ts := engines.Start(t, &chert.Server{Engine: e, Handler: headers(s.handler(t, o.addr()))})
				client := ts.Dial()
				client.Send(get)
				res, body := client.Response("GET")
				if res.Header.Del("Date"); res.StatusCode == 502 { // what it says is another test's
					for _, name := range []string{"Content-Length", "Content-Type", "Proxy-Status", "X-Content-Type-Options", "Cache-Control"} {
						res.Header.Del(name)
					}
				}
				got := fmt.Sprint(res.StatusCode, res.Header, res.TransferEncoding, body)
				if !strings.HasPrefix(got, c.want) {
					t.Errorf("client received %q, want %q\n%s", got, c.want, s.log)
				}
			})
		})
	}
}
