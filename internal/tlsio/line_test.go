package tlsio

import (
	"fmt"
	"testing"
)

// waiting has n handshakes of an address wait in b, whose slots are taken.
func waiting(t *testing.T, b *Bound, host string, n int) (hs []*Handshake) {
	t.Helper()
	for i := range n {
		h, _, ok := joinsFrom(b, fmt.Sprint(host, ":", 1000+i))
		if ok {
			t.Fatal("a slot was free")
		}
		hs = append(hs, h)
	}
	return hs
}

// taken is the name of the next that b would begin.
func taken(l *line, names map[*Handshake]string) string {
	h := l.take()
	h.state = over // for leave
	return names[h]
}

// A client of an address without others that wait is not delayed by those of other
// addresses, however many they are and whenever they came.
func TestLineNewAddress(t *testing.T) {
	t.Parallel()
	b := &Bound{Slots: 1, Goroutines: 10, watching: true} // no timer takes the slot
	first, _, _ := joins(b)
	waiting(t, b, "192.0.2.1", 1000)
	waiting(t, b, "[2001:db8::1]", 1000)
	waiting(t, b, "[2001:db8::ffff:2]", 1000) // the same /64
	if n := len(b.fresh.by); n != 2 {
		t.Errorf("%d addresses wait", n)
	}
	for i := range 20 {
		host := fmt.Sprintf("198.51.100.%d", i)
		h := waiting(t, b, host, 1)[0]
		got := b.fresh.take()
		if got != h && b.fresh.turn%fair == 0 { // that of the one that has waited longest
			got = b.fresh.take()
		}
		if got != h {
			t.Fatalf("%s is not next, but %s", host, got.link.Peer().RemoteAddr)
		}
		waiting(t, b, "192.0.2.1", 10)
	}
	for b.fresh.n > 0 {
		b.fresh.take()
	}
	b.leave(first)
	b.empty(t)
}

// Addresses with many clients take turns, and within each the newest is next, but for every
// fourth time.
func TestLineOrder(t *testing.T) {
	t.Parallel()
	b := &Bound{Slots: 1, Goroutines: 10, watching: true} // no timer takes the slot
	first, _, _ := joins(b)
	names := make(map[*Handshake]string)
	for _, host := range []string{"a", "b"} {
		for i, h := range waiting(t, b, host, 4) {
			names[h] = fmt.Sprint(host, i)
		}
	}
	var got []string
	for b.fresh.n > 0 {
		got = append(got, taken(&b.fresh, names))
	}
	if want := "[b3 a3 b2 a0 b1 a2 b0 a1]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %v", got, want)
	}
	b.leave(first)
	b.empty(t)
}

// A client that stays is served, though others come without end.
func TestLineOldest(t *testing.T) {
	t.Parallel()
	for name, host := range map[string]func(i int) string{
		"of one address": func(int) string { return "192.0.2.1" },
		"of as many":     func(i int) string { return fmt.Sprintf("192.0.%d.%d", i/250, i%250) },
		"of a few":       func(i int) string { return fmt.Sprint("192.0.2.", i%3) },
		"of new ones, beside one that was served": func(i int) string {
			if i%2 == 0 {
				return "192.0.2.1"
			}
			return fmt.Sprintf("198.51.%d.%d", i/250, i%250)
		},
	} {
		b := &Bound{Slots: 1, Goroutines: 10, watching: true} // no timer takes the slot
		first, _, _ := joins(b)
		const n = 100
		old := make(map[*Handshake]bool)
		for i := range n {
			old[waiting(t, b, host(i), 1)[0]] = true
		}
		rounds := 0
		for ; len(old) > 0 && rounds < 10*fair*n; rounds++ {
			waiting(t, b, host(n+2*rounds), 1) // more than are taken
			waiting(t, b, host(n+2*rounds+1), 1)
			delete(old, b.fresh.take())
		}
		if len(old) > 0 {
			t.Errorf("%s: %d of %d are left after %d rounds", name, len(old), n, rounds)
		}
		for b.fresh.n > 0 {
			b.fresh.take()
		}
		b.leave(first)
	}
}
