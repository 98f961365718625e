package lossy

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Path is what packets pass, in each direction: first the queue of the bottleneck, then the bottleneck, then the
// distance, on which some are lost.
type Path struct {
	Delay time.Duration // of the distance
	Loss  float64       // the share of packets that do not arrive
	Rate  int           // bits a second through the bottleneck, headers of IP included
	Queue int           // packets that wait for the bottleneck or are passing it; those beyond are lost
	Seed  uint64
}

// Check validates the path.
func (p Path) Check() error {
	if p.Delay < 0 || p.Loss < 0 || p.Loss >= 1 || p.Rate < 1 || p.Queue < 1 {
		return fmt.Errorf("%s: is no path", p.Describe())
	}
	return nil
}

// Describe says it for a title.
func (p Path) Describe() string {
	return fmt.Sprintf("%v each way, %.4g %% of packets lost, %.4g Mbit/s, a queue of %d packets",
		p.Delay, p.Loss*100, float64(p.Rate)/1e6, p.Queue)
}

// fate is what becomes of a packet.
type fate int

const (
	passed fate = iota
	lost        // on the distance
	full        // the queue was
	fates       // how many there are
)

// line is one direction of a path.
type line struct {
	Path
	draw   *rand.Rand
	leaves []time.Time // when the packets in the queue have passed the bottleneck
}

// newLine returns the line of a direction, 0 or 1.
func newLine(p Path, direction uint64) *line {
	return &line{Path: p, draw: rand.New(rand.NewPCG(p.Seed, direction))}
}

// admit decides what becomes of a packet, and when it arrives. Each takes one number of the generator, even if the
// queue is full.
func (l *line) admit(now time.Time, size int) (arrives time.Time, f fate) {
	unlucky := l.draw.Float64() < l.Loss
	for len(l.leaves) > 0 && !l.leaves[0].After(now) {
		l.leaves = l.leaves[1:]
	}
	if len(l.leaves) >= l.Queue {
		return time.Time{}, full
	}
	begins := now
	if n := len(l.leaves); n > 0 {
		begins = l.leaves[n-1]
	}
	leaves := begins.Add(time.Duration(float64(size) * 8 / float64(l.Rate) * float64(time.Second)))
	l.leaves = append(l.leaves, leaves)
	if unlucky {
		return time.Time{}, lost
	}
	return leaves.Add(l.Delay), passed
}
