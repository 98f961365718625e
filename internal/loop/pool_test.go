//go:build linux || darwin

package loop

import (
	"runtime"
	"sync"
	"testing"

	"github.com/chert-http/chert/internal/testing/servertest"
)

type taskFunc func()

func (f taskFunc) Run() { f() }

func (p *pool) counts() (workers, idle int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.workers, len(p.idle)
}

// burst runs n tasks at the same time and waits until their workers are idle.
func (p *pool) burst(t *testing.T, n int) {
	t.Helper()
	var all sync.WaitGroup
	all.Add(n)
	for range n {
		p.run(taskFunc(func() {
			all.Done()
			all.Wait()
		}))
	}
	servertest.Eventually(t, "the workers are idle", func() bool {
		workers, idle := p.counts()
		return workers == idle
	})
}

func TestPoolReusesWorkers(t *testing.T) {
	t.Parallel()
	p := new(pool)
	p.burst(t, 10)
	for range 10 {
		p.burst(t, 5)
	}
	if workers, idle := p.counts(); workers != 10 || idle != 10 {
		t.Errorf("%d workers, %d idle, want 10", workers, idle)
	}
	p.stop()
	servertest.Eventually(t, "the workers have ended", func() bool { n, _ := p.counts(); return n == 0 })
}

// Workers that are not needed end; those that are used stay.
func TestPoolTrim(t *testing.T) {
	t.Parallel()
	p := new(pool)
	p.burst(t, 10)
	for range 100 {
		p.burst(t, 3)
		p.trim()
	}
	servertest.Eventually(t, "the unused workers have ended", func() bool { n, _ := p.counts(); return n == 3 })
	for p.trim() {
		runtime.Gosched()
	}
	if workers, idle := p.counts(); workers != 0 || idle != 0 {
		t.Errorf("%d workers, %d idle are left", workers, idle)
	}
	// And it works on.
	p.burst(t, 2)
	p.stop()
	servertest.Eventually(t, "the workers have ended", func() bool { n, _ := p.counts(); return n == 0 })
}

func TestPoolGoexit(t *testing.T) {
	t.Parallel()
	p := new(pool)
	p.burst(t, 3)
	for range 5 {
		p.run(taskFunc(runtime.Goexit))
	}
	servertest.Eventually(t, "their workers are gone", func() bool { n, idle := p.counts(); return n == 0 && idle == 0 })
	p.burst(t, 3)
	p.stop()
	servertest.Eventually(t, "the workers have ended", func() bool { n, _ := p.counts(); return n == 0 })
}

// A task that ends after the pool has stopped takes its worker with it.
func TestPoolStopWhileBusy(t *testing.T) {
	t.Parallel()
	p := new(pool)
	leave := make(chan bool)
	for range 4 {
		p.run(taskFunc(func() { <-leave }))
	}
	p.stop()
	close(leave)
	servertest.Eventually(t, "the workers have ended", func() bool { n, _ := p.counts(); return n == 0 })
}

func TestPoolRace(t *testing.T) {
	t.Parallel()
	p := new(pool)
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for i := range 2000 {
				done := make(chan bool)
				p.run(taskFunc(func() {
					close(done)
					if i%97 == 0 {
						runtime.Goexit()
					}
				}))
				<-done
			}
		})
	}
	stop := make(chan bool)
	var trimming sync.WaitGroup
	trimming.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				p.trim()
			}
		}
	})
	running.Wait()
	close(stop)
	trimming.Wait()
	p.stop()
	servertest.Eventually(t, "the workers have ended", func() bool { n, _ := p.counts(); return n == 0 })
}
