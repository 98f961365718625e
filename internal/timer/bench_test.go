package timer

import "testing"

func nop(*Node) {}

func TestNoAllocs(t *testing.T) {
	w := New(0)
	nodes := make([]Node, 1000)
	now := int64(0)
	rearm := func(n *Node) { w.Arm(n, now+75*sec) }
	if n := testing.AllocsPerRun(200, func() {
		for i := range nodes {
			w.Arm(&nodes[i], now+int64(i)*100*ms)
			if i%3 == 0 {
				w.Stop(&nodes[i])
			}
		}
		now += sec
		w.Advance(now, rearm, nil)
		w.Next()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A keep-alive deadline pushed at each request, 10 us apart, over 10,000
// connections.
func BenchmarkRearm(b *testing.B) {
	w := New(0)
	nodes := make([]Node, 10000)
	now := int64(0)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		now += 10_000
		w.Arm(&nodes[i], now+75*sec)
		if i++; i == len(nodes) {
			i = 0
			w.Advance(now, nop, nil)
		}
	}
}

// A deadline that is set and dropped, as around a write.
func BenchmarkArmStop(b *testing.B) {
	w := New(0)
	var n, other Node
	w.Arm(&other, hour)
	b.ReportAllocs()
	for b.Loop() {
		w.Arm(&n, 60*sec)
		w.Stop(&n)
	}
}

// The whole life of a timer: armed a minute ahead, moved down, fired.
func BenchmarkExpire(b *testing.B) {
	w := New(0)
	nodes := make([]Node, 10000)
	now := int64(0)
	left := 0
	fire := func(*Node) { left-- }
	b.ReportAllocs()
	for b.Loop() {
		if left == 0 {
			left = len(nodes)
			for j := range nodes {
				w.Arm(&nodes[j], now+60*sec+int64(j)*ms)
			}
		}
		fired := left
		for left == fired {
			next, _ := w.Next()
			now = next
			w.Advance(now, fire, nil)
		}
	}
	b.ReportMetric(float64(len(nodes)), "armed")
}

// A turn of the loop in which nothing is due, with 10,000 timers armed.
func BenchmarkAdvanceIdle(b *testing.B) {
	w := New(0)
	nodes := make([]Node, 10000)
	for i := range nodes {
		w.Arm(&nodes[i], day+int64(i))
	}
	now := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		now++
		w.Advance(now, nop, nil)
		w.Next()
	}
}

// A sleep of 12 days over empty slots, then one timer.
func BenchmarkAdvanceLong(b *testing.B) {
	w := New(0)
	var n Node
	now := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		if now > 1<<61 {
			now, w = 0, New(0)
		}
		w.Arm(&n, now+12*day)
		now += 13 * day
		w.Advance(now, nop, nil)
	}
}
