package chert

import (
	"context"
	"math"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/chert-http/chert/internal/accept"
	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/bridge/h1"
	"github.com/chert-http/chert/internal/bridge/h2"
	"github.com/chert-http/chert/internal/http1"
	"github.com/chert-http/chert/internal/http2"
	"github.com/chert-http/chert/internal/pack"
)

// protocols is what the server speaks, as net/http has it: Protocols, or HTTP/1 and
// HTTP/2 over TLS, unless TLSNextProto is there and has no "h2", or GODEBUG or
// a //go:debug line says so.
func (s *Server) protocols() http.Protocols {
	if s.Protocols != nil {
		return *s.Protocols
	}
	_, own := s.TLSNextProto["h2"]
	off := !own && (s.TLSNextProto != nil || debugSetting(os.Getenv("GODEBUG"), "http2server") == "0")
	var p http.Protocols
	p.SetHTTP1(true)
	p.SetHTTP2(!off)
	return p
}

// debugSetting returns what key is set to by env, a value of GODEBUG, or else by the program's
// //go:debug lines and go.mod.
func debugSetting(env, key string) (value string) {
	for _, settings := range []string{builtDebug(), env} {
		for set := range strings.SplitSeq(settings, ",") {
			if k, v, ok := strings.Cut(set, "="); ok && k == key {
				value = v // the last one counts
			}
		}
	}
	return value
}

// builtDebug returns the defaults of GODEBUG that the program was built with.
var builtDebug = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "DefaultGODEBUG" {
			return s.Value
		}
	}
	return ""
})

// http2Config is what cfg is for HTTP/2.
func (s *Server) http2Config(cfg *h1.Config) *h2.Config {
	of := s.HTTP2
	if of == nil {
		of = new(http.HTTP2Config)
	}
	headBytes, fields := cfg.Head.Get()
	c := &h2.Config{
		Config:       &cfg.Config,
		List:         pack.Limits{Bytes: headBytes, Fields: fields},
		MaxStreams:   inRange(of.MaxConcurrentStreams, 1, math.MaxInt32, h2.DefaultMaxStreams),
		TableSize:    uint32(inRange(of.MaxDecoderHeaderTableSize, 1, 4<<20-1, h2.DefaultTableSize)),
		FrameSize:    uint32(inRange(of.MaxReadFrameSize, http2.MinFrameSize, http2.MaxFrameSize, h2.DefaultFrameSize)),
		ConnWindow:   uint32(inRange(of.MaxReceiveBufferPerConnection, 65535, math.MaxInt32, h2.DefaultConnWindow)),
		StreamWindow: uint32(inRange(of.MaxReceiveBufferPerStream, 1, math.MaxInt32, h2.DefaultStreamWindow)),
		MaxWindow:    h2.DefaultMaxWindow,
		HeadTime:     cfg.HeadTime,
		IdleTime:     cfg.IdleTime,
		PingAfter:    int64(max(of.SendPingTimeout, 0)),
		PingTime:     int64(inRange(of.PingTimeout, 1, math.MaxInt64, time.Duration(h2.DefaultPingTime))),
		AnyCipher:    of.PermitProhibitedCipherSuites,
		CountError:   of.CountError,
		Slice:        h2.DefaultSlice,
		Frugal:       s.frugal,
	}
	c.ExtendedConnect = s.ExtendedConnect
	if of.MaxReceiveBufferPerConnection != 0 || of.MaxReceiveBufferPerStream != 0 {
		c.MaxWindow = 0 // they stay what they were set to
	}
	return c
}

// inRange is v if that is between least and most, else def.
func inRange[T int | time.Duration](v, least, most, def T) T {
	if v < least || v > most {
		return def
	}
	return v
}

// HTTP3 is HTTP/3 (RFC 9114), as New of package http3 returns it: programs that do not import that
// do not have its code. Handlers, hooks and limits are those of the other versions; what the
// HTTP2 field says of streams and windows is for both. The server tells clients of it by the field
// Alt-Svc in responses over TLS. A listener that is not of TCP is served without HTTP/3. With
// ProxyProtocol addresses are those of QUIC's packets. See docs/http3.md.
type HTTP3 interface{ accept.Packets }

// openPackets opens the UDP socket of a Serve call, if there is to be one.
func (s *Server) openPackets(sv *serving) (err error) {
	if s.HTTP3 != nil && sv.tls != nil && !s.ending() {
		sv.packets, err = s.HTTP3.OpenPackets(sv.below, s.Upgrader != nil)
	}
	return err
}

// servePackets serves what comes on the UDP socket of a Serve call, and returns the Alt-Svc field
// for responses over TCP, nil if there is no socket.
func (s *Server) servePackets(sv *serving, base context.Context) (*bridge.AltSvc, error) {
	if sv.packets == nil {
		return nil, nil
	}
	told := new(bridge.AltSvc)
	h2 := s.http2Config(s.config(base, nil))
	return told, sv.packets.Serve(&accept.PacketHost{
		TLS: sv.tls, Gate: s.gate,
		Config:     sync.OnceValue(func() *h1.Config { return s.config(base, nil) }),
		MaxStreams: h2.MaxStreams, StreamWindow: h2.StreamWindow, ConnWindow: h2.ConnWindow, MaxWindow: h2.MaxWindow,
		ExtendedConnect: s.ExtendedConnect, CountError: h2.CountError,
		Tell: func(value string) {
			told.Set(http1.AppendField(nil, "Alt-Svc", value), http2.AppendField(nil, "Alt-Svc", value))
		},
		Observed: &s.observed, Logf: s.logf, Seek: s.room.Seek, Track: s.track, Untrack: s.untrack,
		HandshakeTimeout: s.handshakeTimeout(), HandshakeFailed: s.shakeFailed, Hold: s.hold,
	})
}
