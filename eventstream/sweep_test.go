package eventstream

import (
	"math"
	"testing"
	"time"
)

// The longest times are as good as none, and the shortest are a tick.
func TestTicks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		beat, age         time.Duration
		wantBeat, wantAge uint32
	}{
		{8 * time.Second, 0, 8, 0},
		{-1, 8 * time.Second, 0, 8},
		{math.MaxInt64, 8 * time.Second, 1 << 30, 8},
		{8 * time.Second, math.MaxInt64, 8, 1 << 30},
		{time.Second, 1, 1000, 1},
		{1, 1, 1, 1},
	} {
		h := &Handler{}
		if h.setTicks(tt.beat, tt.age); h.beatAfter != tt.wantBeat || h.age != tt.wantAge {
			t.Errorf("%v, %v: %d and %d ticks, want %d and %d", tt.beat, tt.age, h.beatAfter, h.age, tt.wantBeat, tt.wantAge)
		}
	}
}
