package h3

import (
	"testing"

	"github.com/chert-http/chert/internal/http3"
)

// Whatever streams a client names in PRIORITY_UPDATE, and however many, no more is kept than it may have requests.
func TestPriorityUpdatesOfNothing(t *testing.T) {
	t.Parallel()
	const most = 100
	s := &Session{cfg: &Config{MaxStreams: most}, next: 40}
	s.useless.Init(1<<30, 0, 0)
	var c control
	update := func(id uint64) {
		t.Helper()
		p := append(http3.AppendVarint(nil, id), "u=1"...)
		if err := c.frame(s, http3.Header{Type: http3.FramePriorityUpdate, Length: uint64(len(p))}, p); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []uint64{0, 36, 40 + 4*most, 1 << 40, http3.MaxVarint - 3} { // ended, or far away
		update(id)
	}
	if len(s.early) != 0 {
		t.Errorf("%v is kept", s.early)
	}
	for id := range uint64(10 * most) {
		update(4 * id)
		update(4 * id)
	}
	if n := len(s.early); n != most {
		t.Errorf("%d are kept", n)
	}
}
