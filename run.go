package chert

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/chert-http/chert/internal/bridge"
)

// defaultGrace leaves room for the rest of main before the SIGKILL of container
// runtimes and init systems, which comes 10 to 90 s after SIGTERM as a rule.
const defaultGrace = 9 * time.Second

// Run serves until SIGINT, SIGTERM or the end of ctx, and then stops the
// server gracefully: it closes the listeners, lets running requests finish for
// up to grace, and closes what remains. It returns when that is done, so main
// may return after it.
//
//	if err := chert.Run(context.Background(), srv, 0); err != nil {
//		log.Fatal(err)
//	}
//
// serve are the calls that serve, each in a goroutine of its own; default
// srv.ListenAndServe. Any number may listen at the same time:
//
//	chert.Run(ctx, srv, 20*time.Second,
//		srv.ListenAndServe,
//		func() error { return srv.ListenAndServeTLS("cert.pem", "key.pem") },
//		func() error { return srv.Serve(unixListener) })
//
// A grace of 0 is 9 s, a negative one waits as long as requests take.
//
// The error is nil if every request was answered. If grace ran out it wraps
// context.DeadlineExceeded; a second signal stops at once, with an error of its
// own. When one of serve fails, because its address is taken, for instance, the
// server is closed and that error returned at once. When one returns nil or
// ErrServerClosed because something else calls Shutdown or Close, Run stops as
// it does after a signal.
//
// The contexts of requests do not derive from ctx and do not end when the
// server stops, as in net/http: see [Stopping] for handlers that would not
// return in time, such as streams of events. Hijacked connections are not
// awaited, nor what RegisterOnShutdown has registered. A SIGINT that the
// process ignored when it started, as a shell has it for background jobs, stays
// ignored.
func Run(ctx context.Context, srv *Server, grace time.Duration, serve ...func() error) error {
	// Notify drops what the channel has no room for, and the second signal is
	// the one that counts most.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM)
	if !signal.Ignored(os.Interrupt) {
		signal.Notify(signals, os.Interrupt)
	}
	defer signal.Stop(signals)
	return run(ctx, srv, grace, serve, signals)
}

// run is Run with the signals to act on.
func run(ctx context.Context, srv *Server, grace time.Duration, serve []func() error, signals <-chan os.Signal) error {
	if srv.stopping.Load() {
		return ErrServerClosed
	}
	if len(serve) == 0 {
		serve = []func() error{srv.ListenAndServe}
	}
	returned := make(chan error, len(serve))
	for _, f := range serve {
		go func() { returned <- f() }()
	}
	left, seen := len(serve), 0
	select {
	case err := <-returned:
		if left--; failed(err) {
			srv.Close()
			return err
		}
	case <-ctx.Done():
	case <-signals:
		seen++
	}

	bound, cancel := context.WithCancel(context.Background())
	if grace = time.Duration(orDefault(grace, defaultGrace)); grace > 0 {
		bound, cancel = context.WithTimeout(bound, grace)
	}
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- srv.stop(bound, grace, returned, left) }()
	for {
		select {
		case err := <-stopped:
			return err
		case sig := <-signals:
			// Not the first of all: it may be what has ended ctx, if that is of
			// signal.NotifyContext.
			if seen++; seen > 1 {
				srv.Close()
				return fmt.Errorf("chert: second signal (%v), stopped at once: requests were cut off", sig)
			}
		}
	}
}

// failed reports whether err is another end of serving than was wanted.
func failed(err error) bool { return err != nil && !errors.Is(err, ErrServerClosed) }

// stop shuts the server down, unless something else does that already, and
// waits for left more results of the calls that serve. When ctx ends first it
// closes the server.
func (s *Server) stop(ctx context.Context, grace time.Duration, returned <-chan error, left int) (err error) {
	shutdown := s.Shutdown
	if s.stopping.Load() {
		shutdown = s.await // what RegisterOnShutdown has registered runs once
	}
	err = shutdown(ctx)
	switch {
	case err != nil && err == ctx.Err():
		s.Close()
		return fmt.Errorf("chert: requests were cut off after %v: %w", grace, err)
	case errors.Is(err, net.ErrClosed): // a listener, which was to be closed
		err = nil
	}
	for ; left > 0; left-- {
		select {
		case e := <-returned:
			if err == nil && failed(e) {
				err = e
			}
		case <-ctx.Done():
			return errors.Join(err, fmt.Errorf("chert: the server has stopped, but a call that serves did not return: %w", ctx.Err()))
		}
	}
	return err
}

// Stopping returns a channel that is closed when the server of a request's
// context ctx has begun to stop, by Shutdown, Close or [Run]. Handlers that
// would otherwise hold a Shutdown up until its deadline, such as streams of
// events, wait for it beside the context, which Shutdown does not end:
//
//	select {
//	case event := <-events:
//	case <-r.Context().Done(): // the client has left
//		return
//	case <-chert.Stopping(r.Context()):
//		return
//	}
//
// When it is closed the listeners are closed, so clients that connect again
// reach another server. ctx may derive from the request's context. For all
// others, those of net/http's server included, the channel is nil and blocks
// for ever. Safe for concurrent use.
func Stopping(ctx context.Context) <-chan struct{} {
	c, _ := ctx.Value(bridge.StoppingKey{}).(<-chan struct{})
	return c
}
