package timer

import "testing"

// What fire may do to the wheel that is calling it. Three nodes are due in the
// same tick in the order a, b, c; a acts when it fires.
func TestFireMayChangeTheWheel(t *testing.T) {
	const a, b, c, d = 0, 1, 2, 3
	for _, tt := range []struct {
		why  string
		act  func(w *Wheel)
		now  string // fired in the Advance
		next string // fired in the one after, at the same time
		left int    // still armed after both
	}{
		{"nothing", func(w *Wheel) {}, "abc", "", 0},
		{"stops itself", func(w *Wheel) { w.Stop(a) }, "abc", "", 0},
		{"stops the next", func(w *Wheel) { w.Stop(b) }, "ac", "", 0},
		{"stops all", func(w *Wheel) { w.Stop(b); w.Stop(c) }, "a", "", 0},
		{"re-arms itself for later", func(w *Wheel) { w.Arm(a, 9*sec) }, "abc", "", 1},
		{"re-arms itself for the past", func(w *Wheel) { w.Arm(a, 0) }, "abc", "a", 0},
		{"re-arms the next for later", func(w *Wheel) { w.Arm(b, 9*sec) }, "ac", "", 1},
		{"re-arms the next for the past", func(w *Wheel) { w.Arm(b, sec) }, "ac", "b", 0},
		{"arms another for the same tick", func(w *Wheel) { w.Arm(d, sec) }, "abc", "d", 0},
		{"arms another for later", func(w *Wheel) { w.Arm(d, 9*sec) }, "abc", "", 1},
		{"stops what it armed", func(w *Wheel) { w.Arm(d, sec); w.Stop(d) }, "abc", "", 0},
	} {
		w := New(0)
		w.Arm(a, sec)
		w.Arm(b, sec)
		w.Arm(c, sec)
		acted := false
		advance := func() (fired string) {
			w.Advance(2*sec, func(id ID) {
				if w.Armed(id) {
					t.Errorf("%s: fired while armed", tt.why)
				}
				fired += string(rune('a' + id))
				if id == a && !acted {
					acted = true
					tt.act(w)
				}
				checkLists(t, w)
			}, nil)
			return fired
		}
		if got := advance(); got != tt.now {
			t.Errorf("%s: fired %q, want %q", tt.why, got, tt.now)
		}
		if got := advance(); got != tt.next {
			t.Errorf("%s: then fired %q, want %q", tt.why, got, tt.next)
		}
		if w.armed != tt.left {
			t.Errorf("%s: %d left, want %d", tt.why, w.armed, tt.left)
		}
	}
}

// A panic in fire is the owner's to catch; the wheel must not lose the rest.
func TestFirePanics(t *testing.T) {
	w := New(0)
	for id := range ID(3) {
		w.Arm(id, sec)
	}
	func() {
		defer func() { _ = recover() }()
		w.Advance(2*sec, func(ID) { panic("boom") }, nil)
	}()
	checkLists(t, w)
	if when, ok := w.Next(); !ok || when > 2*sec {
		t.Errorf("Next = %d, %v: would sleep over what is left", when, ok)
	}
	fired := 0
	w.Advance(2*sec, func(ID) { fired++ }, nil)
	if fired != 2 || w.armed != 0 {
		t.Errorf("fired %d of the 2 left", fired)
	}
}
