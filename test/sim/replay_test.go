//go:build linux

package sim

import (
	"flag"
	"hash/fnv"
	"testing"
)

var replays = flag.Int("sim.replays", 1, "how often TestReplay runs each seed again")

// A seed that runs again makes the same choices at the same times. TestSeeds's flags say which
// seeds of which models.
func TestReplay(t *testing.T) {
	single(t)
	for which, m := range models {
		if *modelName != "" && *modelName != m.name {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			n, others := min(*seeds, 4), 0
			if *modelName != "" {
				n = *seeds
			}
			for i := range n {
				var first uint64
				for try := range 1 + *replays {
					seed, h := *firstSeed+uint64(i), fnv.New64a()
					r := inBubble(t, m.name, seed, func() result { return runTraced(seed, *requests, which, h) })
					if r.err != nil {
						t.Fatal(r.err)
					}
					switch {
					case try == 0:
						first = h.Sum64()
					case h.Sum64() != first:
						others++
						t.Logf("seed %d went another way", seed)
					}
				}
			}
			// What is left to chance is when the Go scheduler interrupts a goroutine: see docs/testing.md.
			if t.Logf("%d of %d went another way", others, n**replays); others > n**replays/2 {
				t.Error("the seed does not decide enough")
			}
		})
	}
}
