package balance

import (
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// Weighted rendezvous hashing, as a race. The hash of a key and a server is a number u,
// even in (0, 1). The time at which the server arrives is -log(u)/weight, which is
// exponentially distributed; the first to arrive has the key, and the chance of being first
// is weight / sum of weights. The time depends on nothing but the key, the server and its
// weight: a server that leaves or becomes slower changes nothing among the others, and the
// servers in the order of their arrivals are the second and third choice of the key.
//
// If all weights are equal, the largest u is the first.
//
// Otherwise the logarithm is an integer from a table, and times are compared as
// f1*w2 < f2*w1. Integers are the same on all processors, which floating point is not:
// arm64 fuses multiplications and additions. An error of the table would change shares by
// 0.05 % at most, but could not move a key needlessly, since times still fall with u and
// with the weight.

// KeyOf returns the key of what a request has to be hashed by.
func KeyOf(s string) uint64 { return xxhash.Sum64String(s) }

// KeyOfBytes is KeyOf for bytes.
func KeyOfBytes(b []byte) uint64 { return xxhash.Sum64(b) }

// mix is the finalizer of splitmix64, variant 13 of D. Stafford: a bijection.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

const (
	// fraction is the number of bits after the point of a logarithm. With 6 before it, and
	// weights of less than 24 bits, products fit in 64.
	fraction = 34
	// cellBits is the logarithm of the number of cells in the table.
	cellBits = 9
	cells    = 1 << cellBits
)

// logs has 1 - log2(1 + i/cells), falling from 1 to 0.
var logs = func() (t [cells + 1]uint64) {
	for i := range cells {
		t[i] = 1<<fraction - log2(1<<63|uint64(i)<<(63-cellBits))
	}
	return t
}()

// log2 returns the binary logarithm of y, from 1 to 2 with 63 bits after the point. Each
// squaring doubles the logarithm, and so shows one bit of it.
func log2(y uint64) (l uint64) {
	for range fraction {
		hi, lo := bits.Mul64(y, y) // 126 bits after the point
		l <<= 1
		if hi>>63 != 0 {
			l |= 1
			y = hi
		} else {
			y = hi<<1 | lo>>63
		}
	}
	return l
}

// soonest returns a time that arrival is never before, without the table: 23/16 of 1-u, where
// -log2(u) is at least 1/ln(2) of that. What arrival rounds is less than the difference.
func soonest(u uint64) uint64 {
	d := ^u >> (64 - fraction)
	return d + d>>2 + d>>3 + d>>4
}

// arrival returns -log2(u / 2^64), with linear interpolation.
func arrival(u uint64) uint64 {
	u = max(u, 1) // 0 would be later than products have bits for
	z := bits.LeadingZeros64(u)
	u <<= z
	cell := u << 1 >> (64 - cellBits)
	part := u << (1 + cellBits) >> (64 - 28)
	l := logs[cell&(cells-1)]
	l -= (l - logs[cell&(cells-1)+1]) * part >> 28
	return uint64(z)<<fraction + l
}

// first returns the index of the server at which key is at home, in a tier with servers.
func (t *tier) first(key uint64) int {
	if !t.equal {
		return t.next(key, nil)
	}
	at, most := 0, uint64(0)
	for i, h := range t.hashes {
		if u := mix(key ^ h); u >= most {
			at, most = i, u
		}
	}
	return at
}

// next returns the index of the first server in the key's order that f accepts, or -1. It
// asks f only about servers that come before all that f has accepted.
func (t *tier) next(key uint64, f *filter) int {
	// A weight and a time of 0 are those of no server: both comparisons are of 0 with 0.
	at, most, time, weight := -1, uint64(0), uint64(0), uint64(0)
	for i, h := range t.hashes {
		u, w := mix(key^h), t.weights[i]
		if soonest(u)*weight > time*w {
			continue // too late even then
		}
		a := arrival(u)
		if l, r := a*weight, time*w; l > r || l == r && u < most {
			continue
		}
		if f == nil || f.accepts(i) {
			at, most, time, weight = i, u, a, w
		}
	}
	return at
}

// hashed chooses by r.Key.
func (s *Set) hashed(t *tier, r *Request) *Server {
	f := filter{set: s, tier: t, request: r, bounded: s.bound > 0, total: -1}
	if i := t.first(r.Key); f.accepts(i) && t.acquire(i) {
		return t.servers[i]
	}
	if f.bounded {
		f.total = t.inFlight()
	}
	for {
		i := t.next(r.Key, &f)
		switch {
		case i >= 0 && t.acquire(i):
			return t.servers[i]
		case i >= 0: // another caller was first at one that probes; it is busy now
		case f.bounded: // those that have room have been tried
			f.bounded = false
		default:
			return nil
		}
	}
}

// filter says which servers of a tier may get a request.
type filter struct {
	set     *Set
	tier    *tier
	request *Request
	bounded bool
	total   int64 // in flight, or -1 if that has not been added up
}

func (f *filter) accepts(i int) bool {
	return f.set.may(f.tier, i, f.request) && (!f.bounded || f.room(i))
}

// room reports whether one request more is at most ceil(c * (total+1) * w/W) of them: whether
// there are now fewer than c * (total+1) * w/W.
func (f *filter) room(i int) bool {
	t := f.tier
	n := t.servers[i].inFlight.Load()
	if n <= 0 {
		return true
	}
	// Multiplied out, which is exact for the usual c.
	load, share := float64(n)*float64(t.sum), f.set.bound*float64(t.weights[i])
	if f.total >= 0 {
		return load < share*float64(f.total+1)
	}
	// A part of the sum suffices, if it is large enough.
	total := int64(0)
	for _, s := range t.servers {
		total += s.inFlight.Load()
		if load < share*float64(total+1) {
			return true
		}
	}
	return false
}
