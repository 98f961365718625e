package redisstore

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/testing/redistest"
	"github.com/chert-http/chert/ratelimit"
)

// The environment of a child of TestProcesses.
const (
	childURL  = "CHERT_TEST_RATE_URL"
	childTime = "CHERT_TEST_RATE_TIME"
)

// sharedRate is what the processes share: some hundred tokens while they run.
const sharedRate = "200/s burst 100"

func TestMain(m *testing.M) {
	if url := os.Getenv(childURL); url != "" {
		if err := child(url, os.Getenv(childTime)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// child asks for tokens for a while, with several goroutines, and writes a line
// for each decision: Redis's time, and whether it was allowed.
func child(url, text string) error {
	long, err := time.ParseDuration(text)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	var mu sync.Mutex
	fails := error(nil)
	s, err := OpenURL(url, &Options{Timeout: slow, Failure: FailureClosed, Observe: func(e Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Err != nil {
			fails = e.Err
		}
		fmt.Fprintln(out, e.Time.UnixNano(), e.Allowed)
	}})
	if err != nil {
		return err
	}
	defer s.Close()
	rate, err := ratelimit.ParseRate(sharedRate)
	if err != nil {
		return err
	}
	l, err := ratelimit.NewLimit("shared", rate, s)
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	end := time.Now().Add(long)
	for range 4 {
		all.Go(func() {
			for time.Now().Before(end) {
				l.Allow(context.Background(), "k", 1)
			}
		})
	}
	all.Wait()
	return fails
}

// Four processes share a limit. Each decision is that of one bucket, by the
// time of Redis at which it was made: not one token more, and not one less.
func TestProcesses(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	long := 3 * time.Second
	if os.Getenv("CHERT_REQUIRE_ALL") == "1" {
		long = 10 * time.Second // as CI runs
	}
	if d, err := time.ParseDuration(os.Getenv("CHERT_RATE_TIME")); err == nil {
		long = d
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	var events []event
	for range 4 {
		all.Go(func() {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), childURL+"="+srv.URL(), childTime+"="+long.String())
			cmd.Stderr = os.Stderr
			out, err := cmd.Output()
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			for line := range strings.Lines(string(out)) {
				var e event
				if _, err := fmt.Sscan(line, &e.at, &e.allowed); err != nil {
					t.Error(err)
					return
				}
				events = append(events, e)
			}
		})
	}
	all.Wait()
	if t.Failed() {
		return
	}
	l := limit(t, "shared", sharedRate, open(t, srv.URL(), Options{}))
	admitted := 0
	first, last := events[0].at, events[0].at
	for _, e := range events {
		first, last = min(first, e.at), max(last, e.at)
		if e.allowed {
			admitted++
		}
	}
	// They ask all the time, so that the bucket is empty but at the start.
	want := int(100 + (last-first)/int64(l.Interval()))
	t.Logf("%d decisions in %v by Redis's clock: %d were admitted", len(events), time.Duration(last-first), admitted)
	if admitted > want {
		t.Errorf("%d were admitted, want %d at most", admitted, want)
	}
	if err := replay(l, events); err != nil {
		t.Error(err)
	}
}
