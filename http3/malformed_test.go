package http3_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/chert-http/chert"
	codec "github.com/chert-http/chert/internal/http3"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// reads answers what a body is.
func reads(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		panic(http.ErrAbortHandler)
	}
	io.WriteString(w, "read")
}

// slowly writes p byte by byte, each in a frame of QUIC's or more.
func slowly(c *raw, end bool, p []byte) *exchange {
	e := c.open(false)
	for i := range p {
		if e.Stream == nil {
			return e
		}
		if _, err := e.Write(p[i : i+1]); err != nil {
			break
		}
	}
	if end {
		e.Close()
	}
	return e
}

func join(parts ...[]byte) (all []byte) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// Requests as they must not be, and some as they may, with what comes of them: a status, or the
// code that ends the stream or the connection (RFC 9114 sections 4.1 and 8).
var requests = []struct {
	name string
	p    []byte
	want string
}{
	// As they may be.
	{"plain", headers(get...), "200"},
	{"Host for :authority", headers(with(without(get, ":authority"), "host: example.com")...), "200"},
	{"both", headers(with(get, "host: example.com")...), "200"},
	{"an address", headers(with(without(get, ":authority"), ":authority: [::1]:443")...), "200"},
	{"an address without brackets", headers(with(without(get, ":authority"), ":authority: ::1")...), "200"},
	{"* of OPTIONS", headers(":method: OPTIONS", ":scheme: https", ":authority: h", ":path: *"), "200"},
	{"te: trailers", headers(with(get, "te: trailers")...), "200"},
	{"te in another case", headers(with(get, "te: Trailers")...), "200"},
	{"te of nothing", headers(with(get, "te: ")...), "200"},
	{"an unknown method", headers(append([]string{":method: BREW"}, get[1:]...)...), "200"},
	{"body with a length", join(headers(with(post, "content-length: 5")...), data("he"), data("llo")), "200"},
	{"body without one", join(headers(post...), data("he"), data("llo")), "200"},
	{"trailers", join(headers(post...), data("x"), headers("a: b")), "200"},
	{"trailers without a body", join(headers(post...), headers("a: b")), "200"},
	{"unknown frames around", join(frame(0x21, []byte("grease")), headers(post...), frame(0x40, nil), data("x"),
		frame(0x1f*7+0x21, []byte("more")), headers("a: b"), frame(0x21, []byte("after"))), "200"},
	{"empty DATA", join(headers(post...), data(""), data("x"), data("")), "200"},
	{"long integers", join([]byte{0xc0, 0, 0, 0, 0, 0, 0, 1, 0x80, 0, 0, byte(len(fields(get...)))}, fields(get...)), "200"},

	// Pseudo-fields (section 4.3).
	{"no :method", headers(without(get, ":method")...), "400"},
	{"no :scheme", headers(without(get, ":scheme")...), "400"},
	{"no :path", headers(without(get, ":path")...), "400"},
	{"no host", headers(without(get, ":authority")...), "400"},
	{"empty :authority", headers(with(without(get, ":authority"), ":authority: ")...), "400"},
	{"empty :authority beside Host", headers(with(without(get, ":authority"), ":authority: ", "host: example.com")...), "400"},
	{"empty Host", headers(with(without(get, ":authority"), "host: ")...), "400"},
	{"two hosts", headers(with(get, "host: example.org")...), "400"},
	{"userinfo", headers(with(without(get, ":authority"), ":authority: me@example.com")...), "400"},
	{"an open bracket", headers(with(without(get, ":authority"), ":authority: [::1")...), "400"},
	{"two colons", headers(with(without(get, ":authority"), ":authority: a:1:2")...), "400"},
	{"a port that is none", headers(with(without(get, ":authority"), "host: a:b")...), "400"},
	{"a host with a half escape", headers(with(without(get, ":authority"), ":authority: a%2")...), "400"},
	{"a host beyond ASCII", headers(with(without(get, ":authority"), ":authority: b\xc3\xbc")...), "400"},
	{"empty :path", headers(path(get, "")...), "400"},
	{":path without a slash", headers(path(get, "a")...), "400"},
	{":path with a fragment", headers(path(get, "/#a")...), "400"},
	{":method twice", headers(with(get, ":method: GET")...), "400"},
	{":path twice", headers(with(get, ":path: /")...), "400"},
	{":status", headers(with(get, ":status: 200")...), "400"},
	{"an unknown one", headers(with(get, ":what: ever")...), "400"},
	{"after a field", headers(":method: GET", ":scheme: https", "a: b", ":authority: h", ":path: /"), "400"},
	{"in trailers", join(headers(post...), data("x"), headers(":path: /")), "RESET H3_MESSAGE_ERROR"},
	{"a method with a space", headers(append([]string{":method: G ET"}, get[1:]...)...), "400"},
	{"another scheme", headers(":method: GET", ":scheme: ftp", ":authority: h", ":path: /"), "400"},
	{"CONNECT with :path", headers(":method: CONNECT", ":authority: h:1", ":path: /", ":scheme: https"), "400"},
	{"CONNECT without :authority", headers(":method: CONNECT"), "400"},
	{":protocol that is off", headers(":method: CONNECT", ":protocol: websocket", ":scheme: https", ":authority: h", ":path: /"), "400"},
	{":protocol of GET", headers(with(get, ":protocol: websocket")...), "400"},

	// Fields (section 4.2).
	{"upper case", headers(with(get, "Aa: b")...), "400"},
	{"upper case in trailers", join(headers(post...), headers("Aa: b")), "RESET H3_MESSAGE_ERROR"},
	{"connection in trailers", join(headers(post...), data("x"), headers("connection: close")), "RESET H3_MESSAGE_ERROR"},
	{"a name with a space", headers(with(get, "a b: c")...), "400"},
	{"an empty name", join(frame(codec.FrameHeaders, append(fields(get...), 0x20, 0x01, 'x'))), "400"},
	{"a value with LF", headers(with(get, "a: b\nc: d")...), "400"},
	{"a value with NUL", headers(with(get, "a: b\x00")...), "400"},
	{"connection", headers(with(get, "connection: close")...), "400"},
	{"keep-alive", headers(with(get, "keep-alive: 5")...), "400"},
	{"proxy-connection", headers(with(get, "proxy-connection: a")...), "400"},
	{"transfer-encoding", headers(with(get, "transfer-encoding: chunked")...), "400"},
	{"upgrade", headers(with(get, "upgrade: websocket")...), "400"},
	{"te", headers(with(get, "te: gzip")...), "400"},
	{"te of two values", headers(with(get, "te: trailers, gzip")...), "400"},
	{"too large", headers(with(get, "a: "+strings.Repeat("b", 9000))...), "431"},
	{"too many", headers(with(get, strings.Split(strings.Repeat("a: b|", 200)+"c: d", "|")...)...), "431"},
	{"trailers too large", join(headers(post...), headers("a: "+strings.Repeat("b", 9000))), "RESET H3_MESSAGE_ERROR"},

	// Content-Length (section 4.1.2).
	{"too little", join(headers(with(post, "content-length: 6")...), data("hello")), "RESET H3_MESSAGE_ERROR"},
	{"too much", join(headers(with(post, "content-length: 4")...), data("hello")), "RESET H3_MESSAGE_ERROR"},
	{"too much by another frame", join(headers(with(post, "content-length: 5")...), data("hello"), data("x")), "RESET H3_MESSAGE_ERROR"},
	{"none of it", headers(with(post, "content-length: 5")...), "400"},
	{"none of it but trailers", join(headers(with(post, "content-length: 5")...), headers("a: b")), "RESET H3_MESSAGE_ERROR"},
	{"0 and some", join(headers(with(post, "content-length: 0")...), data("x")), "RESET H3_MESSAGE_ERROR"},
	{"two lengths", headers(with(post, "content-length: 0", "content-length: 0")...), "400"},
	{"no number", headers(with(post, "content-length: +1")...), "400"},

	// Frames (sections 4.1, 7.1, 7.2, and 7.2.8).
	{"nothing", nil, "RESET H3_REQUEST_INCOMPLETE"},
	{"unknown frames alone", frame(0x21, []byte("x")), "RESET H3_REQUEST_INCOMPLETE"},
	{"DATA first", data("x"), "CLOSE H3_FRAME_UNEXPECTED"},
	{"empty DATA first", data(""), "CLOSE H3_FRAME_UNEXPECTED"},
	{"HEADERS after trailers", join(headers(post...), headers("a: b"), headers("c: d")), "CLOSE H3_FRAME_UNEXPECTED"},
	{"DATA after trailers", join(headers(post...), headers("a: b"), data("x")), "CLOSE H3_FRAME_UNEXPECTED"},
	{"empty DATA after trailers", join(headers(post...), headers("a: b"), data("")), "CLOSE H3_FRAME_UNEXPECTED"},
	{"within a frame's type", []byte{0xc0}, "CLOSE H3_FRAME_ERROR"},
	{"within a frame's length", []byte{1, 0x40}, "CLOSE H3_FRAME_ERROR"},
	{"within HEADERS", headers(get...)[:9], "CLOSE H3_FRAME_ERROR"},
	{"within DATA", join(headers(post...), data("hello")[:4]), "CLOSE H3_FRAME_ERROR"},
	{"within an unknown frame", join(headers(post...), frame(0x21, []byte("x"))[:2]), "CLOSE H3_FRAME_ERROR"},
	{"SETTINGS", frame(codec.FrameSettings, nil), "CLOSE H3_FRAME_UNEXPECTED"},
	{"SETTINGS in a body", join(headers(post...), frame(codec.FrameSettings, nil)), "CLOSE H3_FRAME_UNEXPECTED"},
	{"GOAWAY", frame(codec.FrameGoAway, []byte{0}), "CLOSE H3_FRAME_UNEXPECTED"},
	{"MAX_PUSH_ID", frame(codec.FrameMaxPushID, []byte{0}), "CLOSE H3_FRAME_UNEXPECTED"},
	{"CANCEL_PUSH", frame(codec.FrameCancelPush, []byte{0}), "CLOSE H3_FRAME_UNEXPECTED"},
	{"PUSH_PROMISE", frame(codec.FramePushPromise, []byte{0}), "CLOSE H3_FRAME_UNEXPECTED"},
	{"PRIORITY_UPDATE", frame(codec.FramePriorityUpdate, []byte{0}), "CLOSE H3_FRAME_UNEXPECTED"},
	{"PRIORITY of HTTP/2", frame(0x2, nil), "CLOSE H3_FRAME_UNEXPECTED"},
	{"PING of HTTP/2", frame(0x6, nil), "CLOSE H3_FRAME_UNEXPECTED"},
	{"WINDOW_UPDATE of HTTP/2", frame(0x8, nil), "CLOSE H3_FRAME_UNEXPECTED"},
	{"CONTINUATION of HTTP/2", frame(0x9, nil), "CLOSE H3_FRAME_UNEXPECTED"},

	// QPACK (RFC 9204 sections 2.2.3, 3.1, and 4.5).
	{"no section", frame(codec.FrameHeaders, nil), "CLOSE QPACK_DECOMPRESSION_FAILED"},
	{"a required insert count", frame(codec.FrameHeaders, []byte{2, 0, 0xd1}), "CLOSE QPACK_DECOMPRESSION_FAILED"},
	{"a negative base", frame(codec.FrameHeaders, []byte{0, 0x80, 0xd1}), "CLOSE QPACK_DECOMPRESSION_FAILED"},
	{"an index that is not in the static table", frame(codec.FrameHeaders, []byte{0, 0, 0xff, 0x24}), "CLOSE QPACK_DECOMPRESSION_FAILED"},
	{"a name that is not in it", frame(codec.FrameHeaders, []byte{0, 0, 0x5f, 0x54, 1, 'x'}), "CLOSE QPACK_DECOMPRESSION_FAILED"},
	{"a field of the dynamic table", frame(codec.FrameHeaders, []byte{0, 0, 0x80}), "CLOSE QPACK_DECOMPRESSION_FAILED"},
	{"a post-base index", frame(codec.FrameHeaders, []byte{0, 0, 0x10}), "CLOSE QPACK_DECOMPRESSION_FAILED"},
	{"a name of the dynamic table", frame(codec.FrameHeaders, []byte{0, 0, 0x40, 1, 'x'}), "CLOSE QPACK_DECOMPRESSION_FAILED"},
	{"a section that is cut", frame(codec.FrameHeaders, fields(get...)[:20]), "CLOSE QPACK_DECOMPRESSION_FAILED"},
	{"bad Huffman", frame(codec.FrameHeaders, []byte{0, 0, 0x28 | 1, 0, 1, 'x'}), "CLOSE QPACK_DECOMPRESSION_FAILED"},
	{"in trailers", join(headers(post...), frame(codec.FrameHeaders, []byte{2, 0})), "CLOSE QPACK_DECOMPRESSION_FAILED"},
}

func TestRequests(t *testing.T) {
	t.Parallel()
	s := serve(t, &chert.Server{Handler: hf(reads), MaxHeaderBytes: 8000, MaxHeaderFields: 100})
	for _, tt := range requests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := s.at(t)
			c := s.raw()
			if got := c.do(tt.p).ending(); got != tt.want {
				t.Errorf("whole: %s, want %s", got, tt.want)
			}
			if strings.HasPrefix(tt.want, "CLOSE") {
				c = s.raw()
			}
			if got := slowly(c, true, tt.p).read().ending(); got != tt.want {
				t.Errorf("byte by byte: %s, want %s", got, tt.want)
			}
			// An error of a stream is none of the connection.
			if strings.HasPrefix(tt.want, "CLOSE") {
				if got := c.ended(); got != tt.want {
					t.Errorf("the connection: %s, want %s", got, tt.want)
				}
			} else if got := c.get("/").ending(); got != "200" {
				t.Errorf("the next one: %s", got)
			}
		})
	}
}

// What is refused before its end is not waited for.
func TestRefusedEarly(t *testing.T) {
	t.Parallel()
	s := serve(t, &chert.Server{Handler: hf(reads), MaxHeaderBytes: 8000, MaxHeaderFields: 100})
	for _, tt := range requests {
		if strings.HasPrefix(tt.name, "within") || tt.want == "200" || strings.HasSuffix(tt.want, "INCOMPLETE") ||
			strings.HasPrefix(tt.name, "none of it") || tt.name == "too little" {
			continue // they may go on
		}
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := s.at(t).raw()
			e := c.open(false, tt.p)
			if got := e.read().ending(); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
			if strings.HasPrefix(tt.want, "CLOSE") {
				return
			}
			// The client is asked to send no more.
			want := "RESET H3_MESSAGE_ERROR"
			if tt.want == "431" {
				want = "RESET H3_NO_ERROR"
			}
			<-e.Context().Done()
			if _, err := e.Write([]byte("x")); ending(err) != want {
				t.Errorf("what is sent meets %v, want %s", ending(err), want)
			}
		})
	}
}

// A client may send a request again that is rejected for its fields (RFC 9114 section 4.1.1), but not
// one whose handler runs when there is no room for its trailers.
func TestNoRoomForTrailers(t *testing.T) {
	t.Parallel()
	begun, release := make(chan bool, 100), make(chan bool)
	s := serve(t, &chert.Server{MaxHeaderBytes: 2048, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
		begun <- true
		if reads(w, r); r.Method == http.MethodGet {
			<-release
		}
	})})
	defer close(release)
	c := s.raw()
	e := c.open(false, headers(post...), data("x"))
	servertest.Await(t, begun, "the handler")
	ends := make(chan string, 100)
	for full := false; !full; {
		e := c.open(true, headers(with(get, "a: "+strings.Repeat("b", 1700))...))
		go func() { ends <- e.read().ending() }()
		select {
		case <-begun:
		case got := <-ends:
			if full = true; got != "RESET H3_REQUEST_REJECTED" {
				t.Fatal(got)
			}
		}
	}
	e.Write(headers("a: " + strings.Repeat("b", 1950)))
	e.Close()
	if got := e.read().ending(); got != "RESET H3_EXCESSIVE_LOAD" {
		t.Error(got)
	}
}
