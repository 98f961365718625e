package middleware

import (
	"context"
	"log/slog"
	"strconv"

	"github.com/chert-http/chert/direct/wire"
)

// Refused writes a line for a request that the server refused without its
// handler:
//
//	srv.Refused = access.Refused
//
// In the formats of Apache it has the request line as far as it is known, "-"
// if it is not, and no bytes; if a connection was closed without a response the
// status is "-". LogText, LogJSON and Logger say "refused" instead of
// "request", and have the reason. One line has the number of refusals that the
// server omitted.
func (l *AccessLog) Refused(r wire.Refusal) {
	if !l.clf {
		l.refusedRecord(&r)
		return
	}
	b := l.lines.begin(false)
	if l.vhost {
		b = l.appendVhost(b, "")
	}
	b = appendToken(b, hostOf(r.RemoteAddr))
	b = append(b, " - - "...)
	b = l.stamp.append(b, l.mono(), l.mono)
	b = append(b, ` "`...)
	switch {
	case r.Omitted > 0:
		b = append(strconv.AppendInt(b, r.Omitted, 10), " more were refused"...)
	case r.Line == "":
		b = append(b, '-')
	default:
		b = append(b, r.Line...) // escaped by the server
	}
	b = append(b, `" `...)
	if r.Status > 0 {
		b = append(strconv.AppendInt(b, int64(r.Status), 10), " -"...)
	} else {
		b = append(b, "- -"...)
	}
	if l.o.Format != LogCommon {
		b = append(b, ` "-" "-"`...)
	}
	if l.o.Latency {
		b = append(b, " 0"...)
	}
	if l.o.RequestID {
		b = append(b, " -"...)
	}
	l.lines.end(append(b, '\n'), false)
}

func (l *AccessLog) refusedRecord(r *wire.Refusal) {
	ctx := context.Background()
	if !l.handler.Enabled(ctx, slog.LevelInfo) {
		return
	}
	rec := slog.NewRecord(l.stamp.now(), slog.LevelInfo, "refused", 0)
	if r.Omitted > 0 {
		rec.AddAttrs(slog.Int64("omitted", r.Omitted))
	} else {
		rec.AddAttrs(slog.Int("status", r.Status), slog.String("reason", r.Reason), slog.String("remote", hostOf(r.RemoteAddr)))
		if r.Line != "" {
			rec.AddAttrs(slog.String("line", r.Line))
		}
	}
	l.handle(rec, false)
}
