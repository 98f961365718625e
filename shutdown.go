package chert

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/loop"
)

// RegisterOnShutdown registers f to be called, in its own goroutine, by Shutdown.
func (s *Server) RegisterOnShutdown(f func()) {
	s.lock()
	defer s.mu.Unlock()
	s.onShutdown = append(s.onShutdown, f)
}

// Shutdown stops accepting, closes idle connections, and waits until running requests
// have been answered. A connection that has sent nothing yet, or part of a request's
// head, gets five seconds. A request that begins to arrive later, on a connection that was
// idle, reaches no handler over HTTP/1: the connection is closed. HTTP/2 clients are
// notified first, and requests that were on their way served. If ctx ends first, its
// error is returned and the remaining requests keep running; Close ends them. Hijacked
// connections are neither closed nor awaited. Handlers can watch [Stopping]. [Run] calls Shutdown on a signal.
func (s *Server) Shutdown(ctx context.Context) error { return s.shutdown(ctx, s.mirror.Load()) }

// shutdown is Shutdown. What was registered on mirror runs, unless that is nil.
func (s *Server) shutdown(ctx context.Context, mirror *http.Server) error {
	s.stopping.Store(true)
	err := s.closeListeners()
	s.lock()
	s.notifyStopping()
	for _, f := range s.onShutdown {
		go f()
	}
	s.mu.Unlock()
	if mirror != nil {
		mirror.Shutdown(ctx) // it serves nothing
	}
	s.notifyAll(conn.Drain, conn.Driven.Drain)
	s.shaking.Drain(time.Now().Add(conn.DrainNew))
	if ended := s.await(ctx); ended != nil {
		return ended
	}
	return err
}

// notifyStopping closes the channel that Stopping returns. The lock is held;
// listeners are closed, so that clients that reconnect reach another server.
func (s *Server) notifyStopping() {
	select {
	case <-s.told:
	default:
		close(s.told)
	}
}

// await waits until no connection is served any more, or returns ctx's error.
func (s *Server) await(ctx context.Context) error {
	// The condition cannot wait for a context, so the context signals it.
	defer context.AfterFunc(ctx, s.signal)()
	s.lock()
	defer s.mu.Unlock()
	for allReported := false; s.busy() || !allReported || s.observed.Reporting(); {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !s.busy() && !allReported {
			allReported = true // the last of them
			s.observed.ReportOmitted()
			continue
		}
		s.quiet.Wait()
	}
	return nil
}

// signal wakes the goroutines that wait for something of the server to end or begin.
func (s *Server) signal() {
	s.lock()
	defer s.mu.Unlock()
	s.quiet.Broadcast()
}

// Close closes all listeners and connections at once. The connections of
// running handlers fail and their contexts are cancelled. Hijacked connections
// are not closed. It returns the listeners' error, if any.
func (s *Server) Close() error {
	s.closing.Store(true)
	s.stopping.Store(true)
	err := s.closeListeners()
	s.lock()
	s.notifyStopping()
	s.mu.Unlock()
	s.notifyAll(conn.Kill, conn.Driven.Kill)
	return err
}

// notifyAll notifies every connection, those of the goroutine engine without
// holding the lock: closing a net.Conn may take arbitrarily long.
func (s *Server) notifyAll(what conn.Command, notify func(conn.Driven)) {
	s.lock()
	for _, set := range s.loopSets() {
		set.Broadcast(what)
	}
	streams := slices.Collect(maps.Keys(s.streams))
	s.mu.Unlock()
	for _, c := range streams {
		notify(c)
	}
}

// closeListeners closes the listeners of all Serve calls, the oldest first.
func (s *Server) closeListeners() (err error) {
	s.lock()
	all := slices.Collect(maps.Keys(s.serving))
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b *serving) int { return cmp.Compare(a.number, b.number) })
	for _, sv := range all {
		if e := sv.close(); e != nil && err == nil {
			err = e
		}
	}
	return err
}

func (s *Server) track(c conn.Driven) {
	s.lock()
	s.streams[c] = struct{}{}
	s.mu.Unlock()
	switch {
	case s.closing.Load():
		c.Kill()
	case s.stopping.Load():
		c.Drain()
	}
}

func (s *Server) untrack(c conn.Driven) {
	s.lock()
	defer s.mu.Unlock()
	delete(s.streams, c)
	s.quiet.Broadcast()
}

// hold has Shutdown wait until release is called, once.
func (s *Server) hold() (release func()) {
	s.lock()
	s.held++
	s.mu.Unlock()
	return func() {
		s.lock()
		defer s.mu.Unlock()
		s.held--
		s.quiet.Broadcast()
	}
}

// Drain is Shutdown for a server whose place another one has taken, in another process or on
// another machine: clients that lose their connections come to that one, and are not to come all
// at once. Drain stops accepting and then lets connections end over the time over:
//
//   - A request that arrives is served, and is the last of its connection: the response has
//     "Connection: close", or clients of HTTP/2 and 3 get GOAWAY. Clients that are busy leave in
//     this way, and lose no request.
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
			streams[asked].Drain()
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
