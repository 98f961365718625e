package chert

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/stream"
)

// RegisterOnShutdown has f called, in its own goroutine, when Shutdown is.
func (s *Server) RegisterOnShutdown(f func()) {
	s.lock()
	defer s.mu.Unlock()
	s.onShutdown = append(s.onShutdown, f)
}

// Shutdown stops accepting, closes idle connections, and waits until those
// that serve a request have answered it. A connection that has sent nothing yet,
// or a part of a request's head, is given five seconds. If ctx ends first its error is
// returned, and what still runs goes on running; Close ends it. Hijacked
// connections are neither closed nor awaited. Handlers may ask for [Stopping].
// [Run] calls it when a signal comes.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stopping.Store(true)
	err := s.closeListeners()
	s.lock()
	s.tellStopping()
	for _, f := range s.onShutdown {
		go f()
	}
	s.mu.Unlock()
	if m := s.mirror.Load(); m != nil {
		m.Shutdown(ctx) // serves nothing; what was registered on it runs
	}
	s.drain()
	s.shaking.Drain(time.Now().Add(conn.DrainNew))
	if ended := s.await(ctx); ended != nil {
		return ended
	}
	return err
}

// tellStopping closes what Stopping gives. The lock is held; listeners are
// closed, so that clients which come back go elsewhere.
func (s *Server) tellStopping() {
	select {
	case <-s.told:
	default:
		close(s.told)
	}
}

// await waits until nothing is served any more, or returns ctx's error.
func (s *Server) await(ctx context.Context) error {
	s.lock()
	s.mu.Unlock()
	// The condition cannot wait for a context, so the context signals it.
	defer context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.quiet.Broadcast()
	})()
	s.mu.Lock()
	defer s.mu.Unlock()
	for told := false; len(s.serving)+len(s.sets)+len(s.streams) > 0 || !told || s.refusals.telling(); {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if len(s.serving)+len(s.sets)+len(s.streams) == 0 && !told {
			told = true // the last of it
			s.tellOmitted()
			continue
		}
		s.quiet.Wait()
	}
	return nil
}

// Close closes all listeners and connections at once. Handlers that run see
// their connections fail and their contexts done. Hijacked connections are
// not closed. It returns the listeners' error, if any.
func (s *Server) Close() error {
	s.closing.Store(true)
	s.stopping.Store(true)
	err := s.closeListeners()
	s.lock()
	s.tellStopping()
	s.mu.Unlock()
	s.tellAll(conn.Kill, (*stream.Conn).Kill)
	return err
}

// drain closes idle connections and lets the others end after their request.
func (s *Server) drain() { s.tellAll(conn.Drain, (*stream.Conn).Drain) }

// closeIdle closes idle connections.
func (s *Server) closeIdle() { s.tellAll(conn.CloseIdle, (*stream.Conn).CloseIdle) }

// tellAll tells every connection. Those of the goroutine engine without the
// lock: to close a net.Conn may take as long as its owner likes.
func (s *Server) tellAll(what conn.Command, tell func(*stream.Conn)) {
	s.lock()
	for set := range s.sets {
		set.broadcast(what)
	}
	streams := slices.Collect(maps.Keys(s.streams))
	s.mu.Unlock()
	for _, c := range streams {
		tell(c)
	}
}

// closeListeners closes the listeners of all Serve calls.
func (s *Server) closeListeners() (err error) {
	s.lock()
	all := slices.Collect(maps.Keys(s.serving))
	s.mu.Unlock()
	for _, sv := range all {
		if e := sv.close(); e != nil && err == nil {
			err = e
		}
	}
	return err
}

func (s *Server) track(c *stream.Conn) {
	s.lock()
	s.streams[c] = false
	s.mu.Unlock()
	switch {
	case s.closing.Load():
		c.Kill()
	case s.stopping.Load():
		c.Drain()
	}
}

func (s *Server) untrack(c *stream.Conn) {
	s.lock()
	defer s.mu.Unlock()
	delete(s.streams, c)
	s.quiet.Broadcast()
}
