package balance

import (
	"math"
	"math/bits"
	"slices"
)

// view is the part of a Set that depends on the states of servers: what can be chosen, with
// which weights. It is immutable. Acquire prepares a new one when a state has changed.
type view struct {
	changes uint64 // what it is prepared for
	until   int64  // when slow starts go on
	tiers   [2]tier
	panics  bool
}

// tier is servers that can be chosen, in slices of the same length: the primaries, or the
// backups.
type tier struct {
	servers []*Server
	hashes  []uint64
	weights []uint64  // in units of 1/unit
	scales  []float64 // how much a request in flight counts, on average 1
	ends    []uint64  // sums of the weights up to and with each
	guides  []uint16  // for each of as many equal parts of sum, the server in which it begins
	members []int     // indices in Set.members
	limits  []limit
	sum     uint64 // of weights
	equal   bool   // all weights are
	special bool   // a server has a limit
}

// unit is the weight 1, so that a part of it can be told from none.
const unit = 1 << 8

// limit restricts what a server in a tier gets.
type limit uint8

const (
	one  limit = 1 << iota // one request at a time
	kept                   // only keys that clients have brought back, and that are at home there
)

func (t *tier) add(s *Server, weight uint64, member int, l limit) {
	t.equal = len(t.servers) == 0 || t.equal && t.weights[0] == weight
	t.sum += weight
	t.servers = append(t.servers, s)
	t.hashes = append(t.hashes, s.hash)
	t.weights = append(t.weights, weight)
	t.ends = append(t.ends, t.sum)
	t.members = append(t.members, member)
	t.limits = append(t.limits, l)
	t.special = t.special || l != 0
}

// grow makes room for n servers.
func (t *tier) grow(n int) {
	t.servers = slices.Grow(t.servers, n)
	t.hashes = slices.Grow(t.hashes, n)
	t.weights = slices.Grow(t.weights, n)
	t.ends = slices.Grow(t.ends, n)
	t.members = slices.Grow(t.members, n)
	t.limits = slices.Grow(t.limits, n)
}

// complete sets what Least needs beside the servers.
func (t *tier) complete() {
	n := uint64(len(t.servers))
	t.scales, t.guides = make([]float64, n), make([]uint16, n)
	at := 0
	for i, w := range t.weights {
		t.scales[i] = float64(t.sum) / float64(w) / float64(n)
		at = t.from(at, t.sum*uint64(i)/n)
		t.guides[i] = uint16(at)
	}
}

func (t *tier) inFlight() (n int64) {
	for _, s := range t.servers {
		n += s.inFlight.Load()
	}
	return n
}

// acquire counts a request on a server, which fails if that may have only one and has it.
func (t *tier) acquire(i int) bool {
	return t.servers[i].acquire(t.special && t.limits[i]&one != 0)
}

// may reports whether r permits a server and the server's limits permit r.
func (s *Set) may(t *tier, i int, r *Request) bool {
	if r.tried(t.servers[i]) {
		return false
	}
	if !t.special {
		return true
	}
	l := t.limits[i]
	switch {
	case l&one != 0 && t.servers[i].inFlight.Load() != 0:
		return false
	case l&kept != 0:
		return !r.Fresh && s.Home(r.Key) == t.servers[i]
	}
	return true
}

// below returns x scaled to less than n, evenly for an even x.
func below(x, n uint64) uint64 {
	hi, _ := bits.Mul64(x, n)
	return hi
}

// configured returns the tier of the members as they are listed: the primaries, or the
// backups if there are none.
func (s *Set) configured() (t tier) {
	backup := !slices.ContainsFunc(s.members, func(m Member) bool { return !m.Backup })
	for i, m := range s.members {
		if m.Backup == backup {
			t.add(m.Server, uint64(m.Weight)*unit, i, 0)
		}
	}
	return t
}

// current returns a view for the states of now.
func (s *Set) current(now int64) *view {
	v := s.view.Load()
	if v != nil && v.changes == changes.n.Load() && now < v.until {
		return v
	}
	next := s.prepare(now)
	// If another caller has replaced v, that view may be for newer states.
	s.view.CompareAndSwap(v, next)
	return next
}

// prepare builds a view. The count of changes is read before the states: a change in the
// meantime, seen or not, leads to another view.
func (s *Set) prepare(now int64) *view {
	v := &view{changes: changes.n.Load(), until: math.MaxInt64}
	words := make([]uint32, len(s.members))
	var sum, up [2]uint64 // of primaries and backups
	var n [2]int
	for i, m := range s.members {
		words[i] = m.Server.state.Load()
		b := index(m.Backup)
		n[b]++
		if words[i]&draining != 0 {
			continue
		}
		sum[b] += uint64(m.Weight)
		if State(words[i] & stateBits).up() {
			up[b] += uint64(m.Weight)
		}
	}
	panics := [2]bool{2*up[0] < sum[0] && (up[0] > 0 || up[1] == 0), 2*up[1] < sum[1]}
	for b := range v.tiers {
		v.tiers[b].grow(n[b])
	}
	for i, m := range s.members {
		b := index(m.Backup)
		if l, ok := s.usable(words[i], panics[b]); ok {
			v.tiers[b].add(m.Server, s.weight(m, now, &v.until), i, l)
		}
	}
	for b := range v.tiers {
		v.tiers[b].complete()
	}
	v.panics = panics[0] || len(v.tiers[0].servers) == 0 && panics[1]
	return v
}

// index returns the tier of a member.
func index(backup bool) int {
	if backup {
		return 1
	}
	return 0
}

// usable reports whether a server in this state may get requests, and which.
func (s *Set) usable(word uint32, panics bool) (l limit, ok bool) {
	if word&draining != 0 {
		if s.policy != Sticky {
			return 0, false
		}
		l = kept
	}
	switch State(word & stateBits) {
	case Unknown, Up:
		return l, true
	case Probing:
		if !panics {
			l |= one
		}
		return l, true
	case Ejected:
		return l, panics
	}
	return 0, false
}

const (
	// maxSlowStart is an hour in nanoseconds.
	maxSlowStart = 3600e9
	// steps is the number of weights that a slow start goes through.
	steps = 32
)

// weight returns the weight of m now, and lowers until to when it will be more.
func (s *Set) weight(m Member, now int64, until *int64) uint64 {
	full := uint64(m.Weight) * unit
	start := m.Server.ramp.Load()
	if start == 0 || s.slowStart == 0 || !m.Server.State().up() {
		return full
	}
	if s.policy == Sticky && start&drained != 0 {
		return full // less would take sessions from it that it has kept
	}
	// A loop's clock may be behind that of the one that has set the state.
	age := max(now-start, 0)
	if age >= s.slowStart {
		return full
	}
	step := age * steps / s.slowStart
	*until = min(*until, start+((step+1)*s.slowStart+steps-1)/steps)
	return full * (steps + 9*uint64(step)) / (10 * steps)
}
