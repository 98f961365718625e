package acme

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/certmagic"
)

// A lock that nothing holds ends, whatever it has; one that is held does not.
func TestLocks(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) string {
		return fmt.Sprintf(`{"created":%q,"updated":%[1]q}`, time.Now().Add(d).Format(time.RFC3339Nano))
	}
	for _, tt := range []struct {
		name  string
		lock  func() string // "" for none
		held  time.Duration // it is written again for so long
		after time.Duration // Lock returns
	}{
		{"none", func() string { return "" }, 0, 0},
		{"old", func() string { return at(-time.Minute) }, 0, 0},
		{"no JSON", func() string { return `{"created":"20` }, 0, unheld},
		{"no time", func() string { return `{"created":"never"}` }, 0, unheld},
		{"of a time to come", func() string { return at(24 * time.Hour) }, 0, unheld},
		{"of another clock, and held", func() string { return at(24 * time.Hour) }, 42 * time.Second, 42 * time.Second},
		{"held", func() string { return at(0) }, 7 * time.Second, 7 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := folder{&certmagic.FileStorage{Path: t.TempDir()}}
				file := filepath.Join(s.Path, "locks", "n.lock")
				put := func() {
					if err := os.WriteFile(file, []byte(tt.lock()), 0o600); err != nil {
						t.Error(err)
					}
				}
				if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if tt.lock() != "" {
					put()
				}
				if start := time.Now(); tt.held > 0 {
					go func() {
						for time.Since(start) < tt.held {
							put()
							time.Sleep(min(5*time.Second, tt.held-time.Since(start)))
						}
						os.Remove(file)
					}()
				}
				start := time.Now()
				if err := s.Lock(t.Context(), "n"); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); took < tt.after || took > tt.after+time.Second {
					t.Errorf("it took %v, want %v", took, tt.after)
				}
				if err := s.Unlock(t.Context(), "n"); err != nil {
					t.Error(err)
				}
				time.Sleep(unheld) // of the bubble, until certmagic has seen that
			})
		})
	}
}

// TryLock removes what is odd once its file is old. certmagic asks authorities only then when to renew a certificate.
func TestTryLock(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		lock string
		age  time.Duration
		got  bool
		err  bool
	}{
		{"{", time.Hour, true, false},
		{"{", -time.Hour, true, false}, // the clock was set back
		{"{", 0, false, true},
		{fmt.Sprintf(`{"created":%q}`, time.Now().Add(24*time.Hour).Format(time.RFC3339Nano)), time.Hour, true, false},
		{fmt.Sprintf(`{"created":%q}`, time.Now().Add(time.Second).Format(time.RFC3339Nano)), time.Hour, false, false},
	} {
		s := folder{&certmagic.FileStorage{Path: t.TempDir()}}
		file := filepath.Join(s.Path, "locks", "n.lock")
		if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(tt.lock), 0o600); err != nil {
			t.Fatal(err)
		}
		written := time.Now().Add(-tt.age)
		if err := os.Chtimes(file, written, written); err != nil {
			t.Fatal(err)
		}
		if got, err := s.TryLock(t.Context(), "n"); got != tt.got || (err != nil) != tt.err {
			t.Errorf("%s of %v ago: %v, %v", tt.lock, tt.age, got, err)
		}
	}
}

// Of all that wait for a damaged lock, one has it at a time.
func TestDamagedForMany(t *testing.T) {
	t.Parallel()
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			s := folder{&certmagic.FileStorage{Path: t.TempDir()}}
			dir := filepath.Join(s.Path, "locks")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "n.lock"), []byte("{"), 0o600); err != nil {
				t.Fatal(err)
			}
			var held atomic.Int32
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					if err := s.Lock(t.Context(), "n"); err != nil {
						t.Error(err)
						return
					}
					if n := held.Add(1); n > 1 {
						t.Errorf("%d have it", n)
					}
					time.Sleep(time.Second)
					held.Add(-1)
					if err := s.Unlock(t.Context(), "n"); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			time.Sleep(unheld) // of the bubble, until certmagic has seen that
		})
	}
}
