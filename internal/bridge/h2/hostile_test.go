package h2_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// SETTINGS come while handlers wait for their turn to send: for the race detector.
func TestSettingsWhileSending(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		s := serve(t, kind, &chert.Server{Handler: body})
		c := s.raw()
		long := make([]http2.Setting, 2000)
		for i := range long {
			long[i] = http2.Setting{ID: http2.SettingInitialWindowSize, Val: 65535 + uint32(i%2)}
		}
		for id := uint32(1); id < 20; id += 2 {
			c.headers(id, true, path(get, "/200000")...)
		}
		c.send()
		for ended := 0; ended < 10; {
			f := c.next()
			if f == nil {
				t.Fatal("closed")
			}
			if d, ok := f.(*http2.DataFrame); ok {
				if d.StreamEnded() {
					ended++
				}
				c.fr.WriteSettings(long...)
				c.fr.WriteWindowUpdate(0, max(d.Length, 1))
				c.fr.WriteWindowUpdate(d.StreamID, max(d.Length, 1))
				c.send()
			}
		}
	})
}

// A client that has sent GOAWAY is left also if it has not taken all of the last response
// when its handler returns.
func TestEndsWhenClientIsSlow(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		returned := make(chan bool, 1)
		s := serve(t, kind, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, strings.Repeat("x", 8<<20))
			returned <- true
		})})
		c := s.raw(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 30})
		c.fr.WriteWindowUpdate(0, 1<<30)
		c.headers(1, true, get...)
		c.fr.WriteGoAway(0, http2.ErrCodeNo, nil)
		c.send()
		a := answer{}
		for !a.end {
			switch f := c.next().(type) {
			case nil:
				t.Fatal("closed before the end")
			case *http2.DataFrame:
				a.end = f.StreamEnded()
			}
		}
		servertest.Await(t, returned, "the handler")
		if a := c.read(3); !a.closed {
			t.Errorf("got %+v", a)
		}
	})
}

// A response that is larger than what is gathered is sent although its handler goes on.
func TestSendsBeforeTheEnd(t *testing.T) {
	t.Parallel()
	each(t, "inline", func(t *testing.T, kind string) {
		release := make(chan bool)
		defer close(release)
		s := serve(t, kind, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, strings.Repeat("x", 10_000))
			<-release
		})})
		c := s.raw()
		c.headers(1, true, get...)
		c.send()
		for got := 0; got == 0; {
			f := c.next()
			if f == nil {
				t.Fatal("closed")
			}
			if d, ok := f.(*http2.DataFrame); ok {
				got += len(d.Data())
			}
		}
	})
}

// What the client still sends when the connection has ended does not cause a reset,
// which could destroy responses that it has not read.
func TestEndLingers(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		s := serve(t, kind, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Connection", "close")
			hello(w, r)
		})})
		c := s.raw()
		c.headers(1, true, get...)
		c.send()
		closed := false
		for !closed {
			switch f := c.next().(type) {
			case nil:
				closed = true
			case *http2.PingFrame:
				c.fr.WritePing(true, f.Data)
				c.send()
			}
		}
		for range 3 {
			c.fr.WriteWindowUpdate(0, 1)
			p := c.out.Bytes()
			c.out.Reset()
			if _, err := c.Write(p); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Trailers by prefix are judged as announced ones are.
func TestTrailersThatMustNotBe(t *testing.T) {
	t.Parallel()
	each(t, "", func(t *testing.T, kind string) {
		s := serve(t, kind, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			hello(w, r)
			for _, k := range []string{"Connection", "Transfer-Encoding", "Content-Length", "X-A", "Keep-Alive"} {
				w.Header().Set(http.TrailerPrefix+k, "1")
			}
		})})
		if a := s.raw().get(1, "/"); a.field("x-a") != "1" || a.field("connection") != "" || a.field("transfer-encoding") != "" || a.field("keep-alive") != "" {
			t.Errorf("got %+v", a)
		}
	})
}

// What was on its way on streams that have been reset since does not harm the
// connection, however many they are.
func TestInFlightAfterResets(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		s := serve(t, kind, &chert.Server{Handler: hf(hello)})
		c := s.raw()
		const n = 100
		for i := range uint32(n) {
			c.headers(2*i+1, false, post...)
		}
		c.send()
		for resets := 0; resets < n; {
			switch f := c.next().(type) {
			case nil:
				t.Fatal("closed")
			case *http2.RSTStreamFrame:
				if f.ErrCode != http2.ErrCodeNo {
					t.Fatal(f)
				}
				resets++
			}
		}
		for i := range uint32(n) {
			if i%2 == 0 {
				for range 20 {
					c.fr.WriteData(2*i+1, false, []byte("x"))
				}
			}
			c.headers(2*i+1, true, "x-trailer: 1")
		}
		c.send()
		if a := c.get(2*n+1, "/"); a.outcome() != "200" {
			t.Errorf("got %+v", a)
		}
	})
}

// WriteTimeout also bounds what is left to be sent when the handler has returned.
func TestWriteTimeoutOfTheRest(t *testing.T) {
	t.Parallel()
	each(t, "", func(t *testing.T, kind string) {
		s := serve(t, kind, &chert.Server{WriteTimeout: time.Second, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, strings.Repeat("x", 3000))
		})})
		c := s.raw(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
		c.headers(1, true, get...)
		c.send()
		if a := c.read(1); a.reset == "" {
			t.Errorf("got %+v", a)
		}
	})
}

// Requests whose fields are too large are answered, but not without end.
func TestTooLargeFlood(t *testing.T) {
	t.Parallel()
	attacked(t, calm, hf(hello), func(c *raw) string {
		block := append(c.block(get...), strings.Repeat("\x90", 200)...) // accept-encoding: gzip, deflate
		id := uint32(1)
		done := make(chan bool)
		go func() {
			defer close(done)
			for range 200 {
				p := c.times(200, func(uint32) {
					c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndStream: true, EndHeaders: true})
					id += 2
				})
				if _, err := c.Write(p); err != nil {
					return
				}
			}
		}()
		a := c.read(1 << 30)
		c.Conn.Close()
		<-done
		return a.outcome()
	})
}

// Connection-specific fields are in no block of a response (RFC 9113 section 8.2.2).
func TestNoConnectionFields(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		s := serve(t, kind, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			for _, k := range []string{"Connection", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding", "Upgrade"} {
				w.Header().Set(k, "x")
			}
			w.Header().Set("Link", "</a>")
			w.WriteHeader(http.StatusEarlyHints)
			hello(w, r)
		})})
		c := s.raw()
		c.headers(1, true, get...)
		c.send()
		blocks := 0
		for blocks < 2 {
			f := c.next()
			if f == nil {
				t.Fatal("closed")
			}
			h, ok := f.(*http2.HeadersFrame)
			if !ok {
				continue
			}
			blocks++
			link := false
			for _, f := range must(c.dec.DecodeFull(h.HeaderBlockFragment())) {
				link = link || f.Name == "link"
				switch f.Name {
				case "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade":
					t.Errorf("block %d has %v", blocks, f)
				}
			}
			if !link {
				t.Errorf("block %d: Link is missing", blocks)
			}
		}
	})
}
