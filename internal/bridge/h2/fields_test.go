package h2_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"testing"

	"golang.org/x/net/http2"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
)

// Transfer-Encoding without a value is a field of HPACK's static table, which has no
// bytes that could be judged. It is malformed all the same (RFC 9113 section 8.2.2).
func TestTransferEncodingByIndex(t *testing.T) {
	t.Parallel()
	each(t, "", func(t *testing.T, kind string) {
		s := serve(t, kind, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.Copy(io.Discard, r.Body); err != nil { // awaited, or the answer may come first
				panic(http.ErrAbortHandler)
			}
			hello(w, r)
		})})
		c := s.raw()
		c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: append(c.block(get...), 0x80|57), EndStream: true, EndHeaders: true})
		c.send()
		if a := c.read(1); a.status() != "400" && a.reset == "" {
			t.Errorf("in a request: %+v", a)
		}
		c.headers(3, false, post...)
		c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: []byte{0x80 | 57}, EndStream: true, EndHeaders: true})
		c.send()
		if a := c.read(3); a.reset == "" && kind != "oracle" {
			t.Errorf("in trailers: %+v", a)
		}
	})
}

// What a header block stands for is bounded before it is decoded to the end: two bytes
// can name a field of the table's size again and again, which 431 would be too late for.
func TestFieldsWithoutEnd(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		s := serve(t, kind, &chert.Server{Handler: hf(hello)})
		for name, field := range map[string]string{
			"names of the table":            "\x0f\x2f\x00",
			"names of the table, new to it": "\x7e\x00",
			"fields of the table":           "\xbe",
		} {
			c := s.raw()
			long := bytes.Repeat([]byte("a"), 4000)
			block := append(c.block(get...), 0x40, 0x7f, 0xa1, 0x1e) // a literal of 4,000 bytes
			block = append(append(block, long...), 0)
			block = append(block, bytes.Repeat([]byte(field), 4000)...)
			c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block, EndStream: true, EndHeaders: true})
			c.send()
			if a := c.read(1); a.outcome() != "GOAWAY ENHANCE_YOUR_CALM" {
				t.Errorf("%s: %+v", name, a)
			}
		}
		c := s.raw()
		big := bytes.Repeat([]byte("a"), 30<<10)
		c.headers(1, true, with(get, "a: "+string(big[:10<<10]), "b: "+string(big[:10<<10]))...)
		c.send()
		if a := c.read(1); a.status() != "200" {
			t.Errorf("fields within the limit: %+v", a)
		}
	})
}

// Space around values of ordinary fields, and of trailers, is not part of them: handlers of
// both kinds see what they see over HTTP/1.
func TestSpaceAroundValues(t *testing.T) {
	t.Parallel()
	plain := hf(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, "%q %q %q", r.Header["User-Agent"], r.Header["X-A"], r.Trailer["X-T"])
	})
	d := direct.HandlerFunc(func(x *direct.Exchange) {
		fmt.Fprintf(x, "[%q] [%q] []", x.RequestHeader("user-agent"), x.RequestHeader("x-a"))
	})
	each(t, "oracle", func(t *testing.T, kind string) {
		for _, h := range []http.Handler{plain, d} {
			c := serve(t, kind, &chert.Server{Handler: h}).raw()
			fields := with(get, "user-agent:  grpc-go/1.0", "x-a: \t b c \t")
			for id := uint32(1); id < 5; id += 2 { // literal, and from the table
				c.headers(id, true, fields...)
				c.send()
				if a := c.read(id); a.body != `["grpc-go/1.0"] ["b c"] []` {
					t.Errorf("stream %d: %+v", id, a)
				}
			}
			if _, ok := h.(hf); !ok {
				continue
			}
			c.headers(5, false, with(fields, "trailer:  X-T ")...)
			c.headers(5, true, "x-t:  d ")
			c.send()
			if a := c.read(5); a.body != `["grpc-go/1.0"] ["b c"] ["d"]` {
				t.Errorf("trailers: %+v", a)
			}
		}
	})
}

// The answer to HEAD has no trailers, whenever its head is sent.
func TestTrailersOfHEAD(t *testing.T) {
	t.Parallel()
	each(t, "", func(t *testing.T, kind string) {
		s := serve(t, kind, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Trailer", "A")
			if r.URL.Path == "/flushed" {
				w.(http.Flusher).Flush()
			}
			w.Header().Set("A", "1")
			w.Header().Set(http.TrailerPrefix+"B", "2")
		})})
		c := s.raw()
		for i, p := range []string{"/", "/flushed"} {
			for j, method := range []string{"GET", "HEAD"} {
				id := uint32(4*i + 2*j + 1)
				c.headers(id, true, append([]string{":method: " + method}, path(get, p)[1:]...)...)
				c.send()
				want := 2 - j // blocks
				if a := c.read(id); a.outcome() != "200" || a.blocks != want || a.field("trailer") != "A" {
					t.Errorf("%s %s: %+v", method, p, a)
				}
			}
		}
	})
}
