package middleware

import (
	"context"
	"encoding/binary"
	"log/slog"
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
	now  func() time.Time
	text []byte        // with the brackets
	next time.Duration // when it is no more right, by the monotonic clock
}

// at is the time at now. The wall clock is asked when a second has passed, so a
// clock that was set is noticed then.
func (s *stamp) at(now time.Duration) []byte {
	if now >= s.next || s.text == nil {
		t := s.now()
		s.text = t.AppendFormat(s.text[:0], "[02/Jan/2006:15:04:05 -0700]")
		s.next = now + time.Second - time.Duration(t.Nanosecond())
	}
	return s.text
}

// appendLine is a line of LogCommon or LogCombined:
//
//	host - user [time] "method target protocol" status bytes "referer" "agent" latency id
func (l *AccessLog) appendLine(b []byte, e *entry, now time.Duration) []byte {
	b = appendToken(b, hostOf(e.remote))
	b = append(b, " - "...)
	b = appendToken(b, e.user)
	b = append(b, ' ')
	b = append(b, l.stamp.at(now)...)
	b = append(b, ` "`...)
	b = appendEscaped(b, e.method)
	b = append(b, ' ')
	b = appendEscaped(b, e.target)
	b = append(b, ' ')
	b = appendEscaped(b, e.proto)
	b = append(b, `" `...)
	b = strconv.AppendInt(b, int64(e.status), 10)
	b = append(b, ' ')
	if e.size > 0 {
		b = strconv.AppendInt(b, e.size, 10)
	} else {
		b = append(b, '-')
	}
	if l.o.Format == LogCombined {
		b = appendQuoted(b, e.referer)
		b = appendQuoted(b, e.agent)
	}
	if l.o.Latency {
		b = append(b, ' ')
		b = strconv.AppendInt(b, e.latency.Microseconds(), 10)
	}
	if l.o.RequestID {
		b = append(b, ' ')
		b = appendToken(b, e.id)
	}
	return append(b, '\n')
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
	for {
		i := strings.IndexByte(s, ' ')
		if i < 0 {
			return appendEscaped(b, s)
		}
		b = append(appendEscaped(b, s[:i]), `\x20`...)
		s = s[i+1:]
	}
}

// unsafeByte has what could end a line or a quoted part of it, or do things to
// the terminal that it is looked at with.
var unsafeByte = func() (t [256]bool) {
	for c := range t {
		t[c] = c < ' ' || c >= 0x7f || c == '"' || c == '\\'
	}
	return t
}()

func appendEscaped(b []byte, s string) []byte {
	cut := len(s) > maxLogged
	if cut {
		s = s[:maxLogged]
	}
	from := 0
	for i := 0; i < len(s); i++ {
		for len(s)-i >= 8 && safe8(s[i:]) {
			i += 8
		}
		if i == len(s) {
			break
		}
		if c := s[i]; unsafeByte[c] {
			const hex = "0123456789ABCDEF"
			b = append(b, s[from:i]...)
			b = append(b, '\\', 'x', hex[c>>4], hex[c&15])
			from = i + 1
		}
	}
	b = append(b, s[from:]...)
	if cut {
		b = append(b, "..."...)
	}
	return b
}

// safe8 reports whether the first eight bytes of s are not unsafe. It may report
// false for some that are not.
func safe8(s string) bool {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	b := unsafe.Slice(unsafe.StringData(s), 8)
	w := binary.LittleEndian.Uint64(b)
	// A byte below n has its top bit in w - n*ones, if it had none before; one
	// that is n is below 1 in w ^ n*ones.
	quote, backslash, del := w^'"'*ones, w^'\\'*ones, w^0x7f*ones
	bad := w | (w-' '*ones)&^w | (quote-ones)&^quote | (backslash-ones)&^backslash | (del-ones)&^del
	return bad&tops == 0
}

// hostOf is an address without its port.
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

// beforeQuery is a target or an address without its query.
func beforeQuery(s string) string {
	if i := strings.IndexByte(s, '?'); i >= 0 {
		return s[:i]
	}
	return s
}

// record gives a line to slog.
func (l *AccessLog) record(e *entry) {
	ctx := context.Background()
	if !l.handler.Enabled(ctx, slog.LevelInfo) {
		return
	}
	own := func(s string) string {
		if len(s) > maxLogged {
			return s[:maxLogged] + "..."
		}
		if e.views {
			return strings.Clone(s)
		}
		return s
	}
	path, query, _ := strings.Cut(e.target, "?")
	r := slog.NewRecord(l.stamp.now(), slog.LevelInfo, "request", 0)
	r.AddAttrs(slog.String("method", own(e.method)), slog.String("path", own(path)))
	if query != "" {
		r.AddAttrs(slog.String("query", own(query)))
	}
	r.AddAttrs(
		slog.Int("status", e.status), slog.Int64("bytes", e.size), slog.Duration("latency", e.latency),
		slog.String("remote", hostOf(e.remote)), slog.String("host", own(e.host)), slog.String("proto", e.proto),
	)
	for _, a := range [...]slog.Attr{
		slog.String("user", e.user), slog.String("request_id", e.id),
		slog.String("referer", own(e.referer)), slog.String("user_agent", own(e.agent)),
	} {
		if a.Value.String() != "" {
			r.AddAttrs(a)
		}
	}
	l.handler.Handle(ctx, r)
}
