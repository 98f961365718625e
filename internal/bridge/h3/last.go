package h3

import (
	"context"
	"net"
	"sync"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/http3"
	"github.com/chert-http/chert/internal/outbox"
	"github.com/chert-http/chert/internal/takeover"
	"github.com/chert-http/chert/internal/tally"
)

// This file is answers that outlive their handlers: no goroutine waits for them, and the
// stream stays open. One writes while something is queued.

// lasting is such an answer: the takeover.Stream of the Source. Its Box is carried by carry.
type lasting struct {
	bridge.Ending
	st   *stream
	out  outbox.Box
	once sync.Once // of close

	mu       sync.Mutex
	source   takeover.Source // immutable after Last, which holds mu
	unwait   func() bool     // ends the watch on the stream's context; the same
	ending   bool            // End was called
	returned bool            // the handler
	closed   bool            // nothing is sent any more
	retired  bool            // the stream has left the session
}

var (
	_ takeover.Stream = (*lasting)(nil)
	_ outbox.Sink     = (*lasting)(nil)
)

// Last implements bridge.Sharer.
func (st *stream) Last(begin func(takeover.Stream) takeover.Source) *bridge.Ending {
	l := &lasting{st: st}
	l.out.InitCarried(l)
	l.out.Share()
	st.s.Count(tally.EventStreamsBegun, true)
	st.mu.Lock()
	st.lasting, st.writeBy = l, noTime // the request's
	st.mu.Unlock()
	l.mu.Lock() // others wait for the source
	defer l.mu.Unlock()
	l.source = begin(l)
	l.unwait = context.AfterFunc(st.str.Context(), l.gone)
	return &l.Ending
}

// from returns the Source, when there is one.
func (l *lasting) from() takeover.Source {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.source
}

// handed is called when the handler has returned.
func (l *lasting) handed() {
	l.mu.Lock()
	l.returned = true
	l.mu.Unlock()
	select {
	case <-l.st.s.Stopping: // it was handed over while the server stopped
		l.from().Stop()
	default:
	}
	l.retire()
}

// retire takes the stream out of the session when all of it has ended.
func (l *lasting) retire() {
	l.mu.Lock()
	now := l.returned && l.closed && !l.retired
	l.retired = l.retired || now
	l.mu.Unlock()
	if now {
		l.st.s.close(l.st)
	}
}

// gone is called when the client has gone, or wants no more.
func (l *lasting) gone() {
	l.st.s.spendReset()
	l.close(false)
}

// close is the end of the answer. whole: its end is out.
func (l *lasting) close(whole bool) {
	l.once.Do(func() {
		st, s := l.st, l.st.s
		l.mu.Lock()
		unwait := l.unwait
		l.mu.Unlock()
		if unwait != nil {
			unwait() // or a reset of the server's would be charged to the client
		}
		l.out.Close(true)
		if !whole {
			l.out.Drop()
			st.abort(&http3.StreamError{Code: http3.RequestCancelled})
		}
		s.Count(tally.EventStreamsBegun, false)
		l.from().Closed()
		_, lost := l.out.Unsent()
		l.Over(&s.Client, lost, whole)
		l.mu.Lock()
		l.closed = true
		l.mu.Unlock()
		l.retire()
	})
}

// Offer implements takeover.Stream.
func (l *lasting) Offer(p []byte, body, limit int) (much bool, err error) {
	if much, err = l.out.Offer(p, nil, limit); err == nil {
		l.Given(body)
	}
	return much, err
}

// End implements takeover.Stream.
func (l *lasting) End(abort bool) {
	l.out.Close(true)
	go func() {
		l.mu.Lock() // Last may not have returned
		again, unwait := l.ending, l.unwait
		l.ending = true
		l.mu.Unlock()
		switch {
		case abort:
			l.close(false)
			return
		case again:
			return
		}
		if err := l.out.Carried(); err == nil && unwait() {
			err = l.st.endSent()
			l.close(err == nil)
			return
		}
		l.close(false)
	}()
}

// RemoteAddr implements takeover.Stream.
func (l *lasting) RemoteAddr() net.Addr { return l.st.s.RemoteAddr() }

// Wake implements outbox.Sink.
func (l *lasting) Wake() { go l.carry() }

// carry sends what is queued until there is nothing left.
func (l *lasting) carry() {
	defer func() { // also if a Follower has ended its goroutine
		if l.out.Err() != nil {
			l.close(false)
		}
	}()
	for again := true; again; {
		again = l.out.Carry()
		if l.out.HasRoom() {
			l.from().Writable()
		}
	}
}

// Push implements outbox.Sink.
func (l *lasting) Push(p, q []byte, _ bool) (n int, err error) {
	if err := l.st.put(nil, p, q); err != nil {
		return 0, err
	}
	return len(p) + len(q), nil
}
