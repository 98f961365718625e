package eventstream

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"github.com/chert-http/chert/internal/takeover"
)

// ErrSlow is returned when an event is dropped because the client reads too slowly.
var ErrSlow = errors.New("eventstream: the client reads too slowly")

// A Stream is an open response to one client. All its methods are safe for concurrent
// use.
type Stream struct {
	h       *Handler        // immutable
	link    takeover.Stream // immutable after the handler's open
	chunked bool            // the same
	parts   atomic.Int32    // of partEnded
	index   int             // in h.streams; guarded by h.mu

	// mu orders what is offered to link. It comes before Topic.mu, and after
	// Handler.mu.
	mu    sync.Mutex
	begun bool   // begin has been called
	ended bool   // nothing more is sent; the client may have gone
	much  bool   // more than half of MaxUnsent has waited since Writable was called
	sent  uint32 // when something was sent last, in ticks
	until uint32 // when the stream ends, in ticks; if Handler.age is set
	subs  []*subscription
	value any
	z     *zipped // nil if the stream is not compressed; the pointer is immutable after open
	// lastID is from the request, and empty after OnOpen, so as not to be kept.
	lastID string
}

// LastEventID returns the ID of the last event that the client has received, as it says.
// It is empty if there is none, and after OnOpen has returned.
func (s *Stream) LastEventID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastID
}

// RemoteAddr returns the client's address, which is a proxy's if there is one.
func (s *Stream) RemoteAddr() net.Addr { return s.link.RemoteAddr() }

// SetValue stores a value with the stream.
func (s *Stream) SetValue(v any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.value = v
}

// Value returns what SetValue has stored, or nil.
func (s *Stream) Value() any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.value
}

// Send sends an event to this client alone, or queues a copy until the client reads. It
// never waits. The error wraps ErrField if the event cannot be sent, is ErrSlow if the
// client reads too slowly, which has ended the stream unless Options.Slow is SlowDrop,
// and net.ErrClosed when the stream has ended.
func (s *Stream) Send(e Event) error {
	if err := e.check(); err != nil {
		return err
	}
	f := e.frame()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.catchUp(false)
	err := s.own(&f)
	if err == ErrSlow && s.h.o.Slow == SlowClose {
		s.abort()
	}
	return err
}

// Congested reports whether more than half of Options.MaxUnsent has waited for the client,
// which has not accepted most of that yet: a time to send less, or only the newest state.
func (s *Stream) Congested() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.much
}

// own sends an event to this client alone. mu is held.
func (s *Stream) own(f *frame) error {
	if s.z == nil {
		return s.offer(f.bytes(s.chunked), f.size())
	}
	plain := f.bytes(false)
	p, window := newPiece(plain, useful(s.z.window, plain)), s.z.window
	err := s.offer(p.bytes(s.chunked), p.size())
	if err == nil {
		s.z.addOwn(p, plain, window)
	}
	return err
}

// begin sends what precedes all else, once: the beginning of a compressed stream, and the
// time to retry. The server may stop before open has called it. mu is held.
func (s *Stream) begin() {
	if s.begun || s.ended {
		return
	}
	s.begun = true
	if s.z != nil {
		f := newFrame(len(gzipHeader), func(b []byte) []byte { return append(b, gzipHeader...) })
		s.link.Offer(f.bytes(s.chunked), f.size(), -1)
	}
	f := newFrame(64, s.h.appendRetry)
	s.force(&f)
}

// force sends f besides all events, unless the stream has ended: nothing may follow its last chunk. mu is held.
func (s *Stream) force(f *frame) {
	if s.ended {
		return
	}
	if s.z != nil {
		p := newPiece(f.bytes(false), nil)
		s.z.add(p, nil)
		f = &p.frame
	}
	s.link.Offer(f.bytes(s.chunked), f.size(), -1)
}

// catchUp sends what topics have published and not sent yet: those of which the stream is behind, or the others. mu
// is held.
func (s *Stream) catchUp(behind bool) {
	for _, m := range s.subs {
		if m.behind == behind {
			m.catchUp()
		}
	}
}

// offer passes p to the link, with body bytes of the body. mu is held.
func (s *Stream) offer(p []byte, body int) error {
	if s.ended {
		return net.ErrClosed
	}
	much, err := s.link.Offer(p, body, s.h.o.MaxUnsent)
	s.much = s.much || much
	switch err {
	case nil:
		s.sent = s.h.now.Load()
		return nil
	case takeover.ErrFull:
		return ErrSlow
	}
	return net.ErrClosed // the link says Closed
}

// Close ends the stream after everything that was sent before. It does not wait. The
// client will connect again, unless an event makes it do otherwise.
func (s *Stream) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(nil)
}

// end is Close, after last if that is not nil. mu is held.
func (s *Stream) end(last *frame) {
	s.begin()
	s.catchUp(false)
	if s.ended {
		return
	}
	if last != nil {
		s.force(last)
	}
	s.ended = true
	if s.z != nil {
		f := s.z.end()
		s.link.Offer(f.bytes(s.chunked), f.size(), -1)
	}
	if s.chunked {
		s.link.Offer(lastChunk, 0, -1)
	}
	s.link.End(false)
}

// abort ends the stream of a client that does not read. mu is held.
func (s *Stream) abort() {
	if !s.ended {
		s.ended = true
		s.link.End(true)
	}
}

// stop ends the stream because the server does.
func (s *Stream) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := newFrame(len(s.h.last)+64, func(b []byte) []byte { return append(s.h.appendRetry(b), s.h.last...) })
	s.end(&f)
}

// source is a Stream as a takeover.Source.
type source Stream

func (s *source) stream() *Stream { return (*Stream)(s) }

func (s *source) Stop() { s.stream().stop() }

func (s *source) Writable() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.much = false
	s.stream().catchUp(true)
}

func (s *source) Closed() {
	s.mu.Lock()
	s.ended = true
	subs := s.subs
	s.subs = nil
	s.mu.Unlock()
	for _, m := range subs {
		m.t.remove(m)
	}
	h := s.h
	h.remove(s.stream())
	partEnded(&s.parts, h.o.OnClose, s.stream(), h.o.Logger)
}
