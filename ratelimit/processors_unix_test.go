//go:build unix

package ratelimit

import (
	"context"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

// What a decision costs when one or two processors hammer one key, for
// docs/performance.md. On a machine that others use too, two goroutines seldom run
// side by side: only rounds count in which the process had most of its
// processors.
func TestProcessors(t *testing.T) {
	if os.Getenv("CHERT_RATE_COST") == "" {
		t.Skip("CHERT_RATE_COST is not set")
	}
	used := func() time.Duration {
		var r syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
			t.Fatal(err)
		}
		return time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	const rounds, asks = 1000, 10000
	for _, n := range []int{1, 2} {
		l := mustLimit(t, "10000000/s burst 70000000000", NewMemory(nil))
		var each []time.Duration // of 1000 decisions
		for range rounds {
			var all sync.WaitGroup
			cpu, begin := used(), time.Now()
			for range n {
				all.Go(func() {
					for range asks {
						l.Allow(context.Background(), "192.0.2.1", 1)
					}
				})
			}
			all.Wait()
			if took := time.Since(begin); used()-cpu > took*3/4*time.Duration(n) {
				each = append(each, took*1000/time.Duration(n*asks))
			}
		}
		if len(each) == 0 {
			t.Logf("%d goroutines never had their processors", n)
			continue
		}
		slices.Sort(each)
		t.Logf("%d goroutines, %d rounds of %d: best %.1f ns, median %.1f ns a decision", n, len(each), rounds,
			float64(each[0])/1000, float64(each[len(each)/2])/1000)
	}
}
