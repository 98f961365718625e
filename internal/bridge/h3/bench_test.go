package h3

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/http3"
	"github.com/chert-http/chert/internal/pack"
	"github.com/chert-http/chert/internal/place"
	"github.com/chert-http/chert/internal/tally"
)

var client = &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}

// inMemory is a connection of which a client sends one request after another.
type inMemory struct {
	streams chan Stream
	ctx     context.Context
	end     context.CancelFunc
	session *Session

	sent    atomic.Int64 // how often Sent was called
	sending int64        // up to which call packets are sent
}

func (c *inMemory) Accept() (Stream, error) {
	select {
	case s := <-c.streams:
		return s, nil
	case <-c.ctx.Done():
		return nil, net.ErrClosed
	}
}

func (c *inMemory) AcceptUni() (ReceiveStream, error) {
	<-c.ctx.Done()
	return nil, net.ErrClosed
}

func (c *inMemory) OpenUni() (SendStream, error) { return &memoryStream{c: c}, nil }
func (c *inMemory) Close(http3.ErrCode, string)  { c.end() }
func (c *inMemory) TLS() *tls.ConnectionState    { return &tls.ConnectionState{Version: tls.VersionTLS13} }
func (c *inMemory) LocalAddr() net.Addr          { return &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 443} }
func (c *inMemory) RemoteAddr() net.Addr         { return client }
func (c *inMemory) RTT() time.Duration           { return 0 }

func (c *inMemory) Sent() uint64 {
	return uint64(min(c.sent.Add(1), c.sending))
}

// memoryStream has all of a request, and counts what is answered.
type memoryStream struct {
	c    *inMemory
	id   uint64
	in   []byte
	out  int
	done chan int // gets the bytes of the answer at its end
}

func (s *memoryStream) Read(p []byte) (int, error) {
	n := copy(p, s.in)
	if s.in = s.in[n:]; len(s.in) == 0 {
		return n, io.EOF
	}
	return n, nil
}

func (s *memoryStream) Write(p []byte) (int, error) {
	s.out += len(p)
	return len(p), nil
}

func (s *memoryStream) TryWrite(p []byte) (bool, error) {
	s.out += len(p)
	return true, nil
}

func (s *memoryStream) End() error {
	s.done <- s.out
	return nil
}

func (s *memoryStream) SetReadDeadline(time.Time) error  { return nil }
func (s *memoryStream) SetWriteDeadline(time.Time) error { return nil }
func (s *memoryStream) Stop(http3.ErrCode)               {}
func (s *memoryStream) Release()                         {}
func (s *memoryStream) Reset(http3.ErrCode)              { s.done <- -1 }
func (s *memoryStream) SetPriority(int8, bool)           {}
func (s *memoryStream) Context() context.Context         { return s.c.ctx }
func (s *memoryStream) ID() uint64                       { return s.id }

// served serves h on a connection in memory.
func served(tb testing.TB, h http.Handler) *inMemory { return servedWith(tb, 250, h) }

// servedWith is served for a client that may have streams requests at a time.
func servedWith(tb testing.TB, streams int, h http.Handler) *inMemory {
	c := &inMemory{streams: make(chan Stream)}
	c.ctx, c.end = context.WithCancel(context.Background())
	places := place.New()
	cfg := &Config{
		Config: &bridge.Config{
			Handler: &h, BaseContext: context.Background(), Stopping: make(chan struct{}),
			HTTPServer: func() *http.Server { return nil }, KeepAlives: func() bool { return true },
			Places: places, Routes: places.NewRoutes(), Stopped: func() bool { return false }, Logf: tb.Logf,
		},
		List: pack.Limits{Fields: 128, Bytes: 64 << 10}, MaxStreams: streams, HeadTime: int64(time.Minute), IdleTime: int64(time.Minute),
	}
	ended := make(chan struct{})
	s := cfg.New(c, new(tally.Shard), func(*Session) { close(ended) })
	c.session = s
	go s.Serve()
	tb.Cleanup(func() {
		c.end()
		<-ended
	})
	return c
}

// get is a stream with a request.
func (c *inMemory) get(id uint64) *memoryStream { return c.ask(id, "/hello") }

// ask is a stream with a request for a path.
func (c *inMemory) ask(id uint64, path string) *memoryStream {
	b := http3.AppendPrefix(nil)
	b = http3.AppendKnown(b, pack.IDMethod, "GET")
	b = http3.AppendKnown(b, pack.IDScheme, "https")
	b = http3.AppendKnown(b, pack.IDAuthority, "example.com")
	b = http3.AppendKnown(b, pack.IDPath, path)
	b = http3.AppendField(b, "user-agent", "a client")
	return &memoryStream{c: c, id: id, in: append(http3.AppendHeader(nil, http3.FrameHeaders, len(b)), b...), done: make(chan int, 2)}
}

var hello = []byte("Hello, World!\n")

// BenchmarkRequest is a request without QUIC.
func BenchmarkRequest(b *testing.B) {
	ready := direct.NewResponse(200, http.Header{"Content-Type": {"text/plain"}}, hello)
	for _, bb := range []struct {
		name string
		h    http.Handler
	}{
		{"plain", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(hello) })},
		{"direct", ready},
	} {
		b.Run(bb.name, func(b *testing.B) {
			c := served(b, bb.h)
			request := c.get(0).in
			b.ReportAllocs()
			str := c.get(0)
			for i := range b.N {
				str.id, str.in, str.out = uint64(4*i), request, 0
				c.streams <- str
				if <-str.done <= 0 {
					b.Fatal("no answer")
				}
			}
		})
	}
}
