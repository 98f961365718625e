package conn

import (
	"math"
	"testing"
)

// A deadline that a limit such as math.MaxInt64 has made overflow hides no other.
func TestEarlier(t *testing.T) {
	t.Parallel()
	now, long := int64(1000), int64(math.MaxInt64)
	for _, tt := range []struct{ a, b, want int64 }{
		{0, 0, 0}, {5, 0, 5}, {0, 5, 5}, {5, 7, 5}, {7, 5, 5}, {5, 5, 5},
		{now + long, 5, 5}, {5, now + long, 5}, {now + long, 0, 0}, {0, now + long, 0}, {now + long, now + long, 0},
	} {
		if got := Earlier(tt.a, tt.b); got != tt.want {
			t.Errorf("Earlier(%d, %d) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}
