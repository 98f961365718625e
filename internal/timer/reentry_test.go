package timer

import "testing"

// What fire may do to the wheel that is calling it. Three nodes are due in the
// same tick in the order a, b, c; a acts when it fires.
func TestFireMayChangeTheWheel(t *testing.T) {
	type nodes struct{ a, b, c, d Node }
	for _, tt := range []struct {
		why  string
		act  func(w *Wheel, n *nodes)
		now  string // fired in the Advance
		next string // fired in the one after, at the same time
		left int    // still armed after both
	}{
		{"nothing", func(w *Wheel, n *nodes) {}, "abc", "", 0},
		{"stops itself", func(w *Wheel, n *nodes) { w.Stop(&n.a) }, "abc", "", 0},
		{"stops the next", func(w *Wheel, n *nodes) { w.Stop(&n.b) }, "ac", "", 0},
		{"stops all", func(w *Wheel, n *nodes) { w.Stop(&n.b); w.Stop(&n.c) }, "a", "", 0},
		{"re-arms itself for later", func(w *Wheel, n *nodes) { w.Arm(&n.a, 9*sec) }, "abc", "", 1},
		{"re-arms itself for the past", func(w *Wheel, n *nodes) { w.Arm(&n.a, 0) }, "abc", "a", 0},
		{"re-arms the next for later", func(w *Wheel, n *nodes) { w.Arm(&n.b, 9*sec) }, "ac", "", 1},
		{"re-arms the next for the past", func(w *Wheel, n *nodes) { w.Arm(&n.b, sec) }, "ac", "b", 0},
		{"arms another for the same tick", func(w *Wheel, n *nodes) { w.Arm(&n.d, sec) }, "abc", "d", 0},
		{"arms another for later", func(w *Wheel, n *nodes) { w.Arm(&n.d, 9*sec) }, "abc", "", 1},
		{"stops what it armed", func(w *Wheel, n *nodes) { w.Arm(&n.d, sec); w.Stop(&n.d) }, "abc", "", 0},
	} {
		w := New(0)
		var n nodes
		for i, p := range []*Node{&n.a, &n.b, &n.c, &n.d} {
			p.Key = uint32('a' + i)
		}
		w.Arm(&n.a, sec)
		w.Arm(&n.b, sec)
		w.Arm(&n.c, sec)
		acted := false
		advance := func() (fired string) {
			w.Advance(2*sec, func(m *Node) {
				if m.Armed() {
					t.Errorf("%s: fired while armed", tt.why)
				}
				fired += string(rune(m.Key))
				if m == &n.a && !acted {
					acted = true
					tt.act(w, &n)
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
		if w.Len() != tt.left {
			t.Errorf("%s: %d left, want %d", tt.why, w.Len(), tt.left)
		}
	}
}

// A panic in fire is the owner's to catch; the wheel must not lose the rest.
func TestFirePanics(t *testing.T) {
	w := New(0)
	nodes := make([]Node, 3)
	for i := range nodes {
		w.Arm(&nodes[i], sec)
	}
	func() {
		defer func() { _ = recover() }()
		w.Advance(2*sec, func(*Node) { panic("boom") }, nil)
	}()
	checkLists(t, w)
	if when, ok := w.Next(); !ok || when > 2*sec {
		t.Errorf("Next = %d, %v: would sleep over what is left", when, ok)
	}
	fired := 0
	w.Advance(2*sec, func(*Node) { fired++ }, nil)
	if fired != 2 || w.Len() != 0 {
		t.Errorf("fired %d of the 2 left", fired)
	}
}
