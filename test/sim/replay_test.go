//go:build linux

package sim

import (
	"bytes"
	"flag"
	"math/rand/v2"
	"runtime"
	"testing"
)

var (
	replays = flag.Int("sim.replays", 1, "how often TestReplay runs each seed again")
	stir    = flag.Int("sim.stir", 8, "TestReplay lets others run before one in so many calls of the server; 0: never")
)

// disturb lets other goroutines run, now and then: what the Go scheduler does to one that has run for 10 ms, which on a
// busy machine may be none of its own time. It is not the seed that decides when.
func disturb() {
	if *stir > 0 && rand.IntN(*stir) == 0 {
		runtime.Gosched()
	}
}

// A seed that runs again makes the same choices at the same times, whenever the Go scheduler interrupts what runs.
// TestSeeds's flags say which seeds of which models.
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
				var first []byte
				for try := range 1 + *replays {
					var b bytes.Buffer
					seed := *firstSeed + uint64(i)
					r := inBubble(t, m.name, seed, func() result { return runTraced(seed, *requests, which, &b, disturb) })
					if r.err != nil {
						t.Fatal(r.err)
					}
					switch {
					case try == 0:
						first = b.Bytes()
					case !bytes.Equal(first, b.Bytes()):
						others++
						t.Logf("seed %d went another way:\n%s", seed, difference(first, b.Bytes()))
					}
				}
			}
			if t.Logf("%d of %d went another way", others, n**replays); 100*others > n**replays {
				t.Error("the seed does not decide enough")
			}
		})
	}
}

// difference shows where two traces part.
func difference(a, b []byte) string {
	same := 0
	for same < len(a) && same < len(b) && a[same] == b[same] {
		same++
	}
	from := same
	for range 12 {
		from = max(bytes.LastIndexByte(a[:from], '\n'), 0)
	}
	after := func(s []byte) string { return string(s[from:min(len(s), same+400)]) }
	return after(a) + "\n    instead of" + after(b)
}
