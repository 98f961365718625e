//go:build linux

package sim

import (
	"fmt"
	"testing"
)

// FuzzSeed runs the seeds that coverage suggests, in short.
func FuzzSeed(f *testing.F) {
	for i := range models {
		f.Add(uint64(i), uint8(i))
	}
	f.Fuzz(func(t *testing.T, seed uint64, which uint8) {
		single(t)
		i := int(which) % len(models)
		replay := fmt.Sprintf("replay: go test ./test/sim -run TestSeeds -sim.model %s -sim.seed %d -sim.seeds 1 -sim.requests 200",
			models[i].name, seed)
		if r := inBubble(t, replay, seed, func() result { return run(seed, 200, i) }); r.err != nil {
			t.Errorf("%v\n%s", r.err, replay)
		}
	})
}
