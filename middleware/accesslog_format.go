package middleware

import (
	"encoding/binary"
	"strconv"
	"strings"
	"time"
)

// This file formats lines as Apache does.

// maxLogged is the length at which values that clients choose are cut, in
// bytes.
const maxLogged = 4 << 10

// A stamp is the time in the Common Log Format, formatted once a second.
type stamp struct {
	now         func() time.Time
	text        [len(stampLayout)]byte
	from, until time.Duration // when it is valid, by wire.Clock
}

// Years after 9999 would not fit.
const stampLayout = "[02/Jan/2006:15:04:05 -0700]"

// append appends the time at, which is not after clock's present. The wall
// clock is read when a second has passed, so a change of it is noticed then.
func (s *stamp) append(b []byte, at time.Duration, clock func() time.Duration) []byte {
	if at < s.from || at >= s.until {
		now, t := clock(), s.now()
		if at < s.until { // the request took long
			return t.Add(at-now).AppendFormat(b, stampLayout)
		}
		t.AppendFormat(s.text[:0], stampLayout)
		s.from = now - time.Duration(t.Nanosecond())
		s.until = s.from + time.Second
		if at < s.from {
			return t.Add(at-now).AppendFormat(b, stampLayout)
		}
	}
	return append(b, s.text[:]...)
}

// appendLine appends a line of LogCommon, LogCombined or LogVhostCombined; at
// is when the request arrived:
//
//	vhost:port host - user [time] "method target protocol" status bytes "referer" "agent" latency id
//
// except for vhost, which appendVhost appends.
func (l *AccessLog) appendLine(b []byte, e *entry, m *more, at time.Duration) []byte {
	if e.ip != "" {
		b = append(b, e.ip...)
	} else {
		b = appendToken(b, hostOf(e.remote))
	}
	b = append(b, " - "...)
	b = append(appendToken(b, e.user), ' ')
	b = append(l.stamp.append(b, at, l.mono), ` "`...)
	b = append(appendEscaped(b, e.method), ' ')
	b = append(appendEscaped(b, e.target), ' ')
	b = append(append(b, e.proto...), `" `...) // the server's own
	b = append(b, '0'+byte(e.status/100%10), '0'+byte(e.status/10%10), '0'+byte(e.status%10), ' ')
	if e.size > 0 {
		b = strconv.AppendInt(b, e.size, 10)
	} else {
		b = append(b, '-')
	}
	if l.o.Format != LogCommon {
		b = appendQuoted(b, m.referer)
		b = appendQuoted(b, m.agent)
	}
	if l.o.Latency {
		b = append(b, ' ')
		b = strconv.AppendInt(b, e.latency.Microseconds(), 10)
	}
	if l.o.RequestID {
		b = append(b, ' ')
		b = appendToken(b, m.id)
	}
	return append(b, '\n')
}

// appendVhost appends the host and port of a Host field, or the default port.
func (l *AccessLog) appendVhost(b []byte, host string) []byte {
	name, port := host, ""
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		name, port = host[:i], host[i+1:]
	}
	b = append(appendToken(b, name), ':')
	if port == "" {
		b = strconv.AppendInt(b, int64(or(l.o.Port, 80)), 10)
	} else {
		b = appendToken(b, port)
	}
	return append(b, ' ')
}

func appendQuoted(b []byte, s string) []byte {
	if s == "" {
		return append(b, ` "-"`...)
	}
	b = append(b, ` "`...)
	b = appendEscaped(b, s)
	return append(b, '"')
}

// appendToken appends s, escaped where a space would end it, or "-" if it is
// empty.
func appendToken(b []byte, s string) []byte {
	if s == "" {
		return append(b, '-')
	}
	return escape(b, s, '!')
}

func appendEscaped(b []byte, s string) []byte { return escape(b, s, ' ') }

// unsafeByte has the bytes that could end a line or a quoted part of it, or
// control the terminal that shows it.
var unsafeByte = func() (t [256]bool) {
	for c := range t {
		t[c] = c < ' ' || c >= 0x7f || c == '"' || c == '\\'
	}
	return t
}()

// escape appends s up to maxLogged bytes, with unsafe bytes and those less than
// least as \xHH.
func escape(b []byte, s string, least byte) []byte {
	if len(s) <= maxLogged && isSafe(s, least) {
		return append(b, s...)
	}
	for i := range min(len(s), maxLogged) {
		if c := s[i]; unsafeByte[c] || c < least {
			const hex = "0123456789ABCDEF"
			b = append(b, '\\', 'x', hex[c>>4], hex[c&15])
		} else {
			b = append(b, c)
		}
	}
	if len(s) > maxLogged {
		b = append(b, "..."...)
	}
	return b
}

// isSafe reports whether escape would change nothing. It tests eight bytes at a
// time; the last eight may overlap those before.
func isSafe(s string, least byte) bool {
	p, limit := []byte(s), uint64(least)*ones
	if len(p) < 8 {
		for _, c := range p {
			if unsafeByte[c] || c < least {
				return false
			}
		}
		return true
	}
	for i := 0; i < len(p)-8; i += 8 {
		if unsafe8(binary.LittleEndian.Uint64(p[i:]), limit) != 0 {
			return false
		}
	}
	return unsafe8(binary.LittleEndian.Uint64(p[len(p)-8:]), limit) == 0
}

const ones, tops = 0x0101010101010101, 0x8080808080808080

// unsafe8 is not 0 if one of the eight bytes of w is unsafe, or less than its
// byte of limit, of which none is more than 0x80.
func unsafe8(w, limit uint64) uint64 {
	// Of bytes below 0x80: one below n gets its top bit in w - n*ones, n itself
	// in (w ^ n*ones) - ones, DEL in w + ones. Carries and borrows above such a
	// byte no longer matter.
	return (w | (w + ones) | (w - limit) | ((w ^ '"'*ones) - ones) | ((w ^ '\\'*ones) - ones)) & tops
}

// hostOf returns an address without its port.
func hostOf(addr string) string {
	i := len(addr) - 1
	for i >= 0 && addr[i] != ':' {
		i--
	}
	if i < 0 {
		return addr
	}
	host := addr[:i]
	if len(host) > 1 && host[0] == '[' && host[len(host)-1] == ']' {
		return host[1 : len(host)-1]
	}
	if strings.IndexByte(host, ':') >= 0 {
		return addr // an IPv6 address without a port
	}
	return host
}

// beforeQuery returns a target or an address without its query.
func beforeQuery(s string) string {
	if i := strings.IndexByte(s, '?'); i >= 0 {
		return s[:i]
	}
	return s
}
