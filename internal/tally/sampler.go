package tally

import (
	"sync/atomic"

	"github.com/chert-http/chert/stats"
)

// A Sampler selects one of stats.SampleEvery events on average. The distances are
// random: with equal ones a pipeline, or a client that asks for the same pages again and
// again, could hide what it does. Only one goroutine at a time may use it, except for
// Correct. The zero value selects the first event.
type Sampler struct {
	left, gap uint32
	random    uint32
	// owed is how many events the next weight has too few; see Correct.
	owed atomic.Int64
}

// Next returns 0, or for an event that is selected its weight: how many there have been
// since the one before, itself included.
func (s *Sampler) Next() (weight uint32) {
	if s.left > 1 {
		s.left--
		return 0
	}
	return s.draw()
}

func (s *Sampler) draw() uint32 {
	w := int64(max(s.gap, 1))
	x := s.random
	if x == 0 {
		x = seed()
	}
	x ^= x << 13 // Marsaglia's xorshift
	x ^= x >> 17
	x ^= x << 5
	s.random = x
	s.gap = x>>8%(2*stats.SampleEvery-1) + 1 // the mean is SampleEvery
	s.left = s.gap
	if owed := s.owed.Load(); owed != 0 {
		s.owed.Add(-owed)
		if w += owed; w <= 0 {
			s.owed.Add(w)
			return 0
		}
	}
	return uint32(w)
}

// Correct makes up for an event that is observed by itself, with the weight 1, though
// it is counted by the Sampler too, which has returned weight for it. Safe for concurrent
// use.
func (s *Sampler) Correct(weight uint32) { s.owed.Add(int64(weight) - 1) }
