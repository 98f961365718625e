package eventstream

import (
	"math/rand/v2"
	"time"

	"github.com/chert-http/chert/internal/sched"
)

// This file sends heartbeats and ends streams that are old enough, with one ticker for
// all streams of a handler, which runs while there are any.

// parts is how many ticks a heartbeat has.
const parts = 8

// atOnce is how many streams are copied while the handler is locked.
const atOnce = 256

func (h *Handler) setTicks(heartbeat, age time.Duration) {
	for _, d := range []time.Duration{heartbeat, age} {
		if tick := max(d/parts, time.Millisecond); d > 0 && (h.tick == 0 || tick < h.tick) {
			h.tick = tick
		}
	}
	if heartbeat > 0 {
		h.beatAfter = inTicks(heartbeat, h.tick)
	}
	if age > 0 {
		h.age = inTicks(age, h.tick)
	}
}

func inTicks(d, tick time.Duration) uint32 { return uint32(min(max(d/tick, 1), 1<<30)) }

// ageOf is how long a stream stays open.
func ageOf(age uint32) uint32 { return age - rand.N(age/5+1) }

// sweepSoon starts to sweep. mu is held.
func (h *Handler) sweepSoon() {
	if h.tick > 0 && !h.sweeping {
		h.sweeping = true
		go h.sweep()
	}
}

func (h *Handler) sweep() {
	t := time.NewTicker(h.tick)
	defer t.Stop()
	for range t.C {
		sched.Point("sweep", 0)
		now := h.now.Add(1)
		var few [atOnce]*Stream
		for i := 0; ; i += atOnce {
			h.mu.Lock()
			if h.streams.Len() == 0 {
				h.sweeping = false
				h.mu.Unlock()
				return
			}
			n := h.streams.Copy(few[:], i)
			h.mu.Unlock()
			for _, s := range few[:n] {
				s.tick(now)
			}
			if n < atOnce {
				clear(few[:])
				break
			}
		}
	}
}

func (s *Stream) tick(now uint32) {
	h := s.h
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
	case h.age > 0 && int32(now-s.until) >= 0:
		s.end(nil)
	case h.beatAfter > 0 && now-s.sent >= h.beatAfter:
		s.sent = now
		s.begin()
		// Not if something waits: the client gets that.
		f := &beat
		if s.z != nil {
			f = &beatGz.frame
		}
		if _, err := s.link.Offer(f.bytes(s.chunked), f.size(), 0); err == nil && s.z != nil {
			s.z.add(beatGz, nil)
		}
	}
}
