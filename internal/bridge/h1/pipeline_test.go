package h1

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/sys"
)

// A pipelined request waits for the answer before it that the peer does not take,
// wherever it is served.
func TestPipelineStalls(t *testing.T) {
	t.Parallel()
	for _, off := range []bool{false, true} {
		served := 0
		var h http.Handler = direct.HandlerFunc(func(x *direct.Exchange) {
			served++
			x.Write(make([]byte, 1000))
		})
		l := &fakeLink{now: sys.Nanotime(), most: 100, off: off, in: []byte(strings.Repeat(wrkGET, 3))}
		s := testConfig(h).New(l)
		s.facts.Store(onLoops)
		for i := 1; i <= 3; i++ {
			if next := s.Data(false); served != i || next != conn.Requeue {
				t.Errorf("off the loop %v: %d are served while an answer waits, want %d; next is %d", off, served, i, next)
			}
			for l.out.Blocked() {
				l.resume()
			}
		}
		if next := s.Data(false); next != conn.More {
			t.Errorf("off the loop %v: %d when all was answered", off, next)
		}
	}
}
