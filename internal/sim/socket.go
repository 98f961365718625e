//go:build linux

package sim

import (
	"io"
	"syscall"

	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/sys"
)

// A Socket is a connection: the server has a descriptor of it, a client its methods.
type Socket struct {
	k     *Kernel
	refs  int // the server's descriptors of it
	peer  string
	watch watch

	// From the client: in[:arrived] can be read by the server, the rest is on its way.
	in      fifo
	arrived int
	fin     bool // the client has sent its last byte
	finSeen bool // that has arrived
	// From the server, not received by the client; at most room bytes.
	out     fifo
	room    int
	outEnd  bool // the server has sent its last byte
	blocked bool // a write has not found room

	sendfile, noSendfile bool // Sendfile was called, and cannot send to it

	rst        bool      // a reset by the client has arrived
	err        sys.Errno // its error, until a call has returned it
	linger0    bool      // close sends a reset
	shut       bool      // for both directions, by the server
	gone       bool      // the server has closed it
	resetByUs  bool      // what the client sees
	clientGone bool      // the client has closed: what arrives is answered by a reset
}

func (s *Socket) ready() (r poll.Ready) {
	if s.arrived > 0 {
		r |= poll.Readable
	}
	if s.out.len() < s.room || s.outEnd {
		r |= poll.Writable
	}
	if s.finSeen || s.rst || s.shut {
		r |= poll.Readable | poll.PeerClosed
	}
	if s.rst || s.outEnd && s.finSeen || s.shut {
		r |= poll.Writable | poll.Hangup
	}
	return r
}

// Send puts p on its way to the server. It reports false if the connection is dead.
func (s *Socket) Send(p []byte) bool {
	s.k.mu.Lock()
	defer s.k.mu.Unlock()
	if s.fin || s.resetByUs || s.clientGone {
		return false
	}
	s.in.add(p)
	return true
}

// Arrive lets up to n bytes arrive that are on their way, or the end after them, and
// reports whether there is more to come.
func (s *Socket) Arrive(n int) (more bool) {
	s.k.mu.Lock()
	defer s.k.mu.Unlock()
	if s.gone {
		// The server has closed: its kernel answers with a reset.
		if s.in.len() > 0 {
			s.in, s.arrived = fifo{}, 0
			s.resetByUs = true
		}
		return false
	}
	waiting := s.in.len() - s.arrived
	n = min(n, waiting)
	if n > 0 {
		s.arrived += n
		s.watch.edge()
	}
	if s.arrived == s.in.len() && s.fin && !s.finSeen && (n == 0 || s.k.dice.IntN(2) == 0) {
		s.finSeen = true
		s.watch.edge()
	}
	return s.arrived < s.in.len() || s.fin && !s.finSeen
}

// Unarrived reports whether something is on its way to the server.
func (s *Socket) Unarrived() bool {
	s.k.mu.Lock()
	defer s.k.mu.Unlock()
	return s.arrived < s.in.len() || s.fin && !s.finSeen
}

// Receive takes up to n bytes of what the server has sent. At the end of the stream the
// error is io.EOF, after a reset ECONNRESET.
func (s *Socket) Receive(p []byte) (int, error) {
	s.k.mu.Lock()
	defer s.k.mu.Unlock()
	if s.out.len() > 0 {
		n := s.out.take(p)
		// As Linux does: room is reported only to a writer that has met its end, and only
		// when a third is free.
		if s.blocked && 3*(s.room-s.out.len()) >= s.room {
			s.blocked = false
			s.watch.edge()
		}
		return n, nil
	}
	switch {
	case s.resetByUs:
		return 0, syscall.ECONNRESET
	case s.outEnd:
		return 0, io.EOF
	}
	return 0, nil
}

// CloseWrite ends the client's direction.
func (s *Socket) CloseWrite() {
	s.k.mu.Lock()
	defer s.k.mu.Unlock()
	s.fin = true
}

// Close ends the connection for the client, which reads no more. What it has sent still
// arrives.
func (s *Socket) Close() {
	s.k.mu.Lock()
	defer s.k.mu.Unlock()
	s.fin = true
	s.clientGone = true
	if s.out.len() > 0 {
		s.dead(syscall.ECONNRESET) // unread bytes: a reset
	}
}

// Reset ends the connection by the client, at once.
func (s *Socket) Reset() {
	s.k.mu.Lock()
	defer s.k.mu.Unlock()
	s.clientGone = true
	s.dead(syscall.ECONNRESET)
}

// dead lets a reset of the client arrive.
func (s *Socket) dead(e sys.Errno) {
	if s.gone || s.rst {
		return
	}
	s.err, s.out, s.rst = e, fifo{}, true
	s.watch.edge()
}

// reset ends the connection by the server's kernel.
func (s *Socket) reset() {
	s.gone, s.resetByUs, s.in, s.arrived = true, true, fifo{}, 0
	if s.out.len() > 0 && s.k.dice.Strikes(Lost) {
		s.out = fifo{}
	}
}

// Server's side; the kernel's lock is held.

func (s *Socket) read(p []byte) (int, sys.Errno) {
	switch {
	case s.shut:
		return 0, 0
	case s.arrived > 0:
		if len(p) > 0 && s.k.dice.Strikes(ReadAgain) {
			s.watch.edge()
			return 0, syscall.EAGAIN
		}
		n := s.in.take(p[:min(len(p), s.arrived)])
		s.arrived -= n
		return n, 0
	case s.finSeen || s.rst:
		return 0, s.takeErr()
	}
	return 0, syscall.EAGAIN
}

// takeErr returns the error of a reset, which is reported once.
func (s *Socket) takeErr() sys.Errno {
	e := s.err
	s.err = 0
	return e
}

func (s *Socket) peek() (int, sys.Errno) {
	switch {
	case s.shut:
		return 0, 0
	case s.arrived > 0:
		return 1, 0
	case s.finSeen || s.rst:
		return 0, s.takeErr()
	}
	return 0, syscall.EAGAIN
}

// writable returns how many of n bytes the next call may send.
func (s *Socket) writable(n int) (int, sys.Errno) {
	switch {
	case s.err != 0:
		return 0, s.takeErr()
	case s.rst || s.outEnd:
		return 0, syscall.EPIPE
	case s.clientGone:
		if s.finSeen || s.k.dice.IntN(4) == 0 {
			s.dead(syscall.EPIPE) // the reset that answers these bytes
		}
		return n, 0
	case n == 0:
		return 0, 0
	}
	free := s.room - s.out.len()
	if free <= 0 {
		s.blocked = true
		return 0, syscall.EAGAIN
	}
	if s.k.dice.Strikes(WriteAgain) {
		s.watch.edge()
		return 0, syscall.EAGAIN
	}
	if n > free {
		s.blocked = true
		n = free
	} else if n > 1 && s.k.dice.Strikes(ShortWrite) {
		n = 1 + s.k.dice.IntN(n-1)
		s.watch.edge() // there is room: a kernel that accepts less reports when it would accept more
	}
	return n, 0
}

func (s *Socket) write(a, b []byte) (int, sys.Errno) {
	n, e := s.writable(len(a) + len(b))
	if n == 0 || e != 0 || s.clientGone {
		return n, e
	}
	first := min(n, len(a))
	s.out.add(a[:first])
	s.out.add(b[:n-first])
	return n, 0
}

func (s *Socket) close() {
	if s.linger0 || s.arrived > 0 {
		// close(2) with unread bytes sends a reset, and what was not sent is lost.
		s.reset()
		return
	}
	s.gone, s.outEnd = true, true
}
