package chert

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/chert-http/chert/internal/accept"
	"github.com/chert-http/chert/internal/successor"
	"github.com/chert-http/chert/internal/systemd"
)

// Upgrader replaces a running program by a new version of it, without a connection that is
// refused or a request that fails. A program that serves by [Run] needs no more than
//
//	srv := &chert.Server{Addr: ":8080", Handler: h, Upgrader: new(chert.Upgrader)}
//	err := chert.Run(context.Background(), srv, 30*time.Second)
//
// At SIGUSR2 it then starts the program that is now at its own path, with the same arguments and
// environment and in the folder in which it was started. The new process inherits the listening
// sockets: [Upgrader.Listen], and thereby Server.Listen and ListenAndServe, return those instead
// of opening others. When it serves, and has not ended within Confirm, the old one stops
// accepting and ends by [Server.Drain]. If the new process ends earlier or is not ready in time,
// the old one goes on serving as if nothing had happened.
//
// Without Run: open listeners by Listen, call Ready when they are served and Upgrade to upgrade,
// and stop the server when Replaced is closed. That works with every server, net/http's included.
//
// Under systemd (Type=notify) the Upgrader reports the states of the service, and which process
// is its main one; Listen("fd", NAME) returns the socket that a unit of that name has passed.
//
// The zero value is ready to use. There is one line of processes, so several Upgraders are the
// same one with different times. Its methods are safe for concurrent use. It works on Linux and
// macOS; elsewhere Listen opens sockets, and Upgrade returns an error that wraps
// errors.ErrUnsupported. Process 1, as in most containers, cannot be replaced.
type Upgrader struct {
	// Timeout bounds the time until the new process is ready; then it is killed. Default 1 min,
	// negative: none.
	Timeout time.Duration
	// Confirm is how long the new process must have been ready without ending before the old one
	// stops accepting. The new one begins to accept after half of it: a process that ends before
	// that has lost no connection, and one that ends after that those it had accepted. Default 2 s,
	// negative: none.
	Confirm time.Duration
}

// Listen returns the listener that the process was started with for an address, or opens one. A
// process that replaces this one will be started with it. The address is recognised by its text,
// and a TCP address however it is written; ":0" keeps its port. For the network "fd" the address is
// the name of a socket that systemd has passed (FileDescriptorName=), or the number of its
// descriptor. For all others it is as net.Listen, and on TCP sockets event loops accept as on those
// of Server.Listen.
func (u *Upgrader) Listen(network, address string) (net.Listener, error) {
	return u.listen(network, address, true)
}

// listen is Listen; loops: event loops may accept on the sockets.
func (u *Upgrader) listen(network, address string, loops bool) (net.Listener, error) {
	p := successor.Current()
	if err := p.Err(); err != nil {
		return nil, fmt.Errorf("chert: Upgrader: %w", err)
	}
	s, inherited := p.Take(network, address)
	if !inherited {
		s = &successor.Socket{Network: network, Address: address}
	}
	l, err := openListener(s, loops)
	if err != nil {
		return nil, err
	}
	if k := keptOf(s, l); k != nil {
		if unix, ok := l.(*net.UnixListener); ok && network == "unix" {
			// The process that serves removes the file when it closes the socket, and no other.
			unix.SetUnlinkOnClose(!p.Follows() || !inherited)
			k.Confirmed = func() { unix.SetUnlinkOnClose(true) }
			k.Replaced = func() { unix.SetUnlinkOnClose(false) }
		}
		p.Keep(k)
	}
	return l, nil
}

// openListener makes the listener of a socket, or opens one if it has no descriptors.
func openListener(s *successor.Socket, loops bool) (net.Listener, error) {
	switch {
	case s.Network == "fd" && s.FDs == nil:
		return nil, fmt.Errorf("chert: Upgrader: Listen: no socket %q was passed to the process", s.Address)
	case len(s.FDs) > 1, s.FDs != nil && ownSockets(s.Network, loops):
		return accept.Inherit(s.Network, s.FDs, successor.Current().Accepting())
	case s.FDs != nil:
		return accept.FileListener(s.FDs[0])
	}
	return listen(s.Network, s.Address, loops)
}

// keptOf is what a successor is to inherit, nil for a listener without a socket.
func keptOf(s *successor.Socket, l net.Listener) *successor.Kept {
	k := &successor.Kept{Network: s.Network, Address: s.Address, Number: s.Number}
	switch l := l.(type) {
	case *accept.Listener:
		k.Sockets = l.Sockets
	case syscall.Conn:
		k.Sockets = func() ([]int, error) {
			fd, err := accept.Copy(l)
			if err != nil {
				return nil, err
			}
			return []int{fd}, nil
		}
	default:
		return nil
	}
	return k
}

// Ready reports that the program serves: to the process that has started it for an upgrade, and to
// systemd. Sockets that it was started with and that Listen has not returned are closed. Later
// calls do nothing. Run calls it when the server serves.
func (u *Upgrader) Ready() { successor.Current().Ready() }

// Upgrade starts the program that is now at the path of this one, and returns when that has taken
// over, after which Replaced is closed, or the error for which it could not; then this process goes
// on as before. The end of ctx ends the attempt. There is one at a time.
func (u *Upgrader) Upgrade(ctx context.Context) error {
	_, err := successor.Current().Upgrade(ctx, successor.Options{
		Timeout: time.Duration(orDefault(u.Timeout, successor.DefaultTimeout)),
		Confirm: time.Duration(orDefault(u.Confirm, successor.DefaultConfirm)),
	})
	if err != nil {
		return fmt.Errorf("chert: Upgrade: %w", err)
	}
	return nil
}

// Replaced returns a channel that is closed when another process has taken over. This one should
// stop its servers then; see [Server.Drain].
func (u *Upgrader) Replaced() <-chan struct{} { return successor.Current().Replaced() }

// upgrades is what Run does for a server with an Upgrader; nil without one.
type upgrades struct {
	srv *Server
	ctx context.Context // while the server runs
	end context.CancelFunc
}

// beginUpgrades has signals upgrade the server, until over is called.
func (s *Server) beginUpgrades(serve int) (u *upgrades, over func()) {
	if s.Upgrader == nil {
		return nil, func() {}
	}
	u = &upgrades{srv: s}
	u.ctx, u.end = context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	successor.Notify(signals)
	var wait sync.WaitGroup
	wait.Go(func() {
		if s.awaitServing(u.ctx, serve) {
			s.Upgrader.Ready()
		}
	})
	wait.Go(func() {
		select {
		case <-successor.Current().Confirmed(): // a signal may come early
		case <-u.ctx.Done():
		}
		for {
			select {
			case <-u.ctx.Done():
				return
			case <-signals:
			}
			if err := s.Upgrader.Upgrade(u.ctx); err != nil && u.ctx.Err() == nil {
				s.logf("%v; serving goes on as before", err)
			}
		}
	})
	return u, func() {
		u.end()
		wait.Wait()
		signal.Stop(signals) // last: until then a signal must not end the process
	}
}

// replaced is closed when another process serves.
func (u *upgrades) replaced() <-chan struct{} {
	if u == nil {
		return nil
	}
	return u.srv.Upgrader.Replaced()
}

// stopping ends an attempt under way.
func (u *upgrades) stopping() {
	if u != nil {
		u.end()
		successor.Current().Notify(systemd.Stopping)
	}
}

// failed reports to the process before why the server does not serve.
func (u *upgrades) failed(err error) {
	if u != nil {
		successor.Current().Fail(err)
	}
}

// drainOver is the time of Drain for a grace, 0 for none: a hundred connections end in a second, or
// more if there are so many that some of the grace would not be left for what user code does when
// it is told to stop, and for closing handshakes.
func (s *Server) drainOver(grace time.Duration) time.Duration {
	over := 2*time.Second + time.Duration(s.Stats().Connections.Open)*10*time.Millisecond
	if grace > 0 {
		over = min(over, grace-min(grace/4, 5*time.Second))
	}
	return over
}

// awaitServing waits until n Serve calls have begun and, unless they wait for the process before,
// their loops accept. It reports whether that was before the end of ctx.
func (s *Server) awaitServing(ctx context.Context, n int) bool {
	defer context.AfterFunc(ctx, s.signal)()
	s.lock()
	for s.begunCalls < n && ctx.Err() == nil {
		s.quiet.Wait()
	}
	all := slices.Collect(maps.Keys(s.serving))
	s.mu.Unlock()
	if successor.Current().Follows() {
		return ctx.Err() == nil
	}
	for _, sv := range all {
		if l, ok := sv.below.(*accept.Listener); ok {
			select {
			case <-l.Placed():
			case <-ctx.Done():
			}
		}
	}
	return ctx.Err() == nil
}
