package proxy

import (
	"context"
	"log/slog"
	"testing"

	"github.com/chert-http/chert/internal/health"
)

type levels struct {
	slog.Handler
	got []slog.Level
}

func (l *levels) Handle(_ context.Context, r slog.Record) error {
	l.got = append(l.got, r.Level)
	return nil
}

// Only what has become worse is a warning, whatever the rest of the state is.
func TestLevels(t *testing.T) {
	t.Parallel()
	l := &levels{Handler: slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})}
	p := NewPool(&PoolOptions{Logger: slog.New(l)})
	defer p.Close()
	for _, tt := range []struct {
		c    health.Change
		want slog.Level
	}{
		{health.Change{From: health.Up, To: health.Ejected}, slog.LevelWarn},
		{health.Change{From: health.Ejected, To: health.Probing}, slog.LevelInfo},
		{health.Change{CheckFrom: health.Passing, CheckTo: health.Failing}, slog.LevelWarn},
		{health.Change{CheckFrom: health.Failing, CheckTo: health.Passing}, slog.LevelInfo},
		{health.Change{CheckFrom: health.Unchecked, CheckTo: health.Passing}, slog.LevelDebug},
		// One way or the other is what has changed.
		{health.Change{From: health.Ejected, To: health.Ejected, CheckFrom: health.Failing, CheckTo: health.Passing}, slog.LevelInfo},
		{health.Change{From: health.Ejected, To: health.Ejected, CheckTo: health.Passing}, slog.LevelDebug},
		{health.Change{From: health.Ejected, To: health.Up, CheckFrom: health.Failing, CheckTo: health.Failing}, slog.LevelInfo},
	} {
		l.got = nil
		if p.log(health.Key{Addr: "10.0.0.1:80"}, tt.c); len(l.got) != 1 || l.got[0] != tt.want {
			t.Errorf("%+v: %v, want %v", tt.c, l.got, tt.want)
		}
	}
}
