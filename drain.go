package chert

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/loop"
)

// Drain is Shutdown for a server whose place another one has taken, in another process or on
// another machine: clients that lose their connections come to that one, and are not to come all
// at once. Drain stops accepting and then lets connections end over the time over:
//
//   - A request that arrives is served, and is the last of its connection: the response has
//     "Connection: close", or HTTP/2 clients get GOAWAY. Clients that are busy leave in this way,
//     and lose no request.
//   - Idle connections are closed, WebSockets closed with CodeGoingAway and streams of package
//     eventstream ended, one after another.
//
// Then it calls Shutdown with ctx, which closes the channel of [Stopping] and calls the functions
// of RegisterOnShutdown. It does so earlier when no connection is left, when ctx ends, and if
// over is not positive. So ctx should end some time after over.
func (s *Server) Drain(ctx context.Context, over time.Duration) error {
	if s.leaving.Swap(true) || s.stopping.Load() {
		return s.Shutdown(ctx)
	}
	err := s.closeListeners()
	s.lessen(ctx, over)
	if s.stopping.Load() {
		return s.await(ctx)
	}
	if ended := s.Shutdown(ctx); ended != nil {
		return ended
	}
	return err
}

const (
	// lessenEvery is how often connections are asked to end: a part of a percent of them each
	// time, if it takes half a minute.
	lessenEvery = 50 * time.Millisecond
	// lessenAfter is when the first are. Until then those of busy clients end by themselves.
	lessenAfter = time.Second
	// lessenAtOnce is how many of a loop are asked in one step; see loop.Loop.Do.
	lessenAtOnce = 128
)

// lessen asks connections to end, evenly over a time.
func (s *Server) lessen(ctx context.Context, over time.Duration) {
	if over <= 0 {
		return
	}
	s.lock()
	told := s.told
	streams := slices.Collect(maps.Keys(s.streams))
	s.mu.Unlock()
	leavers := make(map[*loop.Loop]*leaver)
	asked := 0 // of streams
	tick := time.NewTicker(lessenEvery)
	defer tick.Stop()
	wait := min(over/4, lessenAfter)
	for begun := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-told:
			return
		case <-tick.C:
		}
		part := float64(time.Since(begun)-wait) / float64(over-wait)
		if part >= 1 || !s.stillBusy() {
			return
		}
		if part <= 0 {
			continue
		}
		for upto := int(part * float64(len(streams))); asked < upto; asked++ {
			conn.Driven.Drain(streams[asked])
		}
		for _, l := range s.openLoops() {
			v := leavers[l]
			if v == nil {
				v = &leaver{loop: l}
				leavers[l] = v
			}
			l.Do(func() { v.upto(part) })
		}
	}
}

func (s *Server) stillBusy() bool {
	s.lock()
	defer s.mu.Unlock()
	return s.busy()
}

// leaver asks the connections of a loop to end, in the order of their slots. It belongs to the
// loop's driver.
type leaver struct {
	loop     *loop.Loop
	at, want int  // slots
	under    bool // way: the next step is posted
}

// upto asks those in a part of the slots.
func (v *leaver) upto(part float64) {
	v.want = max(v.want, int(part*float64(v.loop.Slots())))
	if !v.under {
		v.step()
	}
}

func (v *leaver) step() {
	n := min(v.want-v.at, lessenAtOnce)
	if v.under = n > 0; !v.under {
		return
	}
	v.loop.Socks(v.at, n, func(s loop.Sock) bool {
		s.Mail(conn.Drain)
		return true
	})
	v.at += n
	v.under = v.loop.Do(v.step)
}
