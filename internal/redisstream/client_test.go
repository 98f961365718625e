package redisstream

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"
)

// ordered fails the test if a line may be overtaken by that of a later state.
type ordered struct {
	t     *testing.T
	lock  *sync.Mutex
	lines int
}

func (h *ordered) Enabled(context.Context, slog.Level) bool { return true }
func (h *ordered) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h *ordered) WithGroup(string) slog.Handler            { return h }

func (h *ordered) Handle(_ context.Context, r slog.Record) error {
	if h.lines++; h.lock.TryLock() {
		h.lock.Unlock()
		h.t.Errorf("%q is logged while the state may change", r.Message)
	}
	return nil
}

// Parts of a client fail and work at the same time; the last line of the log is how it is.
func TestAwayInOrder(t *testing.T) {
	t.Parallel()
	h := &ordered{t: t}
	c, err := Open("redis://127.0.0.1:1", Options{Timeout: time.Second, Logger: slog.New(h)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	h.lock = &c.telling
	for _, change := range []int32{1, 1, -1, -1} {
		var why error
		if change > 0 {
			why = errors.New("gone")
		}
		c.setAway(change, why)
	}
	if h.lines != 2 {
		t.Errorf("%d lines", h.lines)
	}
}
