package websocket

import (
	"time"

	"github.com/chert-http/chert/internal/outbox"
)

// This file is what a netLink sends.

const (
	// writeStall is how long a client may take to accept writePiece bytes of what is
	// written.
	writeStall = 30 * time.Second
	writePiece = 64 << 10
)

func (l *netLink) Offer(a, b []byte, limit int) (much bool, err error) {
	return l.out.Offer(a, b, limit)
}

func (l *netLink) Follow(f func()) { l.out.Follow(outbox.FollowerFunc(f)) }

// netSink is a netLink as the Sink of its queue.
type netSink netLink

var _ outbox.Sink = (*netSink)(nil)

// Wake implements outbox.Sink.
func (s *netSink) Wake() { go (*netLink)(s).write() }

// write writes what is queued until there is nothing left.
func (l *netLink) write() {
	l.point(1)
	for l.out.Carry() {
		if l.out.HasRoom() {
			l.Post(l.s.Writable)
		}
	}
	if l.out.Err() != nil {
		l.below().Close() // the reader ends the connection
		l.mu.Lock()
		l.rouse()
		l.mu.Unlock()
	}
}

// Push implements outbox.Sink.
func (s *netSink) Push(p, _ []byte, _ bool) (int, error) {
	defer s.clock.Done()
	s.clock.Progress()
	return s.nc.Write(p[:min(len(p), writePiece)])
}
