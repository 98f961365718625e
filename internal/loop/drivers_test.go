//go:build linux || darwin

package loop

import (
	"bytes"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// User code that ends its goroutine after Yield ends neither the loop nor the
// pool, be its goroutine the loop's first or a spare.
func TestGoexitAfterYield(t *testing.T) {
	t.Parallel()
	l := running(t)
	r := l.runner(t)
	var lost atomic.Int64
	for range 10 {
		l.on(t, func() {
			r.next(&lease{
				run: func(k Lease) bool {
					l.Yield(k)
					runtime.Goexit()
					return false
				},
				lost: func(bool) { lost.Add(1) },
			})
		})
	}
	l.on(t, func() {})
	if lost.Load() != 10 {
		t.Errorf("Lost was called %d times", lost.Load())
	}
	servertest.Eventually(t, "their goroutines are gone", func() bool {
		workers, idle := l.pool.counts()
		return workers == 0 && idle == 0
	})
	ran := make(chan bool)
	l.on(t, func() { l.Go(taskFunc(func() { close(ran) })) })
	servertest.Await(t, ran, "a task of the pool")
}

// The loop ends while former drivers are still at their user code.
func TestRetireWithFormerDrivers(t *testing.T) {
	t.Parallel()
	l, err := New()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- l.Run() }()
	r := l.runner(t)
	release := make(chan bool)
	var codes sync.WaitGroup
	const n = 5
	codes.Add(n)
	for i := range n {
		l.on(t, func() {
			r.next(&lease{run: func(k Lease) bool {
				defer codes.Done()
				if i%2 == 0 {
					l.Yield(k)
				}
				<-release
				if i == 0 {
					defer runtime.Goexit()
				}
				if l.Do(func() {}) {
					t.Error("the loop has not ended")
				}
				l.Yield(k)
				return l.Leave(k)
			}})
		})
	}
	r.detach()
	l.on(t, l.Retire)
	if err := servertest.Await(t, done, "the loop's end"); err != nil {
		t.Error(err)
	}
	close(release)
	codes.Wait()
	servertest.Eventually(t, "all goroutines have ended", func() bool {
		workers, idle := l.pool.counts()
		return workers == 0 && idle == 0
	})
}

// The watch sleeps when there are no leases, and is there again for the next.
func TestWatchSleeps(t *testing.T) {
	t.Parallel()
	l := running(t)
	r := l.runner(t)
	if l.watched.Load() {
		t.Error("awake at first")
	}
	for range 3 {
		// A quick one wakes it.
		l.on(t, func() { r.next(&lease{run: l.Leave}) })
		l.on(t, func() {})
		servertest.Eventually(t, "the watch sleeps", func() bool { return !l.watched.Load() && len(l.alarm) == 0 })
		// It takes the loop from one that waits for the loop.
		release, ended := make(chan bool), make(chan bool)
		l.on(t, func() {
			r.next(&lease{run: func(k Lease) bool {
				<-release
				close(ended)
				return l.Leave(k)
			}})
		})
		l.on(t, func() { close(release) })
		servertest.Await(t, ended, "the end of the user code")
		servertest.Eventually(t, "the watch sleeps", func() bool { return !l.watched.Load() })
	}
}

// Quick leases begin at the moment at which the watch goes to sleep, again and
// again; the one that stays afterwards must find it awake.
func TestWatchMeetsLease(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for range 8 {
		l := running(t)
		r := l.runner(t)
		all.Go(func() {
			for range 2 {
				l.Do(func() { r.next(&lease{run: l.Leave}) })
				for l.mark.Load() == 0 || l.watched.Load() {
					runtime.Gosched()
				}
				entered, release, ended := make(chan bool), make(chan bool), make(chan bool)
				l.Do(func() {
					r.next(&lease{run: func(k Lease) bool {
						close(entered)
						<-release
						close(ended)
						return l.Leave(k)
					}})
				})
				<-entered
				l.Do(func() { close(release) })
				select {
				case <-ended:
				case <-time.After(servertest.Patience):
					t.Error("the watch sleeps while user code stays")
					close(release)
				}
			}
		})
	}
	all.Wait()
}

// A goroutine that has lost the loop keeps the bytes in its scratch buffer until
// its user code has ended.
func TestScratchIsNotShared(t *testing.T) {
	t.Parallel()
	l := running(t)
	r := l.runner(t)
	const n = 6
	release := make(chan bool)
	var codes sync.WaitGroup
	buffers := map[*byte]int{}
	for i := range n {
		codes.Add(1)
		l.on(t, func() {
			l.Requeue(r.handle)
			r.lease = func(e poll.Ready) bool {
				if e != 0 {
					return true
				}
				// Before Enter, as a connection does.
				defer codes.Done()
				p := l.Scratch().Whole()
				if len(p) != scratchSize {
					t.Errorf("%d bytes", len(p))
				}
				if j, ok := buffers[&p[0]]; ok {
					t.Errorf("drivers %d and %d have the same buffer", j, i)
				}
				buffers[&p[0]] = i
				k := l.Enter(&lease{})
				for j := range p {
					p[j] = byte(i)
				}
				if i%2 == 0 {
					l.Yield(k)
				}
				<-release
				if bytes.Count(p, []byte{byte(i)}) != len(p) {
					t.Errorf("the bytes of driver %d have changed", i)
				}
				return l.Leave(k)
			}
		})
	}
	l.on(t, func() {})
	l.on(t, func() {
		p := l.Scratch().Whole()
		if j, ok := buffers[&p[0]]; ok {
			t.Errorf("the present driver has the buffer of driver %d", j)
		}
	})
	close(release)
	codes.Wait()
}

// Spare drivers that are not needed any more end as other workers do.
func TestSparesEnd(t *testing.T) {
	t.Parallel()
	l := running(t)
	r := l.runner(t)
	release := make(chan bool)
	var codes sync.WaitGroup
	for range 10 {
		codes.Add(1)
		l.on(t, func() {
			r.next(&lease{run: func(k Lease) bool {
				defer codes.Done()
				l.Yield(k)
				<-release
				return l.Leave(k)
			}})
		})
	}
	close(release)
	codes.Wait()
	servertest.Eventually(t, "the spares have ended", func() bool {
		workers, idle := l.pool.counts()
		return workers == 0 && idle == 0
	})
}
