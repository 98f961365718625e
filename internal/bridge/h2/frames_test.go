package h2_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/chert-http/chert"
)

func unhex(s string) []byte { return must(hex.DecodeString(strings.ReplaceAll(s, " ", ""))) }

// What is wrong with frames, and what becomes of the stream or the connection. The
// oracle's outcome is the second where it is another.
func TestErrors(t *testing.T) {
	t.Parallel()
	frame := func(s string) func(*raw) { return func(c *raw) { c.out.Write(unhex(s)) } }
	request := func(end bool, fields ...string) func(*raw) { return func(c *raw) { c.headers(1, end, fields...) } }
	then := func(all ...func(*raw)) func(*raw) {
		return func(c *raw) {
			for _, f := range all {
				f(c)
			}
		}
	}
	open := request(false, post...)
	hold := request(false, path(post, "/hold")...)
	const protocol, size, flow, closed, compression = "GOAWAY PROTOCOL_ERROR", "GOAWAY FRAME_SIZE_ERROR", "GOAWAY FLOW_CONTROL_ERROR", "GOAWAY STREAM_CLOSED", "GOAWAY COMPRESSION_ERROR"
	const malformed = "RST PROTOCOL_ERROR"
	for _, tt := range []struct {
		why  string
		send func(*raw)
		want string
	}{
		{"a request", request(true, get...), "200"},
		{"a request with a body", then(open, frame("000003 00 01 00000001 616263")), "200"},
		{"padding", then(open, frame("000005 00 09 00000001 01 616263 00")), "200"},
		{"padding alone", then(open, frame("000003 00 08 00000001 02 0000"), frame("000000 00 01 00000001")), "200"},
		{"priority", then(frame("000005 02 00 00000001 0000000010"), request(true, get...)), "200"},
		{"priority that depends on itself", then(open, frame("000005 02 00 00000001 0000000110")), malformed},
		{"priority of 4 bytes", then(open, frame("000004 02 00 00000001 00000000")), "RST FRAME_SIZE_ERROR"},
		{"priority of 4 bytes on an idle stream", frame("000004 02 00 00000005 00000000"), size},
		{"priority of an idle stream that depends on itself", frame("000005 02 00 00000005 0000000510"), protocol},
		{"unknown frames", then(frame("000003 ff ff 00000001 010203"), request(true, get...)), "200"},
		{"unknown settings", then(frame("000006 04 00 00000000 777700000001"), request(true, get...)), "200"},
		{"the reserved bit", then(frame("000000 04 00 80000000"), request(true, get...)), "200"},

		{"DATA on stream 0", frame("000000 00 00 00000000"), protocol},
		{"DATA on an idle stream", frame("000000 00 00 00000005"), protocol},
		{"DATA after the end", then(hold, frame("000000 00 01 00000001 000001 00 00 00000001 61")), "RST STREAM_CLOSED"},
		{"too much padding", then(open, frame("000002 00 08 00000001 0200")), protocol},
		{"HEADERS on stream 0", frame("000000 01 05 00000000"), protocol},
		{"HEADERS on an even stream", func(c *raw) { c.headers(2, true, get...) }, protocol},
		{"HEADERS on a stream that was passed by", then(func(c *raw) { c.headers(5, true, get...) }, request(true, get...)), protocol},
		{"a frame that is too large", frame("ffffff 00 00 00000001"), size},
		{"RST on an idle stream", frame("000004 03 00 00000001 00000000"), protocol},
		{"RST on an even stream", then(func(c *raw) { c.headers(5, true, get...) }, frame("000004 03 00 00000002 00000000")), protocol},
		{"WINDOW_UPDATE on an even stream", then(func(c *raw) { c.headers(5, true, get...) }, frame("000004 08 00 00000002 00000001")), protocol},
		{"RST of 3 bytes", then(open, frame("000003 03 00 00000001 000000")), size},
		{"SETTINGS on a stream", frame("000000 04 00 00000001"), protocol},
		{"SETTINGS of 5 bytes", frame("000005 04 00 00000000 0000000000"), size},
		{"SETTINGS with an acknowledged payload", frame("000006 04 01 00000000 000300000001"), size},
		{"SETTINGS_ENABLE_PUSH of 2", frame("000006 04 00 00000000 000200000002"), protocol},
		{"SETTINGS_INITIAL_WINDOW_SIZE of 2^31", frame("000006 04 00 00000000 000480000000"), flow},
		{"SETTINGS_MAX_FRAME_SIZE of 16383", frame("000006 04 00 00000000 000500003fff"), protocol},
		{"PUSH_PROMISE", then(open, frame("000004 05 04 00000001 00000002")), protocol},
		{"PING on a stream", frame("000008 06 00 00000001 0000000000000000"), protocol},
		{"PING of 7 bytes", frame("000007 06 00 00000000 00000000000000"), size},
		{"GOAWAY on a stream", frame("000008 07 00 00000001 0000000000000000"), protocol},
		{"GOAWAY of 7 bytes", frame("000007 07 00 00000000 00000000000000"), size},
		{"WINDOW_UPDATE of 0", frame("000004 08 00 00000000 00000000"), protocol},
		{"WINDOW_UPDATE of 0 on a stream", then(open, frame("000004 08 00 00000001 00000000")), malformed},
		{"WINDOW_UPDATE beyond 2^31-1", frame("000004 08 00 00000000 7fffffff"), flow},
		{"WINDOW_UPDATE beyond 2^31-1 on a stream", then(open, frame("000004 08 00 00000001 7fffffff")), "RST FLOW_CONTROL_ERROR"},
		{"WINDOW_UPDATE on an idle stream", frame("000004 08 00 00000003 00000001"), protocol},
		{"SETTINGS that make a window overflow", then(open, frame("000004 08 00 00000001 7fff0000 000006 04 00 00000000 00047fffffff")), flow},
		{"CONTINUATION without HEADERS", frame("000000 09 04 00000001"), protocol},
		{"CONTINUATION of another stream", then(frame("000001 01 01 00000001 82 000000 09 04 00000003")), protocol},
		{"a PING within a header block", then(frame("000001 01 01 00000001 82 000008 06 00 00000000 0000000000000000")), protocol},
		{"an unknown frame within a header block", then(frame("000001 01 01 00000001 82 000000 ff 00 00000000")), protocol},
		{"a header block that is none", frame("000001 01 05 00000001 80"), compression},
		{"a table that is too large", frame("000004 01 05 00000001 3fe2ff03"), compression},

		{"no method", request(true, get[1:]...), malformed},
		{"no path", request(true, get[:3]...), malformed},
		{"no scheme", request(true, get[0], get[2], get[3]), malformed},
		{"an empty path", request(true, path(get, "")...), malformed},
		{"a path without a slash", request(true, path(get, "x")...), malformed},
		{"a path with a space", request(true, path(get, "/ HTTP/1.1")...), malformed},
		{"a path with a fragment", request(true, path(get, "/#a")...), malformed},
		{"an absolute target", request(true, path(get, "http://other/")...), malformed},
		{"a method with a space", request(true, with(get[1:], ":method: GET /x")...), malformed},
		{"two paths", request(true, with(get, ":path: /")...), malformed},
		{"a pseudo-field after a field", request(true, with(get[:3], "a: b", ":path: /")...), malformed},
		{"an unknown pseudo-field", request(true, with(get, ":version: 2")...), malformed},
		{":status", request(true, with(get, ":status: 200")...), malformed},
		{":protocol", request(true, with(get, ":protocol: websocket")...), malformed},
		{"userinfo", request(true, get[0], get[1], ":authority: a@b", get[3]), malformed},
		{"an open bracket in :authority", request(true, get[0], get[1], ":authority: [::1", get[3]), malformed},
		{"two colons in :authority", request(true, get[0], get[1], ":authority: a:1:2", get[3]), malformed},
		{"bytes beyond ASCII in :authority", request(true, get[0], get[1], ":authority: b\xc3\xbc", get[3]), malformed},
		{"a slash in :authority", request(true, get[0], get[1], ":authority: a/b", get[3]), malformed},
		{"Host that differs", request(true, with(get, "host: other")...), malformed},
		{"Host that does not", request(true, with(get, "host: EXAMPLE.com")...), "200"},
		{"Host alone", request(true, get[0], get[1], get[3], "host: example.com"), "200"},
		{"two Hosts", request(true, with(get, "host: example.com", "host: example.com")...), malformed},
		{"neither", request(true, get[0], get[1], get[3]), "200"},
		{"upper case", request(true, with(get, "A: b")...), malformed},
		{"connection", request(true, with(get, "connection: close")...), malformed},
		{"transfer-encoding", request(false, with(post, "transfer-encoding: chunked")...), malformed},
		{"te", request(true, with(get, "te: gzip")...), malformed},
		{"te: trailers", request(true, with(get, "te: trailers")...), "200"},
		{"CR LF in a value", request(true, with(get, "a: b\r\nx: y")...), malformed},
		{"NUL in a value", request(true, with(get, "a: \x00")...), malformed},
		{"space around a value", request(true, with(get, "a: \t b\t ")...), "200"},
		{"a space before a host", request(true, get[0], get[1], get[3], "host:  a"), malformed},
		{"a space before :authority", request(true, get[0], get[1], ":authority:  a", get[3]), malformed},
		{"a space after :scheme", request(true, get[0], ":scheme: http ", get[2], get[3]), malformed},
		{"a space after :method", request(true, ":method: GET ", get[1], get[2], get[3]), malformed},
		{"a space before :path", request(true, path(get, " /")...), malformed},
		{"a space before content-length", request(true, with(get, "content-length:  0")...), malformed},
		{"a space before transfer-encoding", request(false, with(post, "transfer-encoding:  chunked")...), malformed},
		{"a space before connection", request(true, with(get, "connection:  close")...), malformed},
		{"a space after a name", request(true, with(get, "a : b")...), malformed},
		{"a line end after a value", request(true, with(get, "a: b\r\n")...), malformed},
		{"a NUL before a value", request(true, with(get, "a: \x00 b")...), malformed},
		{"content-length that is none", request(true, with(get, "content-length: +1")...), malformed},
		{"content-length of nothing", request(false, with(post, "content-length:")...), malformed},
		{"content-length beyond 63 bits", request(false, with(post, "content-length: 9223372036854775808")...), malformed},
		{"two content-lengths", request(true, with(get, "content-length: 0", "content-length: 0")...), malformed},
		{"content-length without a body", request(true, with(get, "content-length: 1")...), malformed},
		{"content-length of 0", request(true, with(get, "content-length: 0")...), "200"},
		{"a body that is too long", then(request(false, with(post, "content-length: 2")...), frame("000003 00 01 00000001 616263")), malformed},
		{"a body that is too short", then(request(false, with(post, "content-length: 4")...), frame("000003 00 01 00000001 616263")), malformed},
		{"CONNECT with a path", request(true, ":method: CONNECT", ":authority: a:1", ":path: /"), malformed},
		{"CONNECT without an authority", request(true, ":method: CONNECT"), malformed},
		{"CONNECT", request(true, ":method: CONNECT", ":authority: a:1"), "200"},
		{"HEADERS after CONNECT", then(request(false, ":method: CONNECT", ":authority: a:1"), request(true, "a: b")), malformed},
		{"OPTIONS *", request(true, ":method: OPTIONS", ":scheme: http", ":authority: a", ":path: *"), "200"},
		{"GET *, as over HTTP/1", request(true, path(get, "*")...), "200"},
		{"trailers", then(open, request(true, "a: b")), "200"},
		{"trailers without an end", then(open, request(false, "a: b")), malformed},
		{"trailers with a pseudo-field", then(open, request(true, ":path: /")), malformed},
		{"trailers with a length", then(open, request(true, "content-length: 1")), malformed},
		{"trailers after the end", then(hold, frame("000000 00 01 00000001"), request(true, "a: b")), "RST STREAM_CLOSED"},
		{"keep-alive", request(true, with(get, "keep-alive: 5")...), malformed},
		{"proxy-connection", request(true, with(get, "proxy-connection: close")...), malformed},
		{"upgrade", request(true, with(get, "upgrade: h2c")...), malformed},
		{"te in another case", request(true, with(get, "te: Trailers")...), "200"},
		{"te of nothing", request(true, with(get, "te:")...), "200"},
		{"te of two values", request(true, with(get, "te: trailers, gzip")...), malformed},
		{"an empty name", frame("000006 01 05 00000001 828684 0000 00"), malformed},
		{"an empty method", request(true, with(get[1:], ":method:")...), malformed},
		{"an empty scheme", request(true, get[0], ":scheme:", get[2], get[3]), malformed},
		{"an empty :authority beside Host", request(true, get[0], get[1], ":authority:", get[3], "host: a"), malformed},
		{"CONNECT with a scheme", request(true, ":method: CONNECT", ":authority: a:1", ":scheme: http"), malformed},
		{":protocol of CONNECT, which is off", request(true, with(get[1:], ":method: CONNECT", ":protocol: websocket")...), malformed},
		{"upper case in trailers", then(open, request(true, "A: b")), malformed},
		{"connection in trailers", then(open, request(true, "connection: close")), malformed},
		{"te in trailers", then(open, request(true, "te: gzip")), malformed},
		{"a table of the size that is allowed", then(frame("000006 01 05 00000001 3fe11f 828684")), "200"},
		{"three table sizes", then(frame("000006 01 05 00000001 202020 828684")), "200"},
		{"a table size after a field", frame("000004 01 05 00000001 82208684"), compression},
		{"a table size at the end", frame("000004 01 05 00000001 82868420"), compression},
		{"a table size alone", frame("000001 01 05 00000001 20"), malformed},
		{"HEADERS after RST", then(open, frame("000004 03 00 00000001 00000008"), request(true, get...)), closed},
		{"DATA after RST", then(open, frame("000004 03 00 00000001 00000008 000001 00 00 00000001 61")), "RST STREAM_CLOSED"},
		{"WINDOW_UPDATE after RST", then(open, frame("000004 03 00 00000001 00000008 000004 08 00 00000001 00000001"),
			func(c *raw) { c.headers(3, true, "a: b") }, frame("000000 00 00 00000000")), protocol},
		{"more fields than allowed", request(true, with(get, strings.Split(strings.Repeat("a: b\n", 130), "\n")[:130]...)...), "431"},
		{"larger fields than allowed", request(true, with(get, "a: "+strings.Repeat("a", 65<<10))...), "GOAWAY FRAME_SIZE_ERROR"},
	} {
		t.Run(tt.why, func(t *testing.T) {
			t.Parallel()
			each(t, "oracle tls", func(t *testing.T, kind string) {
				// The body is awaited, so that what is wrong with it comes first.
				s := serve(t, kind, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
					if _, err := io.Copy(io.Discard, r.Body); err != nil {
						panic(http.ErrAbortHandler)
					}
					if r.URL.Path == "/hold" {
						<-r.Context().Done()
					}
					if r.URL.Path == "" || r.URL.Path == "/" || r.URL.Path == "*" {
						hello(w, r)
					}
				})})
				for _, step := range []int{0, 1} {
					c := s.raw()
					tt.send(c)
					p := bytes.Clone(c.out.Bytes())
					if step == 0 {
						c.send()
					} else {
						c.out.Reset()
						if len(p) > 2000 {
							continue
						}
						for i := range p {
							c.Write(p[i : i+1])
						}
					}
					if got := c.read(1).outcome(); got != tt.want {
						t.Errorf("%s, step %d", got, step)
					}
				}
			})
		})
	}
}

func TestPreface(t *testing.T) {
	t.Parallel()
	each(t, "oracle tls", func(t *testing.T, kind string) {
		only := new(http.Protocols)
		only.SetUnencryptedHTTP2(true)
		both := serve(t, kind, &chert.Server{Handler: hf(hello)})
		alone := serve(t, kind, &chert.Server{Handler: hf(hello), Protocols: only})
		for _, tt := range []struct {
			s          *running
			send, want string
		}{
			{both, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "HTTP/1.1 200 OK"},
			{both, "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n", "HTTP/1.1 "},
			{both, "PRI / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "HTTP/1.1 200 OK"},
			{both, http2.ClientPreface + "\x00\x00\x00\x06\x00\x00\x00\x00\x00", "\x00\x00\x24\x04"},
			{alone, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", ""},
			{alone, http2.ClientPreface + "\x00\x00\x08\x06\x00\x00\x00\x00\x00", "\x00\x00\x24\x04"},
		} {
			nc := tt.s.dial()
			for i := range len(tt.send) {
				if _, err := io.WriteString(nc, tt.send[i:i+1]); err != nil {
					break
				}
			}
			got, _ := io.ReadAll(nc)
			if !strings.HasPrefix(string(got), tt.want) || tt.want == "" && len(got) > 0 {
				t.Errorf("%q: %q, want %q", tt.send, got, tt.want)
			}
		}
	})
}

// Any bytes after the preface: the server does not fail, and others are served.
func FuzzConnection(f *testing.F) {
	f.Add(unhex("000005 01 05 00000001 8284868741"))
	f.Add(unhex("000004 01 05 00000001 82848687 000004 08 00 00000001 00000001"))
	f.Add(unhex("000004 01 04 00000001 83848687 000001 00 01 00000001 61"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := serve(t, "goroutines", &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			n, _ := io.Copy(io.Discard, r.Body)
			fmt.Fprint(w, n)
		})})
		c := s.raw()
		c.Write(b)
		c.Conn.(interface{ CloseWrite() error }).CloseWrite()
		io.Copy(io.Discard, c.Conn)
		if a := s.raw().get(1, "/"); a.outcome() != "200" {
			t.Errorf("another client is answered %s", a.outcome())
		}
	})
}

// A client that makes HPACK's table smaller is told, in the next header block, that the
// server's is small enough (RFC 9113 section 4.3.1): some decoders refuse a block without.
func TestTableSizeUpdate(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		for _, tt := range []struct {
			name     string
			settings []http2.Setting
			want     []int64 // what the first two blocks begin with; -1 for no update
		}{
			{"none", nil, []int64{-1, -1}},
			{"larger", []http2.Setting{{ID: http2.SettingHeaderTableSize, Val: 8192}}, []int64{-1, -1}},
			{"smaller", []http2.Setting{{ID: http2.SettingHeaderTableSize, Val: 100}}, []int64{0, -1}},
			{"none at all", []http2.Setting{{ID: http2.SettingHeaderTableSize, Val: 0}}, []int64{0, -1}},
			{"smaller, and back", []http2.Setting{{ID: http2.SettingHeaderTableSize, Val: 0}, {ID: http2.SettingHeaderTableSize, Val: 4096}}, []int64{0, -1}},
		} {
			c := serve(t, kind, &chert.Server{Handler: hf(hello)}).raw(tt.settings...)
			for i, want := range tt.want {
				id := uint32(2*i + 1)
				c.headers(id, true, path(get, "/")...)
				c.send()
				if got := c.tableUpdate(id); got != want {
					t.Errorf("%s: block %d begins with an update to %d, want %d", tt.name, i, got, want)
				}
			}
		}
	})
}

// A client that has acknowledged a table smaller than the first one says so in its next header block
// (RFC 9113 section 4.3.1). If it does not, its table may have fields that the server's has not.
func TestTableSizeUpdateIsDue(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		s := serve(t, kind, &chert.Server{
			HTTP2: &http.HTTP2Config{MaxDecoderHeaderTableSize: 100}, Handler: hf(hello),
		})
		c := s.raw()
		c.enc.SetMaxDynamicTableSize(100)
		if a := c.get(1, "/"); a.outcome() != "200" {
			t.Errorf("with the update: %+v", a)
		}
		if a := c.get(3, "/"); a.outcome() != "200" {
			t.Errorf("after it: %+v", a)
		}
		if a := s.raw().get(1, "/"); a.outcome() != "GOAWAY COMPRESSION_ERROR" {
			t.Errorf("without: %+v", a)
		}
	})
}

// tableUpdate reads up to the end of a stream, and returns the size that its first header
// block gives the table, -1 if it does not.
func (c *raw) tableUpdate(id uint32) int64 {
	c.t.Helper()
	size := int64(-2)
	for {
		f := c.next()
		if f == nil {
			c.t.Fatal("the connection has ended")
		}
		if h, ok := f.(*http2.HeadersFrame); ok && h.StreamID == id && size == -2 {
			size = -1
			if b := h.HeaderBlockFragment(); b[0]&0xe0 == 0x20 {
				size = int64(b[0] & 0x1f) // none here needs more bits
			}
		}
		if f.Header().StreamID == id && f.Header().Flags.Has(http2.FlagDataEndStream) {
			return size
		}
	}
}
