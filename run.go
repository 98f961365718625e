package chert

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
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
// may then return.
//
//	if err := chert.Run(context.Background(), srv, 0); err != nil {
//		log.Fatal(err)
//	}
//
// serve are the functions that serve, each called in a goroutine of its own;
// default srv.ListenAndServe. There may be several:
//
//	chert.Run(ctx, srv, 20*time.Second,
//		srv.ListenAndServe,
//		func() error { return srv.ListenAndServeTLS("cert.pem", "key.pem") },
//		func() error { return srv.Serve(unixListener) })
//
// A grace of 0 means 9 s; a negative one waits for running requests without a bound.
//
// The error is nil if every request was answered. If grace ran out it wraps
// context.DeadlineExceeded; a second signal stops immediately, with a different
// error, unless it repeats the first within 0.3 s, as when a supervisor signals the
// process and its group. If one of serve fails, for instance because its address is in use, the
// server is closed and that error returned immediately. If one returns nil or
// ErrServerClosed because something else calls Shutdown or Close, Run stops as
// it does after a signal.
//
// The contexts of requests do not derive from ctx and do not end when the
// server stops, as in net/http: see [Stopping] for handlers that would not
// return in time, such as event streams. Run waits neither for hijacked
// connections nor for functions registered with RegisterOnShutdown. A SIGINT
// that the process ignored when it started, as in a shell's background jobs,
// stays ignored.
func Run(ctx context.Context, srv *Server, grace time.Duration, serve ...func() error) error {
	// Notify drops signals for which the channel has no room, and the second
	// signal is the most important one.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM)
	if !signal.Ignored(os.Interrupt) {
		signal.Notify(signals, os.Interrupt)
	}
	defer signal.Stop(signals)
	return run(ctx, srv, grace, serve, stops{signals: signals, now: time.Now})
}

// sameSignal is how soon after the first signal another one of its kind is no second.
const sameSignal = 300 * time.Millisecond

// stops are the signals that stop a server.
type stops struct {
	signals <-chan os.Signal
	now     func() time.Time

	first os.Signal
	at    time.Time
}

// second reports whether a signal is neither the first nor a duplicate of it.
func (s *stops) second(sig os.Signal) bool {
	now := s.now()
	if s.first == nil {
		s.first, s.at = sig, now
		return false
	}
	return sig != s.first || now.Sub(s.at) >= sameSignal
}

// run is Run with the given signals.
func run(ctx context.Context, srv *Server, grace time.Duration, serve []func() error, signals stops) error {
	if srv.ending() {
		return ErrServerClosed
	}
	if len(serve) == 0 {
		serve = []func() error{srv.ListenAndServe}
	}
	upgrades, over := srv.beginUpgrades(len(serve))
	defer over()
	returned := make(chan error, len(serve))
	for _, f := range serve {
		go func() { returned <- f() }()
	}
	left, drains := len(serve), false
	select {
	case err := <-returned:
		if left--; failed(err) {
			upgrades.failed(err)
			srv.Close()
			return err
		}
	case <-ctx.Done():
	case sig := <-signals.signals:
		signals.second(sig)
	case <-upgrades.replaced():
		drains = true
	}
	upgrades.stopping()

	bound, cancel := context.WithCancel(context.Background())
	if grace = time.Duration(orDefault(grace, defaultGrace)); grace > 0 {
		bound, cancel = context.WithTimeout(bound, grace)
	}
	defer cancel()
	stopped := make(chan error, 1)
	go func(drains bool) { stopped <- srv.stop(bound, grace, returned, left, drains) }(drains)
	for {
		select {
		case err := <-stopped:
			return err
		case sig := <-signals.signals:
			// Not on the very first signal: that may be the one that ended ctx,
			// if ctx comes from signal.NotifyContext.
			if signals.second(sig) {
				srv.Close()
				return fmt.Errorf("chert: second signal (%v), stopped at once: requests were cut off", sig)
			}
			if drains {
				drains = false
				go srv.Shutdown(bound) // which ends the time of Drain
			}
		}
	}
}

// failed reports whether err is an unintended end of serving.
func failed(err error) bool { return err != nil && !errors.Is(err, ErrServerClosed) }

// stop shuts the server down, unless something else already does, and waits for
// left more results of the functions that serve. If ctx ends first it closes
// the server.
//
// With drains the connections end one after another; see Drain.
func (s *Server) stop(
	ctx context.Context, grace time.Duration, returned <-chan error, left int, drains bool,
) (err error) {
	shutdown := s.Shutdown
	switch {
	case s.stopping.Load():
		shutdown = s.await // functions registered with RegisterOnShutdown run once
	case drains:
		shutdown = func(ctx context.Context) error { return s.Drain(ctx, s.drainOver(grace)) }
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
			return errors.Join(err,
				fmt.Errorf("chert: the server has stopped, but a call that serves did not return: %w", ctx.Err()))
		}
	}
	return err
}

// Stopping returns a channel that is closed when the server of a request's
// context ctx has begun to stop, by Shutdown, Close or [Run]. Handlers that
// would otherwise delay Shutdown until its deadline, such as event streams,
// wait for it as well as for the context, which Shutdown does not end:
//
//	select {
//	case event := <-events:
//	case <-r.Context().Done(): // the client has disconnected
//		return
//	case <-chert.Stopping(r.Context()):
//		return
//	}
//
// The listeners are closed before it is, so clients that reconnect reach
// another server. ctx may derive from the request's context. For any other
// context, including those of net/http's server, the channel is nil and blocks
// forever. Safe for concurrent use.
func Stopping(ctx context.Context) <-chan struct{} {
	c, _ := ctx.Value(bridge.StoppingKey{}).(<-chan struct{})
	return c
}

// The package's functions for serving are net/http's: each calls the method of that name on a Server
// with defaults. A nil handler means http.DefaultServeMux.

// ListenAndServe listens on the TCP address addr and serves its connections
// with handler. It always returns a non-nil error.
func ListenAndServe(addr string, handler http.Handler) error {
	s := &Server{Addr: addr, Handler: handler}
	return s.ListenAndServe()
}

// ListenAndServeTLS is ListenAndServe with TLS; see [Server.ServeTLS].
func ListenAndServeTLS(addr, certFile, keyFile string, handler http.Handler) error {
	s := &Server{Addr: addr, Handler: handler}
	return s.ListenAndServeTLS(certFile, keyFile)
}

// Serve serves handler on the connections of l; see [Server.Serve].
func Serve(l net.Listener, handler http.Handler) error {
	s := &Server{Handler: handler}
	return s.Serve(l)
}

// ServeTLS serves handler on TLS connections of l; see [Server.ServeTLS].
func ServeTLS(l net.Listener, handler http.Handler, certFile, keyFile string) error {
	s := &Server{Handler: handler}
	return s.ServeTLS(l, certFile, keyFile)
}
