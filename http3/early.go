package http3

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/chert-http/chert/internal/bridge/h3"
	codec "github.com/chert-http/chert/internal/http3"
)

// This file is early data, 0-RTT: what a client that resumes a session sends before the handshake has
// ended. Two things are known of a connection only afterwards, and without early data before anything
// of it is served: that its packets are no copies of another's, and that its address is the client's.
// So early data is served if
//
//   - the ticket of the session is one that this socket has issued, and gives early data for the first
//     time: a copy of what a client has sent is served by no process at all, or by this one in its place
//     (RFC 8446 section 8.1). The settings of HTTP/3 are then those that the client knows, which RFC 9114
//     section 7.2.4.2 requires: they last as long as the socket;
//   - the client has shown the address: by a token from an earlier connection, or by Retry.
//
// Otherwise the requests wait for the handshake's end. Of those that are served early only some run, by
// which package h3 bounds what a copy does that comes first: see its early.go.

// listener is a quic.Listener or a quic.EarlyListener.
type listener interface {
	Accept(ctx context.Context) (*quic.Conn, error)
	Close() error
}

// listen has the transport accept connections.
func (s *server) listen() (err error) {
	cfg := s.quicConfig()
	if s.tickets == nil {
		s.listener, err = s.transport.Listen(s.tlsConfig(), cfg)
		return err
	}
	cfg.Allow0RTT = true
	s.listener, err = s.transport.ListenEarly(s.tlsConfig(), cfg)
	return err
}

// SetEarlyData switches early data of connections that begin from now on, and reports whether it is
// as wanted: a server that was opened without has none.
func (s *server) SetEarlyData(on bool) (ok bool) {
	if s.tickets == nil {
		return !on
	}
	s.tickets.off.Store(!on)
	return true
}

// ready waits until a connection can be served: until its handshake has ended, or it is early and may
// be served so. It reports false if there is none any more.
func (s *server) ready(c *quic.Conn, e *entry) (state tls.ConnectionState, ok bool) {
	if s.tickets == nil {
		return c.ConnectionState().TLS, true
	}
	// What the client's first message says has been read when the connection is accepted.
	if q := c.ConnectionState(); q.Used0RTT && e.verified {
		return q.TLS, true
	}
	select {
	case <-c.HandshakeComplete():
		return c.ConnectionState().TLS, true
	case <-c.Context().Done():
	case <-s.closed: // as with a quic.Listener
		c.CloseWithError(quic.ApplicationErrorCode(codec.NoError), "")
	}
	return state, false
}

// awaitShaken waits for the end of an early session's handshake.
func (s *server) awaitShaken(c *quic.Conn, e *entry, session *h3.Session) {
	select {
	case <-c.HandshakeComplete():
		s.shaken(e)
		state := c.ConnectionState().TLS
		s.host.Observed.Shaken(&state, time.Since(e.began))
		session.Shaken(&state)
	case <-c.Context().Done():
	}
}

// maxTickets is how many tickets may give early data at a time. Older ones do not.
const maxTickets = 1 << 18

// tickets are the session tickets of a socket that give early data, each once.
type tickets struct {
	mark [24]byte // begins what is in each ticket, and in no other socket's or process's

	off atomic.Bool

	mu     sync.Mutex
	issued uint64
	unused []uint64 // a bit for each of the last maxTickets
}

func newTickets() *tickets {
	t := &tickets{unused: make([]uint64, maxTickets/64)}
	rand.Read(t.mark[copy(t.mark[:], "chert h3"):])
	return t
}

// issue returns what a ticket has in it.
func (t *tickets) issue() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.issued
	t.issued++
	t.unused[n%maxTickets/64] |= 1 << (n % 64)
	return binary.BigEndian.AppendUint64(bytes.Clone(t.mark[:]), n)
}

// take reports whether a ticket that has extra in it gives early data.
func (t *tickets) take(extra [][]byte) bool {
	for _, b := range extra {
		serial, ok := bytes.CutPrefix(b, t.mark[:])
		if !ok || len(serial) != 8 {
			continue
		}
		n := binary.BigEndian.Uint64(serial)
		t.mu.Lock()
		defer t.mu.Unlock()
		if n >= t.issued || n+maxTickets < t.issued {
			return false
		}
		word, bit := &t.unused[n%maxTickets/64], uint64(1)<<(n%64)
		unused := *word&bit != 0
		*word &^= bit
		return unused && !t.off.Load()
	}
	return false
}

// keep has cfg mark tickets and look at their marks. keys is cfg or what it is a copy of: crypto/tls keeps
// keys that it makes up where they are asked for.
func (t *tickets) keep(cfg, keys *tls.Config) {
	wrap, unwrap := keys.WrapSession, keys.UnwrapSession
	if wrap == nil {
		wrap = keys.EncryptTicket
	}
	if unwrap == nil {
		unwrap = keys.DecryptTicket
	}
	cfg.WrapSession = func(state tls.ConnectionState, session *tls.SessionState) ([]byte, error) {
		session.Extra = append(session.Extra, t.issue())
		return wrap(state, session)
	}
	cfg.UnwrapSession = func(ticket []byte, state tls.ConnectionState) (*tls.SessionState, error) {
		session, err := unwrap(ticket, state)
		if err == nil && session != nil && session.EarlyData && !t.take(session.Extra) {
			session.EarlyData = false
		}
		return session, err
	}
}
