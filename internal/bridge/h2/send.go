package h2

import (
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/http2"
)

// This file is what is sent, and when.

const (
	// maxOut is how many bytes of frames are gathered before they are given to the
	// Link. While that does not take them and there are more, nothing is read.
	maxOut = 32 << 10
	// maxData is the largest DATA frame, so that streams take turns.
	maxData = 16 << 10
	// maxRest is how much of an answer is kept for a handler that returns while the
	// client takes no more, its header blocks included.
	maxRest = 16 << 10
	// sendTurn is how many bytes of DATA the owner sends before it looks at the time.
	sendTurn = 64 << 10
	// leastUseful is how many bytes make a DATA frame useful, unless it is the last of
	// what there is to send: a client must not earn by windows of a few bytes each what
	// opening them costs it.
	leastUseful = 512
)

// room makes room for n bytes in out. mu is held.
func (s *Session) room(n int) {
	if s.out == nil {
		s.out = buf.Get(max(n, 2<<10))
	} else {
		s.out = s.out.Grow(n)
	}
}

// flush gives what is ready to the Link. mu is held, and given up meanwhile: who
// comes then leaves what it has to the one that is here.
func (s *Session) flush() {
	if s.sending {
		return
	}
	for s.out != nil && len(s.out.B) > 0 && !s.full && (s.over == nil || s.closing) {
		b := s.out
		s.out = nil
		s.sending = true
		seen := s.writables
		follow := s.followers
		s.followers = nil
		s.mu.Unlock()
		full, err := s.Link.Queue(b.B)
		if err == nil {
			for _, f := range follow {
				s.Link.Follow(f)
			}
			follow = nil
		}
		s.mu.Lock()
		s.sending = false
		s.followers = append(follow, s.followers...)
		switch {
		case s.gone:
			b.Release()
			follow, s.followers = s.followers, nil
			s.mu.Unlock()
			for _, f := range follow {
				s.Link.Follow(f)
			}
			s.mu.Lock()
			return
		case err == conn.ErrFull:
			if s.out != nil {
				b = b.Grow(len(s.out.B))
				b.B = append(b.B, s.out.B...)
				s.out.Release()
			}
			s.out = b
		case err != nil:
			if b.Release(); s.over == nil {
				s.over = err
			}
			s.wakeAll()
			return
		default:
			b.Release()
		}
		// Unless Writable has been called since.
		if s.full = full && seen == s.writables; !s.full {
			s.wakeNext()
		}
	}
	if len(s.followers) > 0 && s.allQueued() { // they came while this was sending
		follow := s.followers
		s.followers = nil
		s.mu.Unlock()
		for _, f := range follow {
			s.Link.Follow(f)
		}
		s.mu.Lock()
	}
	if s.starved && !s.full {
		s.starved = false
		s.settleSoon()
	}
}

// allQueued reports whether the Link has all frames. mu is held.
func (s *Session) allQueued() bool { return !s.sending && (s.out == nil || len(s.out.B) == 0) }

// sendLast gives the Link what is ready before it is closed, also if that has no room.
// It is the owner's; mu is held.
func (s *Session) sendLast() {
	if s.out != nil && len(s.out.B) > 0 {
		s.Link.Send(&conn.Write{A: s.out.B})
		s.out.B = s.out.B[:0]
	}
}

// flushBeside is flush for goroutines of handlers: while the owner is in Data it sends
// in the end. mu is held.
func (s *Session) flushBeside() {
	if !s.inData {
		s.flush()
	}
}

// hasRoom reports whether out has room, and no other stream is before st. mu is held, and
// may be given up meanwhile.
func (s *Session) hasRoom(st *stream) bool {
	if s.out != nil && len(s.out.B) >= maxOut {
		s.flush()
	}
	return !s.full && (s.out == nil || len(s.out.B) < maxOut) && !s.behind(st)
}

// allow is how many of n bytes st may send in a DATA frame now. mu is held, and may be
// given up meanwhile.
func (s *Session) allow(st *stream, n int) int {
	if !s.hasRoom(st) || st.closed() {
		return 0
	}
	return max(0, min(n, maxData, int(s.sendWindow), int(st.sendWindow)))
}

// putData appends a DATA frame of the first n bytes of a and then b, and returns what
// is left of them. mu is held.
func (s *Session) putData(st *stream, a, b []byte, n int, end bool) (_, _ []byte) {
	flags := uint8(0)
	if end {
		flags = http2.FlagEndStream
	}
	s.room(http2.HeaderLen + n)
	s.out.B = http2.AppendHeader(s.out.B, http2.FrameData, flags, st.id, n)
	k := min(n, len(a))
	s.out.B = append(append(s.out.B, a[:k]...), b[:n-k]...)
	s.sendWindow -= http2.Window(n)
	st.sendWindow -= http2.Window(n)
	st.sent += int64(n)
	s.sentAll += int64(n)
	s.order.turn++
	st.turn = s.order.turn
	if a, b = a[k:], b[n-k:]; n >= leastUseful || len(a)+len(b) == 0 {
		s.useful++
	}
	return a, b
}

// putBlock appends a header block. mu is held.
func (s *Session) putBlock(st *stream, block []byte, end bool) {
	if s.tableDue {
		s.tableDue = false
		block = append([]byte{http2.NoTable}, block...)
	}
	s.room(len(block) + (len(block)/maxData+1)*http2.HeaderLen)
	s.out.B = http2.AppendBlock(s.out.B, st.id, block, maxData, end)
	s.sentAll += int64(len(block))
}

// sendable is why nothing of the stream can be sent any more. mu is held.
func (st *stream) sendable() error {
	switch {
	case st.err != nil:
		return st.err
	case st.s.over != nil:
		return st.s.over
	case st.closed():
		return errReset
	case !st.writeBy.IsZero() && !time.Now().Before(st.writeBy):
		return os.ErrDeadlineExceeded
	}
	return nil
}

// commit sends the head, if it is still to be sent, and then a and b. With end, that
// is the end of the answer but for tail, the trailers: if all of that is little it does
// not wait for the client.
func (st *stream) commit(head, a, b []byte, end bool, tail *buf.Buf) (err error) {
	s := st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.wakeNext()
	defer func() {
		if err != nil && tail != nil {
			tail.Release()
		}
	}()
	if err := st.sendable(); err != nil {
		return err
	}
	trailers := 0
	if tail != nil {
		trailers = len(tail.B)
	}
	out := false // END_STREAM is
	few := end && len(head)+len(a)+len(b)+trailers <= maxRest
	if len(head) > 0 {
		if !few {
			if err := st.awaitRoom(); err != nil {
				return err
			}
		}
		if w := st.writing; w != nil {
			st.status = int32(w.Status)
		}
		out = end && tail == nil && len(a)+len(b) == 0
		s.putBlock(st, head, out)
	}
	stall, since, all := int64(0), st.sent, s.sentAll
	for len(a)+len(b) > 0 {
		left := len(a) + len(b)
		if n := s.allow(st, left); n > 0 {
			out = end && tail == nil && n == left
			a, b = s.putData(st, a, b, n, out)
			continue
		}
		if end && left+trailers <= maxRest && !st.closed() {
			st.keepRest(a, b)
			break
		}
		if stall == 0 || !st.stuck(since, all) {
			stall, since, all = stallBy(s.Shared.Limits.WriteStall), st.sent, s.sentAll
		}
		if err := st.waitSend(stall); err != nil && (err != os.ErrDeadlineExceeded || st.stuck(since, all) || st.sendable() != nil) {
			return err
		}
	}
	if end {
		if tail != nil && trailers > maxRest {
			if err := st.awaitRoom(); err != nil {
				return err
			}
		}
		st.end(tail, out)
	}
	return nil
}

// awaitRoom waits until a header block may be sent: no window bounds these, and what a
// client does not read must not be kept for all of its streams. mu is held, and may be
// given up meanwhile.
func (st *stream) awaitRoom() error {
	s := st.s
	st.heading = true
	s.heads.Add(1)
	defer func() {
		st.heading = false
		s.heads.Add(-1)
	}()
	for stall, all := int64(0), s.sentAll; !s.hasRoom(st); {
		if stall == 0 || s.sentAll-all >= leastProgress {
			stall, all = stallBy(s.Shared.Limits.WriteStall), s.sentAll
		}
		if err := st.waitSend(stall); err != nil && (err != os.ErrDeadlineExceeded || s.sentAll-all < leastProgress || st.sendable() != nil) {
			return err
		}
	}
	return st.sendable() // after hasRoom, which may give up mu
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
		defer s.wakeNext() // it may be long until commit is called
		if st.sendable() == nil {
			st.awaitRoom()
		}
	}
}

// waitSend waits for windows, or room. mu is held.
func (st *stream) waitSend(stall int64) error {
	s := st.s
	s.flush()
	if st.heading && s.hasRoom(st) || !st.heading && s.allow(st, 1) > 0 {
		return nil // while flush was sending
	}
	if err := st.sendable(); err != nil { // after allow, which may give up mu, too
		return err
	}
	s.wanting = append(s.wanting, st)
	s.wakeNext() // it may be behind one that nobody has woken
	err := st.wait(st.writeBy, stall)
	i := slices.Index(s.wanting, st)
	s.wanting = slices.Delete(s.wanting, i, i+1)
	if e := st.sendable(); e != nil {
		err = e
	}
	return err
}

// keepRest keeps what the client takes later.
func (st *stream) keepRest(a, b []byte) {
	st.restBuf = buf.Get(len(a) + len(b))
	st.restBuf.B = append(append(st.restBuf.B, a...), b...)
	st.rest = st.restBuf.B
}

// keepMore adds to what the client takes later. mu is held.
func (st *stream) keepMore(a, b []byte) {
	if st.restBuf == nil {
		st.keepRest(a, b)
		st.s.pend(st)
		return
	}
	st.restBuf.B = st.rest
	st.restBuf = st.restBuf.Grow(len(a) + len(b))
	st.restBuf.B = append(append(st.restBuf.B, a...), b...)
	st.rest = st.restBuf.B
}

// end ends the answer, after what is in rest, with the trailers of tail. out: END_STREAM is
// out already. mu is held.
func (st *stream) end(tail *buf.Buf, out bool) {
	s := st.s
	switch {
	case len(st.rest) > 0:
		st.tail = tail
		s.pend(st)
		return
	case tail != nil:
		s.putBlock(st, tail.B, true)
		tail.Release()
	case !out:
		s.putData(st, nil, nil, 0, true)
	}
	st.endSent()
}

// endSent is called when END_STREAM is in out. If the handler has returned, the stream may be
// another one afterwards. mu is held.
func (st *stream) endSent() {
	if f := st.follower; f != nil {
		st.follower = nil
		st.s.followers = append(st.s.followers, f)
	}
	if l := st.lasting; l != nil {
		l.whole = true
	}
	if st.returned() {
		st.answered()
	} else {
		st.become(stateAnswered)
	}
}

// pump sends what it can of the answers whose handlers have returned, for a turn: a client
// may take it as fast as it comes. It is the owner's; mu is held.
func (s *Session) pump() {
	for began, sent := int64(0), s.sentAll; ; {
		if s.sentAll-sent >= sendTurn {
			if sent = s.sentAll; s.spent(&began) {
				s.settleSoon()
				return
			}
		}
		st := s.best(s.pending)
		if st == nil {
			s.wakeNext() // one that has waited for an answer that was pending until now
			return
		}
		n := s.allow(st, len(st.rest))
		if n == 0 {
			if w := s.best(s.wanting); w != nil && s.before(w, st) {
				w.wake()
			}
			s.starved = s.sending
			return
		}
		t := st.tunnel
		end := n == len(st.rest) && st.tail == nil && (t == nil || t.ending) && !st.lasting.open()
		st.rest, _ = s.putData(st, st.rest, nil, n, end)
		if t != nil {
			t.sent()
		}
		if len(st.rest) > 0 {
			continue
		}
		if t != nil && !end {
			s.unpend(st)
			st.dropRest()
			continue
		}
		if st.tail != nil {
			s.putBlock(st, st.tail.B, true)
		}
		s.unpend(st)
		st.dropRest()
		if st.endedAt != 0 {
			s.Link.Tally().Write(s.loops && s.Link.OnLoop(), time.Duration(max(s.Link.Now()-st.endedAt, 1)))
		}
		if st.lasting.open() {
			st.lasting.settled()
			continue
		}
		st.endSent()
	}
}

// pend has the owner send the rest of st's answer. The time in which the client must
// accept some of it begins with the next that Expired measures. mu is held.
func (s *Session) pend(st *stream) {
	st.mark, st.markAll = st.sent-leastProgress, s.sentAll-leastProgress
	s.pending = append(s.pending, st)
}

// unpend takes st out of pending. mu is held.
func (s *Session) unpend(st *stream) {
	if i := slices.Index(s.pending, st); i >= 0 {
		s.pending = slices.Delete(s.pending, i, i+1)
	}
}

// dropRest frees what was to be sent. mu is held.
func (st *stream) dropRest() {
	if len(st.rest) > 0 {
		st.Lost(len(st.rest))
	}
	if st.restBuf != nil {
		st.restBuf.Release()
	}
	if st.tail != nil {
		st.tail.Release()
	}
	if f := st.release; f != nil {
		st.release = nil
		st.s.freed = append(st.s.freed, f)
	}
	st.rest, st.restBuf, st.tail = nil, nil, nil
}

// wake has those go on who wait for the stream. mu is held.
func (st *stream) wake() { st.cond.Broadcast() }

// wakeAll has all go on who wait for windows or room, since there is an end of that.
// mu is held.
func (s *Session) wakeAll() {
	for st := range s.streams.all() {
		st.cond.Broadcast()
	}
}
