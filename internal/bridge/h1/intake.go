package h1

import (
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/http1"
)

// intake reads the body of a request on the loop, in the Link's buffer.
type intake struct {
	open    bool // it has not ended
	chunked bool
	tail    bool  // the last chunk was read, the trailer section follows
	remain  int64 // of a body with a length
	dec     http1.Chunked
	trailer http1.Progress
}

// intakeOf returns that of a request whose body has not been read.
func intakeOf(h *http1.Request) intake {
	return intake{open: h.Chunked || h.ContentLength > 0, chunked: h.Chunked, remain: max(h.ContentLength, 0)}
}

// next returns the next part of the body, in the memory of b, and how much of b was read for it. The capacity of
// data ends with that. After the last chunk it is the trailer section, with its fields in b; used is 0 if that has
// not arrived. The body is open.
func (in *intake) next(b []byte, lim *http1.Limits) (data []byte, used int, fields []http1.Field, err error) {
	switch {
	case in.tail:
		used, fields, err = http1.ParseTrailer(b, nil, &in.trailer, lim)
		in.open = used == 0
	case in.chunked:
		var n int
		n, used, in.tail, err = in.dec.Decode(b, b)
		data = b[:n:used]
	default:
		used = int(min(int64(len(b)), in.remain))
		in.remain -= int64(used)
		in.open = in.remain > 0
		data = b[:used:used]
	}
	return data, used, fields, err
}

// skippable reports whether so much of the body is left that it can be skipped.
func (in *intake) skippable() bool { return in.chunked || in.remain <= bridge.MaxDrain }

// skipping reads the rest of a body whose request has its answer: the conn.Session meanwhile.
type skipping struct {
	conn.Quiet
	s    *Session
	in   intake
	left int
}

var _ conn.Duplex = (*skipping)(nil)

// skip gives the connection back to HTTP/1 when the rest of a body was read.
func (s *Session) skip(in intake) conn.Next {
	k := &skipping{s: s, in: in, left: bridge.MaxDrain}
	s.Link.SetDeadline(s.Link.Now() + int64(s.DrainFor))
	if s.Link.Switch(k); !s.Link.OnLoop() {
		return conn.Requeue // Data begins on the loop
	}
	return k.Data(false)
}

func (k *skipping) Data(eof bool) conn.Next {
	l := k.s.Link
	for k.in.open {
		if eof {
			return conn.Close
		}
		data, used, _, err := k.in.next(l.Buffered(), &k.s.cfg.Head)
		k.left -= len(data)
		switch {
		case err != nil || k.left < 0:
			return conn.Linger
		case used == 0:
			return conn.More
		}
		l.Discard(used)
	}
	l.Switch(k.s)
	if next := k.s.settle(conn.More); next != conn.More {
		return next
	}
	return conn.Requeue
}

func (k *skipping) Expired() conn.Next { return conn.Linger }

// Duplex implements conn.Duplex: many clients send all before they read anything.
func (k *skipping) Duplex() bool { return true }

func (k *skipping) Closed(hijacked bool) { k.s.Closed(hijacked) }

// ahead reports whether the handler may be called before the body has arrived.
func (s *Session) ahead(h any) bool {
	return s.is(onLoops) && s.Link.OnLoop() && !s.BodiesRead.Load() && wire.TakesAhead(h)
}
