package tlsio

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/exec"
	"github.com/chert-http/chert/internal/sys"
)

// Config is shared by the handshakes of a listener. It is immutable.
type Config struct {
	// TLS is the same for all connections, since it generates and rotates the keys
	// of session tickets.
	TLS *tls.Config
	// Timeout is from the accept; 0 is none.
	Timeout time.Duration
	Bound   *Bound
	// Failed is called with the reason why a handshake failed, and the *tls.Conn if it
	// has come to that, otherwise nil. It returns the response, in plain text, for a
	// client that has sent plain HTTP.
	Failed func(l conn.Link, tc *tls.Conn, err error) (answer []byte)
	// Shaken, if not nil, is called with the result of one that took d from the accept.
	Shaken func(state *tls.ConnectionState, d time.Duration)
	// Second, if not nil, makes the session that takes over from u when ALPN has
	// chosen "h2", on the same Link.
	Second func(u Upper, s conn.Secured) conn.Session
	// Other serves a protocol that ALPN has chosen instead of Upper, on the
	// goroutine that calls it, and returns when the connection has ended. It
	// reports false if it does not serve that protocol. It must call take before
	// it uses the connection; if it does not, the connection is closed.
	Other func(u Upper, tc *tls.Conn, state *tls.ConnectionState, take func() error) bool
}

// Upper is the session after the handshake.
type Upper interface {
	conn.Session
	// HandshakeContext returns the context for functions of the tls.Config.
	HandshakeContext() context.Context
	// Start is called after the handshake.
	Start(s conn.Secured)
	// LogEnd is called when a function of the tls.Config has not returned.
	LogEnd(e exec.End)
}

// ErrPlain means that a client has sent an HTTP request without TLS.
var ErrPlain = errors.New("client sent an HTTP request to an HTTPS server")

var (
	errCrowded = errors.New("too many handshakes wait for their clients")
	errTooMuch = errors.New("too many bytes before the handshake")
)

// Handshake is the session of a connection until TLS is negotiated.
type Handshake struct {
	conn.Quiet
	cfg      *Config
	link     conn.Link
	upper    Upper
	accepted int64 // of sys.Nanotime
	hello    hello
	other    bool // another protocol has the connection
	draining bool // Drain was called

	// Of Bound, guarded by its lock; state is read by the Link's owner too, which
	// alone makes it waits or over while it waits.
	state   handshakeState
	crowded bool // it has to end
	by      time.Time
	since   time.Time // it has had its slot
	turn    chan struct{}
	from    *address      // while it is in the line
	at      *list.Element // of from.waiting
}

type handshakeState uint8

const (
	reads  handshakeState = iota // the ClientHello
	waits                        // for Bound
	begins                       // has a slot, and may have a goroutine
	runs
	over
)

// Handshake begins a connection. The Link's deadline is to be Deadline's.
func (cfg *Config) Handshake(l conn.Link, u Upper, now int64) *Handshake {
	return &Handshake{cfg: cfg, link: l, upper: u, accepted: now}
}

// Deadline is when a handshake that began at now must be done, of sys.Nanotime; 0
// is never.
func (cfg *Config) Deadline(now int64) int64 {
	if cfg.Timeout <= 0 {
		return 0
	}
	return now + int64(cfg.Timeout)
}

// Data implements conn.Session.
func (h *Handshake) Data(eof bool) conn.Next {
	if !h.link.OnLoop() { // after Elsewhere
		return h.run()
	}
	b := h.link.Buffered()
	if h.awaited() {
		switch {
		case eof:
			return h.fail(nil, io.EOF)
		case len(b) > maxFlight:
			return h.fail(nil, errTooMuch)
		}
		return conn.More
	}
	switch v := h.hello.scan(b); {
	case v == complete:
		if !h.cfg.Bound.enter(h) {
			return conn.More
		}
		return conn.Elsewhere
	case len(b) > maxFlight:
		return h.fail(nil, errTooMuch)
	case v == hopeless || eof:
		return h.refuse(b)
	case h.hello.wasteful():
		kept := h.hello.squeeze(b)
		h.link.Discard(len(b))
		h.link.Lent().Unread(kept)
	}
	return conn.More
}

func (h *Handshake) awaited() bool {
	b := h.cfg.Bound
	b.mu.Lock()
	defer b.mu.Unlock()
	return h.state == waits || h.state == begins
}

// granted is posted when h has got what it waited for.
func (h *Handshake) granted() conn.Next {
	if h.state == over { // it has failed meanwhile
		return conn.Close
	}
	return conn.Elsewhere
}

// refuse ends a handshake that fails before it needs a goroutine: crypto/tls returns
// the reason, and produces the alert.
func (h *Handshake) refuse(b []byte) conn.Next {
	w := &wire{link: h.link, below: &below{in: b, end: io.EOF}}
	tc := tls.Server(w, h.cfg.TLS)
	err := tc.Handshake()
	if len(w.out) > 0 {
		h.link.Send(&conn.Write{A: w.out})
	}
	return h.fail(tc, err)
}

// fail ends the connection. tc may be nil.
func (h *Handshake) fail(tc *tls.Conn, err error) conn.Next {
	h.cfg.Bound.leave(h)
	if answer := h.cfg.Failed(h.link, tc, Cause(err)); len(answer) > 0 {
		h.link.Send(&conn.Write{A: answer})
		return conn.Linger
	}
	return conn.Close
}

// Cause is why a handshake has failed with err.
func Cause(err error) error {
	if re, ok := errors.AsType[tls.RecordHeaderError](err); ok && re.Conn != nil {
		switch string(re.RecordHeader[:]) {
		case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO": // what net/http takes for HTTP
			return ErrPlain
		}
	}
	return err
}

func (h *Handshake) run() conn.Next {
	s := &shaking{h: h, next: conn.Close}
	if ran, _ := h.link.Do(s); !ran {
		h.cfg.Bound.leave(h)
	}
	switch {
	case s.layer == nil:
	case s.second:
		h.link.Switch(h.cfg.Second(h.upper, s.layer))
	default:
		h.upper.Start(s.layer)
		h.link.Switch(h.upper)
	}
	return s.next
}

// shaking is a handshake that runs, as conn.UserCode.
type shaking struct {
	h      *Handshake
	next   conn.Next
	layer  *layer // what HTTP goes on with
	second bool   // as Config.Second has it
}

func (s *shaking) Run() { s.next = s.shake() }

func (s *shaking) Ended(e exec.End) {
	h := s.h
	h.cfg.Bound.leave(h)
	if h.other {
		s.next = conn.Detached
		return
	}
	h.upper.LogEnd(e)
}

func (s *shaking) shake() conn.Next {
	h := s.h
	h.by = conn.TimeAt(h.cfg.Deadline(h.accepted))
	h.cfg.Bound.start(h)
	w := &wire{link: h.link, below: &below{fill: h.fill}}
	w.tc = tls.Server(w, h.cfg.TLS)
	err := w.tc.HandshakeContext(h.upper.HandshakeContext())
	h.cfg.Bound.leave(h)
	if err != nil {
		return h.fail(w.tc, err)
	}
	state := w.tc.ConnectionState()
	if h.cfg.Shaken != nil {
		h.cfg.Shaken(&state, time.Duration(sys.Nanotime()-h.accepted))
	}
	p := state.NegotiatedProtocol
	s.second = p == "h2" && h.cfg.Second != nil
	if p != "" && p != "http/1.1" && p != "http/1.0" && !s.second {
		return h.another(w, &state)
	}
	l := w.asLayer()
	l.keep(&state)
	if err := h.link.Lent().SetLayer(l); err != nil {
		return conn.Close
	}
	s.layer = l
	return conn.Requeue
}

// another passes the connection to the protocol that ALPN has chosen.
func (h *Handshake) another(w *wire, state *tls.ConnectionState) conn.Next {
	taken := h.cfg.Other(h.upper, w.tc, state, func() error {
		nc, rest, err := h.link.Lent().Hijack()
		if err != nil {
			return err
		}
		w.over(nc, rest)
		h.other = true
		return nil
	})
	if taken && h.other {
		return conn.Detached
	}
	w.tc.CloseWrite()
	return conn.Close
}

// fill waits for more of the handshake, without the slot. The Link's own limit for a
// wait is that of a request's body, and does not apply: h.by does.
func (h *Handshake) fill() error {
	for {
		err := h.cfg.Bound.park(h, h.link.Lent().Fill)
		if !errors.Is(err, os.ErrDeadlineExceeded) || h.cfg.Bound.late(h) {
			return err
		}
	}
}

// Expired implements conn.Session.
func (h *Handshake) Expired() conn.Next {
	nc := h.link.NetConn()
	local, remote := nc.LocalAddr(), nc.RemoteAddr()
	return h.fail(nil, &net.OpError{Op: "read", Net: remote.Network(), Source: local, Addr: remote,
		Err: os.ErrDeadlineExceeded})
}

// Drain implements conn.Session: a client has DrainNew to send its ClientHello, from the first call
// on. A loop calls it again after each part of one.
func (h *Handshake) Drain(since int64) conn.Next {
	if h.draining {
		return conn.More
	}
	h.draining = true
	h.link.SetDeadline(conn.Earlier(since+int64(conn.DrainNew), h.cfg.Deadline(h.accepted)))
	return conn.More
}

// Since implements conn.Session.
func (h *Handshake) Since(int64) int64 { return h.accepted }

// Closed implements conn.Session.
func (h *Handshake) Closed(hijacked bool) {
	h.cfg.Bound.leave(h)
	h.upper.Closed(hijacked)
}

// New reports, as that of HTTP/1 does, that there has been no request.
func (h *Handshake) New() bool { return true }

// Speaks implements conn.Speaker.
func (h *Handshake) Speaks() string { return "TLS handshake" }
