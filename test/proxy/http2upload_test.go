package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/proxy"
)

// frames writes frames of a client into a buffer, stream by stream.
type frames struct {
	bytes.Buffer
	fr *http2.Framer
}

func newFrames() *frames {
	f := &frames{}
	f.fr = http2.NewFramer(&f.Buffer, nil)
	f.fr.AllowIllegalWrites = true
	return f
}

func (f *frames) post(id uint32, end bool, more ...string) {
	fields := append([]string{":method: POST", ":scheme: http", ":authority: h", ":path: /"}, more...)
	f.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block(fields), EndHeaders: true, EndStream: end})
}

func (f *frames) trailers(id uint32, all ...string) {
	f.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block(all), EndHeaders: true, EndStream: true})
}

// dialHTTP2 begins a connection of HTTP/2. The Framer reads.
func dialHTTP2(ts *engines.Server) (*servertest.Client, *http2.Framer) {
	c := ts.Dial()
	c.Send(http2.ClientPreface)
	fr := http2.NewFramer(c, c.R)
	fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	fr.WriteSettings()
	return c, fr
}

// answerOf is what the client sees of a stream, up to its end.
func answerOf(t *testing.T, fr *http2.Framer, id uint32) string {
	t.Helper()
	var b strings.Builder
	for {
		f, err := fr.ReadFrame()
		if err != nil {
			t.Fatal(err, b.String())
		}
		if g, ok := f.(*http2.GoAwayFrame); ok {
			t.Fatal(g, b.String())
		}
		if f.Header().StreamID != id {
			continue
		}
		switch f := f.(type) {
		case *http2.MetaHeadersFrame:
			fmt.Fprintf(&b, "%s ", f.PseudoValue("status"))
		case *http2.DataFrame:
			b.Write(f.Data())
		case *http2.RSTStreamFrame:
			return b.String() + f.ErrCode.String()
		}
		if f.Header().Type != http2.FrameRSTStream && f.Header().Type != http2.FrameWindowUpdate &&
			f.Header().Flags.Has(http2.FlagDataEndStream) {
			return b.String()
		}
	}
}

// The requests of TestUploadsHTTP2, of which the body is 12 bytes.
var uploadsHTTP2 = []struct {
	name string
	put  func(f *frames, id uint32)
}{
	{"length", func(f *frames, id uint32) {
		f.post(id, false, "content-length: 12")
		f.fr.WriteData(id, false, []byte("abcde"))
		f.fr.WriteDataPadded(id, true, []byte("fghijkl"), make([]byte, 3))
	}},
	{"length, empty end", func(f *frames, id uint32) {
		f.post(id, false, "content-length: 12")
		f.fr.WriteData(id, false, []byte("abcdefghijkl"))
		f.fr.WriteData(id, true, nil)
	}},
	{"length, trailers", func(f *frames, id uint32) {
		f.post(id, false, "content-length: 12")
		f.fr.WriteData(id, false, []byte("abcdefghijkl"))
		f.trailers(id, "sum: 1")
	}},
	{"none", func(f *frames, id uint32) {
		f.post(id, false)
		f.fr.WriteDataPadded(id, false, []byte("abcde"), make([]byte, 5))
		f.fr.WriteDataPadded(id, false, nil, make([]byte, 5))
		f.fr.WriteData(id, true, []byte("fghijkl"))
	}},
	{"none, empty end", func(f *frames, id uint32) {
		f.post(id, false)
		f.fr.WriteData(id, false, []byte("abcdefghijkl"))
		f.fr.WriteData(id, true, nil)
	}},
	{"trailers", func(f *frames, id uint32) {
		f.post(id, false, "trailer: sum")
		f.fr.WriteData(id, false, []byte("abcdefghijkl"))
		f.trailers(id, "sum: 1")
	}},
}

// TestUploadsHTTP2 sends a request byte by byte, and cut in two at every byte. Each server sees the same.
func TestUploadsHTTP2(t *testing.T) {
	for _, c := range uploadsHTTP2 {
		for _, keep := range []int{0, 5, 12, -1} {
			t.Run(fmt.Sprint(c.name, keep), func(t *testing.T) {
				t.Parallel()
				engines.Each(t, func(t *testing.T, e chert.Engine) {
					overEach(t, func(t *testing.T, secure bool) {
						o := startOver(t, secure, echo)
						s := &setup{o: proxy.Options{BufferRequest: keep}}
						s.over(t, secure)
						client, fr := dialHTTP2(http2Server(t, e, s.handler(t, o.addr())))
						id := uint32(1)
						send := func(cut func(all string) []string) (size int) {
							f := newFrames()
							c.put(f, id)
							for _, p := range cut(f.String()) {
								client.Send(p)
							}
							if got := answerOf(t, fr, id); got != "200 abcdefghijkl" {
								t.Fatalf("stream %d: %q", id, got)
							}
							id += 2
							return f.Len()
						}
						n := send(func(all string) []string { return strings.Split(all, "") })
						for i := 1; i < n; i++ {
							send(func(all string) []string { return []string{all[:i], all[i:]} })
						}
						got := o.received()
						if k := strings.Count(got, "POST / "); k != n {
							t.Errorf("%d requests of %d", k, n)
						}
						if want := c.name == "trailers"; want != strings.Contains(got, "Sum: 1\r\n\r\n") {
							t.Errorf("%q", got)
						}
					})
				})
			})
		}
	}
}

// TestUploadEndsHTTP2: a request that its client breaks off, or that is malformed, is never one that a server takes
// for complete.
func TestUploadEndsHTTP2(t *testing.T) {
	const nothing = "more than nothing"
	type frame = func(f *frames)
	data := func(p string, end bool) frame { return func(f *frames) { f.fr.WriteData(1, end, []byte(p)) } }
	head := func(more ...string) frame { return func(f *frames) { f.post(1, false, more...) } }
	reset := func(f *frames) { f.fr.WriteRSTStream(1, http2.ErrCodeCancel) }
	for _, c := range []struct {
		name string
		all  []frame
		want string // of the stream; "" for nothing
	}{
		{"reset at once", []frame{head(), reset}, ""},
		{"reset, length", []frame{head("content-length: 3"), data("ab", false), reset}, ""},
		{"reset with all bytes", []frame{head("content-length: 3"), data("abc", false), reset}, ""},
		{"reset, no length", []frame{head(), data("abc", false), reset}, ""},
		{"too long", []frame{head("content-length: 3"), data("abcd", false)}, "PROTOCOL_ERROR"},
		{"too long, later", []frame{head("content-length: 3"), data("abc", false), data("d", true)}, "PROTOCOL_ERROR"},
		{"too short", []frame{head("content-length: 3"), data("ab", true)}, "PROTOCOL_ERROR"},
		{"too short, trailers", []frame{head("content-length: 3"), data("ab", false), func(f *frames) { f.trailers(1, "a: b") }}, "PROTOCOL_ERROR"},
		{nothing, []frame{head("content-length: 0"), data("a", true)}, "PROTOCOL_ERROR"},
		{"trailers that must not be", []frame{head(), data("abc", false), func(f *frames) { f.trailers(1, "content-length: 3") }}, "PROTOCOL_ERROR"},
		{"length and such trailers", []frame{head("content-length: 3"), data("abc", false), func(f *frames) { f.trailers(1, "host: h") }}, "PROTOCOL_ERROR"},
	} {
		for _, keep := range []int{0, -1} {
			t.Run(fmt.Sprint(c.name, keep), func(t *testing.T) {
				t.Parallel()
				engines.Each(t, func(t *testing.T, e chert.Engine) {
					o, whole := wholes(t)
					s := &setup{o: proxy.Options{BufferRequest: keep}}
					client, fr := dialHTTP2(http2Server(t, e, s.handler(t, o.addr())))
					for _, put := range c.all {
						f := newFrames()
						put(f)
						client.Send(f.String())
					}
					// A body of no bytes is whole before the frame that belies it has come.
					early := c.name == nothing
					if c.want != "" {
						if got := answerOf(t, fr, 1); got != c.want && !(early && got == "200 ok") {
							t.Errorf("%q, want %q", got, c.want)
						}
					}
					f := newFrames()
					f.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, EndHeaders: true, EndStream: true,
						BlockFragment: block([]string{":method: GET", ":scheme: http", ":authority: h", ":path: /"})})
					client.Send(f.String())
					if got := answerOf(t, fr, 3); !strings.HasPrefix(got, "200 ") {
						t.Errorf("%q", got)
					}
					got := servertest.Await(t, whole, "a request")
					if early && got == "POST" {
						got = servertest.Await(t, whole, "another request")
					}
					if got != "GET" {
						t.Errorf("server received %q", got)
					}
					servertest.Eventually(t, "no request in flight", func() bool { return s.pool.Status()[0].Servers[0].InFlight == 0 })
					if st := s.pool.Status()[0].Servers[0]; st.Failures != 0 {
						t.Errorf("the server is blamed: %+v", st)
					}
				})
			})
		}
	}
}

// plainly is a handler that counts which path requests go.
type plainly struct {
	http.Handler
	plain atomic.Int64
}

func (h *plainly) TakesAhead() bool { return true }
func (h *plainly) ServeDirect(x *direct.Exchange) bool {
	return h.Handler.(direct.Handler).ServeDirect(x)
}
func (h *plainly) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.plain.Add(1)
	h.Handler.ServeHTTP(w, r)
}

// afterwards asks for the body when what it wraps has left the request to another server.
type afterwards struct{ plainly }

func (h *afterwards) ServeDirect(x *direct.Exchange) bool {
	answered := h.plainly.ServeDirect(x)
	(*wire.Exchange)(x).Body()
	return answered
}

// TestPlanOfMissedBody: a request that is served again because its body is needed does not keep its place at the
// server that it was to be forwarded to.
func TestPlanOfMissedBody(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"1", "2"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			o := start(t, echo)
			s := &setup{}
			h := &afterwards{plainly{Handler: s.handler(t, o.addr())}}
			ts := http2Server(t, chert.EngineAuto, h)
			c := http.DefaultClient
			if version == "2" {
				c = h2c(t)
			}
			in, out := io.Pipe()
			r, err := http.NewRequest("POST", "http://"+ts.ListenAddr, in)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				servertest.Eventually(t, "served again", func() bool { return h.plain.Load() == 1 })
				io.WriteString(out, "abc")
				out.Close()
			}()
			res, err := c.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if body, err := io.ReadAll(res.Body); string(body) != "abc" || err != nil {
				t.Errorf("%s %q: %v", res.Status, body, err)
			}
			s.unblamed(t)
		})
	}
}

// TestConversationHTTP2: a response goes on while the body of its request does, without a goroutine.
func TestConversationHTTP2(t *testing.T) {
	t.Parallel()
	o := start(t, func(c *conn) {
		r, err := http.ReadRequest(c.r)
		if err != nil {
			return
		}
		c.put("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		b := make([]byte, 100)
		for {
			n, err := r.Body.Read(b)
			if n > 0 {
				c.put(fmt.Sprintf("%x\r\n%s\r\n", n, b[:n]))
			}
			if err != nil {
				c.put("0\r\nEnd: " + r.Trailer.Get("Sum") + "\r\n\r\n")
				return
			}
		}
	})
	s := &setup{}
	h := &plainly{Handler: s.handler(t, o.addr())}
	ts := http2Server(t, chert.EngineAuto, h)
	in, out := io.Pipe()
	r, err := http.NewRequest("POST", "http://"+ts.ListenAddr, in)
	if err != nil {
		t.Fatal(err)
	}
	r.Trailer = http.Header{"Sum": nil}
	res, err := h2c(t).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		word := fmt.Sprintf("%03d", i)
		io.WriteString(out, word)
		b := make([]byte, 3)
		if _, err := io.ReadFull(res.Body, b); err != nil || string(b) != word {
			t.Fatalf("%q, %v", b, err)
		}
	}
	r.Trailer.Set("Sum", "4950")
	out.Close()
	if b, err := io.ReadAll(res.Body); len(b) > 0 || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	if v := res.Trailer.Get("End"); v != "4950" {
		t.Errorf("%q", v)
	}
	if n := h.plain.Load(); n > 0 && sys.HavePoller {
		t.Errorf("%d requests went to a goroutine", n)
	}
}

// TestGatheredUploadsHTTP2: what is gathered of bodies before their servers are asked for does not keep the windows
// shut, neither other streams' nor its own.
func TestGatheredUploadsHTTP2(t *testing.T) {
	for _, c := range []struct {
		name            string
		n, size, buffer int
	}{
		{"many", 40, 64_000, 0}, // together larger than the connection's window of 1 MiB
		{"one larger than its window", 1, 3 << 20, 4 << 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			engines.Each(t, func(t *testing.T, e chert.Engine) {
				o := start(t, func(c *conn) {
					for {
						_, body, ok := c.request()
						if !ok {
							return
						}
						c.put(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: %d\r\n\r\n", len(body)))
					}
				})
				s := &setup{o: proxy.Options{BufferRequest: c.buffer}}
				url := "http://" + http2Server(t, e, s.handler(t, o.addr())).ListenAddr
				client := h2c(t)
				client.Timeout = servertest.Patience
				res, err := client.Get(url) // the connection of all
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close()
				bodies, wait := beginUploads(t, client, url, c.n, c.size)
				for _, b := range bodies { // none is whole before all have come so far
					b.Write(make([]byte, c.size-1))
				}
				for _, b := range bodies {
					b.Write([]byte{'x'})
					b.Close()
				}
				wait()
			})
		})
	}
}

// TestGatheredLimitHTTP2: what is gathered of all bodies of a connection has a limit. Beyond that their servers get what
// has come, and the rest when it comes.
func TestGatheredLimitHTTP2(t *testing.T) {
	t.Parallel()
	limited := false
	try := func(t *testing.T) { limited = gatheredLimit(t) } // a test of its own: it leaves nothing open for the next
	for end := time.Now().Add(servertest.Patience); t.Run("try", try) && !limited; {
		if time.Now().After(end) {
			t.Fatal("each time requests went to goroutines, which have the limits of their bodies alone")
		}
	}
}

// gatheredLimit reports whether a server got a request whose body was not whole. Otherwise requests went to goroutines,
// as they do after one for which a busy machine has had the loop change its own.
func gatheredLimit(t *testing.T) (limited bool) {
	const n, size, first = 60, 64_000, 60_000 // 3.4 MiB, of which no body is whole
	begun := make(chan bool, n)
	o := start(t, func(c *conn) {
		for {
			r, err := http.ReadRequest(c.r)
			if err != nil {
				return
			}
			if r.Method == "POST" {
				begun <- true
			}
			got, err := io.Copy(io.Discard, r.Body)
			if err != nil {
				return
			}
			c.put(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: %d\r\n\r\n", got))
		}
	})
	s := &setup{}
	h := &plainly{Handler: s.handler(t, o.addr())}
	url := "http://" + http2Server(t, chert.EngineLoops, h).ListenAddr
	client := h2c(t)
	client.Timeout = servertest.Patience
	client.Transport.(*http.Transport).MaxConnsPerHost = 1
	bodies, wait := beginUploads(t, client, url, n, size)
	for _, b := range bodies {
		b.Write(make([]byte, first))
	}
	servertest.Eventually(t, "a request whose body is not whole has begun, or is on a goroutine", func() bool {
		limited = len(begun) > 0
		return limited || h.plain.Load() > 0
	})
	for _, b := range bodies {
		b.Write(make([]byte, size-first))
		b.Close()
	}
	wait()
	return limited
}

// beginUploads begins n requests, whose bodies of size bytes the caller writes. wait waits for the responses, which say how
// much the server has received.
func beginUploads(t *testing.T, client *http.Client, url string, n, size int) (bodies []*io.PipeWriter, wait func()) {
	var all sync.WaitGroup
	for range n {
		in, out := io.Pipe()
		bodies = append(bodies, out)
		r, err := http.NewRequest("POST", url, in)
		if err != nil {
			t.Fatal(err)
		}
		r.ContentLength = int64(size)
		all.Go(func() {
			res, err := client.Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			res.Body.Close()
			if got := res.Header.Get("X"); res.StatusCode != 200 || got != fmt.Sprint(size) {
				t.Errorf("%s, the server has received %q of %d bytes", res.Status, got, size)
			}
		})
	}
	return bodies, all.Wait
}

// TestSlowServerHTTP2: the client sends no more than the windows, which a server that does not read keeps shut.
func TestSlowServerHTTP2(t *testing.T) {
	const size = 48 << 20
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		go1 := make(chan bool)
		o := start(t, func(c *conn) {
			r, err := http.ReadRequest(c.r)
			if err != nil {
				return
			}
			c.wait(go1)
			n, _ := io.Copy(io.Discard, r.Body)
			c.put(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n%08d", n))
		})
		client, fr := dialHTTP2(http2Server(t, e, (&setup{}).handler(t, o.addr())))
		f := newFrames()
		f.post(1, false)
		client.Send(f.String())
		conn, stream := 65535, 65535
		piece := make([]byte, 16<<10)
		stuck, sent := false, 0
		for sent < size {
			if n := min(conn, stream, len(piece), size-sent); n > 0 {
				conn, stream, sent = conn-n, stream-n, sent+n
				fr.WriteData(1, sent == size, piece[:n])
				continue
			}
			if !stuck {
				client.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
			}
			frame, err := fr.ReadFrame()
			switch frame := frame.(type) {
			case *http2.SettingsFrame:
				if v, ok := frame.Value(http2.SettingInitialWindowSize); ok {
					stream += int(v) - 65535
				}
			case *http2.PingFrame:
				fr.WritePing(true, frame.Data)
			case *http2.WindowUpdateFrame:
				if frame.StreamID == 0 {
					conn += int(frame.Increment)
				} else {
					stream += int(frame.Increment)
				}
			default:
				if err == nil || stuck {
					t.Fatal(frame, err)
				}
				stuck = true
				client.SetDeadline(time.Now().Add(servertest.Patience))
				close(go1)
			}
		}
		if !stuck {
			t.Error("all of the body was taken")
			close(go1)
		}
		if got := answerOf(t, fr, 1); got != fmt.Sprintf("200 %08d", size) {
			t.Error(got)
		}
	})
}

// TestWindowAfterResets: streams that are reset with bodies that a server does not read give their part of the
// connection's window back.
func TestWindowAfterResets(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		o := start(t, func(c *conn) {
			if head := c.head(); strings.HasPrefix(head, "POST ") {
				c.wait(nil)
				return
			}
			c.put(ok)
		})
		s := &setup{}
		client, fr := dialHTTP2(http2Server(t, e, s.handler(t, o.addr())))
		piece := strings.Repeat("x", 16<<10)
		id := uint32(1)
		for range 6 { // each takes most of the connection's window of 1 MiB, and of the sockets'
			f := newFrames()
			f.post(id, false)
			for range 40 {
				f.fr.WriteData(id, false, []byte(piece))
			}
			f.fr.WriteRSTStream(id, http2.ErrCodeCancel)
			f.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id + 2, EndHeaders: true, EndStream: true,
				BlockFragment: block([]string{":method: GET", ":scheme: http", ":authority: h", ":path: /"})})
			client.Send(f.String())
			if got := answerOf(t, fr, id+2); got != "200 ok" {
				t.Fatal(got)
			}
			id += 4
		}
		servertest.Eventually(t, "no request in flight", func() bool { return s.pool.Status()[0].Servers[0].InFlight == 0 })
	})
}
