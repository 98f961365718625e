package h1

import (
	"math"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/conn"
)

// clock is as much of a Link as Drain uses.
type clock struct {
	conn.Link
	now, by int64
}

func (c *clock) Now() int64           { return c.now }
func (c *clock) SetDeadline(ns int64) { c.by = ns }

// A new connection has DrainNew for its request, or the rest of HeadTime: one that is too long to be added to a time
// does not hide the former.
func TestDrainNew(t *testing.T) {
	t.Parallel()
	const now = int64(time.Hour)
	for head, want := range map[int64]int64{
		0: now + int64(conn.DrainNew), math.MaxInt64: now + int64(conn.DrainNew), int64(time.Second): now + int64(time.Second),
	} {
		l := &clock{now: now}
		s := &Session{cfg: &Config{HeadTime: head}}
		s.Link = l
		s.await()
		if next := s.Drain(now); next != conn.More || l.by > want || l.by < want-2<<sinceUnit {
			t.Errorf("HeadTime %d: %d, by %d, not %d", head, next, l.by, want)
		}
	}
}
