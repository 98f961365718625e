package derive

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTicketKeys(t *testing.T) {
	t.Parallel()
	s := Secret(strings.Repeat("s", Least))
	day := PeriodOf(time.Date(2026, 11, 27, 23, 59, 59, 0, time.UTC))
	if next := PeriodOf(time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)); next != day+1 {
		t.Errorf("%d follows %d", next, day)
	}
	now := s.TicketKeys("", day)
	for n := int64(-1); n <= lifetime; n++ {
		// A ticket of today is decrypted a day before, by a clock that is behind, and for a week.
		if later := s.TicketKeys("", day+n); !slices.Contains(later, now[0]) {
			t.Errorf("not %d days later", n)
		}
	}
	if slices.Contains(s.TicketKeys("", day+lifetime+1), now[0]) {
		t.Error("for ever")
	}
	for _, other := range [][][32]byte{s.TicketKeys("a site", day), Secret(s+"x").TicketKeys("", day), {s.Key("certificates")}} {
		for _, k := range other {
			if slices.Contains(now, k) {
				t.Error("a key of another scope, secret or purpose is the same")
			}
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	if err := Check(strings.Repeat("s", Least)); err != nil {
		t.Error(err)
	}
	if err := Check("secret"); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}
