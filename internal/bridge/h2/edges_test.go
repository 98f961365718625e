package h2_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/takeover"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// goAway reads up to the next GOAWAY.
func (c *raw) goAway() *http2.GoAwayFrame {
	c.t.Helper()
	for {
		switch f := c.next().(type) {
		case nil:
			c.t.Fatal("closed")
		case *http2.PingFrame:
			if !f.IsAck() {
				c.fr.WritePing(true, f.Data)
				c.send()
			}
		case *http2.GoAwayFrame:
			return f
		}
	}
}

// A client that has sent GOAWAY learns, before the connection ends, of which of its streams nothing
// was done (RFC 9113 section 6.8): it may have begun some meanwhile.
func TestGoAwayIsAnswered(t *testing.T) {
	t.Parallel()
	each(t, "", func(t *testing.T, kind string) {
		c := serve(t, kind, &chert.Server{Handler: hf(hello)}).raw()
		c.headers(1, true, get...)
		c.fr.WriteGoAway(0, http2.ErrCodeNo, nil)
		c.send()
		if f := c.goAway(); f.ErrCode != http2.ErrCodeNo || f.LastStreamID != 1 {
			t.Errorf("%v", f)
		}
	})
}

// The last stream that GOAWAY names is never later than that of a GOAWAY before (RFC 9113
// section 6.8): the client may have sent what was not served on another connection.
func TestGoAwayNamesNoLaterStream(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		release := make(chan bool)
		s := serve(t, kind, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/wait" {
				<-release
			}
			w.Header().Set("Connection", "close")
		})})
		defer close(release)
		c := s.raw()
		c.headers(1, true, path(get, "/wait")...)
		c.headers(3, true, get...)
		c.send()
		if f := c.goAway(); f.LastStreamID != 1<<31-1 {
			t.Fatal(f)
		}
		if f := c.goAway(); f.LastStreamID != 3 {
			t.Fatal(f)
		}
		if a := c.get(5, "/"); a.reset != "REFUSED_STREAM" {
			t.Fatalf("%+v", a)
		}
		c.fr.WriteRawFrame(http2.FrameData, 0, 0, nil)
		c.send()
		if f := c.goAway(); f.ErrCode != http2.ErrCodeProtocol || f.LastStreamID > 3 {
			t.Errorf("afterwards: %v", f)
		}
	})
}

// A refusal for which the client has opened no window is complete: it declares no body.
func TestTooLargeWithoutWindow(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		c := serve(t, kind, &chert.Server{Handler: hf(hello)}).raw(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		c.headers(1, true, with(get, strings.Split(strings.Repeat("a: b\n", 130), "\n")[:130]...)...)
		c.send()
		if a := c.read(1); a.outcome() != "431" || a.field("content-length") != "" && a.field("content-length") != "0" {
			t.Errorf("%+v", a)
		}
	})
}

// The window of a stream that the client has reset is not one that a larger
// SETTINGS_INITIAL_WINDOW_SIZE makes too large, though its handler goes on.
func TestWindowsOfResetStreams(t *testing.T) {
	t.Parallel()
	each(t, "oracle inline", func(t *testing.T, kind string) {
		began, release := make(chan bool), make(chan bool)
		s := serve(t, kind, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/wait" {
				began <- true
				<-release
			}
		})})
		defer close(release)
		c := s.raw()
		c.headers(1, true, path(get, "/wait")...)
		c.send()
		servertest.Await(t, began, "the handler")
		c.fr.WriteWindowUpdate(1, 1<<31-1-65535)
		c.fr.WriteRSTStream(1, http2.ErrCodeCancel)
		c.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 100_000})
		if a := c.get(3, "/"); a.outcome() != "200" {
			t.Errorf("%+v", a)
		}
	})
}

// A handler keeps its place while it runs, also if what it has passed the response to has
// ended that, and so the stream.
func TestPlaceOfHandlerAfterTheEnd(t *testing.T) {
	t.Parallel()
	each(t, "oracle inline", func(t *testing.T, kind string) {
		release := make(chan bool)
		s := serve(t, kind, &chert.Server{
			HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 2},
			Handler: hf(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/wait" {
					return
				}
				var s takeover.Stream
				takeover.Find[takeover.Streamer](w).Outlive(func(l takeover.Stream, _ bool) takeover.Source {
					s = l
					return noSource{}
				})
				s.End(false)
				<-release
			}),
		})
		c := s.raw()
		for id := uint32(1); id < 5; id += 2 {
			if a := c.get(id, "/wait"); a.outcome() != "200" {
				t.Fatalf("%+v", a)
			}
		}
		if a := c.get(5, "/"); a.reset != "REFUSED_STREAM" {
			t.Errorf("beside two handlers: %+v", a)
		}
		close(release)
		id := uint32(5)
		servertest.Eventually(t, "a place", func() bool {
			id += 2
			return c.get(id, "/").outcome() == "200"
		})
	})
}

type noSource struct{}

func (noSource) Writable() {}
func (noSource) Stop()     {}
func (noSource) Closed()   {}

// A header block may have as many frames as MaxHeaderBytes needs, which the client is told
// of, however large that is.
func TestLargeBlockOfManyFrames(t *testing.T) {
	t.Parallel()
	each(t, "", func(t *testing.T, kind string) {
		s := serve(t, kind, &chert.Server{MaxHeaderBytes: 1 << 20, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, r.Header.Get("A")[:5])
		})})
		c := s.raw()
		c.enc.SetMaxDynamicTableSize(0)
		block := c.block(with(get, "a: "+strings.Repeat("~", 500_000))...)
		const piece = 16 << 10
		c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block[:piece], EndStream: true})
		for block = block[piece:]; len(block) > 0; {
			n := min(len(block), piece)
			c.fr.WriteContinuation(1, n == len(block), block[:n])
			block = block[n:]
		}
		c.send()
		if a := c.read(1); a.body != "~~~~~" {
			t.Errorf("%s: %s, %q", kind, a.outcome(), a.body)
		}
	})
}

// No more trailers are announced than may come: a few bytes can stand for 64 KiB of names,
// each of which takes a hundred bytes and some time.
func TestAnnouncedTrailersAreFew(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		s := serve(t, kind, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			fmt.Fprint(w, len(r.Trailer), r.Trailer["A"], r.Trailer["Z"])
		})})
		c := s.raw()
		names := "a"
		for i := range 600 {
			names += fmt.Sprintf(",b%d", i)
		}
		c.headers(1, false, with(post, "trailer: "+names, "trailer: "+names, "trailer: z")...)
		c.headers(1, true, "a: b", "z: c")
		c.send()
		if a := c.read(1); a.body != "128 [b] []" {
			t.Errorf("%s: %q", a.outcome(), a.body)
		}
	})
}
