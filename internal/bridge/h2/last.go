package h2

import (
	"errors"
	"net"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/http2"
	"github.com/chert-http/chert/internal/takeover"
	"github.com/chert-http/chert/internal/tally"
)

// This file is answers that outlive their handlers: no goroutine waits for them, and the
// stream stays open.

// lasting is such an answer. Its fields are guarded by Session.mu, but for st and
// source, which are immutable after Last.
type lasting struct {
	bridge.Ending
	offers
	source   takeover.Source
	whole    bool // END_STREAM is out
	returned bool // the handler, if it ran on another goroutine than the owner's
	closed   bool // Closed was called, or is about to be
}

var _ takeover.Stream = (*lasting)(nil)

func (st *stream) Last(begin func(takeover.Stream) takeover.Source) *bridge.Ending {
	l := &lasting{offers: offers{st: st}}
	l.source = begin(l)
	s := st.s
	s.Count(tally.EventStreamsBegun, true)
	s.mu.Lock()
	st.lasting = l
	st.writeBy = 0 // the request's
	if st.closed() {
		st.dropBodyLocked()
	}
	dead := st.closed() || s.over != nil
	s.mu.Unlock()
	if dead { // before lasting was set
		go l.close()
	}
	return &l.Ending
}

// open reports whether more may be offered. mu is held.
func (l *lasting) open() bool { return l != nil && !l.ending }

// close notifies the source that the answer has ended, once. mu is not held.
func (l *lasting) close() {
	s := l.st.s
	s.mu.Lock()
	first := !l.closed
	l.closed = true
	unsent, whole := int64(l.st.rest.len()), l.whole
	s.mu.Unlock()
	if first {
		if l.st.made() { // it is no forwarded one
			s.Count(tally.EventStreamsBegun, false)
		}
		l.source.Closed()
		l.Over(&s.Client, unsent, whole)
	}
}

func (l *lasting) Offer(p []byte, _, limit int) (much bool, err error) {
	return l.offer(p, nil, limit, &l.Ending)
}

func (l *lasting) End(abort bool) {
	code := http2.NoError
	if abort {
		code = http2.Cancel
	}
	l.end(code)
}

// end ends the answer, by a reset unless code is NoError. mu is not held.
func (l *lasting) end(code http2.ErrCode) {
	st := l.st
	s := st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.ending || st.closed() || s.over != nil {
		return
	}
	if code == http2.NoError {
		l.endLocked()
	} else {
		l.ending = true
		s.rstLocked(st.id, code)
		st.closeLocked(errAborted)
	}
	s.settleSoonLocked()
}

// settledLocked has the owner notify the source, if there is a reason to.
func (l *lasting) settledLocked() {
	if l == nil {
		return
	}
	switch s := l.st.s; {
	case l.st.closed() && !l.closed:
		s.freed = append(s.freed, l.close)
	case l.owed && !l.ending && l.st.rest == nil:
		l.owed = false
		s.freed = append(s.freed, l.source.Writable)
	}
}

func (l *lasting) RemoteAddr() net.Addr { return l.st.s.RemoteAddr() }

var errAborted = errors.New("http2: the server has reset the stream")
