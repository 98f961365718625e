package conn

// This file is how somebody learns when what was given to a connection has been
// sent. It costs nothing where nobody asks: what is counted is what is not sent
// by the first system call.

// follow is who is told what becomes of a queue. The queue's lock guards it.
type follow struct {
	sent    int64  // of the queue, since the connection began
	lost    int64  // of the queue, when the connection failed
	marks   []mark // in order
	passed  []mark // Follower is to be told
	telling bool   // a goroutine tells those in passed
}

// A mark is a place in what is sent.
type mark struct {
	f    Follower
	at   int64 // of follow.sent
	lost int64 // before the mark, in the end
}

// pass comes after something was sent.
func (w *follow) pass() {
	for len(w.marks) > 0 && w.marks[0].at <= w.sent {
		w.passed = append(w.passed, w.marks[0])
		if w.marks = w.marks[1:]; len(w.marks) == 0 {
			w.marks = nil
		}
	}
}

// end comes when the n bytes that are queued will not be sent.
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

// lose notes that n bytes were lost that were not queued. It is the owner's, who
// does not hold the queue's lock.
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
