package outboxtest

import (
	"fmt"
	"testing"

	"github.com/chert-http/chert/internal/outbox"
)

// step is an Offer of n bytes, and what is to become of it.
type step struct {
	n, limit      int
	refused, much bool
}

const kib = 1 << 10

// sequences are Offers one after another, the first of which are to be what waits.
type sequence struct {
	why   string
	steps []step
}

var sequences = []sequence{
	{"an event that is larger than what is left", []step{
		{10 * kib, 64 * kib, false, false},
		{60 * kib, 64 * kib, false, true},
		{1, 64 * kib, true, true},
		{1, -1, false, false},
		{kib, 256 * kib, false, false},
	}},
	{"the marks", []step{
		{10 * kib, -1, false, false},
		{22 * kib, 64 * kib, false, false}, // half
		{1, 64 * kib, false, true},
		{32*kib - 1, 64 * kib, false, true}, // all
		{1, 64 * kib, true, true},
		{60 * kib, 256 * kib, false, false},
		{5 * kib, 256 * kib, false, true},
		{128 * kib, 256 * kib, true, true},
		{127 * kib, 256 * kib, false, true},
		{2 * kib, 256 * kib, true, true},
		{2 * kib, 512 * kib, false, true},
	}},
	{"larger than the limit", []step{
		{kib, -1, false, false},
		{1000 * kib, 64 * kib, false, true},
		{0, 64 * kib, true, true},
	}},
}

// Carrier is one end of a connection whose peer accepts nothing.
type Carrier struct {
	Offer func(p []byte, limit int) (much bool, err error)
	// Waiting is how much waits, 1 KiB at most when the test begins. Nil where all that is
	// offered does.
	Waiting func() int
}

// Offers makes the same Offers on all carriers, each of which open makes. Another one is
// opened if the peer has accepted something after all.
func Offers(t testing.TB, open func() Carrier) {
	t.Helper()
	for _, q := range sequences {
		for !q.run(t, open()) {
		}
	}
}

func (q *sequence) run(t testing.TB, c Carrier) (done bool) {
	t.Helper()
	accepted, said := 0, ""
	if c.Waiting != nil {
		accepted = c.Waiting()
	}
	for i, s := range q.steps {
		n := s.n
		if i == 0 {
			n -= accepted
		}
		much, err := c.Offer(make([]byte, n), s.limit)
		if err == nil {
			accepted += n
		} else if err != outbox.ErrFull {
			t.Fatal(err)
		}
		if refused := err != nil; said == "" && (refused != s.refused || much != s.much) {
			said = fmt.Sprintf("step %d: refused %v, much %v", i, refused, much)
		}
	}
	if c.Waiting != nil && c.Waiting() != accepted {
		return false
	}
	if said != "" {
		t.Errorf("%s: %s", q.why, said)
	}
	return true
}
