package h1

import (
	"testing"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/sys"
)

// A direct handler on a loop has the loop's time, on the clock of package
// direct.
func TestDirectTime(t *testing.T) {
	t.Parallel()
	var got time.Duration
	run, link := exchangeOf(direct.HandlerFunc(func(x *direct.Exchange) { got = x.Wire().Now() }), wrkGET)
	before := wire.Clock()
	link.now = sys.Nanotime()
	after := wire.Clock()
	run()
	if got < before || got > after {
		t.Errorf("got %v, not between %v and %v", got, before, after)
	}
	first := got
	if run(); got != first {
		t.Errorf("got %v, and not the loop's %v: the clock was read", got, first)
	}
}

func TestDirectFirst(t *testing.T) {
	t.Parallel()
	run, _ := exchangeOf(direct.HandlerFunc(func(x *direct.Exchange) {
		for _, tt := range []struct {
			name, want string
			n          int
		}{{"Accept", "a", 2}, {"aCCEPT", "a", 2}, {"x-own", "1", 2}, {"X-Empty", "", 1}, {"Host", "", 0}, {"Cookie", "", 0}} {
			v, n := x.Wire().Fields().First(tt.name)
			if string(v) != tt.want || n != tt.n || (v == nil) != (n == 0) {
				t.Errorf("%s: got %q, %d", tt.name, v, n)
			}
		}
	}), "GET / HTTP/1.1\r\nHost: h\r\nAccept: a\r\nX-Own: 1\r\naccept: b\r\nX-OWN: 2\r\nX-Empty:\r\n\r\n")
	run()
}
