package bridge

import (
	"testing"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/sys"
)

// splicer is a Link and what it lends, and knows whether its caller alone may send.
type splicer struct {
	conn.Link
	lent
	w     *Response
	calls int
	alone bool
}

type lent struct{ conn.Lent }

func (s *splicer) Lent() conn.Lent { return s }

func (s *splicer) CanRelay() bool {
	s.calls++
	if s.alone = !s.w.mu.TryLock(); !s.alone {
		s.w.mu.Unlock()
	}
	return false
}

// A Link that another goroutine of the handler may be sending through is not asked for splice, nor one that the
// exchange does not have any more.
func TestSpliceAlone(t *testing.T) {
	t.Parallel()
	if !sys.HaveSplice {
		t.Skip("this system has no splice")
	}
	l := new(splicer)
	x := &Exchange{c: &Client{Link: l}}
	w := &x.Res
	w.x, l.w = x, w
	if _, ok, err := w.splice(nil, 1); ok || err != nil || l.calls != 1 || !l.alone {
		t.Errorf("%v, %v, %d calls, alone: %v", ok, err, l.calls, l.alone)
	}
	w.Done = true
	if _, ok, err := w.splice(nil, 1); ok || err != nil || l.calls != 1 {
		t.Errorf("after the handler has returned: %v, %v, %d calls", ok, err, l.calls)
	}
}
