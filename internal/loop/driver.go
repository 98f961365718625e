package loop

import (
	"sync"
	"time"
)

// This file is who drives a loop, and how it changes hands.
//
// A loop is driven by one goroutine at a time. That runs quick tasks itself,
// and one of them may turn out not to be quick. So the driver marks when it
// enters and leaves a task, and a task that overstays costs it the loop:
//
//	            enter                          leave
//	driving -------------> inside a task -------------> driving
//	                            |
//	                            | HandOff: the task is about to wait
//	                            | watch: it has overstayed
//	                            v
//	      a spare drives on; this goroutine finishes the task
//	      and is a pooled goroutine among others then
//
// The mark is one word, seq<<1 | inside. Each entry has its own seq, so a
// Ticket, which is the mark of one entry, tells whether the loop is still the
// driver's: it is while the mark equals it. Who changes the mark away from a
// ticket, by compare-and-swap, decides who drives on.

// A Ticket is a driver's right to its loop while it runs a task. 0 is none:
// the task runs on a pooled goroutine.
type Ticket uint64

const insideTask = 1

const (
	// overstay is how long a task may run on the driver: between one and two
	// of these.
	overstay = time.Millisecond
	// quietTicks is after how many of these without a task the watch sleeps.
	quietTicks = 50
)

// enter begins an inline task.
func (l *Loop) enter() Ticket {
	t := l.mark.Load() + 2 | insideTask
	l.mark.Store(t)
	if !l.watched.Load() {
		l.watched.Store(true)
		select {
		case l.alarm <- struct{}{}:
		default:
		}
	}
	return Ticket(t)
}

// Leave ends the task's time on the loop and reports whether that is still the
// caller's. If so, the caller is an ordinary part of the loop again: it may use
// the loop, and must not wait.
func (l *Loop) Leave(t Ticket) bool {
	return t != 0 && l.mark.CompareAndSwap(uint64(t), uint64(t)&^insideTask)
}

// Renew is a Leave and an enter: the task goes on to something that has a time
// of its own. The result is 0 when the loop is not the caller's any more.
func (l *Loop) Renew(t Ticket) Ticket {
	if t == 0 || !l.mark.CompareAndSwap(uint64(t), uint64(t)+2) {
		return 0
	}
	return t + 2
}

// Held reports whether the loop is still held by t.
func (l *Loop) Held(t Ticket) bool { return l.mark.Load() == uint64(t) }

// HandOff gives the loop to a spare driver if it is still held by t, since the
// task is about to wait. Any goroutine may call it.
func (l *Loop) HandOff(t Ticket) {
	if t != 0 && l.take(t) {
		l.startDriver()
	}
}

// take ends a ticket. The caller must start a driver if it reports true.
func (l *Loop) take(t Ticket) bool {
	return l.mark.CompareAndSwap(uint64(t), uint64(t)&^insideTask+2)
}

// driverTask is a driver's life as a task of the pool, whose goroutines are
// the spares.
type driverTask struct{ l *Loop }

func (d driverTask) Run(Ticket) bool {
	p := &d.l.pool
	p.borrow(1)
	defer p.borrow(-1)
	p.atWork.Add(-1) // to drive is not the work of a pooled goroutine
	d.l.armTrim()
	d.l.drive()
	return false
}

func (l *Loop) startDriver() {
	l.pool.atWork.Add(1) // what the former driver still does is
	l.pool.run(driverTask{l})
}

// scratches are loops' read buffers.
var scratches = sync.Pool{New: func() any { return new([scratchSize]byte) }}

// driveFirst is the life of the first driver, who is no goroutine of the pool.
func (l *Loop) driveFirst() {
	defer l.pool.atWork.Add(-1) // see startDriver; after the end it is of no use
	l.drive()
}

// drive is the loop's life until it ends or is taken by another driver.
func (l *Loop) drive() {
	if t := l.current; t != nil {
		l.current = nil
		if l.pinned {
			// The task may be looking at it; runReady puts it back.
			l.scratch = scratches.Get().(*[scratchSize]byte)
			l.pinned = false
		}
		t.Lost()
	}
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

// runReady runs the tasks that were queued and reports whether the loop is
// still the caller's. If not, the rest is for who has it now.
func (l *Loop) runReady() bool {
	for l.head < len(l.ready) {
		task := l.ready[l.head]
		l.ready[l.head] = nil
		l.head++
		l.current = task
		scratch, pinned := l.scratch, l.pinned
		if !task.Run(l.enter()) {
			if pinned {
				scratches.Put(scratch)
			}
			return false
		}
		l.current = nil
		l.pinned = false
	}
	l.ready, l.head = l.ready[:0], 0
	return true
}

// watch takes the loop from a driver whose task overstays. It sleeps while no
// tasks run.
func (l *Loop) watch() {
	for {
		select {
		case <-l.alarm:
		case <-l.dead:
			return
		}
		last := l.mark.Load()
		tick := time.NewTicker(overstay)
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
			case mark&insideTask != 0:
				l.HandOff(Ticket(mark))
			default:
				quiet++
			}
			last = mark
			if quiet < quietTicks {
				continue
			}
			// Before the last look: a driver that enters behind it finds the
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
