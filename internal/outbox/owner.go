package outbox

// This file is for the owner of a carrier that does not wait, and for its loop.

// Send queues what the lone writer of s could not send, with pushed as the Sink's error, or
// sends s, or, if pushed is nil and cork is set, queues it for the next one. It reports
// whether the Sink was tried. An error means that the carrier has failed.
func (b *Box) Send(s *Segment, deadline int64, cork bool, pushed error, whole bool) (tried bool, err error) {
	b.mu.Lock()
	defer b.unlock()
	if deadline != 0 {
		b.writable().deadline = deadline
	}
	if tried = pushed != nil; tried {
		s.waited = true
		b.stall(pushed)
	}
	wait := tried || b.stalled || cork && b.held+s.Bytes() <= HighWater
	if b.add(s, wait); wait {
		return tried, nil
	}
	return true, b.pull(whole)
}

// Join adds w to what is already corked, if there is something and w is small.
func (b *Box) Join(w *Write) (joined bool) {
	n := len(w.A) + len(w.B)
	b.mu.Lock()
	last := len(b.segments) - 1
	if joined = last >= 0 && n <= SmallWrite && b.held+n <= HighWater && b.err == nil && !b.is(blocked) &&
		b.segments[last].plain(); joined {
		s := &b.segments[last]
		s.own = s.own.Grow(n)
		s.own.B = append(append(s.own.B, w.A...), w.B...)
		b.size += int64(n)
		if b.held += n; w.Deadline != 0 {
			b.deadline = w.Deadline
		}
	}
	b.unlock()
	return joined
}

// Try sends what the Sink accepts of s, or queues the rest if it is small. The owner tries
// again when the peer has accepted more, unless done.
func (b *Box) Try(s *Segment, whole bool) (done bool, err error) {
	b.mu.Lock()
	defer b.unlock()
	if !b.stalled && len(b.segments) > 0 && b.held+s.Bytes() <= HighWater {
		b.add(s, false) // one call sends both
		*s = Segment{}
		return true, b.pull(whole)
	}
	if err := b.pull(whole); err != nil {
		return true, err
	}
	if len(b.segments) == 0 {
		if err = s.Push(b.sink, false, whole); err == nil || !Later(err) {
			return true, err
		}
	}
	if b.held+s.Bytes() > HighWater {
		return false, nil
	}
	b.stall(ErrWouldBlock)
	b.add(s, true)
	return true, nil
}

// Pull pushes what the Sink accepts. Only the owner may call it if a file may be next.
func (b *Box) Pull(whole bool) error {
	b.mu.Lock()
	defer b.unlock()
	return b.pull(whole)
}

// Uncork is Pull of what has not waited. It reports whether the Sink was tried.
func (b *Box) Uncork() (tried bool, err error) {
	b.mu.Lock()
	defer b.unlock()
	if len(b.segments) == 0 || b.err != nil || b.is(blocked) {
		return false, b.err
	}
	return true, b.pull(false)
}

// PullBeside is Pull of bytes in memory, for the loop of another owner. It does not wait
// for the lock: Wake follows if another goroutine has it. The error is returned by what the
// owner sends next. It reports whether something is left, which only a loop of a shared
// Box watches: there the owner may wait for it (see Follow). In a nil Box nothing waits.
func (b *Box) PullBeside() (left bool) {
	if b == nil {
		return false
	}
	if !b.mu.TryLock() {
		b.set(missed, true)
		if !b.mu.TryLock() {
			return false // unlock sees it
		}
		b.set(missed, false)
	}
	defer b.unlock()
	for i := range b.segments {
		if b.segments[i].n > 0 {
			return b.is(shared)
		}
	}
	b.pull(false)
	return b.is(shared) && len(b.segments) > 0
}

// Nudge pushes what the Sink itself has to send, after what is queued, also after Close if
// last is set, and reports whether something is unsent.
func (b *Box) Nudge(last bool) (left bool) {
	b.mu.Lock()
	defer b.unlock()
	if b.err != nil || b.closed && !last {
		return false
	}
	waits := b.is(blocked)
	if n := len(b.segments); waits && n > 0 && b.segments[n-1].Size() == 0 && b.segments[n-1].holder == nil {
		return true // one is enough, however often a peer has the Sink want to send something
	}
	if b.add(&Segment{}, waits); !waits && b.pull(false) == nil && b.stalled && !last {
		b.sink.Wake()
	}
	return len(b.segments) > 0
}

// Stalled reports whether the Sink accepts nothing until its carrier pulls.
func (b *Box) Stalled() bool {
	b.mu.Lock()
	defer b.unlock()
	return b.stalled
}

// FileNext reports whether a file is to be sent next, and returns the holder whose Check is to be
// called before, or nil.
func (b *Box) FileNext() (file bool, check Holder) {
	b.mu.Lock()
	defer b.unlock()
	if len(b.segments) == 0 || b.segments[0].n == 0 {
		return false, nil
	}
	if s := &b.segments[0]; s.waited {
		check = s.holder
	}
	return true, check
}

// Await begins a wait for the peer: it is given up if it accepts nothing for a time of stall from
// now on, or at the deadline of what is queued, if that is earlier. A stall of 0 or less is not
// bounded. kept is how much the carrier has for it. Await, GiveUp and Accepted are the loop's.
func (b *Box) Await(now, stall int64, kept int32) {
	b.mu.Lock()
	defer b.unlock()
	if len(b.segments) == 0 {
		return // another goroutine has sent it
	}
	b.set(accepted, false)
	b.giveUp, b.before = b.deadline, kept
	if stall > 0 && (b.giveUp == 0 || now+stall < b.giveUp) {
		b.giveUp = now + stall
	}
}

// GiveUp returns when the wait that Await has begun ends, and how much the carrier had for the
// peer then. It is 0 after Accepted, and when nothing is queued any more.
func (b *Box) GiveUp() (at int64, before int32) {
	if !b.Busy() || b.is(accepted) {
		return 0, 0
	}
	b.mu.Lock()
	defer b.unlock()
	return b.giveUp, b.before
}

// Accepted ends that wait: the peer has accepted something. It does not wait for the lock, which
// the owner may hold for as long as it reads a file.
func (b *Box) Accepted() { b.set(accepted, true) }

// Overdue reports whether the deadline of what is queued has passed.
func (b *Box) Overdue(now int64) bool {
	b.mu.Lock()
	defer b.unlock()
	return b.deadline != 0 && now >= b.deadline
}

// Limit sets the deadline of what is queued.
func (b *Box) Limit(deadline int64) {
	b.mu.Lock()
	defer b.unlock()
	if len(b.segments) > 0 {
		b.deadline = deadline
	}
}
