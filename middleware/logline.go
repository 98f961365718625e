package middleware

import (
	"encoding/binary"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unsafe"
)

// This file is how lines of the access log look.

// maxLogged is how much of a thing that a client chose is logged, in bytes.
const maxLogged = 4 << 10

// A stamp is the time in the Common Log Format, which is made once a second.
type stamp struct {
	now         func() time.Time
	text        [len(stampLayout)]byte
	from, until time.Duration // when it is right, by wire.Clock
}

// Years after 9999 would be longer.
const stampLayout = "[02/Jan/2006:15:04:05 -0700]"

// append appends the time at at, which is clock's present or before it. The wall
// clock is asked when a second has passed, so one that was set is noticed then.
func (s *stamp) append(b []byte, at time.Duration, clock func() time.Duration) []byte {
	if at < s.from || at >= s.until {
		now, t := clock(), s.now()
		if at < s.until { // it has taken long
			return t.Add(at-now).AppendFormat(b, stampLayout)
		}
		t.AppendFormat(s.text[:0], stampLayout)
		s.from = now - time.Duration(t.Nanosecond())
		s.until = s.from + time.Second
		if at < s.from {
			return t.Add(at-now).AppendFormat(b, stampLayout)
		}
	}
	n := len(b)
	if cap(b)-n < len(s.text) {
		return append(b, s.text[:]...)
	}
	b = b[:n+len(s.text)]
	*(*[len(stampLayout)]byte)(b[n:]) = s.text
	return b
}

// room is how long the line of e may be, in bytes.
func (e *entry) room(m *more) int {
	n := len(e.remote) + len(e.user) + len(e.method) + len(e.target) + len(e.proto) + len(m.referer) + len(m.agent) + len(m.id)
	return 160 + 4*min(n, 7*(maxLogged+4))
}

// appendLine is a line of LogCommon, LogCombined or LogVhostCombined, at what time
// the request came:
//
//	vhost:port host - user [time] "method target protocol" status bytes "referer" "agent" latency id
//
// but for vhost, which appendVhost makes. b has room for it; if it had not, this
// would only be slower.
func (l *AccessLog) appendLine(b []byte, e *entry, m *more, at time.Duration) []byte {
	if e.ip != "" {
		b = append(b, e.ip...) // there is nothing to escape
	} else {
		b = appendToken(b, hostOf(e.remote))
	}
	if e.user == "" {
		b = append(b, " - - "...)
	} else {
		b = append(b, " - "...)
		b = appendToken(b, e.user)
		b = append(b, ' ')
	}
	b = l.stamp.append(b, at, l.mono)
	if e.method == http.MethodGet {
		b = append(b, ` "GET `...)
	} else {
		b = append(b, ` "`...)
		b = appendEscaped(b, e.method)
		b = append(b, ' ')
	}
	b = appendEscaped(b, e.target)
	if e.proto == "HTTP/1.1" {
		b = append(b, ` HTTP/1.1" `...)
	} else {
		b = append(b, ' ')
		b = appendEscaped(b, e.proto)
		b = append(b, `" `...)
	}
	b = appendInt(b, int64(e.status))
	b = append(b, ' ')
	if e.size > 0 {
		b = appendInt(b, e.size)
	} else {
		b = append(b, '-')
	}
	if l.o.Format != LogCommon {
		b = appendQuoted(b, m.referer)
		b = appendQuoted(b, m.agent)
	}
	if l.o.Latency {
		b = append(b, ' ')
		b = appendInt(b, e.latency.Microseconds())
	}
	if l.o.RequestID {
		b = append(b, ' ')
		b = appendToken(b, m.id)
	}
	return append(b, '\n')
}

// appendVhost is a Host field with its port, or the one that stands for none.
func (l *AccessLog) appendVhost(b []byte, host string) []byte {
	name, port := host, ""
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		name, port = host[:i], host[i+1:]
	}
	b = append(appendToken(b, name), ':')
	if port == "" {
		b = appendInt(b, int64(or(l.o.Port, 80)))
	} else {
		b = appendToken(b, port)
	}
	return append(b, ' ')
}

// appendInt is strconv.AppendInt in base 10, and quicker for up to three digits,
// which statuses and many sizes have.
func appendInt(b []byte, n int64) []byte {
	switch {
	case n < 0 || n > 999:
		return strconv.AppendInt(b, n, 10)
	case n < 10:
		return append(b, byte('0'+n))
	case n < 100:
		return append(b, byte('0'+n/10), byte('0'+n%10))
	}
	return append(b, byte('0'+n/100), byte('0'+n/10%10), byte('0'+n%10))
}

func appendQuoted(b []byte, s string) []byte {
	if s == "" {
		return append(b, ` "-"`...)
	}
	b = append(b, ` "`...)
	b = appendEscaped(b, s)
	return append(b, '"')
}

// appendToken is s where a space would end it, "-" if there is none.
func appendToken(b []byte, s string) []byte {
	if s == "" {
		return append(b, '-')
	}
	return escape(b, s, '!')
}

func appendEscaped(b []byte, s string) []byte { return escape(b, s, ' ') }

// unsafeByte has what could end a line or a quoted part of it, or do things to
// the terminal that it is looked at with.
var unsafeByte = func() (t [256]bool) {
	for c := range t {
		t[c] = c < ' ' || c >= 0x7f || c == '"' || c == '\\'
	}
	return t
}()

// escape appends s, of which bytes that are unsafe or less than least are
// escaped. It copies as it looks, eight bytes at a time.
func escape(b []byte, s string, least byte) []byte {
	n := len(b)
	if len(s) > maxLogged || cap(b)-n < len(s) {
		return escapeSlowly(b, s, least)
	}
	limit := uint64(least) * ones
	dst := b[n : n+len(s)]
	src := unsafe.Slice(unsafe.StringData(s), len(s))
	if len(src) < 8 {
		if len(src) >= 4 {
			last := len(src) - 4
			lo, hi := binary.LittleEndian.Uint32(src), binary.LittleEndian.Uint32(src[last:])
			if unsafe8(uint64(hi)<<32|uint64(lo), limit) != 0 {
				return escapeSlowly(b, s, least)
			}
			binary.LittleEndian.PutUint32(dst, lo)
			binary.LittleEndian.PutUint32(dst[last:], hi)
			return b[:n+len(s)]
		}
		for i, c := range src {
			if unsafeByte[c] || c < least {
				return escapeSlowly(b, s, least)
			}
			dst[i] = c
		}
		return b[:n+len(s)]
	}
	last := len(src) - 8
	for i := 0; i < last; i += 8 {
		w := binary.LittleEndian.Uint64(src[i:])
		if unsafe8(w, limit) != 0 {
			return escapeSlowly(b, s, least)
		}
		binary.LittleEndian.PutUint64(dst[i:], w)
	}
	// The last eight lie over some before.
	w := binary.LittleEndian.Uint64(src[last:])
	if unsafe8(w, limit) != 0 {
		return escapeSlowly(b, s, least)
	}
	binary.LittleEndian.PutUint64(dst[last:], w)
	return b[:n+len(s)]
}

// escapeSlowly is escape, for what does need it.
func escapeSlowly(b []byte, s string, least byte) []byte {
	cut := len(s) > maxLogged
	if cut {
		s = s[:maxLogged]
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; unsafeByte[c] || c < least {
			const hex = "0123456789ABCDEF"
			b = append(b, '\\', 'x', hex[c>>4], hex[c&15])
		} else {
			b = append(b, c)
		}
	}
	if cut {
		b = append(b, "..."...)
	}
	return b
}

const ones, tops = 0x0101010101010101, 0x8080808080808080

// unsafe8 is not 0 if one of the eight bytes of w is unsafe, or less than its
// byte of limit, of which none is more than 0x80.
func unsafe8(w, limit uint64) uint64 {
	// Of bytes below 0x80: one below n gets its top bit in w - n*ones, n itself
	// in (w ^ n*ones) - ones, DEL in w + ones. What carries and borrows do above
	// such a byte does not matter any more.
	return (w | (w + ones) | (w - limit) | ((w ^ '"'*ones) - ones) | ((w ^ '\\'*ones) - ones)) & tops
}

// hostOf is an address without its port.
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

// beforeQuery is a target or an address without its query.
func beforeQuery(s string) string {
	if i := strings.IndexByte(s, '?'); i >= 0 {
		return s[:i]
	}
	return s
}
