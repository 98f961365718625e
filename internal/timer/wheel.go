package timer

import (
	"math"
	"math/bits"
)

// How the wheel works.
//
// Time is divided into ticks of 2^23 ns (8.4 ms). A tick number is read as
// digits in base 64, and there is one level of 64 slots for each digit:
//
//	level  a slot spans   the level spans
//	0      8.4 ms         0.54 s
//	1      0.54 s         34 s
//	2      34 s           37 min
//	3      37 min         39 h
//	4      39 h           104 days
//
// A timer is stored at the level of the highest digit in which its tick differs
// from the current one, in the slot of that digit. If the current tick is
// 2:10:63 (digits of levels 2, 1, 0), then
//
//	2:11:01  differs first at level 1 -> level 1, slot 11 (though 2 ticks away)
//	2:40:00  differs first at level 1 -> level 1, slot 40
//	3:00:05  differs first at level 2 -> level 2, slot 3
//
// When the time reaches 2:11:00 it enters slot 11 of level 1, and the timers
// there are placed again: 2:11:01 now differs at level 0 only and goes to slot
// 1 there. This is the cascade. A timer moves at most once per level, so the
// cost of a timer is bounded however long it runs.
//
// Placing by digit rather than by distance has two consequences. All timers of
// a level come before all timers of the level above, and within a level all
// occupied slots are ahead of the current digit: slots never wrap. So the first
// occupied slot is the lowest bit of the first non-empty bitmap; a long sleep
// costs no walk over empty slots, and Next needs no search.
//
// A timer beyond the top level waits in the overflow list, which is placed
// again each time the top level begins again (every 104 days).
//
// A slot may have a million timers, so Advance can stop anywhere in it. The wheel
// then stays at the tick in which the slot begins: what is left there is older than
// all other lists, and moving tells that the slot is the next to go on with.

const (
	// Tick is the resolution of the wheel in nanoseconds.
	Tick = 1 << tickShift

	tickShift  = 23
	digitBits  = 6
	slots      = 1 << digitBits
	levels     = 5
	wheelSlots = levels * slots
	wheelBits  = levels * digitBits
)

// Lists beside the slots of the wheel. Of the last two one is for nodes that are armed
// for a time already reached, the other has those that are due: they change places when
// an Advance begins and none is due.
const (
	overflow = wheelSlots + iota // beyond the top level
	pastA
	pastB
	lists
)

// movesAtOnce is how many nodes may move down a level before Advance asks whether to go on.
const movesAtOnce = 64

// Wheel holds the timers of one owner. It is not safe for concurrent use.
type Wheel struct {
	pages  []*[pageNodes]node
	now    int64          // the latest time passed to Advance
	tick   int64          // all timers of this tick and earlier have left the wheel, but for those in moving
	armed  int            // nodes in all lists
	past   int            // the list for nodes that are armed for a time already reached
	moving int            // 1 + the list that an Advance has begun to empty; 0: none
	used   [levels]uint64 // bit s of used[l]: slot s of level l is not empty
	head   [lists]ID      // 1 + the first node of each circular list, or none
}

// New returns an empty wheel that starts at now, in nanoseconds of a monotonic
// clock with any origin.
func New(now int64) *Wheel {
	return &Wheel{now: now, tick: now >> tickShift, past: pastA}
}

// Arm makes timer id fire at when, whatever it was armed for before. A
// time that the last Advance had already reached fires at the next Advance,
// never in the running one, so a timer that is armed for the past whenever it fires cannot
// keep Advance from returning.
func (w *Wheel) Arm(id ID, when int64) {
	list, tick := w.past, ceilTick(when)
	if when > w.now {
		list = w.listOf(tick)
	}
	w.grow(id)
	n := w.node(id)
	n.set(tick)
	if n.list == uint16(list)+1 {
		return // A deadline pushed within its slot: the common re-arm.
	}
	if n.list != 0 {
		w.unlink(id, n)
	}
	w.link(id, n, list)
}

// ArmBy is Arm unless the timer is armed and fires by then.
func (w *Wheel) ArmBy(id ID, when int64) {
	if !w.Armed(id) || w.node(id).at() > ceilTick(when) {
		w.Arm(id, when)
	}
}

// Armed reports whether timer id is waiting to fire.
func (w *Wheel) Armed(id ID) bool { return w.has(id) && w.node(id).list != 0 }

// Stop disarms a timer. Stopping an unarmed one does nothing.
func (w *Wheel) Stop(id ID) {
	if w.Armed(id) {
		w.unlink(id, w.node(id))
	}
}

// Advance sets the wheel's time and fires the nodes that are due: every node
// armed for the beginning of the current tick or earlier. So a node fires less
// than a tick late and never early. Nodes of different ticks fire in order of
// time, after those armed for the past; the order within a tick is unspecified.
//
// more, if not nil, is called after each node that has fired, and now and then while
// nodes only move within the wheel. If it returns false, Advance returns false, and the
// next one goes on with the rest: those nodes fire later.
//
// A node is unarmed when fire is called with it. fire may arm and stop any
// node, including those due in this call; it must not call Advance. If it
// panics, the remaining nodes fire at the next Advance.
//
// A time before the last one is treated as the last one.
func (w *Wheel) Advance(now int64, fire func(ID), more func() bool) (done bool) {
	w.now = max(w.now, now)
	if w.head[w.due()] == none {
		w.past = w.due()
	}
	for target := w.now >> tickShift; ; {
		if !w.empty(w.due(), fire, more) {
			return false
		}
		if w.moving == 0 {
			list, tick := w.first()
			if list < 0 || tick > target {
				// Safe to jump: no slot begins in between, so no digit that names an
				// occupied slot is passed.
				w.tick = target
				return true
			}
			if w.tick = tick; list == overflow {
				w.refile()
				continue
			}
			w.moving = list + 1
		}
		if !w.empty(w.moving-1, fire, more) {
			return false
		}
		w.moving = 0
	}
}

// due is the list of nodes that were armed for a time already reached and fire in this
// Advance.
func (w *Wheel) due() int { return pastA + pastB - w.past }

// empty fires the nodes of a list that are due, and moves the others to where they now
// belong, until the list is empty or more returns false, and reports which. Nodes are taken
// from the list one by one, because fire may stop or re-arm any of those still in it. In a
// slot they belong to a lower level: the list gets no node meanwhile.
func (w *Wheel) empty(list int, fire func(ID), more func() bool) (done bool) {
	moved := 0
	for w.head[list] != none {
		id := w.head[list] - 1
		n := w.node(id)
		w.unlink(id, n)
		if t := n.at(); list < wheelSlots && t > w.tick {
			w.link(id, n, w.listOf(t))
			if moved++; moved < movesAtOnce {
				continue
			}
			moved = 0
		} else {
			fire(id)
		}
		if more != nil && !more() {
			return false
		}
	}
	return true
}

// Next returns a time until which the owner may sleep without making any node
// later than Advance would: the tick in which the earliest node fires, or an
// earlier one in which it has to move down a level. It is not the time the
// node was armed for: waking then would find its tick not yet full. ok is
// false when nothing is armed.
func (w *Wheel) Next() (when int64, ok bool) {
	if w.armed == 0 {
		return 0, false
	}
	if w.head[pastA] != none || w.head[pastB] != none || w.moving != 0 {
		return w.now, true
	}
	_, tick := w.first()
	if tick > math.MaxInt64>>tickShift {
		return math.MaxInt64, true
	}
	return tick << tickShift, true
}

// refile links the nodes of the overflow list where each now belongs. The list is detached
// first: a node may go back there. It is the one step without a bound: there are hardly
// any timers of 104 days.
func (w *Wheel) refile() {
	id := w.head[overflow] - 1
	last := w.node(id).prev
	w.head[overflow] = none
	for {
		n := w.node(id)
		next := n.next
		dst := w.due()
		if t := n.at(); t > w.tick {
			dst = w.listOf(t)
		}
		w.armed-- // link counts it again
		w.link(id, n, dst)
		if id == last {
			return
		}
		id = next
	}
}

// first returns the earliest list of the wheel that is not empty and the tick
// in which it begins, or a negative list.
func (w *Wheel) first() (list int, tick int64) {
	for l, set := range w.used {
		if set != 0 {
			s := bits.TrailingZeros64(set)
			shift := l * digitBits
			above := w.tick >> (shift + digitBits) << digitBits
			return l*slots + s, (above | int64(s)) << shift
		}
	}
	if w.head[overflow] != none {
		return overflow, (w.tick>>wheelBits + 1) << wheelBits
	}
	return -1, 0
}

// listOf returns the list for a tick after the current one.
func (w *Wheel) listOf(tick int64) int {
	l := (bits.Len64(uint64(tick^w.tick)) - 1) / digitBits
	if l >= levels {
		return overflow
	}
	return l*slots + int(tick>>(l*digitBits))&(slots-1)
}

// ceilTick returns the first tick that begins at when or later. Rounding up
// keeps a timer from firing early.
func ceilTick(when int64) int64 {
	t := when >> tickShift
	if when&(Tick-1) != 0 {
		t++
	}
	return t
}
