package loop

// This file is the queue of Socks that requested another call, because they stopped
// halfway so that others get their share.
//
// A Sock is queued at most once, however often it requests that, and is called once for
// its entry. The poller reports edges, so while a peer keeps sending there is an event for
// a queued Sock in every turn; if the event were a call of its own, which requests another,
// a peer could have any number of entries, each of them worth a whole share. So the events
// of a queued Sock wait for its entry and are passed to that call (docs/adr/0045).
//
// Requests of a turn's events, of its entries and of its timers are for the next turn:
// new events of others come before them. Requests of mail are for the same turn, which saves
// a system call: a Sock without an event of this turn is called once then, others twice.
//
// A turn calls as many as a step may (step.go); the entries that are left come first in
// the next one, before those that have been requested meanwhile.
//
// If a driver loses the loop in a call, the next driver's turn goes on with the entries
// that are left. Mail that has come meanwhile waits for the next turn: user code that is
// waited for in its Sock's every call, and sends mail each time, would otherwise have one
// driver follow another without a look at others' events.

// Requeue makes the loop call the Sock's Ready again, with the events that have come
// meanwhile: in the next turn, or in this one while mail is delivered. A Sock that is queued
// already stays where it is.
func (l *Loop) Requeue(h Handle) {
	sl := l.at(h)
	if sl == nil || sl.state&queued != 0 {
		return
	}
	sl.state = queued
	if l.mailing {
		l.due = append(l.due, h)
	} else {
		l.later = append(l.later, h)
	}
}

// serveDue calls the Socks that are due, as many as a step may, and reports whether the
// caller still drives the loop.
func (l *Loop) serveDue() bool {
	for l.head < len(l.due) {
		h := l.due[l.head]
		sl := l.at(h)
		if sl != nil && !l.serving.Next() {
			break
		}
		l.head++
		if sl == nil {
			continue // the entry of a Sock that has been detached, even if another has its slot
		}
		// Before the call, which may request another one.
		r := sl.missed()
		sl.state = 0
		if !sl.sock.Ready(r) {
			return false
		}
	}
	return true
}

// nextDue begins a turn's queue, and reports whether there is any Sock in it. The arrays
// are used in turns, so that they stay as large as the longest queue there was.
func (l *Loop) nextDue() bool {
	if l.head == len(l.due) {
		l.due, l.later, l.head = l.later, l.due[:0], 0
		return len(l.due) > 0
	}
	if l.head > len(l.due)/2 {
		l.due = l.due[:copy(l.due, l.due[l.head:])]
		l.head = 0
	}
	l.due = append(l.due, l.later...)
	l.later = l.later[:0]
	return true
}
