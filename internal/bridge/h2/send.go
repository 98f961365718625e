package h2

import (
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/outbox"
	"github.com/chert-http/chert/internal/sched"
	"github.com/chert-http/chert/internal/sys"
)

// This file is how answers are sent by handlers, which wait for the client; see rest.go for
// what they leave.

// maxRest is how much of an answer is kept for a handler that returns while the
// client accepts no more, its header blocks included.
const maxRest = 16 << 10

// flush passes what is ready to the Link. While a goroutine is at it, others leave what they
// have to that one.
func (s *Session) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pass(nil)
}

// flushBeside is flush for goroutines of handlers: while the owner is in Data, it flushes in
// the end.
func (s *Session) flushBeside() {
	if !s.inData.Load() {
		s.flush()
	}
}

// makeRoom passes what is ready to the Link if out is full. mu is held, but meanwhile.
func (s *Session) makeRoom() {
	if s.outFullLocked() && !s.full {
		s.pass(nil)
	}
}

// pass is flush with mu held, but while it passes frames to the Link. With a turn it is the owner's, and
// makes frames of the answers whose handlers have returned, too.
func (s *Session) pass(t *turn) {
	for {
		if t != nil {
			s.pumpLocked(t)
			s.endLingeringLocked()
			if t.gather && !s.outFullLocked() {
				break
			}
		}
		frames, followers := s.collectLocked()
		if frames == nil && followers == nil {
			break
		}
		s.mu.Unlock()
		full, err := false, error(nil)
		if frames != nil {
			full, err = s.Link.Out().Offer(frames.B, nil, outbox.QueueLimit)
		}
		if err == nil {
			for _, f := range followers {
				s.Link.Out().Follow(f)
			}
			followers = nil
		}
		s.mu.Lock()
		if s.writtenLocked(frames, followers, full, err); !s.full {
			s.wakeNextLocked()
		}
	}
	if s.starved && !s.sending && !s.full {
		s.starved = false
		s.settleSoonLocked()
	}
}

// sendableLocked is why nothing of the stream can be sent any more.
func (st *stream) sendableLocked() error {
	switch {
	case st.err != nil:
		return st.err
	case st.s.over != nil:
		return st.s.over
	case st.closed():
		return errEnded
	case st.writeBy > 0 && sys.Nanotime() >= st.writeBy:
		st.late = true
		return os.ErrDeadlineExceeded
	}
	return nil
}

// commit sends the head, if it is still to be sent, and then a and b. With end, that
// is the end of the answer but for tail, the trailers: if all of that is little it does
// not wait for the client. tail is the caller's if there is an error.
func (st *stream) commit(head, a, b []byte, end bool, tail *buf.Buf) (err error) {
	s := st.s
	trailers := len(tail.Bytes())
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.wakeNextLocked()
	few := end && len(head)+len(a)+len(b)+trailers <= maxRest
	if len(head) > 0 && !few {
		err = st.awaitRoom()
	} else {
		err = st.sendableLocked()
	}
	if err != nil {
		return err
	}
	last := end && tail == nil // END_STREAM follows the last of these
	out := last && len(head)+len(a)+len(b) > 0
	if len(head) > 0 {
		if w := st.writing; w != nil {
			st.status = int32(w.Status)
		}
		s.putBlockLocked(st, head, last && len(a)+len(b) == 0)
	}
	for p := (patience{}); ; {
		a, b = s.sendLocked(st, a, b, last)
		left := len(a) + len(b)
		if left == 0 {
			break
		}
		// A full out may make room at once.
		if end && left+trailers <= maxRest && (!s.outFullLocked() || s.full || s.sending) {
			st.keepRestLocked(a, b)
			break
		}
		if err = st.waitToSend(&p); err != nil {
			return err
		}
	}
	if end && trailers > maxRest {
		err = st.awaitRoom()
	}
	if end && err == nil {
		st.endLocked(tail, out)
	}
	return err
}

// awaitRoom waits until a header block may be sent, for the caller to do that: no window bounds
// these, and what a client does not read must not be kept for all of its streams. mu is held, but
// while it waits.
func (st *stream) awaitRoom() error {
	s := st.s
	st.heading = true
	s.heads.Add(1)
	err := st.sendableLocked()
	for p := (patience{}); err == nil && !s.hasRoomLocked(st); {
		err = st.waitToSend(&p)
	}
	st.heading = false
	s.heads.Add(-1)
	s.wakeNextLocked() // it may be long until more is sent
	return err
}

// spare waits, if others wait for room for their header blocks, until there is room for one
// of the fields h, unless that may be little: a block would be made in vain for each stream
// that waits, and be as large as the handler's fields. The error comes up again in commit.
func (st *stream) spare(h http.Header) {
	s := st.s
	if s.heads.Load() == 0 {
		return
	}
	size := 0
	for k, vv := range h {
		for _, v := range vv {
			size += len(k) + len(v)
		}
	}
	if size > 2*maxRest { // more than maxRest in any Huffman code: commit would wait as well
		s.mu.Lock()
		defer s.mu.Unlock()
		late := st.late
		st.awaitRoom()
		st.late = late // if commit gets it
	}
}

// patience is how long a handler, or an answer whose handler has returned, waits for the client:
// Limits.WriteStall, and again when the client has accepted something meanwhile.
type patience struct {
	by        int64
	sent, all int64 // stream.sent and Session.sentAll when that began
}

// waitToSend waits once for windows, or for room. The error is that of sendableLocked, or that the
// client was waited for in vain. mu is held, but while it waits.
func (st *stream) waitToSend(p *patience) (err error) {
	s := st.s
	s.pass(nil)
	if p.by == 0 || !st.stuckLocked(p) {
		*p = patience{stallBy(s.Shared.Limits.WriteStall), st.sent, s.sentAll}
	}
	if ready := s.hasRoomLocked(st) && (st.heading || s.allowLocked(st, 1) > 0); !ready && st.sendableLocked() == nil {
		s.unsent = append(s.unsent, st)
		s.wakeNextLocked() // one that goes first may not have been woken
		err = st.wait(conn.Earlier(st.writeBy, p.by))
		s.unsent = without(s.unsent, st)
	}
	if e := st.sendableLocked(); e != nil {
		return e
	}
	if !st.stuckLocked(p) {
		return nil
	}
	return err
}

// stuckLocked reports whether the client has not accepted enough of st's answer since p began. A
// stream that only waits for others is not, nor is what others send in vain for one that waits to
// send a head.
func (st *stream) stuckLocked(p *patience) bool {
	others := st.s.sentAll-p.all < leastProgress
	if st.heading {
		return others
	}
	return st.sent-p.sent < leastProgress && (st.sendWindow <= 0 || others)
}

// wait waits until something of the stream changes, or it is until, of sys.Nanotime; 0 is never.
// mu is held, but while it waits.
func (st *stream) wait(until int64) error {
	s := st.s
	if until != 0 {
		left := until - sys.Nanotime()
		if left <= 0 {
			return os.ErrDeadlineExceeded
		}
		t := time.AfterFunc(time.Duration(left), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			st.wakeLocked()
		})
		defer t.Stop()
	}
	c := st.cond.Load()
	if c == nil {
		c = sync.NewCond(&s.mu)
		st.cond.Store(c)
	}
	// The loop goes on without this goroutine. That takes a lock of the loop's, under
	// which the session's is not taken.
	st.place.Yield()
	c.Wait()
	if sched.On() { // of several that are woken, the schedule says which is first
		s.mu.Unlock()
		sched.Point(s.Link.Peer().RemoteAddr, uint64(st.id))
		s.mu.Lock()
	}
	return nil
}

// wakeLocked wakes the goroutines that wait for something of the stream.
func (st *stream) wakeLocked() {
	if c := st.cond.Load(); c != nil {
		c.Broadcast()
	}
}

// waited reports whether some goroutine has waited for the client.
func (st *stream) waited() bool { return st.cond.Load() != nil }

// stallBy is when a wait that begins now has taken too long; 0 for never.
func stallBy(limit int64) int64 {
	if limit <= 0 {
		return 0
	}
	return sys.Nanotime() + limit
}

// endLocked ends the answer, after what is in rest, with the trailers of tail. out: END_STREAM is
// out already. If the handler has returned, the stream may be another one afterwards.
func (st *stream) endLocked(tail *buf.Buf, out bool) {
	s := st.s
	switch {
	case st.rest != nil:
		st.rest.tail = tail // pump sends it after the rest
		return
	case tail != nil:
		s.putBlockLocked(st, tail.B, true)
		tail.Release()
	case !out:
		s.putDataLocked(st, nil, nil, 0, true)
	}
	// END_STREAM is in out.
	if f := st.follower; f != nil {
		st.follower = nil
		st.s.followers = append(st.s.followers, f)
	}
	if l := st.lasting; l != nil {
		l.whole = true
	}
	if st.returned() {
		st.answeredLocked()
	} else {
		st.become(stateAnswered)
	}
}
