package tlsio

import (
	"testing"
	"time"

	"github.com/chert-http/chert/internal/conn"
)

// deadlineLink is as much of a Link as Drain uses.
type deadlineLink struct {
	conn.Link
	at int64
}

func (l *deadlineLink) SetDeadline(ns int64) { l.at = ns }

// A client that sends its ClientHello byte by byte does not get DrainNew for each: a loop calls Drain
// after every byte.
func TestDrainIsBounded(t *testing.T) {
	t.Parallel()
	const drainNew = int64(conn.DrainNew)
	for _, c := range []struct {
		timeout time.Duration
		at      int64
	}{
		{0, 1 + drainNew},
		{time.Hour, 1 + drainNew},
		{time.Second, int64(time.Second)},
	} {
		l := new(deadlineLink)
		h := (&Config{Timeout: c.timeout}).Handshake(l, nil, 0)
		for since := int64(1); since < 4*drainNew; since += drainNew - 1 {
			if next := h.Drain(since); next != conn.More || l.at != c.at {
				t.Errorf("timeout %v, drained at %d: %d, until %d instead of %d", c.timeout, since, next, l.at, c.at)
			}
		}
	}
}
