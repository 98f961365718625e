package http3

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"

	"github.com/quic-go/quic-go"

	"github.com/chert-http/chert/internal/accept"
	"github.com/chert-http/chert/internal/bridge/h3"
	"github.com/chert-http/chert/internal/successor"
	"github.com/chert-http/chert/internal/sys"
)

// This file is the life of a server's UDP socket.

// OpenPackets implements accept.Packets, for chert.Server.
func (h *HTTP3) OpenPackets(l net.Listener, upgrades bool) (accept.PacketServer, error) {
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return nil, nil
	}
	s := &server{
		h: h, secret: *h.o.Secret, sessions: make(map[*h3.Session]struct{}),
		closed: make(chan struct{}), none: make(chan struct{}), ended: make(chan struct{}),
	}
	s.config = sync.OnceValue(s.makeConfig)
	if h.o.EarlyData {
		s.tickets = newTickets()
	}
	var p *successor.Process
	if upgrades {
		p = successor.Current()
	}
	var err error
	s.socket, err = p.ListenPackets(&net.UDPAddr{IP: addr.IP, Port: addr.Port, Zone: addr.Zone}, s)
	if err == nil {
		err = s.follow()
	}
	if err != nil {
		return nil, fmt.Errorf("chert: HTTP/3: %w", err)
	}
	return s, nil
}

// Serve implements accept.PacketServer.
func (s *server) Serve(host *accept.PacketHost) error {
	s.host = host
	s.places = accept.NewPlaces(host, s.h.o.MaxConns, s.some)
	select {
	case <-s.socket.Mine:
		return s.begin()
	default:
	}
	go func() {
		select {
		case <-s.socket.Mine:
			if err := s.begin(); err != nil {
				s.host.Logf("%v; clients are served without it", err)
			}
		case <-s.closed:
		}
	}()
	return nil
}

// begin reads the socket.
func (s *server) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosed() || s.left.Load() {
		return nil
	}
	s.relay.tally = s.host.Observed.Shard()
	s.transport = &quic.Transport{
		Conn: s.relay, ConnectionIDGenerator: s.relay.ids, ConnContext: s.enter, VerifySourceAddress: s.doubts,
	}
	err := s.setKeys()
	warn := false
	if err == nil {
		warn = quietly(func() { err = s.listen() })
	}
	if err != nil {
		return fmt.Errorf("chert: HTTP/3: %w", err)
	}
	s.begun = true
	if warn {
		s.checkBuffer()
	}
	go s.accept()
	s.host.Tell(s.altSvc())
	return nil
}

// altSvc is the value of the field that tells clients of the socket (RFC 7838).
func (s *server) altSvc() string {
	port := s.h.o.Port
	if port == 0 {
		port = s.socket.LocalAddr().(*net.UDPAddr).Port
	}
	return `h3=":` + strconv.Itoa(port) + `"; ma=` + strconv.Itoa(int(s.h.o.MaxAge.Seconds()))
}

func (s *server) accept() {
	for {
		c, err := s.listener.Accept(context.Background())
		if err != nil {
			return // closed
		}
		go s.serve(c)
	}
}

const (
	// wantBuffer is how many bytes of packets quic-go wants a socket to keep.
	wantBuffer = 7 << 20
	// noWarning has quic-go not warn that it is less, in words that do not say what to do.
	noWarning = "QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING"
)

var quiet struct {
	sync.Mutex
	done bool
}

// quietly calls f so that quic-go says nothing of small buffers, which it does once in a process.
// first: f is the first one, and the environment has nothing against a warning.
func quietly(f func()) (first bool) {
	quiet.Lock()
	defer quiet.Unlock()
	_, set := os.LookupEnv(noWarning)
	if !set { // only meanwhile: the environment is that of other processes too
		os.Setenv(noWarning, "true")
		defer os.Unsetenv(noWarning)
	}
	f()
	first = !quiet.done && !set
	quiet.done = true
	return first
}

// checkBuffer logs if the socket keeps less than quic-go, which has set what it may, wants.
func (s *server) checkBuffer() {
	raw, err := s.socket.SyscallConn()
	if err != nil {
		return
	}
	has := 0
	raw.Control(func(fd uintptr) { has, err = sys.ReceiveBuffer(int(fd)) })
	if err == nil && has < wantBuffer {
		s.host.Logf("chert: HTTP/3: the system lets a UDP socket keep %d KiB that have arrived, which is little for "+
			"uploads; sysctl net.core.rmem_max=%d lets it keep more", has>>10, wantBuffer)
	}
}

// Close implements accept.PacketServer.
func (s *server) Close() {
	s.socket.Drop()
	s.mu.Lock()
	if s.isClosed() {
		s.mu.Unlock()
		return
	}
	close(s.closed)
	accepts := s.begun && !s.left.Load()
	s.mu.Unlock()
	if accepts {
		s.listener.Close()
	}
	s.endIfLast()
}

// isClosed reports whether Close was called. The lock is held.
func (s *server) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// endIfLast closes the socket if nothing is accepted any more and there are no connections. Not at
// once: the last of them may have something to say about its end.
func (s *server) endIfLast() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.none:
		return
	default:
	}
	if !s.isClosed() || s.open > 0 {
		return
	}
	close(s.none)
	go s.end()
}

// end closes the socket.
func (s *server) end() {
	if s.begun {
		s.transport.Close()
	}
	s.Failed()
	s.relay.Close()
	close(s.ended)
}

// Ended is closed when the socket has been.
func (s *server) Ended() <-chan struct{} { return s.ended }
