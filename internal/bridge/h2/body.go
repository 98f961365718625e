package h2

import (
	"io"
	"net/http"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/conn"
)

// This file is what is received of a request's body, and how its windows are given back.

// queue is what has been received of a body.
type queue struct {
	pieces   []*buf.Buf
	size     int
	passing  int  // taken from the pieces, not yet given back to the windows
	ahead    int  // given back, and not yet taken; see refundGatheredLocked
	unwanted bool // what comes of it is discarded
	dropped  bool // some of it was discarded, so that it has no end
}

// pieceSize is the room for small frames of a body.
const pieceSize = 4 << 10

func (q *queue) add(p []byte) {
	if q.size += len(p); len(p) == 0 {
		return
	}
	if n := len(q.pieces); n > 0 {
		last := q.pieces[n-1]
		k := min(cap(last.B)-len(last.B), len(p))
		last.B = append(last.B, p[:k]...)
		p = p[k:]
	}
	if len(p) > 0 {
		b := buf.Get(max(len(p), pieceSize))
		b.B = append(b.B, p...)
		q.pieces = append(q.pieces, b)
	}
}

func (q *queue) read(p []byte) (n int) {
	for n < len(p) && q.size > 0 {
		b := q.pieces[0]
		k := copy(p[n:], b.B)
		if n += k; k == len(b.B) {
			q.first().Release()
		} else {
			b.B = b.B[k:]
			q.size -= k
		}
	}
	return n
}

// first removes the first piece.
func (q *queue) first() *buf.Buf {
	b := q.pieces[0]
	q.pieces[0] = nil
	if q.pieces = q.pieces[1:]; len(q.pieces) == 0 {
		q.pieces = nil
	}
	q.size -= len(b.B)
	return b
}

// take appends the first n bytes to b, which may be nil, and returns that. If they are what the first
// piece has, as is usual, they are not copied.
func (q *queue) take(b *buf.Buf, n int) *buf.Buf {
	switch {
	case n == 0:
		return b
	case b == nil && n == len(q.pieces[0].B):
		return q.first()
	}
	b = b.Room(n)
	have := len(b.B)
	b.B = b.B[:have+n]
	q.read(b.B[have:])
	return b
}

func (q *queue) drop() (n int) {
	for _, b := range q.pieces {
		b.Release()
	}
	n = q.size + q.passing - q.ahead
	q.dropped = q.dropped || q.size > 0
	q.pieces, q.size, q.passing, q.ahead = nil, 0, 0, 0
	return n
}

// popBodyLocked removes the first n bytes, and returns them. They are the caller's to release, and to
// give back to the windows.
func (st *stream) popBodyLocked(n int) *buf.Buf {
	st.body.passing += st.takenLocked(n)
	return st.body.take(nil, n)
}

// takenLocked notes that n bytes have been taken, and returns for how many of them the windows are to
// be given back.
func (st *stream) takenLocked(n int) int {
	st.sampleLocked(n)
	again := min(n, st.body.ahead)
	st.body.ahead -= again
	st.s.ahead -= again
	return n - again
}

// DropBody implements bridge.BodyDropper. The rest of the body must not keep the windows
// of others, however long the handler goes on. The stream's own stays used up, as with
// net/http, so that the client does not send it all. A CONNECT's is the tunnel's.
func (st *stream) DropBody() {
	s := st.s
	s.mu.Lock()
	if st.tunnel == nil && !st.connect {
		st.body.unwanted = true
		st.dropBodyLocked()
		st.wakeLocked()
		defer s.flushBeside()
	}
	s.mu.Unlock()
}

// dropBodyLocked gives the windows back of what is not going to be read.
func (st *stream) dropBodyLocked() {
	st.s.ahead -= st.body.ahead
	if n := st.body.drop(); n > 0 {
		st.s.refundLocked(nil, uint32(n))
	}
}

// refundLocked gives n bytes of the windows back that were used up: of the connection's, and
// of st's if that goes on.
func (s *Session) refundLocked(st *stream, n uint32) {
	if back := s.inflow.Refund(n); back > 0 && s.over == nil {
		s.openWindowLocked(0, back)
	}
	if st == nil || st.closed() || st.remoteClosed {
		return
	}
	more := s.windowNowLocked() - st.window // it has grown
	st.window += more
	if back := st.inflow.Refund(n + more); back > 0 {
		s.openWindowLocked(st.id, back)
	}
}

func (st *stream) ReadBody(p []byte) (n int, err error) {
	s := st.s
	s.mu.Lock()
	if n, err = st.readBodyLocked(p); n == 0 && err == nil {
		s.pass(nil) // what the client may wait for
		stall := stallBy(s.Shared.Limits.ReadStall)
		for n, err = st.readBodyLocked(p); n == 0 && err == nil; n, err = st.readBodyLocked(p) {
			if err = st.wait(conn.Earlier(st.readBy, stall)); err != nil {
				break
			}
		}
	}
	if s.mu.Unlock(); n > 0 {
		s.flushBeside() // what opens windows
	}
	return n, err
}

// readBodyLocked reads what has come of the body: nothing, without an error, if more is to come.
func (st *stream) readBodyLocked(p []byte) (int, error) {
	s := st.s
	n := st.body.read(p)
	if fresh := st.takenLocked(n); fresh > 0 {
		s.refundLocked(st, uint32(fresh))
	}
	switch {
	case st.body.size == 0 && st.remoteClosed && !st.body.dropped: // all has come, whatever has ended the stream since
		for k, vv := range st.trailer { // those that the request has announced
			if _, ok := st.Req.Trailer[k]; ok {
				st.Req.Trailer[k] = vv
			}
		}
		return n, io.EOF
	case n > 0:
		return n, nil
	case st.body.unwanted || st.err == nil && st.body.dropped:
		return 0, http.ErrBodyReadAfterClose
	}
	return 0, st.err
}
