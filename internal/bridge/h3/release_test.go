package h3

import (
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/http3"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// countedStream counts calls of Release.
type countedStream struct {
	*memoryStream
	released atomic.Int32
}

func (s *countedStream) Release() { s.released.Add(1) }

// However a stream ends, the client may open another one in its place, once.
func TestReleasedOnce(t *testing.T) {
	t.Parallel()
	type hf = http.HandlerFunc
	for name, tt := range map[string]struct {
		h  http.Handler
		in []byte // instead of a request
	}{
		"answered":         {h: hf(func(w http.ResponseWriter, _ *http.Request) { w.Write(hello) })},
		"panic":            {h: hf(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })},
		"Goexit":           {h: hf(func(http.ResponseWriter, *http.Request) { runtime.Goexit() })},
		"direct":           {h: direct.NewResponse(200, nil, hello)},
		"direct, panic":    {h: direct.HandlerFunc(func(*direct.Exchange) { panic(http.ErrAbortHandler) })},
		"direct, Goexit":   {h: direct.HandlerFunc(func(*direct.Exchange) { runtime.Goexit() })},
		"malformed":        {in: http3.AppendHeader(nil, http3.FrameHeaders, 2)},
		"malformed fields": {in: append(http3.AppendHeader(nil, http3.FrameHeaders, 2), 0, 0)},
		"unknown frames":   {in: http3.AppendHeader(nil, 0x21, 0)},
		"too large":        {in: http3.AppendHeader(nil, http3.FrameHeaders, 1<<20)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := tt.h
			if h == nil {
				h = hf(func(http.ResponseWriter, *http.Request) {})
			}
			c := served(t, h)
			var all []*countedStream
			for i := range 3 {
				str := &countedStream{memoryStream: c.get(uint64(4 * i))}
				if tt.in != nil {
					str.in = tt.in
				}
				select {
				case c.streams <- str:
					all = append(all, str)
				case <-c.ctx.Done(): // by an error
				}
			}
			servertest.Eventually(t, "all are released", func() bool {
				for _, str := range all {
					if str.released.Load() == 0 {
						return false
					}
				}
				return true
			})
			c.end()
			for _, str := range all {
				if n := str.released.Load(); n != 1 {
					t.Errorf("Release was called %d times", n)
				}
			}
		})
	}
}
