package loop

import (
	"sync"
	"time"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
)

// This file defines which goroutine drives a loop, and how the loop passes to another.
//
// One goroutine at a time drives a loop. It runs user code that is known to be
// quick itself, under a lease. If the code turns out not to be quick, the
// goroutine loses the loop:
//
//	            Enter                          Leave
//	driving -------------> under a lease -------------> driving
//	                            |
//	                            | Yield: the code is about to wait
//	                            | watch: it has overstayed
//	                            v
//	      the holder's Lost; then a spare goroutine drives. The former
//	      driver finishes the code, returns false from Ready, and becomes a
//	      pooled goroutine.
//
// The mark is one word, seq<<1 | inside. Each lease has its own seq. A Lease is
// the mark at its Enter, and is held as long as the mark equals it. Leave and take
// both end it by a compare-and-swap of the mark, so only one of them succeeds. A
// goroutine that succeeds in take owns the loop until it has started the next
// driver; meanwhile no goroutine drives it.
//
// While there are leases the watch runs every Overstay. It records when it first
// sees a lease; if the driver ends a lease that was seen, it reports to the Holder
// how long ago that was. So code that takes long, but not long enough to lose the
// loop, is detected the more often the longer it takes, and other code reads no
// clock.

// A Lease is a driver's right to its loop while it runs user code. The zero
// Lease means none.
type Lease uint64

// A Holder runs user code under a lease.
type Holder interface {
	// Lost is called once if the lease is taken away, by the goroutine that
	// takes it and before the next driver starts: it may use the loop as the
	// driver may, and must not wait. The user code continues meanwhile, but its
	// Leave returns after Lost. overstayed reports that the code ran for too
	// long; it is false if the code was about to wait.
	Lost(overstayed bool)
	// Lasted is called by the driver within Leave if the watch has seen the lease:
	// the user code ran for d after that, less than Overstay, and has kept the
	// loop.
	Lasted(d time.Duration)
}

const insideLease = 1

const (
	// Overstay is the unit of how long user code may run on the driver: it
	// loses the loop after one to two of these.
	Overstay = time.Millisecond
	// quietTicks is after how many Overstays without a lease the watch sleeps.
	quietTicks = 50
)

// Enter begins a lease. It is called by the loop's goroutine, inside a Sock's Ready.
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

// Leave ends the lease and reports whether the caller still drives the loop. If
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
	l.taking.Lock() // the goroutine that took the lease has called the Holder's Lost
	defer l.taking.Unlock()
	return false
}

// Held reports whether the lease has neither ended nor been taken. Safe for
// concurrent use.
func (l *Loop) Held(t Lease) bool { return l.mark.Load() == uint64(t) }

// Yield passes the loop to a spare driver if t is still held, because the user
// code is about to wait. Safe for concurrent use.
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
		id := tally.Yields
		if overstayed {
			id = tally.Handovers
		}
		l.Tally.Add(false, id, 1)
		l.holder.Lost(overstayed)
		l.startDriver()
	}
}

// driverTask runs a driver as a task of the pool, whose goroutines are the
// spares.
type driverTask struct{ l *Loop }

func (d driverTask) Run() {
	p := &d.l.pool
	p.borrow(1)
	defer p.borrow(-1)
	p.atWork.Add(-1) // driving does not count as a pooled goroutine's work
	d.l.armTrim()
	d.l.drive()
}

func (l *Loop) startDriver() {
	l.pool.atWork.Add(1) // the former driver's work counts from now on
	l.pool.run(driverTask{l})
}

// driveFirst runs the first driver, which is not a goroutine of the pool.
func (l *Loop) driveFirst() {
	defer l.pool.atWork.Add(-1) // see startDriver; without effect after the end
	l.Point(Handle{})           // it begins beside what begins it
	l.drive()
}

// scratches are drivers' read buffers.
var scratches = sync.Pool{New: func() any { return buf.Own(make([]byte, scratchSize)) }}

// drive runs the loop until it ends or passes to another driver. Each driver
// has a scratch buffer of its own, so that a former one may continue to use the
// bytes in it.
func (l *Loop) drive() {
	scratch := scratches.Get().(*buf.Buf)
	defer scratches.Put(scratch)
	l.scratch = scratch
	for l.turn() {
		retired := l.retiring && l.attached == 0 && l.mail.finish()
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
// there are no leases.
func (l *Loop) watch() {
	for {
		select {
		case <-l.alarm:
			l.Point(Handle{}) // the lease that it looks at is the driver's
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
				l.Point(Handle{}) // the watches of all loops may be here at once
				l.take(Lease(mark), true)
			default:
				quiet++
			}
			last = mark
			if quiet < quietTicks {
				continue
			}
			// Before the last check: a driver that enters after it finds the
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
