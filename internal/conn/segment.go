package conn

import (
	"io"
	"os"

	"github.com/chert-http/chert/internal/buf"
)

// segment is a part of a queue: bytes of its own, then a holder's bytes, then a
// part of a file.
type segment struct {
	own     *buf.Buf
	a, b    []byte
	file    *os.File
	offset  int64
	n       int64
	copying bool // sendfile cannot send the file
	waited  bool // it has had to wait for the peer
	holder  Holder
}

func (s *segment) bytes() int {
	n := len(s.a) + len(s.b)
	if s.own != nil {
		n += len(s.own.B)
	}
	return n
}

// take removes n bytes that have been sent.
func (s *segment) take(n int) {
	if s.own != nil {
		k := min(n, len(s.own.B))
		s.own.B = s.own.B[k:]
		if n -= k; len(s.own.B) == 0 {
			s.own.Release()
			s.own = nil
		}
	}
	k := min(n, len(s.a))
	s.a, s.b = s.a[k:], s.b[n-k:]
}

// append adds copies of p to the segment's own bytes.
func (s *segment) append(p ...[]byte) {
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
func (s *segment) absorb() (holder Holder) {
	s.append(s.a, s.b)
	if s.a, s.b = nil, nil; s.n == 0 {
		holder, s.holder = s.holder, nil
	}
	return holder
}

// free releases the segment's own bytes and returns its holder.
func (s *segment) free() (holder Holder) {
	if holder = s.holder; s.own != nil {
		s.own.Release()
	}
	*s = segment{}
	return holder
}

// read makes the next piece of the file the segment's own bytes.
func (s *segment) read() error {
	s.own = buf.Get(int(min(s.n, copySize)))
	n, err := s.file.ReadAt(s.own.B[:min(int64(s.own.Cap()), s.n, copySize)], s.offset)
	if n == 0 {
		s.own.Release()
		if s.own = nil; err == nil {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	s.own.B = s.own.B[:n]
	s.offset += int64(n)
	s.n -= int64(n)
	return nil
}

// plain reports whether the segment has bytes of its own and nothing else.
func (s *segment) plain() bool {
	return s.own != nil && s.holder == nil && s.n == 0 && len(s.a)+len(s.b) == 0
}
