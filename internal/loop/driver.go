package loop

import (
	"sync"
	"time"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/sys"
)

// This file is who drives a loop, and how the loop changes hands.
//
// One goroutine at a time drives a loop. It runs user code that is known to be
// quick itself, under a lease, and code that turns out not to be quick costs it
// the loop:
//
//	            Enter                          Leave
//	driving -------------> under a lease -------------> driving
//	                            |
//	                            | Yield: the code is about to wait
//	                            | watch: it has overstayed
//	                            v
//	      the holder's Lost; then a spare goroutine drives on. The former
//	      driver finishes the code, returns false from Ready, and becomes a
//	      pooled goroutine among others.
//
// The mark is one word, seq<<1 | inside. Each lease has its own seq, so a Lease,
// which is the mark at its Enter, tells whether the loop is still the driver's:
// it is while the mark equals it. The goroutine that changes the mark away from
// a lease, by compare-and-swap, decides who drives on. Between that and the
// start of the next driver the loop is its own: no goroutine drives it.
//
// The watch looks every millisecond. Of a lease that it sees it keeps the time in
// seen, and the driver tells the Holder at the end how long ago that was: so code
// that takes too long, but not long enough to lose the loop, is found the sooner the
// longer it takes, and other code never reads a clock.

// A Lease is a driver's right to its loop while it runs user code. The zero
// Lease is none.
type Lease uint64

// A Holder runs user code under a lease.
type Holder interface {
	// Lost is called once if the lease is taken away, by the goroutine that
	// takes it and before the next driver starts: it may use the loop as the
	// driver may, and must not wait. The user code goes on meanwhile, but a
	// Leave that follows it returns after Lost. overstayed reports that the code
	// ran for too long; it is false if the code was about to wait.
	Lost(overstayed bool)
	// Lasted is called by the driver within Leave if the watch has seen the lease:
	// the user code went on for d after that, less than Overstay, and has kept the
	// loop.
	Lasted(d time.Duration)
}

const insideLease = 1

const (
	// Overstay is how long user code may run on the driver: between one and two
	// of these.
	Overstay = time.Millisecond
	// quietTicks is after how many of these without a lease the watch sleeps.
	quietTicks = 50
)

// Enter begins a lease. It is for the loop's goroutine, inside a Sock's Ready.
func (l *Loop) Enter(h Holder) Lease {
	l.holder = h
	t := l.mark.Load() + 2 | insideLease
	l.mark.Store(t)
	if !l.watched.Load() {
		l.callWatch()
	}
	return Lease(t)
}

func (l *Loop) callWatch() {
	l.watched.Store(true)
	select {
	case l.alarm <- struct{}{}:
	default:
	}
}

// Leave ends the lease and reports whether the loop is still the caller's. If
// so, the caller is an ordinary part of the loop again: it may use the loop, and
// must not wait. If not, the Holder's Lost has returned.
func (l *Loop) Leave(t Lease) bool {
	if l.mark.CompareAndSwap(uint64(t), uint64(t)&^insideLease) {
		if l.seen.Load() == uint64(t) {
			// Less than an overstay: the watch would have taken the loop, unless the
			// machine stood still.
			l.holder.Lasted(min(time.Duration(sys.Nanotime()-l.seenAt), Overstay-1))
		}
		return true
	}
	l.taking.Lock() // the goroutine that took the lease has told the Holder
	defer l.taking.Unlock()
	return false
}

// Held reports whether the lease has neither ended nor been taken. Safe for
// concurrent use.
func (l *Loop) Held(t Lease) bool { return l.mark.Load() == uint64(t) }

// Yield gives the loop to a spare driver if t is still held, since the user code
// is about to wait. Safe for concurrent use.
func (l *Loop) Yield(t Lease) {
	if t != 0 && l.Held(t) {
		l.take(t, false)
	}
}

// take ends a lease that has not ended yet, and starts another driver.
func (l *Loop) take(t Lease, overstayed bool) {
	l.taking.Lock()
	defer l.taking.Unlock()
	if l.mark.CompareAndSwap(uint64(t), uint64(t)&^insideLease+2) {
		l.holder.Lost(overstayed)
		l.startDriver()
	}
}

// driverTask is a driver's life as a task of the pool, whose goroutines are
// the spares.
type driverTask struct{ l *Loop }

func (d driverTask) Run() {
	p := &d.l.pool
	p.borrow(1)
	defer p.borrow(-1)
	p.atWork.Add(-1) // driving is not the work of a pooled goroutine
	d.l.armTrim()
	d.l.drive()
}

func (l *Loop) startDriver() {
	l.pool.atWork.Add(1) // the former driver's work counts from now on
	l.pool.run(driverTask{l})
}

// driveFirst is the life of the first driver, who is no goroutine of the pool.
func (l *Loop) driveFirst() {
	defer l.pool.atWork.Add(-1) // see startDriver; after the end it is of no use
	l.drive()
}

// scratches are drivers' read buffers.
var scratches = sync.Pool{New: func() any { return buf.Own(make([]byte, scratchSize)) }}

// drive is the loop's life until it ends or is taken by another driver. Each
// driver has a scratch buffer of its own, so that a former one may go on using
// the bytes in it.
func (l *Loop) drive() {
	scratch := scratches.Get().(*buf.Buf)
	defer scratches.Put(scratch)
	l.scratch = scratch
	for l.turn() {
		retired := l.retiring && l.attached == 0 && l.finish()
		var err error
		if !retired {
			err = l.wait()
		}
		if retired || err != nil {
			l.end()
			l.ended <- err
			return
		}
	}
}

// watch takes the loop from a driver whose user code overstays. It sleeps while
// none runs.
func (l *Loop) watch() {
	for {
		select {
		case <-l.alarm:
		case <-l.dead:
			return
		}
		last := l.mark.Load()
		tick := time.NewTicker(Overstay)
		for quiet := 0; ; {
			select {
			case <-tick.C:
			case <-l.dead:
				tick.Stop()
				return
			}
			mark := l.mark.Load()
			switch {
			case mark != last:
				quiet = 0
				if mark&insideLease != 0 {
					l.seenAt = sys.Nanotime()
					l.seen.Store(mark)
				}
			case mark&insideLease != 0:
				l.take(Lease(mark), true)
			default:
				quiet++
			}
			last = mark
			if quiet < quietTicks {
				continue
			}
			// Before the last look: a driver that enters after it finds the
			// watch asleep and wakes it.
			l.watched.Store(false)
			if l.mark.Load() == last || l.watched.Swap(true) {
				break
			}
			quiet = 0
		}
		tick.Stop()
	}
}
