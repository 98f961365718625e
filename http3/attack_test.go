package http3_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	chert3 "github.com/chert-http/chert/http3"
	codec "github.com/chert-http/chert/internal/http3"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/websocket"
)

const excessive = "CLOSE H3_EXCESSIVE_LOAD"

// attacked has attack run against a server with defaults until its connection ends, which is for
// its excess, and checks that another client is served meanwhile and afterwards.
func attacked(t *testing.T, h http.Handler, attack func(c *raw)) {
	t.Helper()
	s := serve(t, &chert.Server{Handler: h, HTTP3: chert3.NewFrugal(), ExtendedConnect: true, IdleTimeout: -1, ReadHeaderTimeout: servertest.Patience})
	bystander := s.bare(patient())
	if a := bystander.get("/"); a.ending() != "200" {
		t.Fatalf("before: %+v", a)
	}
	o := patient()
	o.InitialStreamReceiveWindow, o.MaxStreamReceiveWindow = 32<<10, 32<<10
	c := s.bare(o)
	// It ends by what the client does and not by the time that this takes, which on a busy machine may be minutes.
	attack(c)
	if got := c.ended(); got != excessive {
		t.Errorf("%s, want %s", got, excessive)
	}
	if a := bystander.get("/"); a.ending() != "200" {
		t.Errorf("another client is answered %+v", a)
	}
}

// patient is a client that waits for a server on a machine that is busy.
func patient() *quic.Config {
	return &quic.Config{HandshakeIdleTimeout: servertest.Patience / 2, MaxIdleTimeout: 10 * time.Minute}
}

// until calls f again and again, with the connection's next stream, until it ends, or has done far more than it may.
// Some calls run at a time.
func (c *raw) until(f func(str *quic.Stream)) {
	var all sync.WaitGroup
	defer all.Wait()
	for range 16 {
		all.Go(func() {
			for range 2000 {
				str, err := c.OpenStreamSync(c.Context())
				if err != nil {
					return
				}
				f(str)
			}
		})
	}
}

func cancel(str *quic.Stream) {
	str.CancelRead(quic.StreamErrorCode(codec.RequestCancelled))
	str.CancelWrite(quic.StreamErrorCode(codec.RequestCancelled))
}

// CVE-2023-44487: requests that are cancelled at once. No more handlers run than streams are
// allowed, and the connection ends.
func TestRapidReset(t *testing.T) {
	t.Parallel()
	for name, request := range map[string][]byte{
		"whole":       headers(path(get, "/wait")...),
		"with a body": headers(path(post, "/wait")...),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var running, most atomic.Int64
			attacked(t, hf(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/" {
					return
				}
				n := running.Add(1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				<-r.Context().Done()
				running.Add(-1)
			}), func(c *raw) {
				c.until(func(str *quic.Stream) {
					str.Write(request)
					if name == "whole" {
						str.Close()
					}
					cancel(str)
				})
			})
			servertest.Eventually(t, "all have ended", func() bool { return running.Load() == 0 })
			if n := most.Load(); n > 250 {
				t.Errorf("%d handlers ran at once", n)
			}
		})
	}
}

// The same with streams that a handler has taken over.
func TestRapidResetOfWebSockets(t *testing.T) {
	t.Parallel()
	var opened, closed atomic.Int64
	h, err := websocket.New(&websocket.Options{
		OnOpen:  func(*websocket.Conn, *http.Request) { opened.Add(1) },
		OnClose: func(*websocket.Conn, websocket.Code, string) { closed.Add(1) },
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/ws", h)
	mux.HandleFunc("/", hello)
	request := headers(with(connect[:4], ":path: /ws", connect[5])...)
	attacked(t, mux, func(c *raw) {
		c.until(func(str *quic.Stream) {
			str.Write(request)
			var b [1]byte
			str.Read(b[:]) // it is open
			cancel(str)
		})
	})
	if n := opened.Load(); n < 500 {
		t.Errorf("%d were opened", n)
	}
	servertest.Eventually(t, "all have ended", func() bool { return closed.Load() == opened.Load() })
}

// A handler that does not notice keeps its stream's place.
func TestRapidResetOfDeaf(t *testing.T) {
	t.Parallel()
	begun, release := make(chan bool), make(chan bool)
	s := serve(t, &chert.Server{HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 10}, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
		begun <- true
		<-release
	})})
	c := s.raw()
	for range 10 {
		str, err := c.OpenStream()
		if err != nil {
			t.Fatal(err)
		}
		str.Write(headers(get...))
		str.Close()
		servertest.Await(t, begun, "the handler")
		cancel(str)
	}
	if _, err := c.OpenStream(); err == nil {
		t.Error("there is a place for another")
	}
	close(release)
	if str, err := c.OpenStreamSync(c.Context()); err != nil {
		t.Error(err)
	} else {
		str.Write(headers(get...))
		<-begun
	}
}

// CVE-2025-8671: errors that the client provokes count as its own resets.
func TestMadeYouReset(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		p   []byte
		end bool
	}{
		"malformed":       {headers("a: b"), false},
		"nothing":         {nil, true},
		"unknown frames":  {frame(0x21, nil), true},
		"too much":        {join(headers(with(post, "content-length: 0")...), data("x")), false},
		"large trailers":  {join(headers(post...), frame(codec.FrameHeaders, nil)[:1], codec.AppendVarint(nil, 1<<30)), false},
		"upper case":      {join(headers(post...), headers("A: b")), true},
		"a direct answer": {headers(path(get, "/direct")...), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, large := http.Handler(hf(reads)), strings.Repeat("x", 100_000)
			if name == "a direct answer" {
				h = direct.HandlerFunc(func(x *direct.Exchange) {
					if string(x.Path()) == "/" {
						x.WriteString("hello")
					} else {
						x.WriteString(large) // than the client's window
					}
				})
			}
			attacked(t, h, func(c *raw) {
				c.until(func(str *quic.Stream) {
					str.Write(tt.p)
					if tt.end {
						str.Close()
					}
					var b [1]byte
					str.Read(b[:])
					cancel(str)
				})
			})
		})
	}
}

// Requests whose fields are too large are answered, but not without end.
func TestTooLargeFlood(t *testing.T) {
	t.Parallel()
	for name, request := range map[string][]byte{
		"decoded":   frame(codec.FrameHeaders, append(fields(get...), strings.Repeat("\xdf", 200)...)), // accept-encoding
		"announced": codec.AppendHeader(nil, codec.FrameHeaders, 1<<30),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			attacked(t, hf(hello), func(c *raw) {
				if a := c.do(request); a.status() != "431" {
					t.Errorf("%+v", a)
				}
				c.until(func(str *quic.Stream) {
					str.Write(request)
					str.Close()
					io.Copy(io.Discard, str)
				})
			})
		})
	}
}

// One such request does not end the connection, however large the limit is.
func TestTooLargeOnce(t *testing.T) {
	t.Parallel()
	const limit = 64 << 20
	s := serve(t, &chert.Server{Handler: hf(hello), HTTP3: chert3.NewFrugal(), MaxHeaderBytes: limit})
	c := s.raw()
	if a := c.do(codec.AppendHeader(nil, codec.FrameHeaders, limit+1<<20)); a.status() != "431" {
		t.Errorf("%+v", a)
	}
	if a := c.get("/"); a.ending() != "200" {
		t.Errorf("the next one: %+v", a)
	}
}

// What does nothing, on one stream or on many.
func TestFloods(t *testing.T) {
	t.Parallel()
	update := frame(codec.FramePriorityUpdate, []byte("\x00u=1"))
	for name, tt := range map[string]struct {
		begin, p []byte
		uni      bool
	}{
		"PRIORITY_UPDATE":         {join([]byte{0}, settings()), update, true},
		"MAX_PUSH_ID":             {join([]byte{0}, settings()), frame(codec.FrameMaxPushID, []byte{1}), true},
		"GOAWAY":                  {join([]byte{0}, settings()), codec.AppendGoAway(nil, 1), true},
		"unknown frames":          {join([]byte{0}, settings()), frame(0x21, nil), true},
		"a large unknown frame":   {join([]byte{0}, settings(), frame(0x21, nil)[:1], []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}), make([]byte, 10_000), true},
		"cancellations":           {[]byte{3}, []byte{0x40}, true},
		"a capacity":              {[]byte{2}, []byte{0x20}, true},
		"empty DATA":              {headers(post...), data(""), false},
		"unknown frames in it":    {headers(post...), frame(0x21, nil), false},
		"unknown frames first":    {nil, frame(0x21, nil), false},
		"a large frame of no use": {append(headers(post...), 0x21, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), make([]byte, 10_000), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			attacked(t, hf(reads), func(c *raw) {
				var str io.Writer
				if tt.uni {
					s, err := c.OpenUniStream()
					if err != nil {
						t.Fatal(err)
					}
					str = s
				} else {
					s, err := c.OpenStream()
					if err != nil {
						t.Fatal(err)
					}
					str = s
				}
				str.Write(tt.begin)
				many := []byte(strings.Repeat(string(tt.p), max(1, 10_000/len(tt.p))))
				for range 3000 {
					if _, err := str.Write(many); err != nil {
						break
					}
				}
			})
		})
	}
	t.Run("unknown streams", func(t *testing.T) {
		t.Parallel()
		attacked(t, hf(hello), func(c *raw) {
			for range 20_000 {
				str, err := c.OpenUniStreamSync(c.Context())
				if err != nil {
					return
				}
				str.Write([]byte{0x21})
				str.Close()
			}
		})
	})
	t.Run("streams without a type", func(t *testing.T) {
		t.Parallel()
		attacked(t, hf(hello), func(c *raw) {
			for range 20_000 {
				str, err := c.OpenUniStreamSync(c.Context())
				if err != nil {
					return
				}
				str.Close()
			}
		})
	})
}

// No more unidirectional streams are open than may be.
func TestUniStreams(t *testing.T) {
	t.Parallel()
	c := serve(t, &chert.Server{Handler: hf(hello)}).raw()
	n := 1
	for ; n < 100; n++ {
		str, err := c.OpenUniStream()
		if err != nil {
			break
		}
		str.Write([]byte{0xc0})
	}
	if n != 8 {
		t.Errorf("%d", n)
	}
	if a := c.get("/"); a.body != "hello" {
		t.Errorf("%+v", a)
	}
}

// A handler that sends interim answers for as long as its client is there keeps no more than a bound for one that does
// not read, and ends by WriteStallTimeout. One that reads gets them all.
func TestInterimFlood(t *testing.T) {
	t.Parallel()
	var sent, flooding atomic.Int64
	s := serve(t, &chert.Server{WriteStallTimeout: time.Second, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", strings.Repeat("x", 1000))
		if r.URL.Path == "/" {
			for range 100 {
				w.WriteHeader(http.StatusEarlyHints)
			}
			return
		}
		flooding.Add(1)
		defer flooding.Add(-1)
		for r.Context().Err() == nil {
			w.WriteHeader(http.StatusEarlyHints)
			sent.Add(1)
		}
	})})
	c := s.bare(&quic.Config{InitialStreamReceiveWindow: 20_000, MaxStreamReceiveWindow: 20_000})
	e := c.open(true, headers(path(get, "/flood")...))
	servertest.Eventually(t, "it has begun", func() bool { return sent.Load() > 0 })
	if a := c.get("/"); a.ending() != "200" || len(a.interim) != 200 {
		t.Errorf("%s, %d lines", a.ending(), len(a.interim))
	}
	servertest.Eventually(t, "it has ended", func() bool { return flooding.Load() == 0 })
	// The window, what the transport keeps, and the last ones.
	if n := sent.Load(); n > (20_000+16<<10+8<<10)/1000 {
		t.Errorf("%d were sent", n)
	}
	if a := e.read(); a.err == nil {
		t.Errorf("%+v", a)
	}
	servertest.Eventually(t, "nothing is kept", func() bool { return s.Stats().Running == 0 })
}

// Many streams with incomplete heads keep no more than a connection may, and what they have only
// announced is not kept at all. Not beside others: the buffers are those of the process.
func TestHeaderFlood(t *testing.T) {
	s := serve(t, &chert.Server{Handler: hf(hello), MaxHeaderBytes: 64 << 10})
	for name, sent := range map[string]int{"announced": 10, "sent": 60_000} {
		c := s.raw()
		ends := make(chan string, 250)
		for range 250 {
			head := append(codec.AppendHeader(nil, codec.FrameHeaders, 60_001), make([]byte, sent)...)
			e := c.open(false)
			go e.Write(head)
			go func() { ends <- e.read().ending() }()
		}
		for range 200 {
			if got := servertest.Await(t, ends, "those that there is no room for"); got != "RESET H3_REQUEST_REJECTED" {
				t.Fatalf("%s: %s", name, got)
			}
		}
		if n := s.Stats().BufferBytes; n > 4<<20 || name == "announced" && n > 1<<20 {
			t.Errorf("%s: %d bytes are kept", name, n)
		}
		c.CloseWithError(0x100, "")
		servertest.Eventually(t, "nothing is kept", func() bool { return s.Stats().BufferBytes == 0 })
	}
}

// deafConn loses what the client would send, from some time on.
type deafConn struct {
	*net.UDPConn
	sending, receiving atomic.Bool
	retries            atomic.Int64
}

func (c *deafConn) WriteTo(p []byte, to net.Addr) (int, error) {
	if !c.sending.Load() {
		return len(p), nil
	}
	return c.UDPConn.WriteTo(p, to)
}

func (c *deafConn) ReadFrom(p []byte) (int, net.Addr, error) {
	for {
		n, from, err := c.UDPConn.ReadFrom(p)
		// RFC 9000 section 17.2.5
		if err == nil && n > 0 && p[0]&0xf0 == 0xf0 {
			c.retries.Add(1)
		}
		if err != nil || c.receiving.Load() {
			return n, from, err
		}
	}
}

// plainConn has of a deafConn what quic-go needs of any net.PacketConn, and the sizes of buffers.
type plainConn struct {
	net.PacketConn
	sized
}

type sized interface {
	SetReadBuffer(int) error
	SetWriteBuffer(int) error
}

// deaf is a transport on one, which neither loses nor ignores anything at first.
func deaf(t *testing.T) (*quic.Transport, *deafConn) {
	u, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	c := &deafConn{UDPConn: u}
	c.sending.Store(true)
	c.receiving.Store(true)
	tr := &quic.Transport{Conn: plainConn{c, u}}
	t.Cleanup(func() {
		tr.Close()
		u.Close()
	})
	return tr, c
}

// A client that opens huge windows and acknowledges nothing: of each answer no more is kept than a
// bound, whatever its handler writes.
func TestNoAcknowledgments(t *testing.T) {
	t.Parallel()
	for name, piece := range map[string]int{"small pieces": 500, "large pieces": 100_000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var accepted atomic.Int64
			var running sync.WaitGroup
			gone := make(chan bool)
			begun := make(chan bool, 1000)
			s := serve(t, &chert.Server{WriteStallTimeout: time.Second, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/" {
					return
				}
				begun <- true
				<-gone
				for {
					n, err := w.Write(make([]byte, piece))
					if err != nil {
						running.Done()
						return
					}
					accepted.Add(int64(n))
				}
			})})
			tr, loss := deaf(t)
			to, _ := net.ResolveUDPAddr("udp", s.addr)
			const huge = 1 << 30
			qc, err := tr.Dial(t.Context(), to, clientTLS(), &quic.Config{
				InitialStreamReceiveWindow: huge, MaxStreamReceiveWindow: huge, InitialConnectionReceiveWindow: huge, MaxConnectionReceiveWindow: huge,
			})
			if err != nil {
				t.Fatal(err)
			}
			c := &raw{Conn: qc, t: t}
			for range 200 {
				running.Add(1)
				c.open(true, headers(path(get, "/wait")...))
			}
			for range 200 {
				servertest.Await(t, begun, "a handler")
			}
			loss.sending.Store(false)
			close(gone)
			running.Wait()
			// The pieces that were gathered, those that the transport has kept, and a window.
			if n, most := accepted.Load(), int64(200*(4<<10+16<<10+8<<10)+1<<20); n > most {
				t.Errorf("%d bytes were accepted, %d for each answer", n, n/200)
			}
		})
	}
}

// Above 256 handshakes that do not go on, clients show that their addresses are their own.
func TestHalfOpen(t *testing.T) {
	t.Parallel()
	s := serve(t, &chert.Server{Handler: hf(hello), ReadHeaderTimeout: 2 * servertest.Patience}) // and for handshakes
	to, _ := net.ResolveUDPAddr("udp", s.addr)
	tr, loss := deaf(t)
	loss.receiving.Store(false)
	ctx, stop := context.WithCancel(t.Context())
	var dialing sync.WaitGroup
	defer dialing.Wait()
	defer stop()
	for range 300 {
		dialing.Go(func() {
			if _, err := tr.Dial(ctx, to, clientTLS(), &quic.Config{HandshakeIdleTimeout: servertest.Patience}); err == nil {
				t.Error("connected")
			}
		})
	}
	servertest.Eventually(t, "there are retries", func() bool { return loss.retries.Load() > 0 })
	if n := s.Stats().TLS.Running; n > 256 {
		t.Errorf("%d handshakes", n)
	}
	// Another client is served, a round trip later.
	tr2, counts := deaf(t)
	qc, err := tr2.Dial(ctx, to, clientTLS(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if a := (&raw{Conn: qc, t: t}).get("/"); a.body != "hello" || counts.retries.Load() == 0 {
		t.Errorf("%+v, %d retries", a, counts.retries.Load())
	}
}
