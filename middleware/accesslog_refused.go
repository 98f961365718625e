package middleware

import (
	"context"
	"log/slog"
	"net"
	"strconv"

	"github.com/chert-http/chert/direct/wire"
)

// Refused writes a line for a request that the server refused without its
// handler:
//
//	srv.Refused = access.Refused
//
// In the formats of Apache it has the request line as far as it is known, "-"
// if it is not, and no bytes; LogVhostCombined has the port of the server's address; if a connection was closed without
// a response the
// status is "-". LogText, LogJSON and Logger say "refused" instead of
// "request", and have the reason, whatever
// Fields says. Skip and Sample do not matter. One line has the number of refusals that the
// server omitted.
func (l *AccessLog) Refused(r wire.Refusal) {
	switch {
	case l.none:
		return
	case !l.clf:
		l.refusedRecord(&r)
		return
	}
	line := r.Line // escaped by the server
	switch {
	case r.Omitted > 0:
		line = strconv.FormatInt(r.Omitted, 10) + " more were refused"
	case line == "":
		line = "-"
	}
	var m more
	if _, port, err := net.SplitHostPort(r.LocalAddr); err == nil {
		m.host = ":" + port // its Host is not known
	}
	l.writeLine(&entry{remote: r.RemoteAddr, line: line, status: r.Status}, &m, l.mono(), false)
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
		rec.AddAttrs(slog.Int("status", r.Status), slog.String("reason", r.Reason),
			slog.String("remote", hostOf(r.RemoteAddr)))
		if r.Line != "" {
			rec.AddAttrs(slog.String("line", r.Line))
		}
	}
	l.handle(rec, false)
}
