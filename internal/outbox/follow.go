package outbox

// This file notifies Followers when what was sent before them has been accepted by the
// carrier. Without Followers it costs nothing: only what waits is counted.

// A mark is a position in what is queued.
type mark struct {
	f    Follower
	at   int64 // of Box.sent
	lost int64 // before the mark; final
}

// A notice is for a Follower, of how much was lost.
type notice struct {
	follower Follower
	lost     int64
}

// settle releases Holders and notifies Followers without mu, which is held again when it
// returns: Release and Sent may be user code, which may use the Box. One goroutine at a time
// notifies, so that Followers are notified in order; Holders wait for none of them.
func (b *Box) settle() {
	for {
		switch {
		case len(b.freed) > 0:
			h := shift(&b.freed)
			b.mu.Unlock()
			h.Release()
			b.mu.Lock()
		case len(b.done) > 0 && !b.telling:
			b.tell()
		default:
			return
		}
	}
}

// tell notifies a Follower. If that ends the goroutine (runtime.Goexit), nothing runs on it after
// this, and the others are notified here. mu is held, but for the call.
func (b *Box) tell() {
	first := shift(&b.done)
	b.telling = true
	b.mu.Unlock()
	returned := false
	defer func() {
		b.mu.Lock()
		if b.telling = false; !returned {
			b.unlock()
		}
	}()
	first.follower.Sent(first.lost)
	returned = true
}

// shift takes the first of list, and leaves the others where they are: there may be thousands, of small
// responses to a peer that reads late. The place of the last one is used again.
func shift[E any](list *[]E) (first E) {
	all := *list
	first = all[0]
	clear(all[:1])
	if *list = all[1:]; len(all) == 1 {
		*list = all[:0]
	}
	return first
}

// free leaves h to unlock. mu is held.
func (b *Box) free(h Holder) {
	if h != nil {
		q := b.writable()
		q.freed = append(q.freed, h)
	}
}

// pass is called after something was sent. mu is held.
func (b *Box) pass() {
	for len(b.marks) > 0 && b.marks[0].at <= b.sent {
		b.done = append(b.done, notice{follower: b.marks[0].f, lost: b.marks[0].lost})
		if b.marks = b.marks[1:]; len(b.marks) == 0 {
			b.marks = nil
		}
	}
}

// endMarks is called when the queued bytes will not be sent. What a Sink has kept of what it
// accepted is not counted; it is more than nothing. mu is held.
func (b *Box) endMarks() {
	b.lost += b.size
	for _, m := range b.marks {
		b.done = append(b.done, notice{follower: m.f, lost: m.lost + max(m.at-b.sent, 1)})
	}
	b.marks = nil
}

// Lose records that n bytes that were not queued were lost.
func (b *Box) Lose(n int64) {
	if n == 0 {
		return
	}
	b.mu.Lock()
	defer b.unlock()
	b.writable().lost += n
}

// Unsent returns how many bytes wait, and how many were lost, in all, and will never be
// sent. What the Sink has kept is one byte if nothing else waits. In a nil Box nothing waits.
func (b *Box) Unsent() (waiting, lost int64) {
	if b == nil {
		return 0, 0
	}
	b.mu.Lock()
	defer b.unlock()
	if waiting = b.size; waiting == 0 && b.kept {
		waiting = 1
	}
	return waiting, b.lost
}

// Follow notifies f when none of what was sent so far waits any longer. That may be
// immediately, on the caller's goroutine. In a nil Box nothing waits.
func (b *Box) Follow(f Follower) {
	if b == nil {
		f.Sent(0)
		return
	}
	b.mu.Lock()
	defer b.unlock()
	q := b.writable()
	q.marks = append(q.marks, mark{f: f, at: q.sent + q.size, lost: q.lost})
	if len(b.segments) == 0 { // or the Sink may have kept some of what was sent
		b.pass()
	}
}
