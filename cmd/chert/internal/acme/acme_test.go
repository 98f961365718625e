package acme

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/chert-http/chert/internal/testing/freeport"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// storage has a certificate of example.com.
type storage struct {
	certmagic.Storage
	full  bool // it seems to be empty, and a lock fails, which ends both
	mu    sync.Mutex
	loads []any // what the first loads of it return instead, two for each attempt that fails: errors, or texts
}

// left returns how many loads are left.
func (s *storage) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.loads)
}

func (s *storage) Load(ctx context.Context, key string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !strings.HasSuffix(key, ".crt") || len(s.loads) == 0 {
		return s.Storage.Load(ctx, key)
	}
	first := s.loads[0]
	s.loads = s.loads[1:]
	if err, ok := first.(error); ok {
		return nil, err
	}
	return []byte(first.(string)), nil
}

func (s *storage) Exists(ctx context.Context, key string) bool {
	return !s.full && s.Storage.Exists(ctx, key)
}

func (s *storage) Lock(ctx context.Context, key string) error {
	if s.full {
		s.full = false
		return errors.New("full")
	}
	return s.Storage.Lock(ctx, key)
}

// with makes s the storage of a manager, which is closed after the test.
func (s *storage) with(t *testing.T, o Options) (*Manager, *servertest.Log) {
	t.Helper()
	said := new(servertest.Log)
	o.Storage, o.Logger = t.TempDir(), slog.New(slog.NewTextHandler(said, nil))
	m, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	s.Storage, m.cfg.Storage = m.cfg.Storage, s
	cert, key, _ := servertest.CertFiles(t)
	keys, issuer := certmagic.StorageKeys, m.issuer.IssuerKey()
	for at, file := range map[string]string{keys.SiteCert(issuer, "example.com"): cert,
		keys.SitePrivateKey(issuer, "example.com"): key, keys.SiteMeta(issuer, "example.com"): ""} {
		value := []byte("{}")
		if file != "" {
			if value, err = os.ReadFile(file); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Store(t.Context(), at, value); err != nil {
			t.Fatal(err)
		}
	}
	return m, said
}

var names = []string{"example.com"}

// A certificate that cannot be loaded, or not be ordered because of the storage, is tried again until it can.
func TestManageRepeats(t *testing.T) {
	t.Parallel()
	away, other := errors.New("away"), errors.New("other")
	for _, tt := range []struct {
		name  string
		s     *storage
		after time.Duration // it has the certificate, and not before
		said  []string
	}{
		{"nothing", &storage{}, 0, nil},
		{"away", &storage{loads: []any{away, away, away, away, away, away, other, other, away, away}}, 31 * time.Second,
			[]string{"away", "other", "away"}},
		{"away after it was ordered", &storage{loads: []any{fs.ErrNotExist, away}}, time.Second, []string{"away"}},
		{"full", &storage{loads: []any{fs.ErrNotExist}, full: true}, time.Second, []string{"full"}},
		{"damaged", &storage{loads: []any{"-", "-", "-", "-"}}, 3 * time.Second, []string{"example.com\\\" is damaged: "}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m, said := tt.s.with(t, Options{})
				start := time.Now()
				m.Manage(names)
				for synctest.Wait(); m.Expiry(names).IsZero() && time.Since(start) < time.Hour; synctest.Wait() {
					time.Sleep(time.Second / 2)
				}
				if took := time.Since(start); took != tt.after {
					t.Errorf("it has the certificate after %v, want %v", took, tt.after)
				}
				lines := strings.Split(strings.TrimSuffix(said.String(), "\n"), "\n")
				if len(tt.said) == 0 {
					lines = lines[1:]
				}
				if len(lines) != len(tt.said) {
					t.Fatalf("it said %q, want %d lines", lines, len(tt.said))
				}
				for i, line := range lines {
					if !strings.Contains(line, "get the certificate for example.com") || !strings.Contains(line, tt.said[i]) {
						t.Errorf("it said %q, want %q", line, tt.said[i])
					}
				}
			})
		})
	}
}

// A certificate that stays damaged is replaced, whichever part of it is.
func TestManageDamaged(t *testing.T) {
	t.Parallel()
	for i, text := range []string{"", "-", "{"} {
		synctest.Test(t, func(t *testing.T) {
			s := &storage{full: true}
			m, said := s.with(t, Options{})
			if err := s.Store(t.Context(), m.files("example.com")[i], []byte(text)); err != nil {
				t.Fatal(err)
			}
			m.Manage(names)
			time.Sleep(3500 * time.Millisecond) // of attempts after 0, 1 and 3 s
			synctest.Wait()
			lines := strings.Split(said.String(), "\n")
			if len(lines) != 4 || !strings.Contains(lines[0], m.dir) || !strings.Contains(lines[1], "another certificate for example.com is ordered") ||
				!strings.Contains(lines[2], "full") {
				t.Errorf("it said %q", lines)
			}
			m.Manage(nil)
			for _, key := range m.files("example.com") {
				if s.Storage.Exists(t.Context(), key) {
					t.Errorf("%s is still there", key)
				}
			}
		})
	}
}

// Attempts end with their name, and with the manager.
func TestManageEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // which fails if a goroutine is left
		s := &storage{}
		for range 100 {
			s.loads = append(s.loads, errors.New("away"))
		}
		m, _ := s.with(t, Options{})
		for _, tt := range []struct {
			what  string
			names []string
			loads int
		}{
			{"begun", names, 30}, // after 0, 1, 3, 7, 15, 31, 63, 123 s and so on
			{"begun already", names, 20},
			{"ended", nil, 0},
			{"begun again", names, 30},
		} {
			before := s.left()
			m.Manage(tt.names)
			time.Sleep(10*time.Minute - time.Second)
			synctest.Wait()
			if got := before - s.left(); got != tt.loads {
				t.Errorf("%s: %d loads, want %d", tt.what, got, tt.loads)
			}
		}
	})
}

// The certificate of a name that is gone before it was loaded is not used.
func TestManageGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, _ := (&storage{}).with(t, Options{})
		m.Manage(names)
		m.Manage(nil)
		synctest.Wait()
		if !m.Expiry(names).IsZero() {
			t.Error("it is there")
		}
		m.Manage(names)
		synctest.Wait()
		if m.Expiry(names).IsZero() {
			t.Error("it is not there again")
		}
	})
}

// A certificate that is to be renewed is renewed when it is loaded, not only at the next check.
func TestManageRenews(t *testing.T) {
	t.Parallel()
	s := &storage{}
	// It was issued in 1970, and expires in 2084.
	m, said := s.with(t, Options{CA: "https://" + freeport.Addr(t) + "/dir", RenewalRest: 0.9, TLSPort: 1})
	m.Manage(names)
	servertest.Eventually(t, "a renewal has failed", func() bool {
		return strings.Contains(said.String(), "cannot renew the certificate for example.com")
	})
	if m.Expiry(names).IsZero() {
		t.Error("the certificate is not used until then")
	}
}
