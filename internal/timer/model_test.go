package timer

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
)

// model is the wheel's contract as a sorted slice: what is armed, by the tick
// in which it may fire.
type model struct {
	now   int64
	armed []*entry // sorted by due
}

type entry struct {
	id   ID
	when int64
	due  int64 // the earliest Advance that may fire it; now or before means past
}

func (m *model) stop(id ID) {
	m.armed = slices.DeleteFunc(m.armed, func(e *entry) bool { return e.id == id })
}

func (m *model) arm(id ID, when int64) {
	m.stop(id)
	e := &entry{id: id, when: when, due: when}
	if when > m.now {
		// The beginning of the next tick, by division rather than by shifts.
		if r := when % Tick; r > 0 {
			e.due = when + Tick - r
		} else {
			e.due = when - r
		}
	}
	i, _ := slices.BinarySearchFunc(m.armed, e.due, func(e *entry, due int64) int {
		if e.due <= due {
			return -1
		}
		return 1
	})
	m.armed = slices.Insert(m.armed, i, e)
}

// advance returns what must fire.
func (m *model) advance(now int64) map[ID]int64 {
	m.now = max(m.now, now)
	fired := map[ID]int64{}
	for len(m.armed) > 0 && m.armed[0].due <= m.now {
		fired[m.armed[0].id] = m.armed[0].when
		m.armed = m.armed[1:]
	}
	return fired
}

// pair drives a wheel and a model with the same steps.
type pair struct {
	t     *testing.T
	w     *Wheel
	m     *model
	nodes int
}

// id spreads a pair's timers over pages.
func (p *pair) id(i int) ID { return ID(i) * 37 }

// noID is no timer of a pair.
const noID = 1 << 20

func newPair(t *testing.T, now int64, nodes int) *pair {
	return &pair{t: t, w: New(now), m: &model{now: now}, nodes: nodes}
}

func (p *pair) arm(i int, when int64) {
	p.w.Arm(p.id(i), when)
	p.m.arm(p.id(i), when)
}

func (p *pair) stop(i int) {
	p.w.Stop(p.id(i))
	p.m.stop(p.id(i))
}

// advance compares what fires. meddle, if not nil, runs inside fire; it gets
// the nodes still due and takes out those it arms or stops.
func (p *pair) advance(now int64, meddle func(fired ID, due map[ID]int64)) {
	p.t.Helper()
	p.advanceInParts(now, meddle, nil)
}

// advanceInParts is advance by several calls, each of which goes on as long as more says.
// meddle runs between them too, with noID.
func (p *pair) advanceInParts(now int64, meddle func(fired ID, due map[ID]int64), more func() bool) {
	p.t.Helper()
	due := p.m.advance(now)
	calls := 0
	fire := func(id ID) {
		when, ok := due[id]
		if !ok && calls > 0 {
			// Armed for the past in an earlier part.
			if i := slices.IndexFunc(p.m.armed, func(e *entry) bool { return e.id == id }); i >= 0 && p.m.armed[i].due <= p.m.now {
				when, ok = p.m.armed[i].when, true
				p.m.stop(id)
			}
		}
		if at := p.w.node(id).at(); !ok || ceilTick(when) != at {
			p.t.Fatalf("at %d a timer fired that is not due (tick %d)", p.m.now, at)
		}
		delete(due, id)
		if meddle != nil {
			meddle(id, due)
		}
	}
	for ; !p.w.Advance(now, fire, more); calls++ {
		checkLists(p.t, p.w)
		if next, ok := p.w.Next(); len(due) > 0 && (!ok || next > p.m.now) {
			p.t.Fatalf("Next %d, %v while %d nodes are due at %d", next, ok, len(due), p.m.now)
		}
		if meddle != nil {
			meddle(noID, due)
		}
	}
	if len(due) > 0 {
		p.t.Fatalf("at %d %d due nodes did not fire", p.m.now, len(due))
	}
	p.check()
}

func (p *pair) check() {
	p.t.Helper()
	checkLists(p.t, p.w)
	if p.w.armed != len(p.m.armed) {
		p.t.Fatalf("%d armed, want %d", p.w.armed, len(p.m.armed))
	}
	next, ok := p.w.Next()
	if ok != (len(p.m.armed) > 0) {
		p.t.Fatalf("Next ok is %v with %d armed", ok, len(p.m.armed))
	}
	if ok && next > max(p.m.armed[0].due, p.m.now) {
		p.t.Fatalf("Next %d is after the earliest expiry %d", next, p.m.armed[0].due)
	}
	if ok && next <= p.m.now && p.m.armed[0].due > p.m.now {
		p.t.Fatalf("Next %d does not lie ahead of %d: the owner would spin", next, p.m.now)
	}
}

// reach picks a span of time, each order of magnitude as likely as the next.
func reach(rnd *rand.Rand) int64 {
	return rnd.Int63n(1 << (10 + rnd.Intn(45)))
}

func TestAgainstModel(t *testing.T) {
	for seed := range int64(60) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { againstModel(t, seed) })
	}
}

func againstModel(t *testing.T, seed int64) {
	rnd := rand.New(rand.NewSource(seed))
	start := (rnd.Int63() - rnd.Int63()) >> 8
	p := newPair(t, start, 1+rnd.Intn(60))
	meddle := func(_ ID, due map[ID]int64) {
		i := rnd.Intn(p.nodes)
		switch rnd.Intn(4) {
		case 0: // arm any node, due or not
			p.arm(i, p.m.now+reach(rnd)-reach(rnd)/8)
			delete(due, p.id(i))
		case 1:
			p.stop(i)
			delete(due, p.id(i))
		}
	}
	for range 2000 {
		i := rnd.Intn(p.nodes)
		switch rnd.Intn(9) {
		case 0, 1, 2:
			p.arm(i, p.m.now+reach(rnd))
		case 3:
			p.arm(i, p.m.now-reach(rnd))
		case 4:
			p.stop(i)
		case 5:
			p.advance(p.m.now+reach(rnd), meddle)
		case 6: // wake when the wheel asks for it
			if next, ok := p.w.Next(); ok {
				p.advance(next, meddle)
			}
		case 7: // the clock jumps backwards
			p.advance(p.m.now-reach(rnd), meddle)
		case 8: // in parts, of one node or two
			p.advanceInParts(p.m.now+reach(rnd), meddle, func() bool { return rnd.Intn(2) == 0 })
		}
		p.check()
	}
}

// FuzzWheel reads steps of three bytes: what to do with which node, and a
// mantissa and an exponent that make a span of time.
func FuzzWheel(f *testing.F) {
	f.Add(int64(0), []byte{0, 3, 24, 1, 200, 30, 3, 1, 40})
	f.Add(int64(-1), []byte{0, 255, 50, 3, 255, 50, 3, 255, 52})
	f.Add(int64(1<<53-9), []byte{0, 1, 3, 4, 1, 23, 0, 9, 20, 3, 1, 33, 2, 0, 0})
	f.Fuzz(func(t *testing.T, start int64, steps []byte) {
		p := newPair(t, start>>8, 16)
		for ; len(steps) >= 3; steps = steps[3:] {
			span := int64(steps[1]) << (steps[2] % 48)
			i := int(steps[0]>>3) % p.nodes
			if p.m.now > 1<<61 {
				return // The model would overflow; the wheel has its own test.
			}
			switch steps[0] % 8 {
			case 0, 1, 2:
				p.arm(i, p.m.now+span)
			case 3:
				p.arm(i, p.m.now-span)
			case 4:
				p.stop(i)
			case 5:
				p.advance(p.m.now+span, nil)
			case 6: // re-arm inside fire
				p.advance(p.m.now+span, func(_ ID, due map[ID]int64) {
					p.arm(i, p.m.now+span/2)
					delete(due, p.id(i))
				})
			case 7: // stop inside fire
				p.advance(p.m.now+span, func(_ ID, due map[ID]int64) {
					p.stop(i)
					delete(due, p.id(i))
				})
			}
			p.check()
		}
	})
}
