package h2

import (
	"crypto/tls"
	"time"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/bridge/section"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/http2"
	"github.com/chert-http/chert/internal/pack"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
)

// Config is what the HTTP/2 sessions of a server have in common. It is immutable once
// there is one.
type Config struct {
	*bridge.Config
	// List bounds a request's fields.
	List pack.Limits
	// MaxStreams bounds the requests that a client has under way at a time.
	MaxStreams int
	// TableSize is that of the decoder's table, FrameSize the largest frame that a
	// client may send.
	TableSize, FrameSize uint32
	// ConnWindow and StreamWindow are how much of bodies is taken before handlers
	// read it, of all and of each.
	ConnWindow, StreamWindow uint32
	// MaxWindow is how large both may become where the delay of the link needs that.
	MaxWindow uint32
	// The times of a connection, in nanoseconds; 0 is no limit. HeadTime is what a
	// client has for its preface and for each header block, IdleTime for the next
	// request when none is under way. After PingAfter without a frame a PING is sent,
	// which must be answered within PingTime.
	HeadTime, IdleTime, PingAfter, PingTime int64
	// AnyCipher permits the cipher suites of TLS 1.2 that RFC 9113 prohibits.
	AnyCipher bool
	// ExtendedConnect tells clients that they may open tunnels (RFC 8441).
	ExtendedConnect bool
	// CountError, if not nil, is called for errors, with names of lower-case letters and
	// underscores. Any goroutine calls it.
	CountError func(name string)
	// Slice bounds how long frames and handlers of one connection keep a loop in one go,
	// in nanoseconds.
	Slice int64
	// Frugal: what clients may do in vain does not grow with time. A test of that would depend on how fast it runs.
	Frugal bool
}

// The defaults of Config, net/http's values but for FrameSize: larger frames than the
// least that a client must be allowed bring little, and each takes a buffer.
const (
	DefaultMaxStreams   = 250
	DefaultTableSize    = http2.DefaultTableSize
	DefaultFrameSize    = http2.MinFrameSize
	DefaultConnWindow   = 1 << 20
	DefaultStreamWindow = 1 << 20
	DefaultMaxWindow    = 4 << 20
	DefaultPingTime     = int64(15 * time.Second)
	DefaultSlice        = int64(200 * time.Microsecond)
)

// New makes a session of a connection on which the client speaks HTTP/2. Its preface
// has not been consumed. The session is given to the Link before the next byte, by
// Switch or as the first one. of is what the session before it, which may have served
// nothing yet, has shown to the server's hooks; nil if there was none. secured is nil in
// plain text.
func (cfg *Config) New(l conn.Link, of *bridge.Client, secured conn.Secured) *Session {
	s := &Session{cfg: cfg}
	if of != nil {
		s.Client = *of
	} else {
		s.Client.Config, s.Client.Link = cfg.Config, l
		s.Begin()
	}
	if secured != nil {
		s.shared.Secured = secured
		s.SetTLS(&s.shared)
	}
	s.Link.Tally().Add(false, tally.HTTP2Begun, 1)
	s.dec.Init()
	s.peer = http2.DefaultSettings
	s.sendWindow = http2.Window(http2.DefaultSettings.InitialWindow)
	s.inflow.Avail = http2.Window(cfg.ConnWindow)
	now := sys.Nanotime()
	section.InitBudgets(&s.resets, &s.useless, cfg.Frugal, now)
	s.Link.Share()
	s.since, s.heard = now, now
	if cfg.HeadTime > 0 {
		s.headBy = now + cfg.HeadTime
		s.Link.SetDeadline(s.headBy)
	}
	s.hello()
	if secured != nil && !cfg.AnyCipher && !adequate(secured.TLS()) {
		s.fail(errSecurity)
	}
	return s
}

var errSecurity = &http2.ConnError{
	Code: http2.InadequateSecurity, Reason: "TLS of a version or with a cipher suite that is too weak",
}

// adequate is RFC 9113 section 9.2.
func adequate(state *tls.ConnectionState) bool {
	switch state.CipherSuite {
	case tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256:
		return state.Version >= tls.VersionTLS12
	}
	return state.Version >= tls.VersionTLS13
}

// hello is what a server sends first (RFC 9113 section 3.4).
func (s *Session) hello() {
	cfg := s.cfg
	s.mu.Lock()
	defer s.mu.Unlock()
	s.roomLocked(80)
	settings := []http2.Setting{
		{ID: http2.SettingHeaderTableSize, Value: cfg.TableSize},
		{ID: http2.SettingMaxConcurrentStreams, Value: uint32(cfg.MaxStreams)},
		{ID: http2.SettingInitialWindowSize, Value: cfg.StreamWindow},
		{ID: http2.SettingMaxFrameSize, Value: cfg.FrameSize},
		{ID: http2.SettingMaxHeaderListSize, Value: uint32(cfg.List.Bytes)},
		{ID: http2.SettingNoPriorities, Value: 1},
	}
	if cfg.ExtendedConnect {
		settings = append(settings, http2.Setting{ID: http2.SettingEnableConnectProtocol, Value: 1})
	}
	s.out.B = http2.AppendSettings(s.out.B, settings...)
	if more := cfg.ConnWindow - http2.DefaultSettings.InitialWindow; more > 0 {
		s.out.B = http2.AppendWindowUpdate(s.out.B, 0, more)
	}
}
