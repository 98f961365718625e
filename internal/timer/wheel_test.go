package timer

import (
	"math"
	"slices"
	"testing"
	"time"
	"unsafe"
)

const (
	ms   = int64(time.Millisecond)
	sec  = int64(time.Second)
	hour = int64(time.Hour)
	day  = 24 * hour
)

// checkLists fails the test when the wheel's lists, bitmaps and count do not
// agree with each other or with the times of the nodes.
func checkLists(t *testing.T, w *Wheel) {
	t.Helper()
	armed := 0
	for i, h := range w.head {
		if i < wheelSlots && (w.used[i/slots]>>(i%slots)&1 == 1) != (h != none) {
			t.Fatalf("list %d: bitmap and list disagree", i)
		}
		if h == none {
			continue
		}
		for id := h - 1; ; {
			armed++
			n := w.node(id)
			if int(n.list)-1 != i || w.node(n.next).prev != id {
				t.Fatalf("list %d is broken", i)
			}
			if i <= overflow && i != w.moving-1 {
				if c := n.at(); c <= w.tick || w.listOf(c) != i {
					t.Fatalf("%d lies in list %d at tick %d", c, i, w.tick)
				}
			}
			if id = n.next; id == h-1 {
				break
			}
		}
	}
	if armed != w.armed {
		t.Fatalf("%d nodes linked, Len is %d", armed, w.armed)
	}
}

// sleepUntilFired follows Next like a loop does and returns when id fired.
func sleepUntilFired(t *testing.T, w *Wheel, id ID) (at int64, wakes int) {
	t.Helper()
	for fired := false; !fired; wakes++ {
		var ok bool
		if at, ok = w.Next(); !ok {
			t.Fatal("Next finds nothing though a timer is armed")
		}
		w.Advance(at, func(m ID) { fired = fired || m == id }, nil)
		checkLists(t, w)
		if wakes > 2*levels {
			t.Fatal("too many wakes")
		}
	}
	return at, wakes
}

func TestNodeIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(node{}); size > 16 {
		t.Errorf("a node has %d bytes", size)
	}
}

func TestFiresInTime(t *testing.T) {
	for _, start := range []int64{
		0,
		1,
		12345678901234,
		-5 * day,                  // a clock with its origin ahead
		63*Tick + 7,               // the last slot of level 0
		(1<<12-1)*Tick + 7,        // the last of levels 0 and 1
		(1<<wheelBits - 1) * Tick, // the last tick before all levels begin again
	} {
		for _, tt := range []struct {
			after int64
			why   string
		}{
			{1, "within the tick"},
			{Tick, "one tick"},
			{Tick + 1, "just over a tick"},
			{20 * ms, "level 0"},
			{64 * Tick, "the first of level 1"},
			{10 * sec, "level 1"},
			{75 * sec, "level 2"},
			{2 * hour, "level 3"},
			{9 * day, "level 4"},
			{200 * day, "beyond the top"},
			{4000 * day, "far beyond the top"},
		} {
			w := New(start)
			const n = 7
			when := start + tt.after
			w.Arm(n, when)
			if !w.Armed(n) || w.node(n).at() != ceilTick(when) || w.armed != 1 {
				t.Fatalf("%s: not armed", tt.why)
			}
			var at int64
			if tt.after < 100*day {
				at, _ = sleepUntilFired(t, w, n)
			} else {
				// The overflow list wakes the owner at each turn of the top.
				w.Advance(when-1, func(ID) { t.Errorf("%s: fired early", tt.why) }, nil)
				at, _ = sleepUntilFired(t, w, n)
			}
			if at < when || at >= when+Tick {
				t.Errorf("from %d, %s: armed for %d, fired at %d", start, tt.why, when, at)
			}
			if w.Armed(n) || w.armed != 0 {
				t.Errorf("%s: still armed", tt.why)
			}
			if _, ok := w.Next(); ok {
				t.Errorf("%s: Next is not empty", tt.why)
			}
		}
	}
}

func TestNeverEarly(t *testing.T) {
	for _, after := range []int64{1, Tick - 1, Tick, 75 * sec, 300 * day} {
		w := New(99)
		w.Arm(0, 99+after)
		for _, now := range []int64{99, 99 + after/2, 99 + after - 1} {
			w.Advance(now, func(ID) { t.Errorf("armed for +%d, fired at %d", after, now-99) }, nil)
		}
		fired := false
		w.Advance(99+after+Tick, func(ID) { fired = true }, nil)
		if !fired {
			t.Errorf("armed for +%d, not fired a tick later", after)
		}
	}
}

func TestEndOfTime(t *testing.T) {
	w := New(0)
	const never, n = 300, 2
	w.Arm(never, math.MaxInt64)
	w.Arm(n, sec)
	fired := 0
	w.Advance(math.MaxInt64-1, func(ID) { fired++ }, nil)
	checkLists(t, w)
	if fired != 1 || w.Armed(n) || !w.Armed(never) {
		t.Errorf("fired %d", fired)
	}
	if when, ok := w.Next(); !ok || when != math.MaxInt64 {
		t.Errorf("Next = %d, %v", when, ok)
	}
}

func TestPast(t *testing.T) {
	w := New(10 * sec)
	for _, when := range []int64{math.MinInt64, 0, 10*sec - 1, 10 * sec} {
		w.Arm(3, when)
		if next, ok := w.Next(); !ok || next > 10*sec {
			t.Errorf("Next = %d, %v", next, ok)
		}
		fired := 0
		w.Advance(10*sec, func(ID) { fired++ }, nil)
		if fired != 1 {
			t.Errorf("armed for %d, fired %d times", when, fired)
		}
	}
}

func TestClockBackwards(t *testing.T) {
	w := New(100 * sec)
	const a, b = 0, 1
	w.Arm(a, 110*sec)
	w.Advance(50*sec, func(ID) { t.Error("fired in the past") }, nil)
	w.Arm(b, 60*sec) // before the time known: due
	fired := 0
	w.Advance(40*sec, func(id ID) {
		if id != b {
			t.Error("wrong node")
		}
		fired++
	}, nil)
	w.Advance(110*sec+Tick, func(ID) { fired++ }, nil)
	if fired != 2 {
		t.Errorf("fired %d, want 2", fired)
	}
}

func TestStopAndRearm(t *testing.T) {
	w := New(0)
	const a, b, c = 0, 1, 2
	w.Stop(a) // unarmed: nothing
	w.Arm(a, sec)
	w.Arm(b, sec)
	w.Arm(c, sec)
	w.Stop(b)
	w.Stop(b)
	w.Arm(c, 3*sec)
	w.Arm(c, 2*sec) // the last one counts
	checkLists(t, w)
	var got []ID
	w.Advance(2*sec+Tick, func(id ID) { got = append(got, id) }, nil)
	if !slices.Equal(got, []ID{a, c}) || w.armed != 0 {
		t.Errorf("fired %v", got)
	}
}

func TestOrder(t *testing.T) {
	w := New(0)
	for i := range ID(5000) {
		// A walk that is not in order; 7919 is prime to 5000.
		w.Arm(i, int64(i*7919%5000+1)*Tick)
	}
	last := int64(-1)
	w.Advance(hour, func(id ID) {
		when := w.node(id).at()
		if when < last {
			t.Fatalf("%d after %d", when, last)
		}
		last = when
	}, nil)
	if w.armed != 0 {
		t.Errorf("%d left", w.armed)
	}
}

// A slot of the second level, of 34 s, has many nodes: each Advance does only as much as it is
// let, whether nodes fire or move down, and all of them fire in order at last.
func TestParts(t *testing.T) {
	const n, most = 50_000, 4
	w := New(0)
	for i := range ID(n) {
		w.Arm(i, 75*sec+int64(i)%100*Tick)
	}
	fired, last, calls := 0, int64(0), 0
	for now := int64(0); w.armed > 0; now += Tick {
		for done := false; !done; calls++ {
			asked, before := 0, fired
			done = w.Advance(now, func(id ID) {
				when := w.node(id).at() * Tick
				if fired++; when < last || when > now {
					t.Fatalf("armed for %d, fired at %d after %d", when, now, last)
				}
				last = when
			}, func() bool { asked++; return asked < most })
			if asked > most || fired-before > most {
				t.Fatalf("%d fired, and more was called %d times", fired-before, asked)
			}
		}
	}
	if fired != n {
		t.Errorf("%d of %d fired", fired, n)
	}
	// Each moves down twice at most, movesAtOnce of them for one call of more.
	if least := n/most + n/movesAtOnce/most; calls < least {
		t.Errorf("%d calls of Advance, want at least %d", calls, least)
	}
}

func TestArmBy(t *testing.T) {
	w := New(0)
	const id = 1000 // in a page of its own
	for _, step := range []struct{ by, want int64 }{{9 * sec, 9 * sec}, {12 * sec, 9 * sec}, {4 * sec, 4 * sec}} {
		w.ArmBy(id, step.by)
		if at := w.node(id).at(); !w.Armed(id) || at != ceilTick(step.want) || w.armed != 1 {
			t.Errorf("armed by %d: in tick %d, %v", step.by, at, w.Armed(id))
		}
	}
	w.Stop(id)
	w.ArmBy(id, 20*sec) // what it was stopped at does not count
	if at := w.node(id).at(); !w.Armed(id) || at != ceilTick(20*sec) {
		t.Errorf("after Stop: in tick %d, %v", at, w.Armed(id))
	}
	checkLists(t, w)
	if w.Armed(id + pageNodes) {
		t.Error("a timer never armed is armed")
	}
	w.Stop(id + pageNodes)
}
