package timer

import (
	"fmt"
	"testing"
)

// No wait is longer than it would be, or shorter by more than a tenth, and a tenth of
// those of one address end in each hundredth of the time.
func TestSpread(t *testing.T) {
	for _, address := range []string{"127.0.0.1:%d", "[2001:db8::1]:%d"} {
		const n, d = 60_000, 40 * sec
		var parts [10]int
		for i := range n {
			peer := fmt.Sprintf(address, 1024+i)
			s := SpreadOf(peer)
			got := s.Of(d)
			if got > d || got < d-d/10 || s != SpreadOf(peer) {
				t.Fatalf("%s: %d of %d", peer, got, d)
			}
			parts[min((d-got)*100/d, 9)]++
		}
		for i, got := range parts {
			if got < n/10*9/10 || got > n/10*11/10 {
				t.Errorf("%s: part %d has %d of %d: %v", address, i, got, n, parts)
			}
		}
	}
	for _, d := range []int64{0, 1, 9, 10, 100, hour, 1 << 62} {
		if least, most := Spread(65535).Of(d), Spread(0).Of(d); most != d || least > d || least < d-d/10 || least < d-4*sec {
			t.Errorf("%d becomes %d to %d", d, least, most)
		}
	}
}
