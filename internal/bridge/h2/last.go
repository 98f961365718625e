package h2

import (
	"errors"
	"net"
	"time"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/http2"
	"github.com/chert-http/chert/internal/outbox"
	"github.com/chert-http/chert/internal/takeover"
	"github.com/chert-http/chert/internal/tally"
)

// This file is answers that outlive their handlers: no goroutine waits for them. What
// flow control does not let through is kept in stream.rest, as for answers whose
// handlers have left more than the client takes, but the stream stays open.

// lasting is such an answer. Its fields are guarded by Session.mu, but for st and
// source, which are immutable after Last.
type lasting struct {
	bridge.Ending
	st       *stream
	source   takeover.Source
	ended    bool // by End
	whole    bool // END_STREAM is out
	returned bool // the handler, if it ran on another goroutine than the owner's
	gone     bool // Closed was called, or is about to be
	owed     bool // Writable is to be called
}

var (
	_ takeover.Stream = (*lasting)(nil)
)

// Last implements bridge.Sharer.
func (st *stream) Last(begin func(takeover.Stream) takeover.Source) *bridge.Ending {
	l := &lasting{st: st}
	l.source = begin(l)
	s := st.s
	s.Count(tally.EventStreamsBegun, true)
	s.mu.Lock()
	st.lasting = l
	st.writeBy = time.Time{} // the request's
	dead := st.closed() || s.over != nil
	s.mu.Unlock()
	if dead { // before lasting was set
		go l.close()
	}
	return &l.Ending
}

// open reports whether more may be offered. mu is held.
func (l *lasting) open() bool { return l != nil && !l.ended }

// close notifies the source that the answer has ended, once. mu is not held.
func (l *lasting) close() {
	s := l.st.s
	s.mu.Lock()
	first := !l.gone
	l.gone = true
	unsent, whole := int64(len(l.st.rest)), l.whole
	s.mu.Unlock()
	if first {
		s.Count(tally.EventStreamsBegun, false)
		l.source.Closed()
		l.Over(&s.Client, unsent, whole)
	}
}

// Offer implements takeover.Stream.
func (l *lasting) Offer(p []byte, _, limit int) (much bool, err error) {
	st := l.st
	s := st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := st.sendable(); err != nil {
		return false, err
	}
	if l.ended {
		return false, net.ErrClosed
	}
	if outbox.Refused(len(st.rest), len(p), limit) {
		l.owed = true
		return true, outbox.ErrFull
	}
	n := len(p)
	for len(st.rest) == 0 && len(p) > 0 && !l.ended {
		n := s.allow(st, len(p))
		if n == 0 {
			break
		}
		p, _ = s.putData(st, p, nil, n, false)
	}
	if err := st.sendable(); err != nil { // allow may give up mu
		return false, err
	}
	if l.ended {
		return false, net.ErrClosed
	}
	l.Given(n)
	if len(p) > 0 {
		st.keepMore(p, nil)
		s.settleSoon() // for the time that the client has
		much = outbox.Much(len(st.rest), limit)
		l.owed = l.owed || much
	}
	s.flushBeside()
	s.wakeNext()
	return much, nil
}

// End implements takeover.Stream.
func (l *lasting) End(abort bool) {
	st := l.st
	s := st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.ended || st.closed() || s.over != nil {
		return
	}
	l.ended = true
	switch {
	case abort:
		s.rst(st.id, http2.Cancel)
		st.close(errAborted)
	case len(st.rest) == 0:
		s.putData(st, nil, nil, 0, true)
		st.endSent()
	}
	s.settleSoon()
}

// stopLate tells the source of an answer that has been handed over while the server shut
// down. mu is held.
func (l *lasting) stopLate() {
	select {
	case <-l.st.s.Stopping:
		if !l.ended {
			l.st.s.freed = append(l.st.s.freed, l.source.Stop)
		}
	default:
	}
}

// settled has the owner notify the source, if there is a reason to. mu is held.
func (l *lasting) settled() {
	if l == nil {
		return
	}
	switch s := l.st.s; {
	case l.st.closed() && !l.gone:
		s.freed = append(s.freed, l.close)
	case l.owed && !l.ended && len(l.st.rest) == 0:
		l.owed = false
		s.freed = append(s.freed, l.source.Writable)
	}
}

// RemoteAddr implements takeover.Stream.
func (l *lasting) RemoteAddr() net.Addr { return l.st.s.Link.RemoteAddr() }

var errAborted = errors.New("http2: the server has reset the stream")

// stopLasting tells the sources that the server shuts down.
func (s *Session) stopLasting() {
	select {
	case <-s.Stopping:
	default:
		return
	}
	var all []*lasting
	s.mu.Lock()
	for st := range s.streams.all() {
		if st.lasting.open() {
			all = append(all, st.lasting)
		}
	}
	s.mu.Unlock()
	for _, l := range all {
		l.source.Stop()
	}
}
