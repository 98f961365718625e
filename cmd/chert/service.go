package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/accept"
	"github.com/chert-http/chert/internal/successor"
	"github.com/chert-http/chert/internal/systemd"
	"github.com/chert-http/chert/stats"
)

// service is what "chert serve" and "chert demo" share: listeners that are served until a signal arrives. It belongs
// to one goroutine.
type service struct {
	srv    *chert.Server
	plain  *chert.Server // of listeners that redirect to TLS; nil if there can be none
	stdout io.Writer
	errs   *log.Logger
	admin  *adminServer // nil for none
	// timeout is that of a drain, as a time.Duration. An upgrade tells it, which may end during a reload.
	timeout  atomic.Int64
	reload   func() // at SIGHUP
	bindings []*binding
	failed   chan error
	upgrades <-chan os.Signal
	// upgrading is how many upgrades run, or are refused because one does. upgraded gets a value when one has ended.
	upgrading atomic.Int32
	upgraded  chan struct{}
	control   *controlServer // nil for none
	http3     http3Listeners // of srv
}

// binding is a listener that is served or will be.
type binding struct {
	listener
	at      endpoint
	packets packets
	closed  atomic.Bool // by a reload: it has not failed
}

// serves reports whether clients of e reach b. The file of a socket may have been removed or replaced, and the
// configuration may name it by another path: by the absolute one when it is read again, or through a link.
func (b *binding) serves(e endpoint) bool {
	if b.at.network != e.network || b.at.tls != e.tls || b.at.upgrade != e.upgrade {
		return false
	}
	if b.file != nil {
		return b.file.isAt(e.address)
	}
	return b.at.same(e)
}

// bind opens every endpoint or none, and reuses those that are open already. After an error, or undo, everything is as
// before. h is the HTTP/3 of those that are to have it; turnPackets switches it on and off then.
func (s *service) bind(all []endpoint, h accept.Packets) (bindings []*binding, undo func(), err error) {
	var opened []*binding
	for _, e := range all {
		// Several may be the same: with port 0.
		i := slices.IndexFunc(s.bindings, func(b *binding) bool { return b.serves(e) && !slices.Contains(bindings, b) })
		if i >= 0 {
			b := s.bindings[i]
			if b.file != nil {
				b.file.path = e.address // its former name may be gone
			}
			bindings = append(bindings, b)
			continue
		}
		b, err := s.open(e, h)
		if err != nil {
			s.unbind(opened)
			return nil, nil, err
		}
		opened, bindings = append(opened, b), append(bindings, b)
	}
	before := make([]endpoint, len(bindings))
	for i, b := range bindings {
		before[i] = b.at
	}
	err = preparePackets(bindings, all, h)
	if err == nil {
		if err = changeAccess(bindings, all); err != nil {
			unprepare(bindings)
		}
	}
	if err != nil {
		s.unbind(opened)
		return nil, nil, err
	}
	return bindings, func() {
		unprepare(bindings)
		s.unbind(opened)
		if err := changeAccess(bindings, before); err != nil {
			s.errs.Print(err)
		}
	}, nil
}

// open opens an endpoint.
func (s *service) open(e endpoint, h accept.Packets) (*binding, error) {
	for tries := 1; ; tries++ {
		l, err := listen(opener(s.srv), e)
		if err != nil {
			return nil, s.explainBind(e, err)
		}
		b := &binding{listener: l, at: e}
		s.http3.of.Store(l.Listener, &b.packets)
		if !e.http3 || h == nil {
			return b, nil
		}
		if err = b.packets.prepare(h, b.Listener); err == nil {
			return b, nil
		}
		s.unbind([]*binding{b})
		// The system has chosen a port of TCP, which may be another program's of UDP.
		if !isAddrInUse(err) || e.network != "tcp" || e.port() != "" || tries == 10 {
			return nil, explainUDP(e, err)
		}
	}
}

// explainBind adds to the error of listen what is open already. Only what chert itself holds does a restart change.
func (s *service) explainBind(e endpoint, err error) error {
	_, held := errors.AsType[inUseError](err)
	for _, b := range s.bindings {
		same := b.at.same(e) && (e.network != "tcp" || e.port() != "")
		switch {
		case same && b.file != nil && !b.file.isAt(e.address):
			return fmt.Errorf("the socket that chert made is no longer at its path: %w", err)
		case same && b.at.tls != e.tls:
			return fmt.Errorf("whether %s speaks TLS cannot change while it is open; restart chert for that", e)
		case same && b.at.upgrade != e.upgrade:
			return fmt.Errorf("whether %s redirects to TLS cannot change while it is open; restart chert for that", e)
		case held && b.at.overlaps(e):
			return fmt.Errorf("cannot listen on %s while %s is open; restart chert for that", e, b.at)
		}
	}
	return err
}

// changeAccess sets the access of the sockets among bindings to that of all, their endpoints, also if something else
// has changed it. If that fails for one, all keep what they had.
func changeAccess(bindings []*binding, all []endpoint) error {
	for i, b := range bindings {
		if b.file == nil || b.at.access == (access{}) && all[i].access == (access{}) {
			continue
		}
		err := b.file.apply(all[i].access)
		if err == nil {
			continue
		}
		for _, b := range bindings[:i] {
			if b.file != nil {
				err = errors.Join(err, b.file.apply(b.at.access))
			}
		}
		return err
	}
	for i, b := range bindings {
		b.at.access, b.at.http1, b.at.http3, b.at.headers = all[i].access, all[i].http1, all[i].http3, all[i].headers
	}
	return nil
}

func (s *service) unbind(bindings []*binding) {
	for _, b := range bindings {
		s.http3.of.Delete(b.Listener)
		b.packets.Close()
		b.closed.Store(true)
		b.close()
	}
}

// unlink removes the files of the sockets, which are about to be closed.
func (s *service) unlink() {
	for _, b := range s.bindings {
		b.unlink()
	}
}

func listeners(bindings []*binding) (ls []listener) {
	for _, b := range bindings {
		ls = append(ls, b.listener)
	}
	return ls
}

// begin serves a binding for the first time.
func (s *service) begin(b *binding) {
	go func() {
		if err := s.serveOn(b); !b.closed.Load() {
			select {
			case s.failed <- err:
			default: // another has failed before
			}
		}
	}()
}

func (s *service) serveOn(b *binding) error {
	switch {
	case b.at.upgrade:
		return s.plain.Serve(b.Listener)
	case b.at.tls:
		return s.srv.ServeTLS(b.Listener, "", "")
	}
	return s.srv.Serve(b.Listener)
}

// serveUntil serves until a listener fails or a signal stops the server.
func (s *service) serveUntil(stop, hangup <-chan os.Signal) error {
	s.failed, s.upgraded = make(chan error, 1), make(chan struct{}, 1)
	for _, b := range s.bindings {
		s.begin(b)
	}
	process := successor.Current()
	during, end := context.WithCancel(context.Background())
	defer end()
	go s.upgradeAt(during)
	s.control.serve(func() (string, error) { return s.upgrade(during) })
	go s.ready(during, s.bindings)
	defer process.Watchdog(s.responds)()
	confirmed := process.Confirmed()
	var reload <-chan os.Signal // nil until confirmed: before that the service manager would not hear of a reload
	pending := false            // a reload, for the end of an upgrade: the new process may have read the file already
	for {
		select {
		case err := <-s.failed:
			s.unlink()
			s.srv.Close()
			return fmt.Errorf("the server failed: %w", err)
		case <-confirmed:
			confirmed, reload = nil, hangup
		case <-reload:
			pending = true
			if s.upgrading.Load() > 0 {
				fmt.Fprintln(s.stdout, "chert: the reload waits for the end of the upgrade")
			}
		case <-s.upgraded:
		case sig := <-stop:
			end() // an upgrade
			process.Notify(systemd.Stopping)
			fmt.Fprintf(s.stdout, "chert: %v: finishing running requests for up to %v; a second signal stops at once\n",
				sig, s.drainTime())
			return s.drain(stop, false)
		case <-process.Replaced():
			select {
			case <-reload:
				pending = true
			default:
			}
			if pending {
				s.passReload()
			}
			return s.drain(stop, true)
		}
		if pending && s.upgrading.Load() == 0 && process.Successor() == 0 {
			pending = false
			process.Notify(systemd.Reloading())
			s.reload()
			process.Notify(systemd.Ready)
		}
	}
}

// drainTime is how long a drain may take.
func (s *service) drainTime() time.Duration { return time.Duration(s.timeout.Load()) }

// responds reports whether all event loops do.
func (s *service) responds() bool {
	return !slices.ContainsFunc(s.srv.Stats().Loops, func(l stats.Loop) bool { return l.Stale })
}

// drain lets running requests finish until timeout or another signal, and then cuts them off, which is an error. If
// the process was replaced, connections end one after another, and the first signal ends that.
func (s *service) drain(stop <-chan os.Signal, replaced bool) error {
	srv, timeout := s.srv, s.drainTime()
	s.admin.drain()
	s.unlink()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	end := (*chert.Server).Shutdown
	if replaced {
		over := drainOver(srv, timeout)
		end = func(srv *chert.Server, ctx context.Context) error { return srv.Drain(ctx, over) }
		// Their sockets are the other process's too.
		defer s.admin.giveWay(ctx, over)()
		defer s.control.giveWay(ctx)()
	}
	plain := cmp.Or(s.plain, new(chert.Server))
	defer plain.Close()
	done := make(chan error, 1)
	go func() {
		redirected := make(chan struct{})
		go func() {
			defer close(redirected)
			end(plain, ctx) // what it answers takes no time
		}()
		err := end(srv, ctx)
		<-redirected // the process ends with this, and its clients come back as slowly as those of srv
		done <- err
	}()
	for {
		select {
		case err := <-done:
			// net.ErrClosed: a reload has closed a listener, and its Serve has not returned yet.
			if err == nil || errors.Is(err, net.ErrClosed) {
				return nil
			}
			srv.Close()
			if errors.Is(err, context.DeadlineExceeded) {
				return fmt.Errorf("requests were cut off after %v; --shutdown-timeout gives them longer", timeout)
			}
			return fmt.Errorf("cannot stop cleanly: %w", err)
		case sig := <-stop:
			if replaced {
				replaced = false
				go srv.Shutdown(ctx)
				go plain.Shutdown(ctx)
				continue
			}
			srv.Close()
			return fmt.Errorf("second signal (%v): stopped at once, requests were cut off", sig)
		}
	}
}

func showAll(ls []listener) string {
	var urls []string
	var upgrades string
	for _, l := range ls {
		if l.upgrade {
			upgrades = ", redirected from " + l.url()
			continue
		}
		urls = append(urls, l.url())
	}
	return strings.Join(urls, " and ") + upgrades
}
