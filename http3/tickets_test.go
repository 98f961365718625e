package http3

import "testing"

// Each of the last tickets of a socket is taken once, and nothing else is.
func TestTickets(t *testing.T) {
	t.Parallel()
	a, b := newTickets(), newTickets()
	take := func(extra ...[]byte) bool { return a.take(extra) }
	first := a.issue()
	if !take([]byte("of others"), nil, first) || take(first) || take(first) {
		t.Error("the first is not taken once")
	}
	second, other := a.issue(), b.issue()
	for name, extra := range map[string][]byte{
		"another's": other, "short": second[:len(second)-1], "long": append(second[:len(second):len(second)], 0),
		"not issued": append(a.mark[:len(a.mark):len(a.mark)], 0, 0, 0, 0, 0, 0, 0, 2), "large": append(a.mark[:len(a.mark):len(a.mark)], 255, 255, 255, 255, 255, 255, 255, 255),
	} {
		if take(extra) {
			t.Errorf("%s is taken", name)
		}
	}
	for range maxTickets - 1 {
		a.issue()
	}
	third := a.issue() // in the place of the second
	if take(first) || take(second) || !take(third) || take(third) {
		t.Error("an old one is taken, or the new one is not")
	}
	a.off.Store(true)
	fourth := a.issue()
	if take(fourth) {
		t.Error("one is taken when early data is off")
	}
	if a.off.Store(false); take(fourth) {
		t.Error("it is taken later")
	}
}
