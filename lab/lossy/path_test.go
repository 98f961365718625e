package lossy

import (
	"slices"
	"testing"
	"time"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	good := Path{Delay: 25 * time.Millisecond, Loss: 0.01, Rate: 20e6, Queue: 100}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for _, change := range []func(*Path){
		func(p *Path) { p.Delay = -1 },
		func(p *Path) { p.Loss = -0.1 },
		func(p *Path) { p.Loss = 1 },
		func(p *Path) { p.Rate = 0 },
		func(p *Path) { p.Queue = 0 },
	} {
		bad := good
		change(&bad)
		if bad.Check() == nil {
			t.Errorf("no error for %+v", bad)
		}
	}
}

// Packets of 1000 bytes take a millisecond each at 8 Mbit/s.
func TestBottleneck(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	at := func(d time.Duration) time.Time { return time.Unix(0, 0).Add(d) }
	l := newLine(Path{Delay: 25 * ms, Rate: 8e6, Queue: 3}, 0)
	for i, tt := range []struct {
		now  time.Duration
		size int
		want time.Duration // 0: the queue is full
	}{
		{0, 1000, 26 * ms},
		{0, 1000, 27 * ms},
		{0, 500, 27*ms + ms/2},
		{0, 40, 0},
		{ms - 1, 40, 0},               // the first is still passing
		{ms, 1000, 28*ms + ms/2},      // after the others
		{ms, 1000, 0},                 // three again
		{100 * ms, 1000, 126 * ms},    // the line has been idle
		{100 * ms, 1000, 127 * ms},    //
		{101*ms + 1, 8, 127*ms + 8e3}, // a small one waits for what is left of the one before
	} {
		arrives, f := l.admit(at(tt.now), tt.size)
		if want := tt.want != 0; (f == passed) != want || want && !arrives.Equal(at(tt.want)) {
			t.Errorf("packet %d: arrives after %v, fate %d, want %v", i, arrives.Sub(at(0)), f, tt.want)
		}
	}
}

// fatesOf sends packets that no queue holds up.
func fatesOf(p Path, direction uint64, n int) []fate {
	l, now := newLine(p, direction), time.Unix(0, 0)
	var all []fate
	for range n {
		now = now.Add(time.Second)
		_, f := l.admit(now, 1500)
		all = append(all, f)
	}
	return all
}

func TestLoss(t *testing.T) {
	t.Parallel()
	const n = 100_000
	p := Path{Loss: 0.01, Rate: 20e6, Queue: 100, Seed: 1}
	there := fatesOf(p, 0, n)
	var gone int
	for _, f := range there {
		if f == lost {
			gone++
		}
	}
	// 1000 are expected with a standard deviation of 31; the seed always gives the same.
	if gone < 900 || gone > 1100 {
		t.Errorf("%d of %d are lost", gone, n)
	}
	if !slices.Equal(there, fatesOf(p, 0, n)) {
		t.Error("the same seed does not lose the same packets")
	}
	other := p
	other.Seed = 2
	if slices.Equal(there, fatesOf(other, 0, n)) || slices.Equal(there, fatesOf(p, 1, n)) {
		t.Error("another seed or direction loses the same packets")
	}
	p.Loss = 0
	if slices.Contains(fatesOf(p, 0, n), lost) {
		t.Error("packets are lost where none may be")
	}
}
