package middleware

import (
	"cmp"
	"encoding/binary"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/chert-http/chert/internal/view"
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
	host := e.ip
	if host == "" {
		host = hostOf(e.remote)
	}
	b = appendToken(b, host)
	b = append(b, " - "...)
	b = append(appendToken(b, e.user), ' ')
	b = append(l.stamp.append(b, at, l.mono), ` "`...)
	switch {
	case e.line != "":
		b = append(append(b, e.line...), `" `...)
	case e.method == http.MethodGet && e.proto == "HTTP/1.1": // as constants, which takes less time
		b = append(appendEscaped(append(b, "GET "...), e.target), ` HTTP/1.1" `...)
	default:
		b = append(appendEscaped(b, e.method), ' ')
		b = append(appendEscaped(b, e.target), ' ')
		b = append(append(b, e.proto...), `" `...) // the server's own
	}
	if status := uint32(e.status); status != 0 {
		b = append(b, '0'+byte(status/100%10), '0'+byte(status/10%10), '0'+byte(status%10), ' ')
	} else {
		b = append(b, "- "...)
	}
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
func (l *AccessLog) appendVhost(b []byte, m *more) []byte {
	host := m.host
	name, port := host, ""
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		name, port = host[:i], host[i+1:]
	}
	b = append(appendToken(b, name), ':')
	switch {
	case port != "":
		b = appendToken(b, port)
	case l.o.Port == 0 && m.tls:
		b = append(b, "443"...)
	default:
		b = strconv.AppendInt(b, int64(cmp.Or(l.o.Port, 80)), 10)
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
// least as \xHH. It copies eight bytes at a time up to the first of those.
func escape(b []byte, s string, least byte) []byte {
	n := len(b)
	p, to := view.Bytes(s), b[n:cap(b)]
	i := 0
	if len(p) <= min(maxLogged, len(to)) {
		to = to[:len(p)]
		limit := uint64(least) * ones
		for ; i <= len(p)-8; i += 8 {
			w := binary.LittleEndian.Uint64(p[i:])
			if unsafe8(w, limit) != 0 {
				break
			}
			binary.LittleEndian.PutUint64(to[i:], w)
		}
		for ; i < len(p) && !unsafeByte[p[i]] && p[i] >= least; i++ {
			to[i] = p[i]
		}
		if i == len(p) {
			return b[:n+i]
		}
	}
	b = b[:n+i]
	for _, c := range p[i:min(len(p), maxLogged)] {
		if unsafeByte[c] || c < least {
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
	i := strings.LastIndexByte(addr, ':')
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

// shown returns the part of a target or an address that is logged.
func (l *AccessLog) shown(s string) string {
	if !l.o.Query {
		if i := strings.IndexByte(s, '?'); i >= 0 {
			return s[:i]
		}
	}
	return s
}
