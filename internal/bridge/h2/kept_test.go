package h2_test

import (
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// bomb is requests of few bytes with 62 KB of fields each: references to a field of HPACK's
// table. The first of them, of stream 1, puts it there.
func (c *raw) bomb(n int, p string) {
	entry := strings.Repeat("x", 3800)
	for i := range uint32(n) {
		block := append([]byte("\x82\x86\x01\x01a\x04"), byte(len(p))) // GET, http, a
		block = append(block, p...)
		if i == 0 {
			block = append(block, "\x40\x01a\x7f\xd9\x1c"+entry...) // 127 + 0x59 + 0x1c<<7
		}
		block = append(block, strings.Repeat("\xbe", 16)...)
		if i == 0 {
			block = block[:len(block)-1]
		}
		c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*i + 1, BlockFragment: block, EndStream: true, EndHeaders: true})
	}
}

// The fields of all requests of a connection are bounded while handlers run: beyond that
// streams are refused. Others are served when some have ended.
func TestFieldsOfAllStreams(t *testing.T) {
	t.Parallel()
	each(t, "oracle inline", func(t *testing.T, kind string) {
		release, began := make(chan bool), make(chan bool, 300)
		s := serve(t, kind, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/" {
				return
			}
			began <- true
			<-release
		})})
		c := s.raw()
		const streams = 200
		c.bomb(streams, "/wait")
		c.send()
		const served = 64 * (64 << 10) / 61_500
		for refused := 0; refused < streams-served; {
			switch f := c.next().(type) {
			case nil:
				t.Fatal("closed")
			case *http2.RSTStreamFrame:
				if f.ErrCode != http2.ErrCodeRefusedStream {
					t.Fatal(f)
				}
				refused++
			}
		}
		for range served {
			servertest.Await(t, began, "a handler")
		}
		close(release)
		for answered := 0; answered < served; {
			switch f := c.next().(type) {
			case nil:
				t.Fatal("closed")
			case *http2.HeadersFrame:
				if must(c.dec.DecodeFull(f.HeaderBlockFragment()))[0].Value != "200" || !f.StreamEnded() {
					t.Fatal(f)
				}
				answered++
			}
		}
		if a := c.get(2*streams+1, "/"); a.outcome() != "200" {
			t.Errorf("afterwards: %+v", a)
		}
	})
}

// The fields of a request are not kept for an answer that the client does not accept, when
// its handler has returned.
func TestFieldsAreShed(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		const streams = 60
		freed := make(chan bool, streams)
		handler := hf(func(w http.ResponseWriter, r *http.Request) {
			runtime.AddCleanup(&r.Header["A"][0], func(struct{}) { freed <- true }, struct{}{})
			w.Write([]byte("hello"))
		})
		// Nothing is accepted for as long as it takes: on a busy machine that is longer than a stall may be.
		s := serve(t, kind, &chert.Server{Handler: handler, WriteStallTimeout: -1})
		c := s.raw(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		c.enc.SetMaxDynamicTableSize(0)
		// Three times as many as all that may be kept for handlers, were they kept.
		for round := range uint32(3) {
			for i := range uint32(streams) {
				fields := path(get, "/")
				for range 15 {
					fields = append(fields, "a: "+strings.Repeat("x", 4000))
				}
				block := c.block(fields...)
				id := 2*(round*streams+i) + 1
				c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block[:16000], EndStream: true})
				for block = block[16000:]; len(block) > 0; {
					n := min(len(block), 16000)
					c.fr.WriteContinuation(id, n == len(block), block[:n])
					block = block[n:]
				}
			}
			c.send()
			for heads := 0; heads < streams; {
				switch f := c.next().(type) {
				case nil:
					t.Fatal("closed")
				case *http2.RSTStreamFrame:
					t.Fatal(f)
				case *http2.HeadersFrame:
					heads++
				}
			}
		}
		for range 3 * streams {
			select {
			case <-freed:
				continue
			default:
			}
			servertest.Eventually(t, "the fields are freed", func() bool {
				runtime.GC()
				select {
				case <-freed:
					return true
				default:
					return false
				}
			})
		}
		// The answers are complete when the client opens windows.
		c.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 100})
		c.send()
		for ended := 0; ended < 3*streams; {
			switch f := c.next().(type) {
			case nil:
				t.Fatal("closed")
			case *http2.DataFrame:
				if string(f.Data()) != "hello" || !f.StreamEnded() {
					t.Fatalf("%v: %q", f, f.Data())
				}
				ended++
			}
		}
	})
}

// Trailers count as their request's other fields do: beyond the bound their streams are reset, and the connection goes
// on. What they have held is returned with their handlers.
func TestTrailersOfAllStreams(t *testing.T) {
	t.Parallel()
	each(t, "oracle inline", func(t *testing.T, kind string) {
		release := make(chan bool)
		s := serve(t, kind, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			<-release
			io.Copy(io.Discard, r.Body)
		})})
		c := s.raw()
		const streams, refs = 200, 16
		entry := "\x40\x01a\x7f\xd9\x1c" + strings.Repeat("x", 3800)
		head := []byte("\x83\x86\x01\x01a\x04\x01/") // POST, http, a, /
		trailers := func(id uint32) {
			c.fr.WriteHeaders(http2.HeadersFrameParam{
				StreamID: id, BlockFragment: []byte(strings.Repeat("\xbe", refs)), EndStream: true, EndHeaders: true,
			})
		}
		for i := range uint32(streams) {
			block := head
			if i == 0 {
				block = append([]byte(string(head)), entry...)
			}
			c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*i + 1, BlockFragment: block, EndHeaders: true})
			trailers(2*i + 1)
		}
		c.send()
		most := 64 * (64 << 10) / (refs * 3833) // by the trailers alone
		for refused, calm := 0, 0; refused < streams-most || calm == 0; {
			switch f := c.next().(type) {
			case nil:
				t.Fatal("closed")
			case *http2.RSTStreamFrame:
				switch f.ErrCode {
				case http2.ErrCodeEnhanceYourCalm:
					calm++
				case http2.ErrCodeRefusedStream: // what is left is too little for a request's own fields
				default:
					t.Fatal(f)
				}
				refused++
			}
		}
		close(release)
		answered := 0
		for id := uint32(2*streams + 1); ; {
			c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: head, EndHeaders: true})
			trailers(id)
			c.send()
			a := c.read(id)
			if a.outcome() == "200" {
				break // all that was held has been returned
			}
			if answered++; answered > 1000 || a.reset != "ENHANCE_YOUR_CALM" && a.reset != "REFUSED_STREAM" {
				t.Fatalf("afterwards: %+v", a)
			}
			id += 2
		}
	})
}
