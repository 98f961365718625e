package outbox

import (
	"io"
	"os"

	"github.com/chert-http/chert/internal/buf"
)

// readSize is the smallest buffer for bytes that wait.
const readSize = 4 << 10

// Segment is a part of a Box: bytes of its own, then a holder's bytes, then a part of a
// file. Outside of a Box it is what a lone writer sends.
type Segment struct {
	own     *buf.Buf
	a, b    []byte
	file    *os.File
	offset  int64
	n       int64
	copying bool // the file must be read
	waited  bool // it has had to wait for the peer
	holder  Holder
}

// Of makes a Segment of w.
func Of(w *Write) Segment {
	return Segment{a: w.A, b: w.B, file: w.File, offset: w.Offset, n: w.Len, holder: w.Holder}
}

// Bytes is how much is in memory, Size how much there is to send.
func (s *Segment) Bytes() int { return len(s.own.Bytes()) + len(s.a) + len(s.b) }

func (s *Segment) Size() int64 { return int64(s.Bytes()) + s.n }

// Take removes n bytes that have been sent.
func (s *Segment) Take(n int) {
	if s.own != nil {
		k := min(n, len(s.own.B))
		s.own = s.own.Consume(k)
		n -= k
	}
	k := min(n, len(s.a))
	s.a, s.b = s.a[k:], s.b[n-k:]
}

// Push pushes the segment through a Sink, a file in turns unless whole is set. It returns
// nil when nothing is left.
func (s *Segment) Push(to Sink, more, whole bool) error {
	for turn := int64(0); ; {
		if turn >= FileTurn || s.copying && turn >= copyTurn {
			if s.Bytes() == 0 && s.n > 0 && !whole {
				return ErrYield
			}
		}
		left := s.n
		if err := s.step(to, more); err != nil {
			return err
		}
		if turn += left - s.n; s.Size() == 0 {
			return nil
		}
	}
}

// step is one call of the Sink, or one read of the file.
func (s *Segment) step(to Sink, more bool) error {
	n := s.Bytes()
	if n == 0 && s.n > 0 {
		return s.pushFile(to)
	}
	p, q := s.a, s.b
	if s.own != nil {
		if p, q = s.own.B, s.a; len(q) == 0 {
			q = s.b
		}
	}
	m, err := to.Push(p, q, more || s.n > 0 || len(p)+len(q) < n)
	s.Take(m)
	return err
}

func (s *Segment) pushFile(to Sink) error {
	files, ok := to.(FileSink)
	if s.copying || !ok {
		s.copying = true
		return s.read()
	}
	m, err := files.PushFile(s.file, s.offset, min(s.n, FileTurn))
	s.offset += m
	s.n -= m
	if err == ErrCopy {
		s.copying, err = true, nil
	}
	return err
}

// read makes the next piece of the file the segment's own bytes.
func (s *Segment) read() error {
	s.own = buf.Get(int(min(s.n, CopySize)))
	n, err := s.file.ReadAt(s.own.B[:min(int64(s.own.Cap()), s.n, CopySize)], s.offset)
	if n == 0 {
		if s.own = s.own.Drop(); err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF // the file has shrunk
		}
		return err
	}
	s.own.B = s.own.B[:n]
	s.offset += int64(n)
	s.n -= int64(n)
	return nil
}

// append adds copies of p to the segment's own bytes.
func (s *Segment) append(p ...[]byte) {
	n := 0
	for _, p := range p {
		n += len(p)
	}
	if n == 0 {
		return
	}
	if s.own == nil {
		s.own = buf.Get(max(n, readSize))
	}
	s.own = s.own.Grow(n)
	for _, p := range p {
		s.own.B = append(s.own.B, p...)
	}
}

// absorb copies the bytes that are not the segment's own, and returns their
// holder for release unless it also holds a file.
func (s *Segment) absorb() (holder Holder) {
	s.append(s.a, s.b)
	if s.a, s.b = nil, nil; s.n == 0 {
		holder, s.holder = s.holder, nil
	}
	return holder
}

// Free releases the segment's own bytes and returns its holder.
func (s *Segment) Free() (holder Holder) {
	holder = s.holder
	s.own.Drop()
	*s = Segment{}
	return holder
}

// plain reports whether the segment has bytes of its own and nothing else.
func (s *Segment) plain() bool {
	return s.own != nil && s.holder == nil && s.n == 0 && len(s.a)+len(s.b) == 0
}
