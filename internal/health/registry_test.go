package health

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/chert-http/chert/internal/reason"
)

func key(i int) Key { return Key{Addr: fmt.Sprint("192.0.2.", i, ":80")} }

// A reload, in which the new generation comes before the old one goes, forgets nothing.
func TestReload(t *testing.T) {
	t.Parallel()
	r := NewRegistry(nil)
	before := r.Acquire(0, key(1), nil)
	until := eject(t, before, 0)
	after := r.Acquire(s, key(1), &Options{Probes: 1})
	before.Release(s)
	before.Release(s) // a mistake, which is not the other's
	if i := after.Info(s); i.State != Ejected || i.Until != until || i.Uses != 1 || after.Server != before.Server {
		t.Errorf("%+v", i)
	}
	// The new options hold.
	use(t, after, until, reason.None)
	state(t, after, Up)
	// In the other order too, for a while.
	after.Release(2 * s)
	if n := len(r.Servers()); n != 0 {
		t.Errorf("%d servers are in use", n)
	}
	again := r.Acquire(601*s, key(1), nil)
	if again.ID() != before.ID() || again.Info(0).State != Up || again.Key() != key(1) {
		t.Error("forgotten too early")
	}
	again.Release(601 * s)
	again = r.Acquire(1202*s, key(1), nil)
	if again.ID() == before.ID() || again.Info(0).State != Unknown || before.Info(0).Uses != 0 {
		t.Error("not forgotten")
	}
	if n := len(r.Servers()); n != 1 {
		t.Errorf("%d servers are in use", n)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	r := NewRegistry(nil)
	seen := map[uint64]bool{}
	for _, k := range []Key{{}, {Addr: "a"}, {TLSName: "a"}, {Check: "a"}, {"a", "b", ""}, {"a", "b", "c"}} {
		if id := r.Acquire(0, k, nil).ID(); seen[id] {
			t.Errorf("%+v has the Server of another key", k)
		} else {
			seen[id] = true
		}
		if id := r.Acquire(0, k, nil).ID(); !seen[id] {
			t.Errorf("%+v has two Servers", k)
		}
	}
}

// Addresses that come and go do not fill the memory.
func TestUnused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		o    RegistryOptions
		want int
	}{
		{RegistryOptions{UnusedTime: 1000 * time.Hour}, 1024},
		{RegistryOptions{Unused: 10}, 10},
		{RegistryOptions{Unused: -1}, 0},
		{RegistryOptions{UnusedTime: -1}, 0},
		{RegistryOptions{UnusedTime: 10 * time.Second}, 10},
	} {
		r := NewRegistry(&tt.o)
		for i := range 3000 {
			r.Acquire(int64(i)*s, key(i), nil).Release(int64(i) * s)
			if len(r.byKey) > tt.want+1 {
				t.Fatalf("%d servers", len(r.byKey))
			}
		}
		if len(r.byKey) != tt.want || r.unused.Len() != len(r.byKey) {
			t.Errorf("%+v: %d servers, want %d", tt.o, len(r.byKey), tt.want)
		}
	}
}

// First checks are spread; those of servers that stay are not put off by reloads, but for a shorter interval.
func TestStagger(t *testing.T) {
	t.Parallel()
	random := uint64(0)
	r := NewRegistry(&RegistryOptions{Random: func() uint64 { random += 1 << 59; return random }})
	seen := map[int64]bool{}
	for i := range 15 {
		f := r.Acquire(s, Key{Addr: key(i).Addr, Check: "/"}, nil)
		at, ok := f.NextCheck()
		if !ok || at < s || at >= 6*s || seen[at] {
			t.Errorf("at %v", time.Duration(at))
		}
		seen[at] = true
		for now := s; now < 10*s; now += s / 3 {
			r.Acquire(now, f.Key(), nil)
		}
		if again, _ := f.NextCheck(); again != at {
			t.Errorf("put off from %d to %d", at, again)
		}
		r.Acquire(s, f.Key(), &Options{Interval: time.Millisecond})
		if again, _ := f.NextCheck(); again > s+s/1000 {
			t.Errorf("not before %d", again)
		}
	}
}

// Checks are not resumed for a server that is used again as if its last one were of now.
func TestResume(t *testing.T) {
	t.Parallel()
	r := NewRegistry(&RegistryOptions{Random: half})
	k := Key{Addr: "a", Check: "/"}
	f := r.Acquire(0, k, nil)
	lost, _, _ := f.BeginCheck(10 * s)
	f.Release(10 * s)
	f = r.Acquire(20*s, k, nil)
	f.EndCheck(20*s, lost, reason.Reset)
	if at, _ := f.NextCheck(); at != 22*s+s/2 || f.Info(0).Checks != 0 {
		t.Errorf("at %d, %+v", at, f.Info(0))
	}
}

// Against counts in a map.
func TestRegistryModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		unused := rapid.IntRange(1, 3).Draw(t, "unused")
		r := NewRegistry(&RegistryOptions{Unused: unused})
		refs := map[int][]*Ref{}
		now := int64(0)
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			now += rapid.Int64Range(0, 100*s).Draw(t, "later")
			k := rapid.IntRange(0, 7).Draw(t, "key")
			if n := len(refs[k]); n > 0 && rapid.Bool().Draw(t, "release") {
				refs[k][n-1].Release(now)
				refs[k][n-1].Release(now)
				refs[k] = refs[k][:n-1]
			} else {
				refs[k] = append(refs[k], r.Acquire(now, key(k), nil))
			}
			used := 0
			for k, all := range refs {
				for _, f := range all {
					if f.Server != all[0].Server || f.Key() != key(k) || f.Info(now).Uses != len(all) {
						t.Fatalf("key %d: %+v, want %d uses", k, f.Info(now), len(all))
					}
				}
				if len(all) > 0 {
					used++
				}
			}
			if len(r.Servers()) != used || len(r.byKey) > used+unused {
				t.Fatalf("%d in use of %d, want %d", len(r.Servers()), len(r.byKey), used)
			}
		}
	})
}

func TestRegistryConcurrent(t *testing.T) {
	t.Parallel()
	r := NewRegistry(&RegistryOptions{Unused: 2})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 500 {
				f := r.Acquire(int64(i), key(i%5), nil)
				f.Info(int64(i))
				r.Servers()
				f.Release(int64(i))
			}
		})
	}
	all.Wait()
	if len(r.Servers()) != 0 || len(r.byKey) > 2 {
		t.Errorf("%d servers, %d in use", len(r.byKey), len(r.Servers()))
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	want := Options{5, 10 * time.Second, 50, 20, 5 * time.Second, 60 * time.Second, 3, 2 * time.Minute, 5 * time.Second, 2 * time.Second, 2, 2}
	if got := defaults(nil); *got != want {
		t.Errorf("%+v", got)
	}
	minus := &Options{-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1}
	want.Consecutive, want.Within, want.Percent, want.Least = -1, -1, -1, -1
	if got := defaults(minus); *got != want {
		t.Errorf("%+v", got)
	}
	if got := defaults(&Options{Ejection: 90 * time.Second}); got.MaxEjection != 90*time.Second {
		t.Errorf("%+v", got)
	}
	if got := defaults(&Options{Ejection: 1 << 62}); got.Ejection != 24*time.Hour || got.MaxEjection != 24*time.Hour {
		t.Errorf("%+v", got)
	}
}
