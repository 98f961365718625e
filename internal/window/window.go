package window

import "sync/atomic"

// second is the resolution.
const second = 1_000_000_000

// Seconds is how far a Counter looks back: the current second, which has just begun on average, and those before it.
const Seconds = 10

// slots is a power of two above Seconds. A caller may be slots - Seconds late before what it counts is lost.
const slots = 16

// A Counter counts the events of the last Seconds. The zero Counter is ready. It must not be copied after first use.
//
// A slot has the events of one second: that second, counted from zero and modulo 2^32, in its upper half, and their
// number in the lower half.
//
//	 63        32 31         0
//	+------------+------------+
//	|  second+1  |   events   |
//	+------------+------------+
//
// Second 0 is stored as 1, so that an empty slot is of no second. A slot is reused after slots seconds by the first
// that counts in it.
type Counter struct {
	slots [slots]atomic.Uint64
}

// mark returns the upper half for now, which is not negative.
func mark(now int64) uint32 { return uint32(max(now, 0)/second) + 1 }

// full is where a slot stops counting, far below what would change its upper half.
const full = 1 << 31

// Add counts n events at now, and reports whether it has: not if now is so late that its slot is another second's, or
// if the slot is full. n is small.
func (c *Counter) Add(now int64, n uint32) bool {
	m := mark(now)
	s := &c.slots[m%slots]
	for {
		v := s.Load()
		switch age := int32(m - uint32(v>>32)); {
		case age == 0:
			if uint32(v) >= full {
				return false
			}
			// The slot may have become another second's since the Load, if the caller slept for that long: then the
			// events count a little later than they happened.
			s.Add(uint64(n))
			return true
		case age < 0 && v != 0:
			return false
		}
		if s.CompareAndSwap(v, uint64(m)<<32|uint64(n)) {
			return true
		}
	}
}

// Take reverts an Add of n events at now, if its second is still there.
func (c *Counter) Take(now int64, n uint32) {
	m := mark(now)
	s := &c.slots[m%slots]
	for {
		v := s.Load()
		if uint32(v>>32) != m || uint32(v) < n {
			return
		}
		if s.CompareAndSwap(v, v-uint64(n)) {
			return
		}
	}
}

// Sum returns the events of the second of now and of the Seconds-1 before it. Those of callers whose clocks are ahead
// count as well.
func (c *Counter) Sum(now int64) (n uint64) {
	m := mark(now)
	for i := range c.slots {
		v := c.slots[i].Load()
		if age := int32(m - uint32(v>>32)); v != 0 && age < Seconds {
			n += uint64(uint32(v))
		}
	}
	return n
}

// Reset forgets everything. What is counted at the same time may stay.
func (c *Counter) Reset() {
	for i := range c.slots {
		c.slots[i].Store(0)
	}
}
