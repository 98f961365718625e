package http3_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/quic-go/quic-go"

	"github.com/chert-http/chert"
	codec "github.com/chert-http/chert/internal/http3"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// This file has cases of quic-go's tests in its package http3, of version 0.65, under their names. Those
// tests call what is inside of it, so that they cannot be run on chert; the others that are of a server
// are run by suites. docs/suites.md has what is left out, and why.

// sees answers what the handler has of a request. Its body is read first: its end may come after the head.
func sees(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	var all []string
	for name, values := range r.Header {
		all = append(all, fmt.Sprintf("%s=%q", name, values))
	}
	slices.Sort(all)
	fmt.Fprintf(w, "%s %s|%s %s %d|%s|%s", r.Method, r.RequestURI, r.Proto, r.Host, r.ContentLength, body, strings.Join(all, " "))
}

// asked is a request's fields without the host, whose :scheme is https and whose :path is /foo.
var asked = []string{":method: GET", ":scheme: https", ":path: /foo"}

func host(more ...string) []string {
	return with(append([]string{":authority: quic-go.net"}, asked...), more...)
}

// to is host with another :path.
func to(path string) []string { return with(without(host(), ":path"), ":path: "+path) }

// connects is an extended CONNECT without the fields of a name.
func connects(path, protocol, omitted string) []string {
	return without([]string{":method: CONNECT", ":protocol: " + protocol, ":scheme: https", ":authority: quic-go.net", ":path: " + path}, omitted)
}

var quicGoHeaders = []struct {
	name   string
	fields []string
	want   string // a status that is no 200, or what the handler sees
}{
	{"TestRequestHeaderParsing/regular path", host("content-length: 3"), `GET /foo|HTTP/3.0 quic-go.net 3|abc|Content-Length=["3"]`},
	{"TestRequestHeaderParsing/path starting with //", with(to("//foo"), "content-length: 3"), `GET //foo|HTTP/3.0 quic-go.net 3|abc|Content-Length=["3"]`},
	// As net/http over HTTP/2; quic-go's server takes it for https.
	{"TestRequestHeaderParsing/upper-case scheme", append([]string{":scheme: HTTPS"}, without(host(), ":scheme")...), "400"},
	{"TestRequestHeaderParsingWithHostHeader", with(asked, "host: quic-go.net"), "GET /foo|HTTP/3.0 quic-go.net -1|abc|"},
	{"TestRequestHeadersContentLength/no content length", host(), "GET /foo|HTTP/3.0 quic-go.net -1|abc|"},
	{"TestRequestHeadersContentLengthValidation/negative content length", host("content-length: -42"), "400"},
	{"TestRequestHeadersContentLengthValidation/multiple differing content lengths", host("content-length: 42", "content-length: 1337"), "400"},

	{"TestRequestHeadersValidation/upper-case field name", host("Content-Length: 3"), "400"},
	{"TestRequestHeadersValidation/unknown pseudo header", append([]string{":foo: bar"}, host()...), "400"},
	{"TestRequestHeadersValidation/pseudo header after regular header", with(asked, "content-length: 3", ":authority: quic-go.net"), "400"},
	{"TestRequestHeadersValidation/invalid field name", host("@: 42"), "400"},
	{"TestRequestHeadersValidation/invalid field value", host("content: \n"), "400"},
	{"TestRequestHeadersValidation/:status header field", append([]string{":status: 404"}, host()...), "400"},
	{"TestRequestHeadersValidation/missing :path", without(host(), ":path"), "400"},
	{"TestRequestHeadersValidation/missing :authority", asked, "400"},
	{"TestRequestHeadersValidation/missing :method", without(host(), ":method"), "400"},
	{"TestRequestHeadersValidation/mismatching :authority and Host header field", host("host: example.com"), "400"},
	{"TestRequestHeadersValidation/empty :authority and non-empty Host header field", with(asked, ":authority: ", "host: example.com"), "400"},
	{"TestRequestHeadersValidation/duplicate Host header field", with(asked, "host: quic-go.net", "host: quic-go.net"), "400"},
	{"TestRequestHeadersValidation/Host header field with authority-less scheme",
		[]string{":method: GET", ":scheme: urn", ":path: /", "host: example.com"}, "400"},
	{"TestRequestHeadersValidation/invalid :method", with(without(host(), ":method"), ":method: GET POST"), "400"},
	{"TestRequestHeadersValidation/duplicate :path", append([]string{":path: "}, host()...), "400"},
	{"TestRequestHeadersValidation/duplicate :authority", append([]string{":authority: "}, host()...), "400"},
	{"TestRequestHeadersValidation/duplicate :method", append([]string{":method: "}, host()...), "400"},
	{"TestRequestHeadersValidation/invalid :protocol", with(host(), ":protocol: connect-udp"), "400"},
	{"TestRequestHeadersValidation/empty :protocol", with(host(), ":protocol: "), "400"},
	{"TestRequestHeadersValidation/invalid :path", to("invalid path"), "400"},
	{"TestRequestHeadersValidation/absolute URI in :path", to("https://attacker.example/foo"), "400"},
	{"TestRequestHeadersValidation/absolute URI in :path for Extended CONNECT", connects("https://attacker.example/foo", "webtransport", "-"), "400"},
	// As net/http, over HTTP/1 too: it is the handler's to refuse. quic-go's server answers 400.
	{"TestRequestHeadersValidation/asterisk-form for non-OPTIONS request", to("*"), "GET *|HTTP/3.0 quic-go.net -1|abc|"},
	{"TestRequestHeadersValidation/asterisk-form for Extended CONNECT", connects("*", "webtransport", "-"),
		`CONNECT *|HTTP/3.0 quic-go.net -1|abc|:protocol=["webtransport"]`},
	{"TestRequestHeadersValidation/userinfo in :authority", with(asked, ":authority: user@quic-go.net"), "400"},

	{"TestCookieHeader", host("cookie: cookie1=foobar1", "cookie: cookie2=foobar2"),
		`GET /foo|HTTP/3.0 quic-go.net -1|abc|Cookie=["cookie1=foobar1; cookie2=foobar2"]`},
	{"TestHeadersConcatenation", host("cache-control: max-age=0", "duplicate-header: 1", "duplicate-header: 2"),
		`GET /foo|HTTP/3.0 quic-go.net -1|abc|Cache-Control=["max-age=0"] Duplicate-Header=["1" "2"]`},

	{"TestRequestHeadersConnect", []string{":authority: quic-go.net:443", ":method: CONNECT"}, "CONNECT quic-go.net:443|HTTP/3.0 quic-go.net:443 -1|abc|"},
	{"TestRequestHeadersConnectValidation/missing :authority", []string{":method: CONNECT"}, "400"},
	{"TestRequestHeadersConnectValidation/:scheme set", []string{":scheme: https", ":authority: quic-go.net:443", ":method: CONNECT"}, "400"},
	{"TestRequestHeadersConnectValidation/:path set", []string{":path: /foo", ":authority: quic-go.net:443", ":method: CONNECT"}, "400"},
	{"TestRequestHeadersConnectValidation/empty :path", []string{":path: ", ":authority: quic-go.net", ":method: CONNECT"}, "400"},
	{"TestRequestHeadersConnectValidation/empty :scheme", []string{":scheme: ", ":authority: quic-go.net", ":method: CONNECT"}, "400"},
	{"TestRequestHeadersExtendedConnect", connects("/foo?val=1337", "webtransport", "-"),
		`CONNECT /foo?val=1337|HTTP/3.0 quic-go.net -1|abc|:protocol=["webtransport"]`},
	{"TestRequestHeadersExtendedConnectRequestValidation", connects("/foo", "webtransport", ":scheme"), "400"},
	// As net/http over HTTP/2: the handler knows which protocols there are. quic-go's server answers 400.
	{"TestRequestHeadersExtendedConnectInvalidProtocol", connects("/foo", "HTTP/3.0", "-"), `CONNECT /foo|HTTP/3.0 quic-go.net -1|abc|:protocol=["HTTP/3.0"]`},
}

func TestQUICGoHeaders(t *testing.T) {
	t.Parallel()
	s := serve(t, &chert.Server{Handler: hf(sees), ExtendedConnect: true})
	for _, tt := range quicGoHeaders {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := s.at(t).raw().open(true, headers(tt.fields...), data("abc")).read()
			if got := a.ending(); got != "200" && got != tt.want || got == "200" && a.body != tt.want {
				t.Errorf("%s %s, want %s", got, a.body, tt.want)
			}
		})
	}
}

// quicGoResponses are of TestResponseWriter*: what a handler writes and what comes.
var quicGoResponses = []struct {
	name    string
	write   func(w http.ResponseWriter) error
	status  string
	fields  string // without date, in order of their names
	interim string
	body    string
	trailer string
}{
	{name: "TestResponseWriterInvalidStatus", status: "200", body: "invalid WriteHeader code 99;invalid WriteHeader code 1000;",
		fields: "content-length: 58,content-type: text/plain; charset=utf-8",
		write: func(w http.ResponseWriter) error {
			said := ""
			for _, status := range []int{99, 1000} {
				func() {
					defer func() { said += fmt.Sprint(recover(), ";") }()
					w.WriteHeader(status)
				}()
			}
			_, err := io.WriteString(w, said)
			return err
		}},
	// Cookies that are set after WriteHeader are not sent, as by net/http; quic-go's server sends them.
	{name: "TestResponseWriterHeader", status: "418", body: "foobar",
		fields: `content-length: 6,content-type: text/plain; charset=utf-8,priority: u=0,set-cookie: foo=bar,set-cookie: baz="lorem ipsum"`,
		write: func(w http.ResponseWriter) error {
			w.Header().Set("Priority", "u=0")
			http.SetCookie(w, &http.Cookie{Name: "foo", Value: "bar"})
			http.SetCookie(w, &http.Cookie{Name: "baz", Value: "lorem ipsum"})
			w.WriteHeader(http.StatusTeapot)
			w.WriteHeader(http.StatusInternalServerError)
			http.SetCookie(w, &http.Cookie{Name: "late", Value: "bar"})
			_, err := io.WriteString(w, "foobar")
			return err
		}},
	{name: "TestResponseWriterDataWithoutHeader", status: "200", body: "foobar", fields: "content-length: 6,content-type: text/plain; charset=utf-8",
		write: func(w http.ResponseWriter) error { _, err := io.WriteString(w, "foobar"); return err }},
	{name: "TestResponseWriterDataStatusWithoutBody", status: "304", write: func(w http.ResponseWriter) error {
		w.WriteHeader(http.StatusNotModified)
		if n, err := io.WriteString(w, "foobar"); n != 0 || err != http.ErrBodyNotAllowed {
			return fmt.Errorf("%d, %v", n, err)
		}
		return nil
	}},
	{name: "TestResponseWriterContentTypeSniffing/no content type", status: "200", body: "<html></html>",
		fields: "content-length: 13,content-type: text/html; charset=utf-8", write: page("", "")},
	{name: "TestResponseWriterContentTypeSniffing/explicit content type", status: "200", body: "<html></html>",
		fields: "content-length: 13,content-type: text/plain", write: page("Content-Type", "text/plain")},
	{name: "TestResponseWriterContentTypeSniffing/with content encoding", status: "200", body: "<html></html>",
		fields: "content-encoding: gzip,content-length: 13", write: page("Content-Encoding", "gzip")},
	{name: "TestResponseWriterEarlyHints", status: "200", body: "foobar",
		interim: ":status: 103,link: </style.css>; rel=preload; as=style,link: </script.js>; rel=preload; as=script",
		fields:  "content-length: 6,content-type: text/plain; charset=utf-8,link: </style.css>; rel=preload; as=style,link: </script.js>; rel=preload; as=script",
		write: func(w http.ResponseWriter) error {
			w.Header().Add("Link", "</style.css>; rel=preload; as=style")
			w.Header().Add("Link", "</script.js>; rel=preload; as=script")
			w.WriteHeader(http.StatusEarlyHints)
			_, err := io.WriteString(w, "foobar")
			return err
		}},
	{name: "TestResponseWriterTrailers", status: "200", body: "foobar", trailer: "key: value,lorem: ipsum",
		fields: "content-type: text/plain; charset=utf-8,trailer: key, Content-Length",
		write: func(w http.ResponseWriter) error {
			w.Header().Add("Trailer", "key, Content-Length")
			_, err := io.WriteString(w, "foobar")
			w.(http.Flusher).Flush()
			w.Header().Set("key", "value")
			w.Header().Set("foo", "bar")
			w.Header().Set(http.TrailerPrefix+"lorem", "ipsum")
			w.Header().Set("Content-Length", "999")
			return err
		}},
}

// page writes a page with a field, if it has a name.
func page(name, value string) func(http.ResponseWriter) error {
	return func(w http.ResponseWriter) error {
		if name != "" {
			w.Header().Set(name, value)
		}
		_, err := io.WriteString(w, "<html></html>")
		return err
	}
}

func TestQUICGoResponses(t *testing.T) {
	t.Parallel()
	list := func(fields []string) string {
		fields = slices.DeleteFunc(slices.Clone(fields), func(f string) bool {
			return strings.HasPrefix(f, "date: ") || strings.HasPrefix(f, ":status: ") && f != ":status: 103"
		})
		slices.SortStableFunc(fields, func(a, b string) int {
			return strings.Compare(strings.SplitN(a, ": ", 2)[0], strings.SplitN(b, ": ", 2)[0])
		})
		return strings.Join(fields, ",")
	}
	for _, tt := range quicGoResponses {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			result := make(chan error, 1)
			c := serve(t, &chert.Server{Handler: hf(func(w http.ResponseWriter, _ *http.Request) { result <- tt.write(w) })}).raw()
			a := c.get("/")
			if err := servertest.Await(t, result, "the handler"); err != nil {
				t.Error(err)
			}
			if a.ending() != tt.status || list(a.fields) != tt.fields || list(a.interim) != tt.interim || a.body != tt.body || list(a.trailer) != tt.trailer {
				t.Errorf("%+v", a)
			}
		})
	}
}

// How streams are ended that end before their requests, or that are of no known type.
func TestQUICGoStreams(t *testing.T) {
	t.Parallel()
	s := serve(t, &chert.Server{Handler: hf(hello)})
	t.Run("TestServerStreamResetByClient", func(t *testing.T) {
		t.Parallel()
		c := s.at(t).raw()
		for _, sent := range [][]byte{nil, {1}, headers(get...)[:9]} { // RFC 9114 section 4.1
			e := c.open(false, sent)
			e.CancelWrite(quic.StreamErrorCode(codec.NoError))
			if got := e.read().ending(); got != "RESET H3_REQUEST_INCOMPLETE" {
				t.Errorf("after %d bytes: %s", len(sent), got)
			}
		}
		if got := c.get("/").ending(); got != "200" {
			t.Errorf("another: %s", got)
		}
	})
	t.Run("TestConnResetUnknownUniStream", func(t *testing.T) {
		t.Parallel()
		c := s.at(t).raw()
		str := c.uni(0x1337, []byte("x"))
		servertest.WaitDone(t, str.Context(), "the stream is stopped")
		if _, err := str.Write([]byte("x")); ending(err) != "RESET H3_STREAM_CREATION_ERROR" {
			t.Errorf("%v", err)
		}
	})
}
