package ratelimit

import (
	"context"
	"runtime"
	"strconv"
	"testing"
)

// A space that was empty when it was looked at is kept once somebody owes
// something in it: a limit that is made anew has the old one's buckets, and its
// keys are not counted for ever.
func TestSpaceIsKeptForWhoOwes(t *testing.T) {
	t.Parallel()
	m := NewMemory(nil)
	charge := func() Decision {
		l := mustLimit(t, "2/d", m)
		var others []*Limit
		for i := range 20 { // so many that those nobody uses are looked for
			o, err := NewLimit("other"+strconv.Itoa(i), Rate{1, 1e9, 1}, m)
			if err != nil {
				t.Fatal(err)
			}
			others = append(others, o)
		}
		d, _ := l.Allow(context.Background(), "k", 1)
		runtime.KeepAlive(others)
		return d
	}
	for i, want := range []bool{true, true, false} {
		if d := charge(); d.Allowed != want {
			t.Errorf("%d: got %+v, want %v", i, d, want)
		}
		runtime.GC()
		runtime.GC()
	}
	if n := m.Len(); n != 1 {
		t.Errorf("%d keys are counted, want 1", n)
	}
}
