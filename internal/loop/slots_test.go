package loop

import (
	"math/rand"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// waiter notes its admission.
type waiter struct {
	id       int
	admitted func(id int)
}

func (w *waiter) Admitted() { w.admitted(w.id) }

func TestSlots(t *testing.T) {
	t.Parallel()
	s := NewSlots(2, 3)
	var admitted []int
	enter := func(id int, want Entry) {
		t.Helper()
		// Admitted is called with no lock held: this would deadlock otherwise.
		w := &waiter{id, func(id int) { s.Crowded(); admitted = append(admitted, id) }}
		if got := s.Enter(w); got != want {
			t.Errorf("Enter(%d) = %d, want %d", id, got, want)
		}
	}
	crowded := func(want bool) {
		t.Helper()
		if s.Crowded() != want {
			t.Errorf("Crowded is %v", !want)
		}
	}
	enter(1, Entered)
	enter(2, Entered)
	crowded(false)
	enter(3, Queued)
	crowded(true)
	enter(4, Queued)
	enter(5, Queued)
	enter(6, Refused)
	s.Leave() // 3 has the slot now
	enter(7, Queued)
	enter(8, Refused)
	s.Leave() // 4
	s.Leave() // 5
	crowded(true)
	s.Leave() // 7
	crowded(false)
	if want := []int{3, 4, 5, 7}; !slices.Equal(admitted, want) {
		t.Errorf("admitted %v, want %v", admitted, want)
	}
	s.Leave()
	enter(9, Entered)
	s.Leave()
	s.Leave()
	if s.running != 0 {
		t.Errorf("%d are running", s.running)
	}
}

func TestSlotsWithoutQueue(t *testing.T) {
	t.Parallel()
	s := NewSlots(1, 0)
	w := &waiter{0, func(int) { t.Error("admitted, who was refused") }}
	for range 3 {
		if a, b := s.Enter(w), s.Enter(w); a != Entered || b != Refused {
			t.Fatalf("got %d and %d", a, b)
		}
		s.Leave()
	}
}

// Slots do what a plain queue would, and keep neither those who were admitted
// nor the room that they took.
func TestSlotsModel(t *testing.T) {
	t.Parallel()
	for _, size := range []struct{ max, queue int }{{1, 1}, {2, 5}, {3, 64}, {1, 100}, {5, 1000}} {
		rnd := rand.New(rand.NewSource(int64(size.queue)))
		s := NewSlots(size.max, size.queue)
		var queue []int // the model's
		running := 0
		last := -1
		admit := func(id int) { last = id }
		// Once full, it is kept so for long: the slice never runs empty.
		entering := 8
		for i := range 50_000 {
			if i%5000 == 0 {
				entering = 3 + rnd.Intn(5)
			}
			if rnd.Intn(10) < entering || running == 0 {
				want := Refused
				if running < size.max {
					want = Entered
					running++
				} else if len(queue) < size.queue {
					want = Queued
					queue = append(queue, i)
				}
				if got := s.Enter(&waiter{i, admit}); got != want {
					t.Fatalf("%v, step %d: Enter is %d, want %d", size, i, got, want)
				}
			} else {
				want := -1
				if len(queue) > 0 {
					want, queue = queue[0], queue[1:]
				} else {
					running--
				}
				last = -1
				if s.Leave(); last != want {
					t.Fatalf("%v, step %d: admitted %d, want %d", size, i, last, want)
				}
			}
			if s.Crowded() != (len(queue) > 0) || s.running != running {
				t.Fatalf("%v, step %d: crowded %v, %d running, want %d and %d", size, i, s.Crowded(), s.running, len(queue), running)
			}
			if most := 4*size.queue + 256; cap(s.waiting) > most {
				t.Fatalf("%v, step %d: room for %d is kept", size, i, cap(s.waiting))
			}
		}
		all := s.waiting[:cap(s.waiting)]
		for i, w := range all {
			if w != nil && (i < s.head || i >= len(s.waiting)) {
				t.Fatalf("%v: one who does not wait is kept", size)
			}
		}
	}
}

// Never too many run, nobody who is queued is forgotten, and nobody is let in
// twice.
func TestSlotsRace(t *testing.T) {
	t.Parallel()
	const max, queue, goroutines, each = 2, 3, 16, 500
	s := NewSlots(max, queue)
	var inside, queued, refused atomic.Int64
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			admitted := make(chan int, 2) // more than may come
			w := &waiter{0, func(id int) { admitted <- id }}
			for range each {
				entry := s.Enter(w)
				if entry == Refused {
					refused.Add(1)
					runtime.Gosched()
					continue
				}
				if entry == Queued {
					queued.Add(1)
					<-admitted
				}
				if n := inside.Add(1); n > max {
					t.Errorf("%d are inside", n)
				}
				for range 4 {
					runtime.Gosched() // so that the others find it full
				}
				inside.Add(-1)
				s.Leave()
			}
			if len(admitted) > 0 {
				t.Error("admitted twice")
			}
		})
	}
	all.Wait()
	if s.running != 0 || s.Crowded() {
		t.Errorf("%d run, crowded is %v", s.running, s.Crowded())
	}
	if queued.Load()+refused.Load() == 0 {
		t.Error("nobody had to wait: nothing was tested")
	}
}
