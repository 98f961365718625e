package timer

import "testing"

func nop(ID) {}

// many is how many timers a benchmark has.
const many = 10000

func TestNoAllocs(t *testing.T) {
	w := New(0)
	now := int64(0)
	rearm := func(id ID) { w.Arm(id, now+75*sec) }
	w.Arm(999, 0) // has the pages made
	if n := testing.AllocsPerRun(200, func() {
		for i := range ID(1000) {
			w.Arm(i, now+int64(i)*100*ms)
			if i%3 == 0 {
				w.Stop(i)
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
	now := int64(0)
	b.ReportAllocs()
	i := ID(0)
	for b.Loop() {
		now += 10_000
		w.Arm(i, now+75*sec)
		if i++; i == many {
			i = 0
			w.Advance(now, nop, nil)
		}
	}
}

// A deadline that is set and dropped, as around a write.
func BenchmarkArmStop(b *testing.B) {
	w := New(0)
	const n, other = 0, 1
	w.Arm(other, hour)
	b.ReportAllocs()
	for b.Loop() {
		w.Arm(n, 60*sec)
		w.Stop(n)
	}
}

// The whole life of a timer: armed a minute ahead, moved down, fired.
func BenchmarkExpire(b *testing.B) {
	w := New(0)
	now := int64(0)
	left := 0
	fire := func(ID) { left-- }
	b.ReportAllocs()
	for b.Loop() {
		if left == 0 {
			left = many
			for j := range ID(many) {
				w.Arm(j, now+60*sec+int64(j)*ms)
			}
		}
		fired := left
		for left == fired {
			next, _ := w.Next()
			now = next
			w.Advance(now, fire, nil)
		}
	}
	b.ReportMetric(many, "armed")
}

// A turn of the loop in which nothing is due, with 10,000 timers armed.
func BenchmarkAdvanceIdle(b *testing.B) {
	w := New(0)
	for i := range ID(many) {
		w.Arm(i, day+int64(i))
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
	now := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		if now > 1<<61 {
			now, w = 0, New(0)
		}
		w.Arm(0, now+12*day)
		now += 13 * day
		w.Advance(now, nop, nil)
	}
}
