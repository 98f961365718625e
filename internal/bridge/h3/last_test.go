package h3

import (
	"context"
	"net/http"
	"runtime"
	"testing"
	"weak"

	"github.com/chert-http/chert/internal/bridge/section"
	"github.com/chert-http/chert/internal/http3"
	"github.com/chert-http/chert/internal/takeover"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// endingStream has a context of its own, which ends with it as that of the transport does.
type endingStream struct {
	*memoryStream
	ctx context.Context
	end context.CancelFunc
}

func (c *inMemory) ending(id uint64) *endingStream {
	s := &endingStream{memoryStream: c.get(id)}
	s.ctx, s.end = context.WithCancel(c.ctx)
	return s
}

func (s *endingStream) Context() context.Context { return s.ctx }

func (s *endingStream) End() error {
	s.end()
	return s.memoryStream.End()
}

func (s *endingStream) Reset(code http3.ErrCode) {
	s.end()
	s.memoryStream.Reset(code)
}

type quietSource struct{ closed chan struct{} }

func (s *quietSource) Writable() {}
func (s *quietSource) Stop()     {}
func (s *quietSource) Closed()   { close(s.closed) }

// What has outlived its handler and is reset by the server is not charged to the client, and ends whole if it is ended
// twice.
func TestEnds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		end  func(s takeover.Stream)
		want func(sent int) bool
	}{
		{"reset", func(s takeover.Stream) { s.End(true) }, func(sent int) bool { return sent == -1 }},
		{"whole", func(s takeover.Stream) { s.End(false); s.End(false) }, func(sent int) bool { return sent > 0 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			closed := make(chan *quietSource, 1)
			c := served(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				var stream takeover.Stream
				source := &quietSource{make(chan struct{})}
				err := takeover.Find[takeover.Streamer](w).Outlive(func(s takeover.Stream, _ bool) takeover.Source {
					stream = s
					return source
				})
				if err != nil {
					t.Error(err)
				}
				tt.end(stream)
				closed <- source
			}))
			for i := range 2 * section.ResetBudget {
				str := c.ending(uint64(4 * i))
				select {
				case c.streams <- str:
				case <-c.ctx.Done():
					t.Fatalf("the connection has ended after %d streams", i)
				}
				servertest.Await(t, servertest.Await(t, closed, "the handler").closed, "the end of an answer")
				if sent := servertest.Await(t, str.done, "the end of a stream"); !tt.want(sent) {
					t.Fatalf("stream %d: %d", i, sent)
				}
			}
		})
	}
}

// What has outlived its handler does not keep the request, though the handler has waited for the client's end by it.
func TestLastingWithoutItsRequest(t *testing.T) {
	t.Parallel()
	requests := make(chan weak.Pointer[http.Request], 1)
	source := &quietSource{make(chan struct{})}
	c := served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
			t.Error("the client has gone")
		default:
		}
		err := takeover.Find[takeover.Streamer](w).Outlive(func(takeover.Stream, bool) takeover.Source { return source })
		if err != nil {
			t.Error(err)
		}
		requests <- weak.Make(r)
	}))
	str := c.ending(0)
	c.streams <- str
	r := servertest.Await(t, requests, "the handler")
	servertest.Eventually(t, "the request is kept by nothing", func() bool {
		runtime.GC()
		return r.Value() == nil
	})
	str.end() // by the client
	servertest.Await(t, source.closed, "the end of the answer")
}
