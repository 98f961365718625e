package place

import (
	"hash/maphash"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// Quick is the longest run that counts as quick: a series of such runs on a
	// loop delays other requests only slightly.
	Quick = 100 * time.Microsecond

	// Overstay is the shortest time holding a loop that counts as a strike;
	// shorter runs are slow runs.
	Overstay = time.Millisecond

	// proveAfter is how many quick runs prove a prefix that has no strikes. Each
	// strike doubles it.
	proveAfter = 32
	// maxStrikes bounds how much harder it becomes. The brake does the rest.
	maxStrikes = 6
	// slowCosts is how many quick runs a slow one cancels, or the fraction of a long
	// history: a route that is slow once in a hundred runs can be proven, and one
	// that has become slow for good is detected soon.
	slowCosts = 32
	// levels is how many path segments the longest prefix has.
	levels = 3
	// maxPrefix bounds the bytes of a path that are used.
	maxPrefix = 128

	sets = 1 << 9
	ways = 8
	// evictEvery: one in so many new prefixes that find their set full of
	// proven ones displaces one of them.
	evictEvery = 64
)

// A record is one word, so that it is read and written whole:
//
//	63..32  tag: the part of the hash that does not select the set; 0 for a free slot
//	31..24  strikes
//	23..0   quick runs that were timed, less what slow ones cost
type record uint64

const (
	countBits = 24
	maxCount  = 1<<countBits - 1
)

func newRecord(tag uint32, strikes, count uint32) record {
	return record(tag)<<32 | record(strikes)<<countBits | record(count)
}

func (r record) tag() uint32     { return uint32(r >> 32) }
func (r record) strikes() uint32 { return uint32(r) >> countBits }
func (r record) count() uint32   { return uint32(r) & maxCount }

// proven reports whether r is, with more additional strikes.
func (r record) proven(more uint32) bool {
	return r.count() >= proveAfter<<min(r.strikes()+more, countBits-6)
}

// weight is how often an unproven record must be worn down before it is
// replaced. Strikes count, otherwise random paths would soon displace them.
func (r record) weight() uint32 { return 2*r.strikes() + r.count() }

// Table has the records of a server. Safe for concurrent use. Concurrent
// updates may be lost: that costs a run.
type Table struct {
	seed   maphash.Seed
	whole  bool // targets are the patterns of routes
	brake  *brake
	random func() uint32 // immutable; replaced by tests
	// Changed, if not nil, is called for each Event, by any goroutine. It must not wait.
	// target is a route's pattern, or a prefix of a path; the callee must copy it. took
	// is how long the run kept a loop, if that was the cause. It is set before first use.
	Changed func(e Event, method, target string, took time.Duration)
	sets    [sets][ways]atomic.Uint64
}

// New makes an empty table.
func New() *Table {
	return &Table{seed: maphash.MakeSeed(), brake: newBrake(), random: rand.Uint32}
}

// NewRoutes makes an empty table, beside t in a server, for a router that reports
// which of its routes matched: each route's pattern has one record.
func (t *Table) NewRoutes() *Table {
	return &Table{seed: maphash.MakeSeed(), brake: t.brake, random: t.random, whole: true}
}

// An Event is a change of what a Table predicts.
type Event uint8

const (
	Proven Event = iota
	Demoted
	Handover // a run has cost a loop its driver
)

// String returns the event's name.
func (e Event) String() string { return [...]string{"proven", "demoted", "handover"}[e] }

func (t *Table) changed(e Event, method, target string, took time.Duration) {
	if t.Changed != nil {
		t.Changed(e, method, target, took)
	}
}

// Memo caches the last result of Quick, for repeated requests on one
// connection. Not safe for concurrent use.
type Memo struct {
	key uint32 // of the request and the brake's epoch; 0 for none
}

// Quick reports whether a request is likely to be answered quickly. target may
// have a query, which is ignored.
func (t *Table) Quick(method, target string, m *Memo) bool {
	key := t.memoKey(method, target)
	if m.key == key {
		return true
	}
	if !t.lookup(method, target) {
		return false
	}
	m.key = key
	return true
}

func (t *Table) memoKey(method, target string) uint32 {
	return uint32((t.hash(method, target)^uint64(t.brake.epoch.Load())*0x9e3779b97f4a7c15)>>32) | 1
}

// Epoch changes, and is never 0, when something that Quick has found to be quick may not
// be any more: a Memo for one target, without a hash of it.
func (t *Table) Epoch() uint32 { return max(t.brake.epoch.Load()+1, 1) }

func (t *Table) lookup(method, target string) bool {
	level := t.brake.level()
	p := prefixes{rest: target, whole: t.whole}
	for p.next() {
		if r, _ := t.find(t.hash(method, p.prefix)); r.proven(level) {
			return true
		}
	}
	return false
}

// Ran records a run that was timed on a pooled goroutine, or as a sample.
func (t *Table) Ran(method, target string, took time.Duration) {
	p := prefixes{rest: target, whole: t.whole}
	inherited := uint32(0)
	for p.next() {
		h := t.hash(method, p.prefix)
		if took <= Quick {
			// One less, so that random paths under a prefix weigh less than it.
			strikes, proven := t.quick(h, inherited)
			if inherited = max(inherited, strikes, 1) - 1; proven {
				t.changed(Proven, method, p.prefix, 0)
			}
		} else if t.slow(h, 0) {
			t.changed(Demoted, method, p.prefix, 0)
		}
	}
}

// Overstayed records a run that kept a loop for took, which is more than Quick.
func (t *Table) Overstayed(method, target string, took time.Duration) {
	t.brake.charge(took)
	p := prefixes{rest: target, whole: t.whole}
	for p.next() {
		if t.slow(t.hash(method, p.prefix), strikesFor(took)) {
			t.changed(Demoted, method, p.prefix, took)
		}
	}
	if took >= Overstay {
		t.changed(Handover, method, p.prefix, took)
	}
}

func strikesFor(took time.Duration) uint32 {
	if took < Overstay {
		return 0
	}
	return 1
}

// Late records that a handler that needs no proof has kept a loop for took. It
// reports whether Struck must be called from now on.
func (t *Table) Late(method, target string, took time.Duration) bool {
	if took <= Quick {
		return false
	}
	braked := t.brake.charge(took)
	if took < Overstay {
		return braked
	}
	p := prefixes{rest: target, whole: t.whole}
	for p.next() {
		h := t.hash(method, p.prefix)
		if _, at := t.find(h); at == nil {
			t.insert(h, 0)
		}
		if t.slow(h, 1) {
			t.changed(Demoted, method, p.prefix, took)
		}
	}
	t.changed(Handover, method, p.prefix, took)
	return true
}

// Struck reports whether a handler that normally needs no proof needs one now,
// because it or many others have been late, and has none.
func (t *Table) Struck(method, target string) bool {
	level := t.brake.level()
	p := prefixes{rest: target, whole: t.whole}
	struck := level > 0
	for p.next() {
		r, _ := t.find(t.hash(method, p.prefix))
		if r.proven(level) {
			return false
		}
		struck = struck || r.strikes() > 0
	}
	return struck
}

// quick counts a quick run. A strike is removed when there have been as many since
// the proof as the proof took. It returns the record's strikes, and whether this run has
// proven it; a new one starts with inherited.
func (t *Table) quick(h uint64, inherited uint32) (strikes uint32, proven bool) {
	r, at := t.find(h)
	if at == nil {
		t.insert(h, inherited)
		return inherited, false
	}
	now := r + 1
	switch {
	case r.count() == maxCount:
		now = r
	case r.strikes() > 0 && r.proven(1):
		now = newRecord(r.tag(), r.strikes()-1, r.count()/4)
	}
	swapped := at.CompareAndSwap(uint64(r), uint64(now))
	return r.strikes(), swapped && now.proven(0) && !r.proven(0)
}

// slow counts a slow run, and reports whether it has cost the proof.
func (t *Table) slow(h uint64, strike uint32) (demoted bool) {
	r, at := t.find(h)
	if at == nil {
		return false // it cannot be less proven
	}
	count := uint32(0)
	if strike == 0 {
		count = r.count() - min(max(r.count()/slowCosts, slowCosts), r.count())
	}
	now := newRecord(r.tag(), min(r.strikes()+strike, maxStrikes), count)
	swapped := at.CompareAndSwap(uint64(r), uint64(now))
	if r.proven(0) && !now.proven(0) {
		t.brake.epoch.Add(1)
		return swapped
	}
	return false
}

// hash is the key of a record.
func (t *Table) hash(method, prefix string) uint64 {
	m := uint64(MethodOf(method)) * 0x9e3779b97f4a7c15
	if m == 0 {
		m = maphash.String(t.seed, method)
	}
	return maphash.String(t.seed, prefix) + m
}

func split(h uint64) (set int, tag uint32) { return int(h % sets), uint32(h>>32) | 1 }

// find returns the record of h and its address; nil if there is none.
func (t *Table) find(h uint64) (record, *atomic.Uint64) {
	set, tag := split(h)
	for i := range t.sets[set] {
		at := &t.sets[set][i]
		if r := record(at.Load()); r.tag() == tag {
			return r, at
		}
	}
	return 0, nil
}

// insert adds a record, if a slot is available.
func (t *Table) insert(h uint64, strikes uint32) {
	set, tag := split(h)
	begun := uint64(newRecord(tag, strikes, 1))
	var victim *atomic.Uint64
	least := record(0)
	for i := range t.sets[set] {
		at := &t.sets[set][i]
		r := record(at.Load())
		switch {
		case r.tag() == 0:
			at.CompareAndSwap(0, begun)
			return
		case r.proven(0):
		case victim == nil || r.weight() < least.weight():
			victim, least = at, r
		}
	}
	switch {
	case victim == nil:
		// A set full of proven records must not stay so forever: it may have
		// been filled on purpose. Rarely, so that random paths cost proven
		// records little.
		if n := t.random(); n%evictEvery == 0 {
			t.sets[set][n/evictEvery%ways].Store(begun)
			t.brake.epoch.Add(1)
		}
	case least.count() > 0:
		victim.CompareAndSwap(uint64(least), uint64(least-1))
	case least.strikes() > 0:
		victim.CompareAndSwap(uint64(least), uint64(newRecord(least.tag(), least.strikes()-1, 0)))
	default:
		victim.CompareAndSwap(uint64(least), begun)
	}
}

// prefixes iterates over a target's prefixes, the shortest first.
type prefixes struct {
	whole  bool   // there is only one: all of it
	rest   string // the whole target at first
	prefix string
	n      int
}

func (p *prefixes) next() bool {
	if p.whole {
		p.n++
		p.prefix = p.rest
		return p.n == 1
	}
	if p.n == 0 {
		if i := strings.IndexByte(p.rest, '?'); i >= 0 {
			p.rest = p.rest[:i]
		}
		p.rest = p.rest[:min(len(p.rest), maxPrefix)]
	}
	if p.n == levels || p.n > 0 && len(p.prefix) == len(p.rest) {
		return false
	}
	p.n++
	start := min(len(p.prefix)+1, len(p.rest)) // after the slash
	if i := strings.IndexByte(p.rest[start:], '/'); i >= 0 {
		p.prefix = p.rest[:start+i]
	} else {
		p.prefix = p.rest
	}
	return true
}
