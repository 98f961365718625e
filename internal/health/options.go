package health

import (
	"math"
	"math/rand/v2"
	"time"
)

// Options say what a server is ejected for, and how it is checked. The zero Options is the default; zero fields are
// their defaults, and negative ones turn off what they are for. Immutable once passed.
type Options struct {
	// Consecutive failures eject a server if the last of them comes within Within of the first. Default 5 in 10 s, at
	// most 16. A negative one turns the rule off.
	Consecutive int
	Within      time.Duration
	// Percent of failures among at least Least requests of the last 10 s eject a server. Default 50 of 20; negative: no
	// such rule.
	Percent, Least int
	// Ejection is for how long a server is ejected at first; each time in sequence doubles it up to MaxEjection, both
	// 20 % more or less. MaxEjection without an ejection takes one doubling back. Default 5 s and 60 s.
	Ejection, MaxEjection time.Duration
	// Probes is how many requests must succeed, one at a time, until the server is up. Default 3.
	Probes int
	// ProbeTimeout is after how long a probe whose result has not come is taken for lost: longer than all limits of
	// time until the head of a response. Default 2 min.
	ProbeTimeout time.Duration

	// Interval is that of checks, from one's begin to the next one's. Default 5 s.
	Interval time.Duration
	// Timeout is how long a check may take. Default 2 s.
	Timeout time.Duration
	// Fall and Rise are how many checks in sequence must fail and succeed to change what they say. Default 2. The first
	// success counts at once.
	Fall, Rise int
}

const maxConsecutive = 16

// never is as good as no end, and times that are computed with it do not overflow.
const never = math.MaxInt64 / 8

func defaults(o *Options) *Options {
	n := Options{}
	if o != nil {
		n = *o
	}
	or(&n.Consecutive, 5)
	n.Consecutive = min(n.Consecutive, maxConsecutive)
	or(&n.Within, 10*time.Second)
	or(&n.Percent, 50)
	or(&n.Least, 20)
	least(&n.Ejection, 5*time.Second)
	least(&n.MaxEjection, 60*time.Second)
	n.MaxEjection = min(max(n.MaxEjection, n.Ejection), 24*time.Hour)
	n.Ejection = min(n.Ejection, n.MaxEjection)
	least(&n.Probes, 3)
	least(&n.ProbeTimeout, 2*time.Minute)
	least(&n.Interval, 5*time.Second)
	least(&n.Timeout, 2*time.Second)
	least(&n.Fall, 2)
	least(&n.Rise, 2)
	n.ProbeTimeout, n.Interval, n.Timeout = min(n.ProbeTimeout, never), min(n.Interval, never), min(n.Timeout, never)
	return &n
}

func or[T int | time.Duration](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}

// least is or for what there must be.
func least[T int | time.Duration](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}

// chance returns random bits.
func chance(f func() uint64) func() uint64 {
	if f == nil {
		return rand.Uint64
	}
	return f
}
