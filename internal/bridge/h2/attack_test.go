package h2_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testhook"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// attacked has attack run against a server with defaults, and checks that another client is served
// meanwhile and afterwards. The attack says how it has ended: by what the client does, and not by the
// time that this takes, which on a busy machine may be minutes.
func attacked(t *testing.T, want string, h http.Handler, attack func(c *raw) string) {
	t.Helper()
	each(t, "oracle tls inline", func(t *testing.T, kind string) {
		frugal := &chert.Server{
			Handler: h, ReadHeaderTimeout: servertest.Patience, IdleTimeout: -1,
			WriteStallTimeout: -1, // on a busy machine answers to tiny windows would be reset before
		}
		testhook.Of(frugal).Frugal()
		s := serve(t, kind, frugal)
		bystander := s.raw()
		if a := bystander.get(1, "/"); a.outcome() != "200" {
			t.Fatalf("before: %+v", a)
		}
		got := attack(s.raw())
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if a := bystander.get(3, "/"); a.outcome() != "200" {
			t.Errorf("another client is answered %+v", a)
		}
	})
}

const calm = "GOAWAY ENHANCE_YOUR_CALM"

// flood sends p again and again until the connection ends, and returns how.
func (c *raw) flood(p []byte) string {
	done := make(chan bool)
	go func() {
		defer close(done)
		for range 2000 {
			if _, err := c.Write(p); err != nil {
				return
			}
		}
	}()
	a := c.read(1 << 30)
	c.Conn.Close()
	<-done
	return a.outcome()
}

// times is what write writes, n times over.
func (c *raw) times(n int, write func(i uint32)) []byte {
	for i := range n {
		write(uint32(i))
	}
	p := bytes.Clone(c.out.Bytes())
	c.out.Reset()
	return p
}

// CVE-2019-9512, -9515, -9518, -9513 and what is like them.
func TestFloods(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		write func(c *raw, i uint32)
	}{
		{"PING", func(c *raw, _ uint32) { c.fr.WritePing(false, [8]byte{}) }},
		{"PING with ACK", func(c *raw, _ uint32) { c.fr.WritePing(true, [8]byte{}) }},
		{"SETTINGS", func(c *raw, _ uint32) { c.fr.WriteSettings() }},
		{"SETTINGS with ACK", func(c *raw, _ uint32) { c.fr.WriteSettingsAck() }},
		{"SETTINGS that change windows", func(c *raw, i uint32) { c.fr.WriteSettings(http2.Setting{ID: 4, Val: i}) }},
		{"PRIORITY", func(c *raw, i uint32) { c.fr.WritePriority(2*i+3, http2.PriorityParam{}) }},
		{"PRIORITY_UPDATE", func(c *raw, i uint32) { c.update(2*i+1, "u=0") }},
		{"WINDOW_UPDATE", func(c *raw, _ uint32) { c.fr.WriteWindowUpdate(0, 1) }},
		{"empty DATA", func(c *raw, _ uint32) { c.fr.WriteData(1, false, nil) }},
		{"padding alone", func(c *raw, _ uint32) { c.fr.WriteRawFrame(0, 8, 1, []byte{0}) }},
		{"unknown frames", func(c *raw, _ uint32) { c.fr.WriteRawFrame(77, 0, 0, nil) }},
		{"RST of a stream that is closed", func(c *raw, _ uint32) { c.fr.WriteRSTStream(3, 8) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			release := make(chan bool)
			defer close(release)
			attacked(t, calm, hf(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == "POST" {
					io.Copy(io.Discard, r.Body)
				}
			}), func(c *raw) string {
				c.headers(1, false, post...)
				c.headers(3, true, get...)
				c.send()
				c.read(3)
				return c.flood(c.times(1000, func(i uint32) { tt.write(c, i) }))
			})
		})
	}
}

// CVE-2023-44487: requests that are reset at once. No more handlers run than streams
// are allowed, and the connection ends.
func TestRapidReset(t *testing.T) {
	t.Parallel()
	var running, most atomic.Int64
	attacked(t, calm, hf(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			return
		}
		n := running.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		<-r.Context().Done()
		running.Add(-1)
	}), func(c *raw) string {
		return c.flood(c.times(2000, func(i uint32) {
			c.headers(2*i+1, true, path(get, "/wait")...)
			c.fr.WriteRSTStream(2*i+1, 8)
		}))
	})
	servertest.Eventually(t, "all have ended", func() bool { return running.Load() == 0 })
	if n := most.Load(); n > 3*250+250 {
		t.Errorf("%d handlers ran at once", n)
	}
}

// CVE-2025-8671: resets that the client provokes count as its own.
func TestMadeYouReset(t *testing.T) {
	t.Parallel()
	for name, provoke := range map[string]func(c *raw, id uint32){
		"window of 0":      func(c *raw, id uint32) { c.fr.WriteWindowUpdate(id, 0) },
		"window too large": func(c *raw, id uint32) { c.fr.WriteWindowUpdate(id, 1<<31-1) },
		"priority":         func(c *raw, id uint32) { c.fr.WriteRawFrame(2, 0, id, []byte{0}) },
		"second headers":   func(c *raw, id uint32) { c.headers(id, false, "a: b") },
		"malformed":        func(c *raw, id uint32) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			attacked(t, calm, hf(func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }), func(c *raw) string {
				return c.flood(c.times(2000, func(i uint32) {
					if name == "malformed" {
						c.headers(2*i+1, false, "a: b")
					} else {
						c.headers(2*i+1, false, post...)
					}
					provoke(c, 2*i+1)
				}))
			})
		})
	}
}

// A handler keeps its place until it returns, whatever becomes of its stream.
func TestHandlersKeepTheirPlaces(t *testing.T) {
	t.Parallel()
	each(t, "oracle tls inline", func(t *testing.T, kind string) {
		var running, most atomic.Int64
		release := make(chan bool)
		s := serve(t, kind, &chert.Server{HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 10}, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			<-release
		})})
		c := s.raw()
		for i := range uint32(50) {
			c.headers(2*i+1, true, get...)
			c.fr.WriteRSTStream(2*i+1, 8)
		}
		c.headers(201, true, get...)
		c.send()
		if a := c.read(201); a.reset != "REFUSED_STREAM" {
			t.Errorf("%+v", a)
		}
		if n := most.Load(); n > 10 {
			t.Errorf("%d handlers run", n)
		}
		close(release)
		servertest.Eventually(t, "they have ended", func() bool { return running.Load() == 0 })
		servertest.Eventually(t, "another is served", func() bool {
			c := s.raw()
			defer c.Close()
			return c.get(1, "/").outcome() == "200"
		})
	})
}

// CVE-2024-27316.
func TestContinuationFlood(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		p    []byte
	}{{"empty", nil}, {"small", []byte{0x82}}, {"large", bytes.Repeat([]byte{0x20}, 16<<10)}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			attacked(t, calm, hf(hello), func(c *raw) string {
				c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.block(get...)})
				c.send()
				return c.flood(c.times(20, func(uint32) { c.fr.WriteContinuation(1, false, tt.p) }))
			})
		})
	}
}

// A block in several frames is one.
func TestContinuation(t *testing.T) {
	t.Parallel()
	each(t, "", func(t *testing.T, kind string) {
		c := serve(t, kind, &chert.Server{Handler: hf(hello)}).raw()
		block := c.block(with(get, "a: "+strings.Repeat("b", 100))...)
		c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block[:3], EndStream: true})
		for i := 3; i < 8; i++ {
			c.fr.WriteContinuation(1, false, block[i:i+1])
		}
		c.fr.WriteContinuation(1, true, block[8:])
		c.send()
		if a := c.read(1); a.outcome() != "200" || a.body != "hello" {
			t.Errorf("%+v", a)
		}
	})
}

// CVE-2016-6581 and CVE-2026-49975: a field in the table, referred to by single bytes,
// and cookies in crumbs, are counted. TestFieldsWithoutEnd has what is not answered.
func TestHeaderBombs(t *testing.T) {
	t.Parallel()
	attacked(t, "431", hf(hello), func(c *raw) string {
		for i, field := range []string{"a: " + strings.Repeat("b", 3900), "a: ", "cookie: a"} {
			name, value, _ := strings.Cut(field, ": ")
			p := append([]byte{0x40, byte(len(name))}, name...)
			if len(value) < 127 {
				p = append(p, byte(len(value)))
			} else {
				p = append(p, 0x7f)
				p = binary.AppendUvarint(p, uint64(len(value)-127))
			}
			p = append(p, value...)
			block := append([]byte{0x82, 0x84, 0x86}, p...)
			block = append(block, bytes.Repeat([]byte{0xbe}, []int{60, 5000, 5000}[i])...)
			c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(2*i + 1), BlockFragment: block, EndStream: true, EndHeaders: true})
		}
		c.send()
		var a answer
		for range 3 {
			a = c.anyStream()
			if a.outcome() != "431" {
				return a.outcome()
			}
		}
		return a.outcome()
	})
}

// anyStream reads up to the end of whichever stream ends next.
func (c *raw) anyStream() (a answer) {
	for {
		switch f := c.next().(type) {
		case nil:
			a.closed = true
			return a
		case *http2.GoAwayFrame:
			a.goaway = f.ErrCode.String()
			return a
		case *http2.RSTStreamFrame:
			a.reset = f.ErrCode.String()
			return a
		case *http2.HeadersFrame:
			all, _ := c.dec.DecodeFull(f.HeaderBlockFragment())
			a.fields = append(a.fields, ":status: "+all[0].Value)
			if a.end = f.StreamEnded(); a.end {
				return a
			}
		case *http2.DataFrame:
			if a.end = f.StreamEnded(); a.end {
				return a
			}
		}
	}
}

// A client that asks and does not read: nothing is read of it, and little is kept.
func TestNeverReads(t *testing.T) {
	t.Parallel()
	each(t, "oracle tls", func(t *testing.T, kind string) {
		s := serve(t, kind, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) { w.Write(make([]byte, 60_000)) })})
		c := s.raw(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 30})
		c.fr.WriteWindowUpdate(0, 1<<30)
		c.send()
		written := make(chan int)
		var id uint32 = 1
		go func() {
			n := 0
			c.SetWriteDeadline(time.Now().Add(2 * time.Second))
			for {
				c.headers(id, true, get...)
				id += 2
				p := bytes.Clone(c.out.Bytes())
				c.out.Reset()
				k, err := c.Write(p)
				if n += k; err != nil {
					written <- n
					return
				}
				if id > 1_000_000 {
					break
				}
			}
			written <- n
		}()
		n := servertest.Await(t, written, "the client is stopped")
		if n > 12<<20 {
			t.Errorf("%d bytes of requests were read", n)
		}
		if a := s.raw().get(1, "/"); a.outcome() != "200" {
			t.Errorf("another client is answered %+v", a)
		}
	})
}

// Zero and tiny windows hold a bounded amount of memory, and end by WriteStallTimeout,
// also when they are opened byte by byte.
func TestTinyWindows(t *testing.T) {
	t.Parallel()
	for _, size := range []int{3000, 100_000} {
		for _, drip := range []bool{false, true} {
			t.Run(fmt.Sprint(size, drip), func(t *testing.T) {
				t.Parallel()
				each(t, "oracle", func(t *testing.T, kind string) {
					failed := make(chan error, 1)
					s := serve(t, kind, &chert.Server{WriteStallTimeout: 100 * time.Millisecond, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
						_, err := w.Write(make([]byte, size))
						failed <- err
					})})
					c := s.raw(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
					c.headers(1, true, get...)
					c.send()
					over := make(chan bool)
					defer close(over)
					if drip {
						go func() {
							update := []byte{0, 0, 4, 8, 0, 0, 0, 0, 1, 0, 0, 0, 1}
							for {
								select {
								case <-over:
									return
								case <-time.After(10 * time.Millisecond):
									c.Conn.Write(update)
								}
							}
						}()
					}
					if a := c.read(1); a.reset == "" || a.reset == "NO_ERROR" {
						t.Errorf("%+v", a)
					}
					err := servertest.Await(t, failed, "the handler")
					if (err != nil) != (size > 16<<10) {
						t.Errorf("the handler's Write: %v", err)
					}
				})
			})
		}
	}
}

// Streams that send no body end by ReadStallTimeout, and what they hold is given back.
func TestNeverSends(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		errs := make(chan error, 100)
		s := serve(t, kind, &chert.Server{ReadStallTimeout: time.Second, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			_, err := io.ReadAll(r.Body)
			errs <- err
		})})
		c := s.raw()
		for i := range uint32(100) {
			c.headers(2*i+1, false, with(post, "content-length: 100")...)
		}
		c.send()
		for range 100 {
			if err := servertest.Await(t, errs, "an error"); err == nil {
				t.Error("no error")
			}
		}
	})
}

// What is received and not read is bounded by the windows, and given back.
func TestBodiesAreBounded(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		release := make(chan bool)
		s := serve(t, kind, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == "POST" {
				<-release
			}
		})})
		c := s.raw()
		for i := range uint32(20) {
			c.headers(2*i+1, false, post...)
			for range 10 {
				c.fr.WriteData(2*i+1, false, make([]byte, 10_000))
			}
		}
		go func() { c.Write(c.out.Bytes()) }()
		a := c.read(1 << 30)
		if a.goaway != "FLOW_CONTROL_ERROR" {
			t.Errorf("%+v", a)
		}
		close(release)
	})
}

// The connection's window is given back, whatever becomes of the streams.
func TestWindowIsRefunded(t *testing.T) {
	t.Parallel()
	each(t, "", func(t *testing.T, kind string) {
		s := serve(t, kind, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/read":
				io.Copy(io.Discard, r.Body)
			case "/part":
				io.ReadFull(r.Body, make([]byte, 10))
			case "/close":
				r.Body.Close()
				<-r.Context().Done()
			case "/panic":
				panic(http.ErrAbortHandler)
			case "/wait":
				<-r.Context().Done()
			}
		})})
		c := s.raw()
		id := uint32(1)
		const piece, each = 16_000, 4
		for round := range 30 { // 30 x 6 x 64 KB, of a window of 1 MiB
			for _, p := range []string{"/read", "/part", "/close", "/panic", "/wait", "/"} {
				c.headers(id, false, path(post, p)...)
				for range each {
					c.fr.WriteDataPadded(id, false, make([]byte, piece-101), make([]byte, 100))
				}
				c.send()
				if p == "/read" {
					c.fr.WriteData(id, true, nil)
					c.send()
				}
				if p == "/close" || p == "/wait" {
					c.fr.WriteRSTStream(id, 8)
					c.send()
				} else if a := c.read(id); a.goaway != "" || a.closed {
					t.Fatalf("round %d, %s: %+v", round, p, a)
				}
				id += 2
			}
		}
		if a := c.get(id, "/"); a.outcome() != "200" {
			t.Errorf("%+v", a)
		}
	})
}
