package redisstore

import (
	"context"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/testing/door"
)

// Connections take longer to be made than a decision may. They are made all the
// same, at the start and after all of them broke.
func TestSlowConnections(t *testing.T) {
	t.Parallel()
	srv := server(t)
	const timeout = 200 * time.Millisecond
	d := door.OpenSlow(t, srv.Addr, 4*timeout)
	s := open(t, "redis://"+d.Addr, Options{
		Timeout: timeout, Failure: FailureClosed, Pause: 20 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	l := limit(t, "l", "1000/s", s)
	if dec, err := l.Allow(t.Context(), "k", 1); !dec.Failed || err == nil {
		t.Errorf("%+v, %v: is the door not slow?", dec, err)
	}
	for range 2 {
		await(t, "a decision of Redis", func() bool {
			dec, err := l.Allow(t.Context(), "k", 1)
			return !dec.Failed && err == nil
		})
		d.Cut()
		await(t, "the connections to be missed", func() bool {
			dec, _ := l.Allow(t.Context(), "k", 1)
			return dec.Failed
		})
	}
}

// Many decisions at once find connections in the end, however slowly those are
// made.
func TestSlowConnectionsForMany(t *testing.T) {
	t.Parallel()
	srv := server(t)
	const timeout = 250 * time.Millisecond
	d := door.OpenSlow(t, srv.Addr, 2*timeout)
	s := open(t, "redis://"+d.Addr, Options{Timeout: timeout, Failure: FailureOpen, Pause: 20 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	ld := startLoad(limit(t, "l", "1/d", s), 8)
	await(t, "200 decisions of Redis in a row", func() bool { return ld.inRow.Load() > 200 })
	ld.end()
}

// A store that fails and is closed, also while it makes connections, leaks no
// goroutine and no descriptor.
func TestCloseLeavesNothing(t *testing.T) {
	// Not parallel: it counts what the process has.
	srv := server(t)
	round := func(url string) {
		s, err := OpenURL(url, &Options{Timeout: 50 * time.Millisecond, Failures: 2, Pause: time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		l := limit(t, "l", "1000/s", s)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 5 {
					l.Allow(context.Background(), "k", 1)
				}
			})
		}
		all.Wait()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if dec, err := l.Allow(context.Background(), "k", 1); !dec.Failed || err == nil {
			t.Errorf("after Close: %+v, %v", dec, err)
		}
	}
	hole, err := net.Listen("tcp", "127.0.0.1:0") // connections are made, and nothing comes
	if err != nil {
		t.Fatal(err)
	}
	defer hole.Close()
	urls := []string{srv.URL(), "redis://" + hole.Addr().String(), "redis://127.0.0.1:1", "redis+cluster://127.0.0.1:1",
		"redis+sentinel://127.0.0.1:1/0?master_name=main"}
	for _, url := range urls {
		round(url) // what is made once
	}
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	for range 10 {
		for _, url := range urls {
			round(url)
		}
	}
	await(t, "goroutines and descriptors to go", func() bool {
		return runtime.NumGoroutine() <= goroutines+2 && openFiles(t) <= files+2
	})
}

// openFiles is how many descriptors are open; 0 where that is not known. Those of
// the hole's queue are the kernel's.
func openFiles(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil && !os.IsNotExist(err) && !strings.Contains(err.Error(), "not supported") {
		t.Fatal(err)
	}
	return len(all)
}
