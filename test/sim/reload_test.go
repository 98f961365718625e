//go:build linux

package sim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing/synctest"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/sim"
)

// socket is what a call of Serve has.
type socket struct {
	l       net.Listener
	sims    []*sim.Listener // one for each loop; empty until it listens, or if it could not
	ended   chan error      // Serve's result
	closing bool
	shut    chan struct{} // closed when its owner has closed it; nil: the owner does not
}

// closes reports whether its owner is closing it. To end its server meanwhile is no model's
// business: sync.Once makes one wait for the other by a lock, and so the simulation's clock.
func (so *socket) closes() bool {
	if so.shut == nil {
		return false
	}
	select {
	case <-so.shut:
		return false
	default:
		return true
	}
}

// close closes it as its owner.
func (so *socket) close() {
	so.closing, so.shut = true, make(chan struct{})
	go func() {
		so.l.Close()
		close(so.shut)
	}()
}

// find returns the listeners of so that a client may find.
func (v *served) find(so *socket) []*sim.Listener {
	v.mu.Lock()
	defer v.mu.Unlock()
	if so.closing {
		return nil
	}
	return so.sims
}

// fleet is the servers of the model "reload", which follow one another while clients are at
// work: it begins one, has it listen at a second socket, closes one of its sockets, and ends
// it by Shutdown or Close. In a calm run somebody always listens, nobody is killed, and of
// what servers have accepted nothing is lost.
type fleet struct {
	v     *served   // the first
	gens  []*served // all; those that have ended too
	over  bool      // all are to end
	every int       // one step in so many does something
}

const mostGens = 8

// startFleet makes a server the first of a fleet.
func startFleet(v *served) {
	if v.fleet == nil {
		v.fleet = &fleet{v: v, gens: []*served{v}, every: 2 + v.dice.IntN(1<<v.dice.IntN(10))}
	}
}

// Next implements sim.Actor.
func (f *fleet) Next() int64 { return poll.Never }

// Step implements sim.Actor.
func (f *fleet) Step() bool {
	if f.over || !f.v.dice.OneIn(f.every) {
		return false
	}
	d := f.v.dice
	g := f.gens[d.IntN(len(f.gens))]
	switch d.IntN(4) {
	case 0:
		if len(f.gens) < mostGens {
			f.begin()
		}
	case 1:
		if !g.ending && len(g.sockets) < 4 && !g.opening() {
			g.failed(g.listen())
		}
	case 2:
		if so := g.sockets[d.IntN(len(g.sockets))]; len(g.find(so)) > 0 && f.listening() > 1 {
			so.close()
		}
	case 3:
		if n := g.listening(); !g.ending && !g.opening() && f.listening() > n && !slices.ContainsFunc(g.sockets, (*socket).closes) {
			g.end()
		}
	}
	// What this has begun goes on alone until it waits, before clients look for sockets.
	synctest.Wait()
	return false
}

// begin begins another server.
func (f *fleet) begin() {
	s, d := f.v.setup, f.v.dice
	s.loops, s.placement = 1+d.IntN(3), chert.Placement(d.IntN(3))
	more := func(g *served) { g.fleet = f }
	g, err := serve(s, d, f.v.world, newH1, more, f.v.wrong)
	if err != nil {
		f.v.failed(err)
		return
	}
	g.tight, g.calm = f.v.tight, f.v.calm
	f.gens = append(f.gens, g)
	f.v.ends = append(f.v.ends, g.left)
}

// listening counts the sockets that clients find.
func (f *fleet) listening() (n int) {
	for _, g := range f.gens {
		n += g.listening()
	}
	return n
}

// pick chooses the server for a client's connection.
func (f *fleet) pick() *served {
	var ready []*served
	for _, g := range f.gens {
		if g.listening() > 0 || f.v.dice.OneIn(16) {
			ready = append(ready, g)
		}
	}
	if len(ready) == 0 {
		return f.v
	}
	return ready[f.v.dice.IntN(len(ready))]
}

// dial connects to one of the sockets of g.
func (f *fleet) dial(g *served, peer string, room int) *sim.Socket {
	var found []*sim.Listener
	for _, so := range g.sockets {
		found = append(found, g.find(so)...)
	}
	if len(found) == 0 {
		return nil
	}
	s := found[f.v.dice.IntN(len(found))].Dial(peer, room)
	if s == nil && f.v.calm && !f.over {
		f.v.wrong(errors.New("a socket that nobody has closed refuses a connection"))
	}
	return s
}

// stop ends all servers.
func (f *fleet) stop(ctx context.Context) error {
	var errs []error
	for _, g := range f.gens {
		for _, so := range g.sockets {
			if so.shut != nil {
				<-so.shut
			}
		}
		if g.ending {
			errs = append(errs, <-g.stopped)
		} else {
			errs = append(errs, g.shutdown(ctx))
		}
		for _, so := range g.sockets {
			if so.ended != f.v.ended { // run waits for that
				errs = append(errs, g.refuse(<-so.ended))
			}
		}
	}
	return errors.Join(errs...)
}

// holds checks each server, and that they have no more connections together than there are descriptors.
func (f *fleet) holds() error {
	open, conns := f.v.kernel.Open(), 0
	for _, g := range f.gens {
		if err := g.counts(open); err != nil {
			return err
		}
		conns += g.inside.Conns()
	}
	if conns > open {
		return fmt.Errorf("%d connections count, and %d descriptors are open", conns, open)
	}
	return nil
}

// running counts the handlers.
func (f *fleet) running() (n int32) {
	for _, g := range f.gens {
		n += g.running.Load()
	}
	return n
}

// refuse returns why Serve should not have returned with err.
func (v *served) refuse(err error) error {
	if v.tight || errors.Is(err, chert.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return fmt.Errorf("Serve: %w", err)
}

func (v *served) failed(err error) {
	if err != nil && !v.tight {
		v.wrong(err)
	}
}

// opening reports whether a call of Serve has not come to its sockets yet, and may.
func (v *served) opening() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.ContainsFunc(v.sockets, func(so *socket) bool { return len(so.sims) == 0 && len(so.ended) == 0 })
}

func (v *served) listening() (n int) {
	if v.ending {
		return 0
	}
	for _, so := range v.sockets {
		if len(v.find(so)) > 0 {
			n++
		}
	}
	return n
}

// end ends a server of a fleet, by Shutdown, or if that takes too long or at once by Close.
func (v *served) end() {
	v.ending, v.stopped = true, make(chan error, 1)
	for _, so := range v.sockets {
		so.closing = true
	}
	grace := 5 * time.Minute
	if !v.calm && v.dice.IntN(2) == 0 {
		grace = time.Duration(v.dice.Int64N(int64(3 * time.Second)))
		if v.dice.IntN(2) == 0 {
			grace = 0
		}
		v.killed = true
	}
	go func() {
		if grace == 0 {
			v.stopped <- unlessClosed(v.Close())
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		err := v.shutdown(ctx)
		if v.killed && ctx.Err() != nil {
			v.world.Point(0)
			err = unlessClosed(v.Close())
		}
		v.stopped <- err
	}()
}

// unlessClosed returns err, but not that of a listener whose owner has just closed it.
func unlessClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// shutdown checks that Shutdown waits for all connections.
func (v *served) shutdown(ctx context.Context) error {
	err := unlessClosed(v.Shutdown(ctx))
	if err != nil {
		return fmt.Errorf("%w: %s", err, v.conns())
	}
	if n := v.inside.Conns(); n != 0 {
		err = fmt.Errorf("%d connections count after Shutdown", n)
	}
	return err
}
