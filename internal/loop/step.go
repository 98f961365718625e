package loop

import (
	"time"

	"github.com/chert-http/chert/internal/sys"
)

// This file bounds the steps of a turn: mail, broadcasts, Socks that are due, and timers.
// There may be a million of any of them, and closing a connection takes about 10 us. So each
// step ends after stepMost or StepFor, whichever is first, and goes on in the next turn,
// after a look at the events. What is left over comes before what is new. The events of a
// turn are bounded by eventBatch, and each of its Socks by itself.

const (
	stepMost = 256
	// StepFor is in nanoseconds.
	StepFor = int64(200 * time.Microsecond)
	// castLooks is how many slots of a broadcast, most of them empty, count as one call.
	castLooks = 16
	// castLeast is how many Socks a broadcast reaches in each turn, however long the queue is.
	castLeast = 16
)

// A Step counts what a part of a turn has done. Its zero value is one that has not begun.
type Step struct {
	count int
	began int64
}

// Next reports whether another call may be made in this turn, and counts it. The time begins
// with the second: a step without calls, or with one, does not read the clock.
func (s *Step) Next() bool {
	switch s.count++; {
	case s.count == 1:
		return true
	case s.count > stepMost:
		return false
	}
	now := sys.Nanotime()
	if s.began == 0 {
		s.began = now
	}
	return now-s.began < StepFor
}

// A cast is a broadcast under way.
type cast struct {
	message any
	at      int // the next slot
	left    int // how many slots it has not reached
}

// Broadcast delivers a message, which must be comparable, to every Sock now attached, the
// first of them at once and the others in the next turns. A Sock that is attached meanwhile
// may get it too, and one may get it twice if it is broadcast again. Later broadcasts come
// before those under way.
func (l *Loop) Broadcast(message any) {
	if l.attached == 0 {
		return
	}
	found := cast{message: message}
	for i, c := range l.casts {
		if c.message == message { // it begins again, where it is
			found = c
			l.casts = append(l.casts[:i], l.casts[i+1:]...)
			break
		}
	}
	found.left = l.slots.count
	l.casts = append(l.casts, found)
	l.cast()
}

// cast goes on with the broadcasts. A message may have its Sock queued, so that a broadcast
// to a million would make the queue that long: it waits for the queue, but not for ever,
// since others may keep it long.
func (l *Loop) cast() {
	most := max(stepMost-(len(l.due)-l.head+len(l.later)), castLeast)
	for looks := 0; len(l.casts) > 0; {
		c := &l.casts[len(l.casts)-1]
		if c.at >= l.slots.count {
			c.at = 0
		}
		s, message := l.slots.at(uint32(c.at)).sock, c.message
		if s != nil {
			if most == 0 || !l.casting.Next() {
				return
			}
			most--
		} else if looks++; looks%castLooks == 0 && !l.casting.Next() {
			return
		}
		c.at++
		if c.left--; c.left == 0 {
			*c = cast{}
			l.casts = l.casts[:len(l.casts)-1]
		}
		if s != nil {
			s.Mail(message)
		}
	}
}
