package h2

import (
	"io"
	"net/http"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/http2"
)

// This file is what is received of a request's body, and how its windows are given back.

// queue is what has been received of a body.
type queue struct {
	pieces   []*buf.Buf
	size     int
	unwanted bool // the handler has closed it
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
		n += k
		q.size -= k
		if b.B = b.B[k:]; len(b.B) == 0 {
			b.Release()
			q.pieces[0] = nil
			q.pieces = q.pieces[1:]
		}
	}
	if q.size == 0 {
		q.pieces = nil
	}
	return n
}

func (q *queue) drop() (n int) {
	for _, b := range q.pieces {
		b.Release()
	}
	n = q.size
	q.pieces, q.size = nil, 0
	return n
}

// takesBody reports whether somebody may read the body. mu is held.
func (st *stream) takesBody() bool {
	return !st.closed() && !st.body.unwanted && (st.state < stateSending || st.tunnel != nil && !st.tunnel.ending)
}

// DropBody implements bridge.BodyDropper. The rest of the body must not keep the windows
// of others, however long the handler goes on. The stream's own stays used up, as with
// net/http, so that the client does not send it all. A CONNECT's is the tunnel's.
func (st *stream) DropBody() {
	s := st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.tunnel != nil || st.Req.Method == http.MethodConnect {
		return
	}
	st.body.unwanted = true
	st.dropBody()
	st.wake()
	s.flushBeside()
}

// dropBody gives the windows back of what is not going to be read. mu is held.
func (st *stream) dropBody() { st.s.refund(nil, uint32(st.body.drop())) }

// refund gives n bytes of the windows back that were used up: of the connection's, and
// of st's if that goes on. mu is held.
func (s *Session) refund(st *stream, n uint32) {
	if back := s.inflow.Refund(n); back > 0 && s.over == nil {
		s.room(16)
		s.out.B = http2.AppendWindowUpdate(s.out.B, 0, back)
	}
	if st == nil || st.closed() || st.remoteClosed {
		return
	}
	s.sample(n)
	if back := st.inflow.Refund(n + s.grown(st)); back > 0 {
		s.room(16)
		s.out.B = http2.AppendWindowUpdate(s.out.B, st.id, back)
	}
}

// BodyLeft implements bridge.Message.
func (st *stream) BodyLeft() int64 { return 0 }

// ReadBody implements bridge.Message.
func (st *stream) ReadBody(p []byte) (int, error) {
	s := st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	for flushed, stall := false, int64(0); ; {
		n := st.body.read(p)
		if n > 0 && !st.remoteClosed {
			s.refund(st, uint32(n))
			s.flushBeside()
		} else if n > 0 {
			s.refund(nil, uint32(n))
			s.flushBeside()
		}
		switch {
		case st.body.size == 0 && st.remoteClosed && st.err == nil:
			st.mergeTrailer()
			return n, io.EOF
		case n > 0:
			return n, nil
		case st.body.unwanted:
			return 0, http.ErrBodyReadAfterClose
		case st.err != nil:
			return 0, st.err
		}
		if !flushed {
			flushed, stall = true, stallBy(s.Shared.Limits.ReadStall)
			s.flush() // what the client may wait for
			continue  // more may have come meanwhile
		}
		if err := st.wait(st.readBy, stall); err != nil {
			return 0, err
		}
	}
}

// mergeTrailer gives the request those of its trailers that it has announced.
func (st *stream) mergeTrailer() {
	for k, vv := range st.trailer {
		if _, ok := st.Req.Trailer[k]; ok {
			st.Req.Trailer[k] = vv
		}
	}
}
