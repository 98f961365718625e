package behave

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// describe describes everything in a request that must be the same as with
// net/http.
func describe(r *http.Request) string {
	body := "body"
	if r.Body == http.NoBody {
		body = "NoBody"
	}
	return fmt.Sprintf("%q %q %d %d %q uri=%q url=%#v\nheader=%#v\nlen=%d te=%q close=%v %s trailer=%#v form=%v post=%v multi=%v pattern=%q getbody=%v response=%v",
		r.Method, r.Proto, r.ProtoMajor, r.ProtoMinor, r.Host, r.RequestURI, *r.URL, r.Header, r.ContentLength,
		r.TransferEncoding, r.Close, body, r.Trailer, r.Form, r.PostForm, r.MultipartForm, r.Pattern, r.GetBody != nil, r.Response)
}

// reference describes a request as net/http's own parser reads it.
func reference(t *testing.T, raw string) string {
	t.Helper()
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(raw)))
	if err != nil {
		t.Fatalf("net/http refuses %q: %v", raw, err)
	}
	return describe(r)
}

// seen is a server whose handler describes its requests.
func seen(t *testing.T, e chert.Engine) (*engines.Server, <-chan string) {
	ch := make(chan string, 1)
	return engines.Start(t, &chert.Server{Engine: e, DisableGeneralOptionsHandler: true, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
		ch <- describe(r)
	})}), ch
}

// targets are well-formed and unusual.
var targets = []struct{ method, target, why string }{
	{"GET", "/", "the shortest"},
	{"GET", "/a/b/c", "plain"},
	{"GET", "/a/", "slash at the end"},
	{"GET", "//a//b", "two slashes are not an authority"},
	{"GET", "///", "nothing but slashes"},
	{"GET", "/.", "dots are not cleaned"},
	{"GET", "/./a/../b", "dot segments are not resolved"},
	{"GET", "/a%20b", "decoded in Path"},
	{"GET", "/a%2Fb", "RawPath is needed to tell"},
	{"GET", "/a%2fb", "the same in lower case"},
	{"GET", "/a%252Fb", "decoded once only"},
	{"GET", "/%41", "needless encoding"},
	{"GET", "/%7Ea", "unreserved, encoded"},
	{"GET", "/~a", "unreserved, plain"},
	{"GET", "/a%3Fb%23c", "encoded delimiters are path"},
	{"GET", "/a%00b", "an encoded NUL"},
	{"GET", "/%C3%A9", "UTF-8 encoded"},
	{"GET", "/%c3%a9", "the same in lower case"},
	{"GET", "/%E4", "not UTF-8"},
	{"GET", "/\u00e9", "UTF-8 raw"},
	{"GET", "/\xe4", "raw and not UTF-8"},
	{"GET", "/a+b", "plus is itself in a path"},
	{"GET", "/a%2Bb", "encoded plus"},
	{"GET", "/a:b", "colon"},
	{"GET", "/:80", "looks like a port"},
	{"GET", "/a@b", "at sign"},
	{"GET", "/a=b&c", "query characters in a path"},
	{"GET", "/a;b=1;c", "parameters"},
	{"GET", "/a,b", "comma"},
	{"GET", "/a$b", "dollar"},
	{"GET", "/a!b", "net/url encodes it"},
	{"GET", "/a'b(c)*", "more of these"},
	{"GET", "/a[b]", "brackets"},
	{"GET", "/a|b^c`d", "not in RFC 3986 at all"},
	{"GET", "/a\"b<c>{d}", "neither are these"},
	{"GET", "/a\\b", "backslash"},
	{"GET", "/a#b", "a fragment is no fragment here"},
	{"GET", "/http://x/", "a URL as a path"},
	{"GET", "/*", "not the asterisk form"},
	{"GET", "/a?", "ForceQuery"},
	{"GET", "/?", "ForceQuery on the root"},
	{"GET", "/a??", "an empty query that is none"},
	{"GET", "/a?x?y", "a question mark in the query"},
	{"GET", "/a?b?", "a question mark at the end"},
	{"GET", "/a?b=c&d=%20+e", "the query is not decoded"},
	{"GET", "/a?b=%zz", "nor checked"},
	{"GET", "/a?\u00e9", "raw UTF-8 in the query"},
	{"GET", "/a?b#c", "a fragment in the query"},
	{"GET", "/a?b;c", "semicolons"},
	{"GET", "/a%20b?c%20d", "encoded in both"},
	{"GET", "/" + strings.Repeat("long/", 400), "long"},
	{"GET", "/?" + strings.Repeat("long=&", 400), "long query"},
	{"GET", "http://other/p", "absolute: its host wins"},
	{"GET", "http://other", "no path at all"},
	{"GET", "http://other:81/p?q", "port and query"},
	{"GET", "http://other?q", "query without a path"},
	{"GET", "http://other/?", "ForceQuery in absolute form"},
	{"GET", "HTTP://Other/P", "case of the scheme"},
	{"GET", "https://other/a%2Fb", "another scheme, RawPath"},
	{"GET", "ftp://other/p", "an unknown scheme"},
	{"GET", "http://[::1]:81/p", "IPv6"},
	{"GET", "http://other//p", "two slashes after the host"},
	{"OPTIONS", "*", "asterisk"},
	{"OPTIONS", "/a", "OPTIONS with a path"},
	{"OPTIONS", "http://other", "OPTIONS for another server"},
	{"CONNECT", "other:443", "authority"},
	{"CONNECT", "[::1]:443", "authority, IPv6"},
	{"CONNECT", "/rpc?q", "net/rpc connects to a path"},
	{"get", "/a", "methods have case"},
	{"M-SEARCH", "/a", "any token is a method"},
	{"!#$%&'*+-.^_`|~", "/a", "any token indeed"},
}

func TestRequestTarget(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		ts, got := seen(t, e)
		c, slow := ts.Dial(), ts.Dial()
		for _, tt := range targets {
			raw := tt.method + " " + tt.target + " HTTP/1.1\r\nHost: h:80\r\n\r\n"
			want := reference(t, raw)
			c.Send(raw)
			if g := servertest.Await(t, got, "the handler"); g != want {
				t.Errorf("%s: %s %s:\ngot  %s\nwant %s", tt.why, tt.method, tt.target, g, want)
			}
			c.Response("GET")
			if len(raw) > 500 {
				continue
			}
			slow.SendSlowly(raw, 1)
			if g := servertest.Await(t, got, "the handler"); g != want {
				t.Errorf("%s: %s %s, byte by byte:\ngot  %s\nwant %s", tt.why, tt.method, tt.target, g, want)
			}
			slow.Response("GET")
		}
	})
}

// fieldSets are heads after the request line, with a body if there is one.
var fieldSets = []struct{ version, fields, body, why string }{
	{"1.1", "Host: h\r\n", "", "the least"},
	{"1.1", "hOsT: Example.COM:8080\r\n", "", "Host in any case, its value as it is"},
	{"1.1", "Host:\r\n", "", "an empty Host"},
	{"1.0", "", "", "1.0 needs no Host"},
	{"1.0", "Host: h\r\n", "", "but may have one"},
	{"1.7", "Host: h\r\n", "", "a minor version of the future"},
	{"1.1", "Host: h\r\naccept: */*\r\nx-request-ID: 1\r\nSEC-WEBSOCKET-KEY: k\r\netag: e\r\ndnt: 1\r\nWWW-authenticate: w\r\n", "", "canonical names"},
	{"1.1", "Host: h\r\nx!y#z: 1\r\n_under_score: 2\r\n1st: 3\r\na--b: 4\r\n-x: 5\r\nx-: 6\r\n|: 7\r\n", "", "odd names"},
	{"1.1", "Host: h\r\nA: 1\r\nB: 2\r\na: 3\r\nA: 2\r\nb: 1\r\n", "", "duplicates keep their order"},
	{"1.1", "Host: h\r\nCookie: a=1\r\nCookie: b=2\r\nCookie: a=1\r\n", "", "duplicates are not joined"},
	{"1.1", "Host: h\r\nA:\r\nB: \r\nC:\t \t\r\nA:\r\n", "", "empty values"},
	{"1.1", "Host: h\r\nA:x\r\nB:   x\t y  \r\nC:\tx\t\r\nD: a,b , c\r\n", "", "whitespace around and inside"},
	{"1.1", "Host: h\r\nA: \xff\xe4\u00e9\r\nB: \"q\\\"\"\r\nC: a:b:c\r\n", "", "any byte that is no control"},
	{"1.1", "Host: h\r\nPragma: no-cache\r\n", "", "becomes Cache-Control"},
	{"1.1", "Host: h\r\nPragma: no-cache\r\nCache-Control: max-age=1\r\n", "", "unless that is there"},
	{"1.1", "Host: h\r\nPragma: No-Cache\r\n", "", "or it is written otherwise"},
	{"1.1", "Host: h\r\nPragma: x\r\nPragma: no-cache\r\n", "", "or not first"},
	{"1.1", "Host: h\r\nConnection: close\r\n", "", "Close"},
	{"1.1", "Host: h\r\nConnection: keep-alive, Close\r\n", "", "Close in a list"},
	{"1.1", "Host: h\r\nConnection: x\r\nConnection: close\r\n", "", "Close in the second line"},
	{"1.1", "Host: h\r\nConnection: closed\r\n", "", "not Close"},
	{"1.0", "Connection: keep-alive\r\n", "", "1.0 kept"},
	{"1.0", "Connection: keep-alive, close\r\n", "", "1.0 undecided"},
	{"1.1", "Host: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n", "", "upgrade"},
	{"1.1", "Host: h\r\nContent-Length: 0\r\n", "", "a length of none"},
	{"1.1", "Host: h\r\nContent-Length: 3\r\n", "abc", "a length"},
	{"1.1", "Host: h\r\nContent-Length: 003\r\n", "abc", "leading zeros"},
	{"1.1", "Host: h\r\nTransfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n", "chunked"},
	{"1.1", "Host: h\r\ntransfer-encoding: Chunked\r\n", "0\r\n\r\n", "chunked in any case"},
	{"1.1", "Host: h\r\nTransfer-Encoding: chunked\r\nTrailer: a, X-Sum\r\nTrailer: b\r\n", "0\r\n\r\n", "declared trailers"},
	{"1.1", "Host: h\r\nTrailer: a\r\n", "", "trailers declared for nothing"},
	{"1.1", "Host: h\r\nExpect: 100-continue\r\n", "", "nothing to expect"},
	{"1.0", "Expect: 100-continue\r\n", "", "1.0 cannot expect"},
	{"1.1", "Host: h\r\nContent-Type: text/plain\r\nContent-Encoding: gzip\r\nTE: trailers\r\nKeep-Alive: 5\r\n", "", "left alone"},
	{"1.1", "Host: h\r\n" + strings.Repeat("X-Many: v\r\n", 100), "", "many of a name"},
	{"1.1", "Host: h\r\nX-Long: " + strings.Repeat("v", 9000) + "\r\n", "", "longer than a read"},
}

func TestRequestFields(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		ts, got := seen(t, e)
		for _, tt := range fieldSets {
			raw := "POST /a HTTP/" + tt.version + "\r\n" + tt.fields + "\r\n" + tt.body
			want := reference(t, raw)
			for _, slowly := range []bool{false, true} {
				c := ts.Dial()
				if slowly {
					c.SendSlowly(raw, max(1, len(raw)/100))
				} else {
					c.Send(raw)
				}
				if g := servertest.Await(t, got, "the handler"); g != want {
					t.Errorf("%s (slowly=%v): %q:\ngot  %s\nwant %s", tt.why, slowly, tt.fields, g, want)
				}
				c.Response("POST")
				c.Close()
			}
		}
	})
}

// Requests that net/http serves and chert refuses: DESIGN.md section 5 and RFC
// 9112 section 3.2.
func TestRequestTargetRefused(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		ts, got := seen(t, e)
		for _, tt := range []struct{ method, target, why string }{
			{"GET", "a", "not a form at all"},
			{"GET", "/a%zz", "malformed encoding"},
			{"GET", "/a%", "cut encoding"},
			{"GET", "http:///a", "an empty host"},
			{"GET", "http://user@other/a", "userinfo"},
			{"GET", "http:other", "no authority"},
			{"GET", "other:80", "authority is for CONNECT"},
			{"CONNECT", "other", "CONNECT without a port"},
			{"CONNECT", "other:0", "CONNECT to no port"},
			{"CONNECT", ":80", "CONNECT to no host"},
			{"CONNECT", "other:80/a", "CONNECT with a path"},
		} {
			for _, slowly := range []bool{false, true} {
				answer := ts.Exchange(tt.method+" "+tt.target+" HTTP/1.1\r\nHost: h\r\n\r\n", slowly)
				if !strings.HasPrefix(answer, "HTTP/1.1 400 ") || !strings.Contains(answer, "\r\nConnection: close\r\n") {
					t.Errorf("%s: %s %s: got %q", tt.why, tt.method, tt.target, answer)
				}
			}
		}
		select {
		case g := <-got:
			t.Errorf("the handler saw %s", g)
		default:
		}
	})
}

func TestRequestOptionsAsterisk(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		for _, tt := range []struct {
			disabled     bool
			lines, path  string
			length, body string
			why          string
		}{
			{false, "", "*", "0", "", "answered by the server"},
			{false, "Content-Length: 4\r\n", "*", "0", "", "a little body is read"},
			{false, "", "/", "7", "handler", "a path is the handler's"},
			{true, "", "*", "7", "handler", "the handler wants it"},
		} {
			ts := engines.Start(t, &chert.Server{Engine: e, DisableGeneralOptionsHandler: tt.disabled, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
				w.Write([]byte("handler"))
			})})
			c := ts.Dial()
			for range 2 { // the connection is kept
				c.Send("OPTIONS " + tt.path + " HTTP/1.1\r\nHost: h\r\n" + tt.lines + "\r\n")
				if tt.lines != "" {
					c.Send("body")
				}
				res, body := c.Response("OPTIONS")
				if res.StatusCode != 200 || res.Header.Get("Content-Length") != tt.length || body != tt.body {
					t.Errorf("%s: got %v %q", tt.why, res, body)
				}
			}
		}
	})
}

func TestRequestAddrs(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		type sight struct {
			remote string
			local  net.Addr
			server *http.Server
		}
		got := make(chan sight, 1)
		ts := engines.Start(t, &chert.Server{Engine: e, MaxHeaderBytes: 1 << 15, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
			server, _ := r.Context().Value(http.ServerContextKey).(*http.Server)
			got <- sight{r.RemoteAddr, local, server}
			if r.TLS != nil {
				t.Error("r.TLS is set")
			}
		})})
		for range 3 {
			c := ts.Dial()
			c.Get("/")
			s := servertest.Await(t, got, "the handler")
			if s.remote != c.LocalAddr().String() {
				t.Errorf("RemoteAddr is %q, want %q", s.remote, c.LocalAddr())
			}
			if _, ok := s.local.(*net.TCPAddr); !ok || s.local.String() != ts.ListenAddr || s.local.Network() != "tcp" {
				t.Errorf("LocalAddrContextKey gives %T %v, want %v", s.local, s.local, ts.ListenAddr)
			}
			if s.server == nil || s.server.Handler == nil || s.server.MaxHeaderBytes != 1<<15 {
				t.Errorf("ServerContextKey gives %+v", s.server)
			}
		}
	})
}

// Unusual requests that are served.
func TestOddRequests(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		mux := http.NewServeMux()
		mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { put(w, "mux") })
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Mux") != "" {
				mux.ServeHTTP(w, r)
				return
			}
			io.Copy(io.Discard, r.Body)
			fmt.Fprintf(w, "%s %s host=%q url=%q", r.Method, r.RequestURI, r.Host, r.URL)
		})})
		for _, tt := range []struct{ why, request, want string }{
			{"CONNECT without a Host", "CONNECT other:443 HTTP/1.1\r\n\r\n", `CONNECT other:443 host="other:443" url="//other:443"`},
			{"net/rpc's CONNECT, without a Host", "CONNECT /rpc HTTP/1.1\r\n\r\n", `CONNECT /rpc host="" url="/rpc"`},
			{"a bare IPv6 address", "GET / HTTP/1.1\r\nHost: ::1\r\n\r\n", `GET / host="::1" url="/"`},
			{"a longer one", "GET / HTTP/1.1\r\nHost: fe80::1:2\r\n\r\n", `GET / host="fe80::1:2" url="/"`},
			{"an asterisk", "GET * HTTP/1.1\r\nHost: h\r\n\r\n", `GET * host="h" url="*"`},
			{"an asterisk with a body", "POST * HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx", `POST * host="h" url="*"`},
			{"an asterisk for ServeMux", "GET * HTTP/1.1\r\nHost: h\r\nX-Mux: 1\r\n\r\n", ""},
			{"CRLF behind a body", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx\r\n", `POST / host="h" url="/"`},
			{"two", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx\r\n\r\n", `POST / host="h" url="/"`},
		} {
			for _, slowly := range []bool{false, true} {
				c := ts.Dial()
				if slowly {
					c.SendSlowly(tt.request, 1)
				} else {
					c.Send(tt.request)
				}
				res, body := c.Response("GET")
				if tt.want == "" {
					if res.StatusCode != 400 {
						t.Errorf("%s: got %v %q", tt.why, res.Status, body)
					}
					continue
				}
				if res.StatusCode != 200 || body != tt.want {
					t.Errorf("%s (slowly=%v): got %v %s, want %s", tt.why, slowly, res.Status, body, tt.want)
				}
				c.Get("/") // the connection is kept
			}
		}
	})
}
