package loop

import (
	"math/rand"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// waiter notes that it has been given a slot.
type waiter struct {
	id       int
	acquired func(id int)
}

func (w *waiter) Acquired() { w.acquired(w.id) }

func TestSemaphore(t *testing.T) {
	t.Parallel()
	s := NewSemaphore(2, 3)
	var acquired []int
	waiters := map[int]*waiter{}
	acquire := func(id int, want Admission) {
		t.Helper()
		// Acquired is called with no lock held: this would deadlock otherwise.
		w := &waiter{id, func(id int) { s.Waiting(); acquired = append(acquired, id) }}
		waiters[id] = w
		if got := s.Acquire(w); got != want {
			t.Errorf("Acquire(%d) = %d, want %d", id, got, want)
		}
	}
	withdraw := func(id int, want bool) {
		t.Helper()
		if got := s.Withdraw(waiters[id]); got != want {
			t.Errorf("Withdraw(%d) = %v, want %v", id, got, want)
		}
	}
	acquire(1, Admitted)
	acquire(2, Admitted)
	withdraw(2, false) // it has never waited
	acquire(3, Queued)
	acquire(4, Queued)
	acquire(5, Queued)
	acquire(6, Refused)
	withdraw(6, false)
	s.Release() // 3 has the slot now
	withdraw(3, false)
	acquire(7, Queued)
	acquire(8, Refused)
	withdraw(5, true) // out of the middle
	withdraw(5, false)
	acquire(9, Queued)
	withdraw(9, true) // the last
	s.Release()       // 4
	s.Release()       // 7
	if n := s.Waiting(); n != 0 {
		t.Errorf("%d wait", n)
	}
	if want := []int{3, 4, 7}; !slices.Equal(acquired, want) {
		t.Errorf("acquired by %v, want %v", acquired, want)
	}
	s.Release()
	acquire(10, Admitted)
	acquire(11, Queued)
	withdraw(11, true) // the only one
	s.Release()
	s.Release()
	if s.running != 0 {
		t.Errorf("%d are running", s.running)
	}
	if want := []int{3, 4, 7}; !slices.Equal(acquired, want) {
		t.Errorf("acquired by %v, want %v: one had withdrawn", acquired, want)
	}
}

func TestSemaphoreWithoutQueue(t *testing.T) {
	t.Parallel()
	s := NewSemaphore(1, 0)
	w := &waiter{0, func(int) { t.Error("a slot for one that was refused") }}
	for range 3 {
		if a, b := s.Acquire(w), s.Acquire(w); a != Admitted || b != Refused {
			t.Fatalf("got %d and %d", a, b)
		}
		s.Release()
	}
}

// A semaphore does what a plain queue would, and keeps neither the waiters that
// have left it nor the room that they took.
func TestSemaphoreModel(t *testing.T) {
	t.Parallel()
	for _, size := range []struct{ max, queue int }{{1, 1}, {2, 5}, {3, 64}, {1, 100}, {5, 1000}} {
		rnd := rand.New(rand.NewSource(int64(size.queue)))
		s := NewSemaphore(size.max, size.queue)
		var queue []*waiter // the model's
		running := 0
		last := -1
		acquired := func(id int) { last = id }
		// Once full, it is kept so for long: the slice never runs empty.
		entering := 8
		for i := range 50_000 {
			if i%5000 == 0 {
				entering = 3 + rnd.Intn(5)
			}
			switch k := rnd.Intn(10); {
			case k < entering || running == 0:
				w := &waiter{i, acquired}
				want := Refused
				if running < size.max {
					want = Admitted
					running++
				} else if len(queue) < size.queue {
					want = Queued
					queue = append(queue, w)
				}
				if got := s.Acquire(w); got != want {
					t.Fatalf("%v, step %d: Acquire is %d, want %d", size, i, got, want)
				}
			case k == 9 && len(queue) > 0:
				j := rnd.Intn(len(queue))
				w := queue[j]
				queue = slices.Delete(queue, j, j+1)
				last = -1
				if !s.Withdraw(w) || s.Withdraw(w) || last != -1 {
					t.Fatalf("%v, step %d: one that waits withdraws once; acquired by %d", size, i, last)
				}
			default:
				want := -1
				if len(queue) > 0 {
					want, queue = queue[0].id, queue[1:]
				} else {
					running--
				}
				last = -1
				if s.Release(); last != want {
					t.Fatalf("%v, step %d: acquired by %d, want %d", size, i, last, want)
				}
			}
			if s.Waiting() != len(queue) || s.running != running {
				t.Fatalf("%v, step %d: %d wait, %d run, want %d and %d", size, i, s.Waiting(), s.running, len(queue), running)
			}
			if most := 4*size.queue + 256; cap(s.waiting) > most {
				t.Fatalf("%v, step %d: room for %d is kept", size, i, cap(s.waiting))
			}
		}
		all := s.waiting[:cap(s.waiting)]
		for i, w := range all {
			if w != nil && (i < s.head || i >= len(s.waiting)) {
				t.Fatalf("%v: one that does not wait is kept", size)
			}
		}
	}
}

// Never too many run, no waiter is forgotten or let in twice, and one that has
// withdrawn is not let in at all.
func TestSemaphoreRace(t *testing.T) {
	t.Parallel()
	const max, queue, goroutines, each = 2, 3, 16, 500
	s := NewSemaphore(max, queue)
	var inside, queued, refused, withdrawn atomic.Int64
	var all sync.WaitGroup
	for i := range goroutines {
		all.Go(func() {
			acquired := make(chan int, 2) // more than may come
			w := &waiter{0, func(id int) { acquired <- id }}
			for j := range each {
				admission := s.Acquire(w)
				if admission == Refused {
					refused.Add(1)
					runtime.Gosched()
					continue
				}
				if admission == Queued {
					queued.Add(1)
					if (i+j)%3 == 0 {
						runtime.Gosched()
						if s.Withdraw(w) {
							withdrawn.Add(1)
							continue
						}
					}
					<-acquired
				}
				if n := inside.Add(1); n > max {
					t.Errorf("%d are inside", n)
				}
				for range 4 {
					runtime.Gosched() // so that the others find it full
				}
				inside.Add(-1)
				s.Release()
			}
			if len(acquired) > 0 {
				t.Error("acquired twice, or after a Withdraw")
			}
		})
	}
	all.Wait()
	if s.running != 0 || s.Waiting() != 0 {
		t.Errorf("%d run, %d wait", s.running, s.Waiting())
	}
	if queued.Load()+refused.Load() == 0 {
		t.Error("all were admitted at once: nothing was tested")
	}
}
