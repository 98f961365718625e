package loop

import (
	"sync"
	"sync/atomic"
)

// This file is what other goroutines send to a loop.

// A mail is a message for a Sock, or a func() for the loop.
type mail struct {
	to      Handle
	message any
}

// packMail is how many messages are in a pack: 1.5 KiB.
const packMail = 64

// A pack is a part of a mailbox. There may be a million messages at once, as when an event
// is sent to that many streams: a slice of them would be copied again and again as it grows,
// while the loop waits for the lock.
type pack struct {
	next *pack
	n    int
	mail [packMail]mail
}

// packs are empty ones.
var packs = sync.Pool{New: func() any { return new(pack) }}

// A mailbox has the messages for a loop, in their order.
type mailbox struct {
	// count is how many messages have not been delivered.
	count atomic.Int64
	// first is the pack being delivered, from at on, and those after it. They are the driver's.
	first *pack
	at    int

	mu         sync.Mutex
	head, tail *pack // of those to be taken
	deaf       bool  // no mail is accepted any more
}

// Post delivers a message to the Sock at h on the loop's goroutine. It reports
// false when the loop has ended. Safe for concurrent use.
func (l *Loop) Post(h Handle, message any) bool {
	if !l.mail.add(mail{h, message}) {
		return false
	}
	// The loop sets asleep before it checks the mailbox a last time; so either
	// it sees this mail or this call sees it asleep.
	if l.asleep.CompareAndSwap(true, false) {
		l.poller.Wake()
	}
	return true
}

// Do runs fn on the loop's goroutine. Safe for concurrent use. It reports
// false, without ever running fn, if the loop has ended.
func (l *Loop) Do(fn func()) bool { return l.Post(Handle{}, fn) }

// deliver delivers what has been posted, as much of it as a step may.
func (l *Loop) deliver() {
	b := &l.mail
	if b.first == nil {
		b.take()
	}
	var delivering Step
	for b.first != nil {
		p := b.first
		if b.at == p.n {
			b.first, b.at = p.next, 0
			p.next, p.n = nil, 0
			packs.Put(p)
			continue
		}
		if !delivering.Next() {
			return
		}
		m := p.mail[b.at]
		p.mail[b.at] = mail{}
		b.at++
		b.count.Add(-1)
		if fn, ok := m.message.(func()); ok {
			fn()
		} else if sl := l.at(m.to); sl != nil {
			sl.sock.Mail(m.message)
		}
	}
}

// add appends a message. It reports false when the mailbox has been closed.
func (b *mailbox) add(m mail) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.deaf {
		return false
	}
	if b.tail == nil || b.tail.n == packMail {
		p := packs.Get().(*pack)
		if b.tail == nil {
			b.head = p
		} else {
			b.tail.next = p
		}
		b.tail = p
	}
	b.tail.mail[b.tail.n] = m
	b.tail.n++
	b.count.Add(1)
	return true
}

// take makes what has been posted so far what is to be delivered. The driver has delivered
// all else.
func (b *mailbox) take() {
	if !b.any() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.first, b.at = b.head, 0
	b.head, b.tail = nil, nil
}

// left reports whether mail was taken and has not been delivered.
func (b *mailbox) left() bool { return b.first != nil }

// any reports whether there is mail.
func (b *mailbox) any() bool { return b.count.Load() > 0 }

// finish closes the mailbox if it is empty; otherwise the mail is delivered in
// another turn, since it may attach a Sock.
func (b *mailbox) finish() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.any() {
		return false
	}
	b.deaf = true
	return true
}

// end drops what has not been delivered, and closes the mailbox.
func (b *mailbox) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.deaf = true
	b.first, b.head, b.tail = nil, nil, nil
	b.count.Store(0)
}
