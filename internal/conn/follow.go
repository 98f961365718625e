package conn

// This file notifies Followers when the data passed to a connection has been
// sent. Without Followers it costs nothing: only what the first system call
// does not send is counted.

// follow is the state of a queue's Followers. Guarded by the queue's lock.
type follow struct {
	passed  []mark // Followers to be notified
	marks   []mark // in order
	sent    int64  // of the queue, since the connection began
	lost    int64  // of the queue, when the connection failed
	telling bool   // a goroutine notifies those in passed
}

// A mark is a position in the data that is sent.
type mark struct {
	f    Follower
	at   int64 // of follow.sent
	lost int64 // before the mark; final
}

// pass is called after something was sent.
func (w *follow) pass() {
	for len(w.marks) > 0 && w.marks[0].at <= w.sent {
		w.passed = append(w.passed, w.marks[0])
		if w.marks = w.marks[1:]; len(w.marks) == 0 {
			w.marks = nil
		}
	}
}

// end is called when the n queued bytes will not be sent.
func (w *follow) end(n int64) {
	w.lost += n
	for _, m := range w.marks {
		m.lost += m.at - w.sent
		w.passed = append(w.passed, m)
	}
	w.marks = nil
}

// size is how much of the segment is not sent, in bytes.
func (s *segment) size() int64 { return int64(s.bytes()) + s.n }

// size is how much is queued. mu is held.
func (q *queue) size() (n int64) {
	for i := range q.segments {
		n += q.segments[i].size()
	}
	return n
}

// lose records that n bytes that were not queued were lost. Only the owner may
// call it, without the queue's lock.
func (c *Conn) lose(n int64) {
	if n == 0 {
		return
	}
	q := c.queue.Load()
	if q == nil {
		q = c.newQueue()
	}
	q.mu.Lock()
	defer q.unlock()
	q.follow.lost += n
}

// Unsent implements Link.
func (c *Conn) Unsent() (waiting, lost int64) {
	q := c.queue.Load()
	if q == nil {
		return 0, 0
	}
	q.mu.Lock()
	defer q.unlock()
	return q.size(), q.follow.lost
}

// Follow implements Link.
func (c *Conn) Follow(f Follower) {
	q := c.queue.Load()
	if q == nil {
		f.Sent(0)
		return
	}
	q.mu.Lock()
	defer q.unlock()
	w := &q.follow
	w.marks = append(w.marks, mark{f: f, at: w.sent + q.size(), lost: w.lost})
	w.pass()
}
