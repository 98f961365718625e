package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/accept"
	"github.com/chert-http/chert/internal/successor"
)

// This file is how a server is replaced by a new process, and replaces an old one.

// upgrader lets servers listen on the sockets that the process was started with.
var upgrader = new(chert.Upgrader)

// asProcess runs a command that serves. It takes what the process was started with, before the command opens anything,
// and reports an error to the process before.
func asProcess(serve func() error) error {
	p := successor.Current()
	err := p.Err()
	if err == nil {
		err = serve()
	}
	if err != nil {
		p.Fail(err)
	}
	return err
}

// opener opens listeners for srv. Those of unix sockets are package net's: their files need more.
func opener(srv *chert.Server) openFunc {
	return func(network, address string) (net.Listener, error) {
		if network == "unix" {
			return net.Listen(network, address)
		}
		return srv.Listen(network, address)
	}
}

// passedEndpoints are the sockets that systemd has passed, for a server without other addresses. The first call comes
// before any of them is opened.
var passedEndpoints = sync.OnceValue(func() (all []endpoint) {
	for _, s := range successor.Current().Passed() {
		if s.Network == "fd" {
			all = append(all, endpoint{network: "fd", address: fmt.Sprint(s.Number)})
		}
	}
	return all
})

// ready reports that the bindings are served, when they are.
func (s *service) ready(ctx context.Context, bindings []*binding) {
	p := successor.Current()
	for _, b := range bindings {
		if p.Follows() {
			break // they wait for the process before
		}
		if l, ok := b.Listener.(*accept.Listener); ok {
			select {
			case <-l.Placed():
			case <-ctx.Done():
				return
			}
		}
	}
	for _, left := range p.Passed() {
		if left.Network == "fd" {
			// By its number, as others may have its name: all of a unit do.
			s.errs.Printf("the socket fd:%s of systemd is not used; listen on fd:%d, or remove it from its unit",
				left.Address, left.Number)
		}
	}
	p.Ready()
	select {
	case <-p.Confirmed():
		removeLeft(p.Left())
		all := listeners(bindings)
		if s.admin != nil {
			all = append(all, s.admin.listener)
		}
		if s.control != nil {
			all = append(all, s.control.listener)
		}
		for _, l := range all {
			if l.file != nil && l.file.denied != nil {
				s.errs.Print(l.file.denied)
			}
		}
	case <-ctx.Done():
	}
}

// upgradeAt upgrades at each signal, until ctx ends.
func (s *service) upgradeAt(ctx context.Context) {
	for {
		select {
		case <-s.upgrades:
			s.upgrade(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// upgrade lets a new process take over, and returns what to tell of it. After an error this one goes on.
func (s *service) upgrade(ctx context.Context) (string, error) {
	s.upgrading.Add(1)
	defer func() {
		s.upgrading.Add(-1)
		select {
		case s.upgraded <- struct{}{}:
		default: // another value is there, which has not been received
		}
	}()
	p := successor.Current()
	select {
	case <-p.Confirmed(): // it may have been asked early
	case <-ctx.Done():
	}
	pid, err := p.Upgrade(ctx, successor.Options{
		Timeout: successor.DefaultTimeout, Confirm: successor.DefaultConfirm})
	switch {
	case err == nil:
		text := s.takenOver(pid)
		fmt.Fprintln(s.stdout, "chert: upgrade:", text)
		return text, nil
	case errors.Is(err, successor.ErrReplaced):
		return "", err
	}
	s.errs.Printf("upgrade: %v; serving goes on as before", err)
	return "", err
}

// takenOver tells of an upgrade.
func (s *service) takenOver(pid int) string {
	return fmt.Sprintf("process %d has taken over from %d, which finishes what is under way for up to %v", pid,
		os.Getpid(), s.drainTime())
}

// passReload has the process that has replaced this one read the configuration again.
func (s *service) passReload() {
	p, err := os.FindProcess(successor.Current().Successor())
	if err == nil {
		err = p.Signal(syscall.SIGHUP)
	}
	if err != nil {
		s.errs.Printf("upgrade: the new process does not hear of the reload: %v", err)
	}
}

// drainOver is how long connections are ended one after another by a process that was replaced: a hundred in a second,
// or more if there are so many that some of the timeout would not be left for what takes a while to end then.
func drainOver(srv *chert.Server, timeout time.Duration) time.Duration {
	return min(2*time.Second+time.Duration(srv.Stats().Connections.Open)*10*time.Millisecond,
		timeout-min(timeout/4, 5*time.Second))
}
