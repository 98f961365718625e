package place

import (
	"hash/maphash"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// Quick is the longest run that counts as quick: a loop that serves one
	// such after another is late for the others by little.
	Quick = 100 * time.Microsecond

	// proveAfter is how many quick runs in a row prove a prefix that has no
	// strikes.
	proveAfter = 32
	maxStrikes = 10
	// levels is how many path segments the longest prefix has.
	levels = 3
	// maxPrefix bounds the bytes of a path that are looked at.
	maxPrefix = 128

	sets = 1 << 9
	ways = 8
	// evictEvery is how many times a new prefix finds its set full of proven
	// ones for one that it displaces.
	evictEvery = 64
)

// A record is one word, so that it is read and written whole:
//
//	63..32  tag: what of the hash the set does not tell; 0 for a free place
//	31..24  strikes
//	23..0   quick runs in a row, or proven
type record uint64

const (
	countBits = 24
	proven    = 1<<countBits - 1
)

func newRecord(tag uint32, strikes, count uint32) record {
	return record(tag)<<32 | record(strikes)<<countBits | record(count)
}

func (r record) tag() uint32     { return uint32(r >> 32) }
func (r record) strikes() uint32 { return uint32(r) >> countBits }
func (r record) count() uint32   { return uint32(r) & proven }

// Table has the records of a server. All methods may be called concurrently.
// Updates that meet may lose one another: that costs a run.
type Table struct {
	seed  maphash.Seed
	whole bool // targets are the patterns of routes
	// demotions counts: while it stands still, what was proven is.
	demotions atomic.Uint32
	sets      [sets][ways]atomic.Uint64
}

// New makes an empty table.
func New() *Table { return &Table{seed: maphash.MakeSeed()} }

// NewRoutes makes an empty table for the routes of a router that says which one
// a request takes: each is known by its pattern, which has one record.
func NewRoutes() *Table {
	t := New()
	t.whole = true
	return t
}

// Memo remembers the last answer of Quick, for requests that come again and
// again on one connection. It has one user at a time.
type Memo struct {
	key uint64 // of the request and the table's demotions; 0 for none
}

// Quick reports whether a request is likely to be answered quickly. target may
// have a query, which is not looked at.
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

func (t *Table) memoKey(method, target string) uint64 {
	return t.hash(method, target) ^ uint64(t.demotions.Load())*0x9e3779b97f4a7c15 | 1
}

func (t *Table) lookup(method, target string) bool {
	p := prefixes{rest: target, whole: t.whole}
	for p.next() {
		if r, _ := t.find(t.hash(method, p.prefix)); r.count() == proven {
			return true
		}
	}
	return false
}

// Ran notes a run that was timed on a pooled goroutine, or as a sample.
func (t *Table) Ran(method, target string, took time.Duration) {
	p := prefixes{rest: target, whole: t.whole}
	for p.next() {
		h := t.hash(method, p.prefix)
		if took <= Quick {
			t.quick(h)
		} else {
			t.slow(h, 0)
		}
	}
}

// Overstayed notes a run that cost a loop its driver.
func (t *Table) Overstayed(method, target string) {
	p := prefixes{rest: target, whole: t.whole}
	for p.next() {
		t.slow(t.hash(method, p.prefix), 1)
	}
}

// Late notes a run of what needs no proof, and cost a loop its driver.
func (t *Table) Late(method, target string) {
	p := prefixes{rest: target, whole: t.whole}
	for p.next() {
		h := t.hash(method, p.prefix)
		if _, at := t.find(h); at == nil {
			t.insert(h)
		}
		t.slow(h, 1)
	}
}

// Struck reports whether what needs no proof has been late, and has not been
// proven since.
func (t *Table) Struck(method, target string) bool {
	p := prefixes{rest: target, whole: t.whole}
	struck := false
	for p.next() {
		r, _ := t.find(t.hash(method, p.prefix))
		if r.count() == proven {
			return false
		}
		struck = struck || r.strikes() > 0
	}
	return struck
}

func (t *Table) quick(h uint64) {
	r, at := t.find(h)
	if at == nil {
		t.insert(h)
		return
	}
	if r.count() == proven {
		return
	}
	count := r.count() + 1
	if count >= proveAfter<<r.strikes() {
		count = proven
	}
	at.CompareAndSwap(uint64(r), uint64(newRecord(r.tag(), r.strikes(), count)))
}

func (t *Table) slow(h uint64, strike uint32) {
	r, at := t.find(h)
	if at == nil {
		return // as unproven as it can be
	}
	at.CompareAndSwap(uint64(r), uint64(newRecord(r.tag(), min(r.strikes()+strike, maxStrikes), 0)))
	if r.count() == proven {
		t.demotions.Add(1)
	}
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

// find returns the record of h and where it is; nil when there is none.
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

// insert begins a record, if a place can be had.
func (t *Table) insert(h uint64) {
	set, tag := split(h)
	var victim *atomic.Uint64
	least := record(0)
	for i := range t.sets[set] {
		at := &t.sets[set][i]
		r := record(at.Load())
		switch {
		case r.tag() == 0:
			at.CompareAndSwap(0, uint64(newRecord(tag, 0, 1)))
			return
		case r.count() == proven:
		case victim == nil || r.count() < least.count():
			victim, least = at, r
		}
	}
	switch {
	case victim == nil:
		// A set that is full of what is proven must not stay so for ever: who
		// filled it may have meant to. Seldom, so that random paths cost what
		// is proven little.
		if n := rand.Uint32(); n%evictEvery == 0 {
			at := &t.sets[set][n/evictEvery%ways]
			at.Store(uint64(newRecord(tag, 0, 1)))
			t.demotions.Add(1)
		}
	case least.count() > 0:
		victim.CompareAndSwap(uint64(least), uint64(least-1))
	default:
		victim.CompareAndSwap(uint64(least), uint64(newRecord(tag, 0, 1)))
	}
}

// prefixes goes through a target's prefixes, the shortest first.
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
	start := min(len(p.prefix)+1, len(p.rest)) // behind the slash
	if i := strings.IndexByte(p.rest[start:], '/'); i >= 0 {
		p.prefix = p.rest[:start+i]
	} else {
		p.prefix = p.rest
	}
	return true
}
