package chert

import (
	"bytes"
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/chert-http/chert/direct/wire"
)

// This file is what the server refuses without its handler: it is counted, and a
// bounded part of it is told.

// Stats are counts of a server since it was made.
type Stats struct {
	// Refused is what was refused without Handler, by status and reason.
	Refused []RefusedCount
}

// RefusedCount is how many requests or connections were refused in one way; see
// wire.Refusal. There are a few dozens of them at most.
type RefusedCount struct {
	Status int
	Reason string
	Count  int64
}

// Stats returns the counts of this moment.
func (s *Server) Stats() Stats {
	r := &s.refusals
	r.mu.Lock()
	defer r.mu.Unlock()
	var st Stats
	for k, n := range r.counts {
		st.Refused = append(st.Refused, RefusedCount{k.status, k.reason, n})
	}
	slices.SortFunc(st.Refused, func(a, b RefusedCount) int {
		return cmp.Or(cmp.Compare(a.Status, b.Status), cmp.Compare(a.Reason, b.Reason))
	})
	return st
}

// What is told of refusals in a second at most, and how much of a line.
const (
	maxToldRefusals = 20
	maxRefusedLine  = 256
)

// refusals are those of a server. The hook is called by a goroutine that is there
// while there is something to tell, so that no loop waits for it.
type refusals struct {
	mu      sync.Mutex
	counts  map[refusalKey]int64
	pending []wire.Refusal // to be told; at most maxToldRefusals and one
	running bool           // a goroutine tells
	since   time.Time      // when the present second began
	told    int            // in it
	omitted int64
	timer   *time.Timer // tells how many were omitted
}

type refusalKey struct {
	status int
	reason string
}

// refused notes that something was refused. reason is one of a few; head is what
// the client has sent, as far as it is known.
func (s *Server) refused(peer string, status int, reason string, head []byte) {
	r := &s.refusals
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts == nil {
		r.counts = make(map[refusalKey]int64)
	}
	r.counts[refusalKey{status, reason}]++
	if s.Refused == nil {
		return
	}
	if now := time.Now(); now.Sub(r.since) >= time.Second {
		r.since, r.told = now, 0
	}
	// A hook that takes long is given less.
	if r.told >= maxToldRefusals || len(r.pending) >= maxToldRefusals {
		if r.omitted++; r.omitted == 1 {
			r.timer = time.AfterFunc(time.Second, s.tellOmitted)
		}
		return
	}
	r.told++
	s.tellRefusal(wire.Refusal{RemoteAddr: peer, Status: status, Reason: reason, Line: requestLine(head)})
}

// tellOmitted tells how many refusals were not told of, if any were.
func (s *Server) tellOmitted() {
	r := &s.refusals
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.omitted == 0 {
		return
	}
	r.timer.Stop()
	s.tellRefusal(wire.Refusal{Omitted: r.omitted})
	r.omitted = 0
}

// tellRefusal has the hook called. refusals.mu is held.
func (s *Server) tellRefusal(one wire.Refusal) {
	r := &s.refusals
	if r.pending = append(r.pending, one); !r.running {
		r.running = true
		go s.tellRefusals()
	}
}

func (s *Server) tellRefusals() {
	r := &s.refusals
	for {
		r.mu.Lock()
		all := r.pending
		r.pending = nil
		if r.running = len(all) > 0; !r.running {
			r.mu.Unlock()
			s.lock()
			s.quiet.Broadcast() // for Shutdown
			s.mu.Unlock()
			return
		}
		r.mu.Unlock()
		for _, one := range all {
			s.callRefused(one)
		}
	}
}

func (s *Server) callRefused(one wire.Refusal) {
	defer func() {
		if e := recover(); e != nil {
			s.logf("chert: Refused panicked: %v", e)
		}
	}()
	s.Refused(one)
}

// telling reports whether there is something left to tell.
func (r *refusals) telling() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running
}

// requestLine is wire.Refusal's Line.
func requestLine(head []byte) string {
	if i := bytes.IndexAny(head[:min(len(head), maxRefusedLine)], "\r\n"); i >= 0 {
		head = head[:i]
	}
	head = head[:min(len(head), maxRefusedLine)]
	line := make([]byte, 0, 4*len(head))
	for _, c := range head {
		if c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			const hex = "0123456789ABCDEF"
			line = append(line, '\\', 'x', hex[c>>4], hex[c&15])
		} else {
			line = append(line, c)
		}
	}
	return string(line)
}
