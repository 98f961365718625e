package h3

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/bridge/section"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/http3"
	"github.com/chert-http/chert/internal/peer"
	"github.com/chert-http/chert/internal/priority"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/takeover"
	"github.com/chert-http/chert/internal/tally"
)

// Session speaks HTTP/3 on one connection. Serve is its owner; what mu guards is shared.
type Session struct {
	bridge.Client
	cfg   *Config // immutable, as is qc
	qc    Conn
	left  func()                    // called once, when the connection has ended
	peer  atomic.Pointer[peer.Peer] // as it is now: a client may move to another address
	addr  net.Addr                  // of it; the leader's
	tally *tally.Shard

	// budget is what its WebSockets keep together.
	budget takeover.Budget
	lead   lead
	// shaking is nil but for a session that has begun before its handshake had ended.
	shaking *shaking
	// heads is how many bytes of incomplete field sections are kept.
	heads atomic.Int64

	showing sync.Mutex
	shown   http.ConnState // as the hook was called last; guarded by showing

	mu      sync.Mutex
	streams map[uint64]*stream // requests that have not ended
	early   map[uint64]priority.Priority
	fields  int    // of all requests, as pack.Limits.Bytes counts
	next    uint64 // the ID after the last request's
	last    uint64 // the ID in GOAWAY: later requests are rejected
	control SendStream
	seen    [4]bool // unidirectional streams of the client, by type
	resets  bridge.Budget
	useless bridge.Budget
	over    bool  // the connection has ended, or is about to
	since   int64 // since when no request has been under way, of sys.Nanotime; 0 if one is
	idle    *time.Timer
	drain   drain
	places  places
}

// link is the connection as its Client has it. It carries no bytes of its own: each stream does.
type link struct {
	conn.Link
	s *Session
}

func (l link) OnLoop() bool        { return false }
func (l link) Now() int64          { return sys.Nanotime() }
func (l link) Tally() *tally.Shard { return l.s.tally }
func (l link) Peer() peer.Peer     { return *l.s.peer.Load() }
func (l link) NetConn() net.Conn   { return netConn{l.s} }

// New makes a session of a connection whose handshake has ended, but for Early. left is called once, when the
// connection has ended.
func (cfg *Config) New(qc Conn, t *tally.Shard, left func(*Session)) *Session {
	s := &Session{
		cfg: cfg, qc: qc, tally: t,
		streams: make(map[uint64]*stream), last: noGoAway,
	}
	s.setPeer(qc.RemoteAddr())
	s.left = sync.OnceFunc(func() { left(s) })
	s.Client.Config, s.Client.Link = cfg.Config, link{s: s}
	now := sys.Nanotime()
	section.InitBudgets(&s.resets, &s.useless, cfg.Frugal, now)
	s.since = now
	return s
}

// setPeer sets the client's address: that of requests from now on.
func (s *Session) setPeer(a net.Addr) {
	p := peer.Parse(a.String())
	s.peer.Store(&p)
	s.addr = a
}

// Serve begins to serve the connection. It may return before that ends.
func (s *Session) Serve() {
	s.tally.Add(false, tally.HTTP3Begun, 1)
	begun := false
	defer func() { // also if a hook ends its goroutine
		if !begun {
			s.ended()
		}
	}()
	s.Begin()
	s.SetTLS((*conn.Negotiated)(s.qc.TLS())) // of an Early one: of requests that run early
	if err := s.hello(); err != nil {
		s.failed(err)
		return
	}
	if d := s.cfg.IdleTime; d > 0 {
		s.mu.Lock()
		s.idle = time.AfterFunc(time.Duration(d), s.expired)
		s.mu.Unlock()
	}
	go s.acceptUni()
	begun = true
	s.accept()
}

// ended is called when the connection has ended. Handlers may go on: what they do with it fails.
func (s *Session) ended() {
	defer s.left() // also if a hook ends its goroutine
	s.qc.Close(http3.NoError, "")
	s.mu.Lock()
	s.over = true
	if s.idle != nil {
		s.idle.Stop()
	}
	s.mu.Unlock()
	if s.shaking != nil {
		s.releaseHeld()
	}
	s.tally.Add(false, tally.HTTP3Ended, 1)
	s.showing.Lock()
	s.shown = http.StateClosed
	s.SetState(http.StateClosed)
	s.showing.Unlock()
}

// open makes a stream of a request, nil if it is rejected.
func (s *Session) open(str Stream) *stream {
	id := str.ID()
	if a := s.qc.RemoteAddr(); a != s.addr { // RFC 9000 section 9; the transport has validated it
		s.setPeer(a)
	}
	st := &stream{s: s, str: str, id: id}
	s.mu.Lock()
	s.next = id + 4
	if s.over || id >= s.last {
		s.mu.Unlock()
		// RFC 9114 section 5.2: the client may send the request again.
		reject(str, http3.RequestRejected)
		s.spendUseless(0)
		return nil
	}
	s.streams[id] = st
	s.since = 0
	s.awaitLocked(st)
	if p, ok := s.early[id]; ok {
		delete(s.early, id)
		st.updated = true
		str.SetPriority(int8(p.Urgency), p.Incremental)
	}
	due := s.crowdedLocked()
	s.mu.Unlock()
	release(due)
	s.showState()
	if !s.KeepAlives() {
		s.startDrain()
	}
	return st
}

// showState calls the ConnState hook if the connection has become active, or idle.
func (s *Session) showState() {
	if s.ConnState == nil {
		return
	}
	s.showing.Lock() // so that the hook hears the states in their order
	defer s.showing.Unlock()
	state := http.StateIdle
	if s.Active() {
		state = http.StateActive
	}
	if s.shown != state && s.shown != http.StateClosed {
		s.shown = state
		s.SetState(state)
	}
}

// reject ends a stream that comes to nothing.
func reject(str Stream, code http3.ErrCode) {
	str.Stop(code)
	str.Reset(code)
	str.Release()
}

// close takes st, for which nothing runs any more, out of the session.
func (s *Session) close(st *stream) {
	s.mu.Lock()
	delete(s.streams, st.id)
	s.fields -= st.fields
	idle := len(s.streams) == 0
	if idle {
		s.since = sys.Nanotime()
	}
	done := idle && s.drain.last
	due := s.leaveLocked(st)
	s.mu.Unlock()
	release(due)
	s.showState()
	if done {
		s.linger()
	}
}

// fail ends the connection because of err (RFC 9114 section 8).
func (s *Session) fail(err *http3.ConnError) {
	s.mu.Lock()
	first := !s.over
	s.over = true
	s.mu.Unlock()
	if !first {
		return
	}
	s.count("conn_", err.Code)
	s.Refuse(http.StatusBadRequest, err.Error(), nil)
	s.qc.Close(err.Code, err.Reason)
}

// failed is fail of an error that is one of the connection's, which it reports.
func (s *Session) failed(err error) bool {
	e, ok := err.(*http3.ConnError)
	if ok {
		s.fail(e)
	}
	return ok
}

// count calls Config.CountError.
func (s *Session) count(kind string, code http3.ErrCode) {
	if f := s.cfg.CountError; f != nil {
		f(kind + strings.ToLower(strings.TrimPrefix(code.String(), "H3_")))
	}
}

var (
	errResets  = &http3.ConnError{Code: http3.ExcessiveLoad, Reason: "too many requests are cancelled"}
	errUseless = &http3.ConnError{Code: http3.ExcessiveLoad, Reason: "too much that does nothing"}
)

// spendReset charges a request that ends early.
func (s *Session) spendReset() {
	s.mu.Lock()
	ok := s.resets.Spend(1, sys.Nanotime)
	s.mu.Unlock()
	if !ok {
		s.fail(errResets)
	}
}

// spendUseless charges a frame of size bytes, or a stream, that does nothing. It reports whether
// the connection goes on.
func (s *Session) spendUseless(size uint64) bool {
	n := int32(min(size/section.UselessSize, section.IdleBudget)) + 1
	s.mu.Lock()
	ok := s.useless.Spend(n, sys.Nanotime)
	s.mu.Unlock()
	if !ok {
		s.fail(errUseless)
	}
	return ok
}

// netConn is the connection as the server's hooks see it.
type netConn struct{ s *Session }

func (c netConn) Read([]byte) (int, error)         { return 0, errNoBytes }
func (c netConn) Write([]byte) (int, error)        { return 0, errNoBytes }
func (c netConn) LocalAddr() net.Addr              { return c.s.qc.LocalAddr() }
func (c netConn) RemoteAddr() net.Addr             { return c.s.qc.RemoteAddr() }
func (c netConn) SetDeadline(time.Time) error      { return errNoBytes }
func (c netConn) SetReadDeadline(time.Time) error  { return errNoBytes }
func (c netConn) SetWriteDeadline(time.Time) error { return errNoBytes }

// Close implements net.Conn.
func (c netConn) Close() error {
	c.s.Kill()
	return nil
}

var errNoBytes = errors.New("h3: a QUIC connection carries its bytes on streams")
