package h2_test

import (
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// A HEADERS frame alone that is larger than any header block may be ends the connection: what is not
// decoded leaves the tables different (RFC 9113 section 4.3).
func TestOneFrameTooLarge(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		c := serve(t, kind, &chert.Server{MaxHeaderBytes: 1000, Handler: hf(hello)}).raw()
		c.fr.WriteHeaders(http2.HeadersFrameParam{
			StreamID: 1, EndStream: true, EndHeaders: true, BlockFragment: make([]byte, 16<<10),
		})
		c.send()
		if a := c.read(1); a.outcome() != "GOAWAY ENHANCE_YOUR_CALM" {
			t.Errorf("%+v", a)
		}
	})
}

// A request that depends on itself is reset, and its fields are in the table all the same: the next
// request refers to them.
func TestDependsOnItself(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		c := serve(t, kind, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X", r.Header.Get("X"))
		})}).raw()
		fields := with(get, "x: kept")
		c.fr.WriteHeaders(http2.HeadersFrameParam{
			StreamID: 1, EndStream: true, EndHeaders: true, BlockFragment: c.block(fields...),
			Priority: http2.PriorityParam{StreamDep: 1, Weight: 1},
		})
		c.headers(3, true, fields...)
		c.send()
		if a := c.read(1); a.outcome() != "RST PROTOCOL_ERROR" {
			t.Errorf("%+v", a)
		}
		if a := c.read(3); a.outcome() != "200" || a.field("x") != "kept" {
			t.Errorf("the next: %+v", a)
		}
	})
}

// A request with too many fields that has a body is answered also if there is no room for its stream
// to linger.
func TestTooLargeBeyondStreams(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		began, release := make(chan bool, 1), make(chan bool)
		s := serve(t, kind, &chert.Server{
			MaxHeaderBytes: 2000, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 1},
			Handler: hf(func(http.ResponseWriter, *http.Request) {
				began <- true
				<-release
			}),
		})
		c := s.raw()
		c.headers(1, true, path(get, "/wait")...)
		c.send()
		servertest.Await(t, began, "the handler")
		c.headers(3, false, with(post, "large: "+strings.Repeat("~", 2500))...)
		c.fr.WriteData(3, false, []byte("on its way"))
		c.send()
		if a := c.read(3); a.status() != "431" || !a.end {
			t.Errorf("%+v", a)
		}
		close(release)
		if a := c.read(1); a.outcome() != "200" || a.goaway != "" {
			t.Errorf("the other stream: %+v", a)
		}
	})
}

// A request that a direct handler declines, and of which no URL can be made, is refused like one that
// has gone to no direct handler.
func TestDeclinedIsMalformed(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		s := serve(t, kind, &chert.Server{Handler: fastOrNot{hf(hello), func(*direct.Exchange) bool { return false }}})
		c := s.raw()
		if a := c.get(1, "/%zz"); a.status() != "400" || a.reset != "PROTOCOL_ERROR" {
			t.Errorf("%+v", a)
		}
		if a := c.get(3, "/"); a.outcome() != "200" {
			t.Errorf("the next: %+v", a)
		}
	})
}

// A request that its client resets while a direct handler runs, which then declines it, is not served.
func TestDeclinedAfterReset(t *testing.T) {
	t.Parallel()
	each(t, "oracle goroutines pooled tls", func(t *testing.T, kind string) {
		began, release, served := make(chan bool, 1), make(chan bool), make(chan string, 2)
		s := serve(t, kind, &chert.Server{Handler: fastOrNot{hf(func(_ http.ResponseWriter, r *http.Request) {
			served <- r.URL.Path
		}), func(x *direct.Exchange) bool {
			if string(x.Path()) == "/wait" {
				began <- true
				<-release
			}
			return false
		}}})
		c := s.raw()
		c.headers(1, true, path(get, "/wait")...)
		c.send()
		servertest.Await(t, began, "the direct handler")
		c.fr.WriteRSTStream(1, http2.ErrCodeCancel)
		c.fr.WritePing(false, [8]byte{1})
		c.send()
		for f := c.next(); ; f = c.next() { // the loop goes on without the handler
			if p, ok := f.(*http2.PingFrame); ok && p.IsAck() {
				break
			}
		}
		close(release)
		if a := c.get(3, "/"); a.outcome() != "200" || a.goaway != "" {
			t.Errorf("the next: %+v", a)
		}
		if got := servertest.Await(t, served, "a request"); got != "/" {
			t.Errorf("%s was served", got)
		}
	})
}
