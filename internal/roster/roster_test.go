package roster

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"weak"
)

type member struct{ id, index int }

// A Roster has the members that a slice has, and snapshots do not change.
func TestModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var r Roster[member]
		var model []*member
		type shot struct {
			got  Snapshot[member]
			want []*member
		}
		var shots []shot
		for i, grow := range []int{3, 1, 3, 1} {
			for range 2000 {
				switch {
				case rng.IntN(4) < grow:
					m := &member{id: i}
					m.index = r.Add(m)
					model = append(model, m)
				case len(model) > 0:
					at := rng.IntN(len(model))
					m := model[at]
					moved, ok := r.Remove(m.index, m)
					if !ok {
						t.Fatalf("seed %d: member %d of %d is not found", seed, at, len(model))
					}
					n := len(model) - 1
					if moved != nil {
						moved.index = m.index
					}
					model[at], model = model[n], model[:n]
					if _, again := r.Remove(m.index, m); again {
						t.Fatalf("seed %d: a member was removed twice", seed)
					}
				}
				if rng.IntN(200) == 0 {
					shots = append(shots, shot{r.Snapshot(), slices.Clone(model)})
				}
				if r.Len() != len(model) {
					t.Fatalf("seed %d: %d members, not %d", seed, r.Len(), len(model))
				}
			}
		}
		for i, s := range append(shots, shot{r.Snapshot(), model}) {
			if got := slices.Collect(s.got.All()); !slices.Equal(got, s.want) {
				t.Fatalf("seed %d, snapshot %d: %d members, not %d, or others", seed, i, len(got), len(s.want))
			}
		}
		some := make([]*member, 700)
		for _, i := range []int{0, 1, 511, 512, 513, 1000, 1 << 20} {
			n := r.Copy(some, i)
			if want := model[min(i, len(model)):min(i+len(some), len(model))]; !slices.Equal(some[:n], want) {
				t.Fatalf("seed %d: Copy from %d: %d members, not %d, or others", seed, i, n, len(want))
			}
		}
	}
}

// A member that has left is not kept alive, nor the pages of those that have.
func TestRemovedIsFree(t *testing.T) {
	var r Roster[member]
	var all []*member
	for range 5 * pageLen {
		m := new(member)
		m.index = r.Add(m)
		all = append(all, m)
	}
	first := weak.Make(all[0])
	for _, m := range slices.Backward(all) {
		r.Remove(m.index, m)
	}
	all = nil
	runtime.GC()
	if first.Value() != nil {
		t.Error("a member was kept")
	}
	if r.Len() != 0 || len(r.pages) > 1 {
		t.Errorf("%d members and %d pages are left", r.Len(), len(r.pages))
	}
	runtime.KeepAlive(&r)
}

func TestBreak(t *testing.T) {
	var r Roster[member]
	for i := range 3 {
		r.Add(&member{id: i})
	}
	for m := range r.Snapshot().All() {
		if m.id == 1 {
			break
		} else if m.id > 1 {
			t.Error("it went on")
		}
	}
}

func BenchmarkAll(b *testing.B) {
	var r Roster[member]
	for i := range 100_000 {
		r.Add(&member{id: i})
	}
	s := r.Snapshot()
	for b.Loop() {
		for m := range s.All() {
			m.index++
		}
	}
}
