package outbox

// This file notifies Followers when what was sent before them has been accepted by the
// carrier. Without Followers it costs nothing: only what waits is counted.

// A mark is a position in what is queued.
type mark struct {
	f    Follower
	at   int64 // of Box.sent
	lost int64 // before the mark; final
}

// A notice is what unlock does without the lock: it releases a Holder or notifies a
// Follower.
type notice struct {
	holder   Holder
	follower Follower
	lost     int64
}

// settle gives the notices without mu, which is held again when it returns: Release and
// Sent may be user code, which may use the Box. One goroutine at a time does, so Followers
// are notified in order.
func (b *Box) settle() {
	b.telling = true
	for len(b.done) > 0 {
		var few [2]notice
		all := append(few[:0], b.done...)
		clear(b.done)
		b.done = b.done[:0]
		b.mu.Unlock()
		for _, n := range all {
			if n.holder != nil {
				n.holder.Release()
			} else {
				n.follower.Sent(n.lost)
			}
		}
		b.mu.Lock()
	}
	b.telling = false
}

// free leaves h to unlock. mu is held.
func (b *Box) free(h Holder) {
	if h != nil {
		b.done = append(b.done, notice{holder: h})
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

// endMarks is called when the queued bytes will not be sent. mu is held.
func (b *Box) endMarks() {
	b.lost += b.size
	for _, m := range b.marks {
		b.done = append(b.done, notice{follower: m.f, lost: m.lost + m.at - b.sent})
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
	b.lost += n
}

// Unsent returns how many bytes wait, and how many were lost, in all, and will never be
// sent.
func (b *Box) Unsent() (waiting, lost int64) {
	b.mu.Lock()
	defer b.unlock()
	return b.size, b.lost
}

// Follow notifies f when none of what was sent so far waits any longer. That may be
// immediately, on the caller's goroutine.
func (b *Box) Follow(f Follower) {
	b.mu.Lock()
	defer b.unlock()
	b.marks = append(b.marks, mark{f: f, at: b.sent + b.size, lost: b.lost})
	b.marked = true
	b.pass()
}
