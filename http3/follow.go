package http3

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/json"

	"github.com/chert-http/chert/internal/accept"
	"github.com/chert-http/chert/internal/successor"
	"github.com/chert-http/chert/internal/sys"
)

// This file is what a server takes over from the process before, and passes to the next one.

// note is what a process tells the next one of a socket.
type note struct {
	Secret [32]byte `json:"secret"`
	IDs    idKey    `json:"ids"`
	// Older are the generations of processes to which the sockets lead that are passed with it. The
	// first is that of the process that passes them.
	Older []byte `json:"older"`
}

// follow makes the relay, after the process before if there is one. It closes the socket if there
// is an error.
func (s *server) follow() error {
	var n note
	var older []way
	generation := byte(0)
	if json.Unmarshal(s.socket.Note, &n) == nil && len(n.Older) > 0 && len(n.Older) == len(s.socket.More) {
		if s.h.made {
			// So that tokens stay valid, and clients of the process before learn that it has gone.
			s.secret = n.Secret
		}
		generation = n.Older[0] + 1
		for i, c := range s.socket.More {
			w, err := newWay(n.Older[i], c)
			if err != nil {
				c.Close()
				continue
			}
			older = append(older, w)
		}
	} else {
		for _, c := range s.socket.More {
			c.Close()
		}
		key, err := hkdf.Key(sha256.New, s.secret[:], nil, "chert connection id", len(n.IDs))
		if err != nil {
			s.socket.Drop()
			s.socket.Close()
			return err
		}
		n.IDs = idKey(key)
	}
	s.idKey = n.IDs
	s.relay = newRelay(s.socket.UDPConn, newConnIDs(&n.IDs, generation), older, s.alone)
	return nil
}

// Pass implements successor.PacketsUser.
func (s *server) Pass() (told []byte, more []int, err error) {
	own, other, err := successor.Pair()
	if err != nil {
		return nil, nil, err
	}
	n := note{s.secret, s.idKey, []byte{s.relay.ids.generation}}
	more = []int{other}
	for _, w := range s.relay.ways() {
		if fd, err := accept.Copy(w.conn); err == nil { // else its process has ended
			n.Older, more = append(n.Older, w.generation), append(more, fd)
		}
	}
	if told, err = json.Marshal(n); err != nil {
		own.Close()
		for _, fd := range more {
			sys.Close(fd)
		}
		return nil, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = own
	return told, more, nil
}

// Failed implements successor.PacketsUser.
func (s *server) Failed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next != nil {
		s.next.Close()
		s.next = nil
	}
}

// Replaced implements successor.PacketsUser. From now on the successor reads the socket. It passes on
// what is for connections of this process, and for handshakes that have begun here: so those are
// still accepted, and of others only those that prove that they have been here before.
func (s *server) Replaced() {
	s.mu.Lock()
	s.left.Store(true)
	next, reads := s.next, s.begun
	s.next = nil
	s.mu.Unlock()
	switch {
	case next == nil:
	case reads:
		s.relay.leave(next)
	default:
		next.Close()
	}
}

// alone is called when no process that has followed this one reads the socket any more. This one
// reads it for the connections that it has, and has no new ones: it is about to end.
func (s *server) alone() {
	if s.left.Load() {
		go s.listener.Close()
	}
}
