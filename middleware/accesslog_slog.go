package middleware

import (
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// This file is the access log through log/slog: LogText, LogJSON and Logger.

// record passes a line to slog.
func (l *AccessLog) record(rec *record) {
	e, m := &rec.e, &rec.m
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
	server := func(s string) string { // the server's own, except for the copy of Keep
		if rec.kept {
			return strings.Clone(s)
		}
		return s
	}
	path, query, _ := strings.Cut(e.target, "?")
	r := slog.NewRecord(l.stamp.now(), slog.LevelInfo, "request", 0)
	add := func(f LogFields, a slog.Attr) {
		if l.o.Fields&f != 0 {
			r.AddAttrs(a)
		}
	}
	text := func(f LogFields, key, value string, copied func(string) string) {
		if l.o.Fields&f != 0 && value != "" {
			r.AddAttrs(slog.String(key, copied(value)))
		}
	}
	add(fieldMethod, slog.String("method", own(e.method)))
	add(fieldPath, slog.String("path", own(path)))
	text(fieldQuery, "query", query, own)
	add(fieldStatus, slog.Int("status", e.status))
	add(fieldBytes, slog.Int64("bytes", e.size))
	add(fieldLatency, slog.Duration("latency", e.latency))
	add(fieldRemote, slog.String("remote", server(hostOf(e.remote))))
	add(fieldHost, slog.String("host", own(m.host)))
	add(fieldProto, slog.String("proto", server(e.proto)))
	if e.aborted {
		add(fieldAborted, slog.Bool("aborted", true))
	}
	text(fieldPattern, "pattern", m.pattern, server)
	text(fieldUser, "user", e.user, server)
	text(fieldRequestID, "request_id", m.id, server)
	text(fieldReferer, "referer", m.referer, own)
	text(fieldUserAgent, "user_agent", m.agent, own)
	if rec.later != nil && l.o.Fields&fieldAdded != 0 {
		rec.added = rec.later()
	}
	for _, a := range rec.added {
		add(fieldAdded, a)
	}
	l.handle(r, rec.kept)
}

// handle passes a record to slog. If the caller must not block, and the handler
// is not known to return at once, a goroutine does it.
func (l *AccessLog) handle(r slog.Record, noWait bool) {
	switch {
	case l.o.Logger != nil && l.later.takes(r, noWait):
	case noWait && l.o.Logger == nil:
		l.kept.Handle(context.Background(), r)
	default:
		l.handler.Handle(context.Background(), r)
	}
}

// later passes records to a slog.Handler in order, from a goroutine that exists
// while there are any: for callers that must not wait for the handler.
type later struct {
	handler slog.Handler
	busy    atomic.Bool // the goroutine is running
	full    atomic.Bool // len(records) >= maxLater

	mu      sync.Mutex
	changed sync.Cond // records were taken, or the goroutine has ended
	records []slog.Record
}

// maxLater is the number of queued records beyond which requests wait.
const maxLater = 1 << 10

func (l *later) init(h slog.Handler) { l.handler, l.changed.L = h, &l.mu }

// takes queues r if the caller must not block, or if earlier records are
// queued, and reports whether it did.
func (l *later) takes(r slog.Record, noWait bool) bool {
	if !noWait && !l.busy.Load() {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, r)
	l.full.Store(len(l.records) >= maxLater)
	if !l.busy.Swap(true) {
		go l.run()
	}
	return true
}

func (l *later) run() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.records) > 0 {
		all := l.records
		l.records = nil
		l.full.Store(false)
		l.changed.Broadcast()
		l.mu.Unlock()
		for _, r := range all {
			l.handle(r)
		}
		l.mu.Lock()
	}
	l.busy.Store(false)
	l.changed.Broadcast()
}

// handle drops a record whose handler panics: the server cannot recover here.
func (l *later) handle(r slog.Record) {
	defer func() { recover() }()
	l.handler.Handle(context.Background(), r)
}

// admit waits until there is room.
func (l *later) admit() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.records) >= maxLater {
		l.changed.Wait()
	}
}

// wait waits until all records have been handled.
func (l *later) wait() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.busy.Load() {
		l.changed.Wait()
	}
}

// printable passes on lines of JSON and escapes characters that cannot be
// printed, as slog's text handler does: U+009B begins a command for some
// terminals, U+202E reverses the text after it. In JSON, characters beyond
// ASCII are in strings only, where an escape means the same.
type printable struct{ to io.Writer }

// Write implements io.Writer.
func (w printable) Write(p []byte) (int, error) {
	if !isASCII(p) {
		if _, err := w.to.Write(appendPrintable(make([]byte, 0, 2*len(p)), p)); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	return w.to.Write(p)
}

// isASCII reports whether p needs no escapes. It tests eight bytes at a time.
func isASCII(p []byte) bool {
	for ; len(p) >= 8; p = p[8:] {
		// Adding one to DEL sets its top bit.
		if w := binary.LittleEndian.Uint64(p); (w|(w+ones))&tops != 0 {
			return false
		}
	}
	for _, c := range p {
		if c >= 0x7f {
			return false
		}
	}
	return true
}

func appendPrintable(b, p []byte) []byte {
	for len(p) > 0 {
		r, n := utf8.DecodeRune(p)
		switch {
		case r < 0x7f || unicode.IsPrint(r) && (r != utf8.RuneError || n > 1):
			b = append(b, p[:n]...)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			b = appendUnicode(appendUnicode(b, hi), lo)
		default:
			b = appendUnicode(b, r)
		}
		p = p[n:]
	}
	return b
}

func appendUnicode(b []byte, r rune) []byte {
	const hex = "0123456789abcdef"
	return append(b, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
}

// isTerminal reports whether w is a terminal, or another character device
// except for the null device.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}
