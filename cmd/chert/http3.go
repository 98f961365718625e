package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/chert-http/chert/http3"
	"github.com/chert-http/chert/internal/accept"
	"github.com/chert-http/chert/internal/conn"
)

// This file is HTTP/3 on the addresses of a server, which reloads switch on and off.

// openHTTP3 makes the HTTP/3 of a setup, nil if no address has it.
func openHTTP3(up *setup) (accept.Packets, error) {
	if !slices.ContainsFunc(up.listen, func(e endpoint) bool { return e.http3 }) {
		return nil, nil
	}
	secret, err := http3Secret(up)
	if err != nil {
		return nil, err
	}
	return http3.New(&http3.Options{Secret: secret, EarlyData: up.early}), nil
}

// http3Secret returns the secret of a setup: that of its cluster or, so that it is the same after a
// restart, that in its folder of certificates. Nil if it has neither.
func http3Secret(up *setup) (*[32]byte, error) {
	if up.cluster.Tickets {
		secret := up.cluster.Secret.Key("http3")
		return &secret, nil
	}
	if up.tls.acme.Storage == "" {
		return nil, nil
	}
	secret := new([32]byte)
	rand.Read(secret[:])
	path := filepath.Join(up.tls.acme.Storage, "http3.key")
	err := os.MkdirAll(up.tls.acme.Storage, 0o700)
	if err == nil {
		err = writeNew(path, secret[:], 0o600)
	}
	if !errors.Is(err, fs.ErrExist) {
		if err != nil {
			err = fmt.Errorf("cannot keep the key of HTTP/3 in %s: %w", quote(path), cause(err))
		}
		return secret, err
	}
	b, err := os.ReadFile(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read the key of HTTP/3: %w", err)
	case len(b) != len(secret):
		return nil, fmt.Errorf("%s has %d bytes and not the %d of a key of HTTP/3; remove it", quote(path), len(b),
			len(secret))
	}
	copy(secret[:], b)
	return secret, nil
}

// http3Listeners is the HTTP3 of a chert.Server: the packets of its listeners.
type http3Listeners struct{ of sync.Map }

// OpenPackets implements accept.Packets. What is to be open is so already.
func (h *http3Listeners) OpenPackets(l net.Listener, _ bool) (accept.PacketServer, error) {
	if p, ok := h.of.Load(l); ok {
		return p.(*packets), nil
	}
	return nil, nil
}

// packets is what a listener has for HTTP/3. It implements accept.PacketServer.
type packets struct {
	mu     sync.Mutex
	host   *accept.PacketHost // nil until it is served
	next   *udpSocket         // to be used by turn
	open   *udpSocket         // nil if HTTP/3 is off
	before *udpSocket         // was switched off
	closed bool
}

// awaitPort is how long a reload waits for a handshake that keeps a socket open: that cannot be ended.
const awaitPort = time.Second

// prepare opens the socket of a listener, unless it is open.
func (p *packets) prepare(h accept.Packets, l net.Listener) error {
	p.mu.Lock()
	before, is := p.before, p.open != nil || p.next != nil
	p.mu.Unlock()
	if is {
		return nil
	}
	s, err := h.OpenPackets(l, true)
	if err != nil && before != nil { // it may still have connections that are about to end
		before.kill()
		select {
		case <-before.gone():
		case <-time.After(awaitPort):
		}
		s, err = h.OpenPackets(l, true)
	}
	if err != nil || s == nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		s.Close()
		return nil
	}
	p.next = &udpSocket{PacketServer: s, conns: make(map[conn.Driven]struct{})}
	return nil
}

// unprepare undoes prepare.
func (p *packets) unprepare() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next != nil {
		p.next.Close()
		p.next = nil
	}
}

var errEarlyData = errors.New("reload: http3_early_data stays off; restart chert for that")

// turn switches HTTP/3 on, if that was prepared, or off. Then connections end, at once after a time.
// early is whether what is on is to have early data.
func (p *packets) turn(on, early bool, within time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case on && p.next != nil:
		p.open, p.next = p.next, nil
		if p.host != nil {
			return p.open.serve(p.host)
		}
	case on && p.open != nil:
		if s, ok := p.open.PacketServer.(interface{ SetEarlyData(on bool) (ok bool) }); ok && !s.SetEarlyData(early) {
			return errEarlyData
		}
	case !on && p.open != nil:
		p.before, p.open = p.open, nil
		if p.host != nil {
			p.before.end(within)
			p.host.Tell("clear")
		} else {
			p.before.Close()
		}
	}
	return nil
}

// on reports whether HTTP/3 is served.
func (p *packets) on() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open != nil
}

// Serve implements accept.PacketServer.
func (p *packets) Serve(h *accept.PacketHost) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.host = h
	if p.closed || p.open == nil {
		return nil
	}
	return p.open.serve(h)
}

// Close implements accept.PacketServer.
func (p *packets) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, s := range []*udpSocket{p.next, p.open} {
		if s != nil {
			s.Close()
		}
	}
	p.next = nil
}

// udpSocket is an open socket, and the connections that came on it.
type udpSocket struct {
	accept.PacketServer
	mu    sync.Mutex
	over  func(conn.Driven) // ends connections that come; nil: they may last
	conns map[conn.Driven]struct{}
}

func (s *udpSocket) serve(of *accept.PacketHost) error {
	h := *of
	h.Track = func(c conn.Driven) {
		s.mu.Lock()
		s.conns[c] = struct{}{}
		over := s.over
		s.mu.Unlock()
		of.Track(c)
		if over != nil {
			over(c)
		}
	}
	h.Untrack = func(c conn.Driven) {
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
		of.Untrack(c)
	}
	return s.Serve(&h)
}

// end lets the connections end, and those at once that there are after a time.
func (s *udpSocket) end(within time.Duration) {
	s.Close()
	s.all(conn.Driven.Drain)
	time.AfterFunc(within, s.kill)
}

// gone is closed when the socket has been; nil if that is not known.
func (s *udpSocket) gone() <-chan struct{} {
	if e, ok := s.PacketServer.(interface{ Ended() <-chan struct{} }); ok {
		return e.Ended()
	}
	return nil
}

// kill ends the connections at once.
func (s *udpSocket) kill() { s.all(conn.Driven.Kill) }

// all calls f of every connection that there is, and of those that come.
func (s *udpSocket) all(f func(conn.Driven)) {
	s.mu.Lock()
	s.over = f
	conns := make([]conn.Driven, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	s.mu.Unlock()
	for _, c := range conns {
		f(c)
	}
}

// preparePackets opens the UDP sockets of bindings that are to have HTTP/3, all or none.
func preparePackets(bindings []*binding, all []endpoint, h accept.Packets) error {
	for i, b := range bindings {
		if !all[i].http3 || h == nil {
			continue
		}
		if err := b.packets.prepare(h, b.Listener); err != nil {
			unprepare(bindings)
			return explainUDP(all[i], err)
		}
	}
	return nil
}

func unprepare(bindings []*binding) {
	for _, b := range bindings {
		b.packets.unprepare()
	}
}

func explainUDP(e endpoint, err error) error {
	what := fmt.Sprintf("cannot open the UDP port of %s for HTTP/3", e)
	switch {
	case isAddrInUse(err):
		return fmt.Errorf("%s: another program has it; stop that, or leave out --http3 or http3", what)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: no permission; ports below 1024 need privileges", what)
	}
	return fmt.Errorf("%s: %w", what, cause(err))
}

// turnPackets switches HTTP/3 of bindings on and off, as they are to have it, and its early data.
func (s *service) turnPackets(bindings []*binding, early bool) {
	for _, b := range bindings {
		if err := b.packets.turn(b.at.http3, early, s.drainTime()); err != nil {
			s.errs.Print(err)
		}
	}
}

// http3Line is a line that tells on which UDP ports HTTP/3 is served, "" if it is not.
func http3Line(bindings []*binding) string {
	var ports []string
	for _, b := range bindings {
		tcp, ok := b.Addr().(*net.TCPAddr)
		if !ok || !b.packets.on() {
			continue
		}
		if port := strconv.Itoa(tcp.Port); !slices.Contains(ports, port) {
			ports = append(ports, port)
		}
	}
	switch len(ports) {
	case 0:
		return ""
	case 1:
		return "\nchert: HTTP/3 on the UDP port " + ports[0]
	}
	return "\nchert: HTTP/3 on the UDP ports " + strings.Join(ports, ", ")
}
