package middleware

import (
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/view"
)

// This file holds what is logged of a request, from the handler's return until
// its response has been sent.

// An entry has what every line contains. Its strings may be views of buffers.
type entry struct {
	remote, user, method, target, proto string
	// ip is the address in remote as netip formats it, if that is known.
	ip string

	status  int
	size    int64
	latency time.Duration
	views   bool
	aborted bool

	line string // if not "", it is logged instead of method, target and proto, as it is
}

// more has what only some lines contain.
type more struct {
	host, referer, agent, id, pattern string
	tls                               bool
}

// A record is a line that is to be written when its response has been sent. It
// is pooled.
type record struct {
	l     *AccessLog
	start time.Duration
	kept  bool // the strings are in buf, and nothing may block
	e     entry
	m     more
	added []slog.Attr        // of AddLogAttrs
	later func() []slog.Attr // of AddLogAttrsLater; nil for none
	buf   []byte
}

var records = sync.Pool{New: func() any { return new(record) }}

// keepRecord is the largest buffer that a pooled record keeps, in bytes.
const keepRecord = 4 << 10

func (l *AccessLog) newRecord(start time.Duration) *record {
	rec := records.Get().(*record)
	rec.l, rec.start = l, start
	return rec
}

// Keep implements wire.Watcher. It copies what will be logged.
func (rec *record) Keep() {
	e, m := &rec.e, &rec.m
	all := [...]*string{&e.remote, &e.user, &e.method, &e.target, &e.proto, &e.ip, &m.host, &m.referer, &m.agent, &m.id,
		&m.pattern}
	n := 0
	for _, s := range all {
		*s = (*s)[:min(len(*s), maxLogged+1)] // one more, so that escape cuts it
		n += len(*s)
	}
	b := slices.Grow(rec.buf[:0], n)
	for _, s := range all {
		at := len(b)
		b = append(b, *s...)
		*s = view.String(b[at:])
	}
	rec.buf, rec.kept, e.views = b, true, true
}

// Sent implements wire.Watcher.
func (rec *record) Sent(d wire.Delivery) {
	l, e := rec.l, &rec.e
	e.size, e.aborted = d.Body, !d.Complete
	if e.status = d.Status; e.status == 0 {
		e.status = 500 // the handler panicked
	}
	if l.timed {
		e.latency = l.mono() - rec.start
	}
	switch {
	case l.o.Sample > 1 && e.status < 400 && !e.aborted && rand.IntN(l.o.Sample) != 0:
	case l.clf:
		l.writeLine(e, &rec.m, rec.start, rec.kept)
	default:
		l.record(rec)
	}
	rec.kept, rec.added, rec.later = false, nil, nil // the next user sets the rest
	if cap(rec.buf) > keepRecord {
		rec.buf = nil
	}
	records.Put(rec)
}

// writeLine writes a line in a format of Apache; at is when the request arrived.
func (l *AccessLog) writeLine(e *entry, m *more, at time.Duration, noWait bool) {
	b := l.lines.begin(noWait)
	if l.vhost {
		b = l.appendVhost(b, m)
	}
	l.lines.end(l.appendLine(b, e, m, at), noWait)
}

// full reports whether admit would wait.
func (l *AccessLog) full() bool { return l.lines.Full() || l.later.full.Load() }

// admit waits until the buffers have room, on behalf of lines that may not wait
// when they are written: each response makes one at most.
func (l *AccessLog) admit() {
	if l.lines.Full() {
		l.lines.admit()
	}
	if l.later.full.Load() {
		l.later.admit()
	}
}
