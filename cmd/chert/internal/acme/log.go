package acme

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"go.uber.org/zap/zapcore"
)

// report logs what happens to a certificate, a line each.
func report(l *slog.Logger, event string, data map[string]any) {
	name := fmt.Sprint(data["identifier"])
	verb := "get"
	if data["renewal"] == true {
		verb = "renew"
	}
	switch event {
	case "cert_obtained":
		l.Info("acme: " + map[string]string{"get": "got", "renew": "renewed"}[verb] + " the certificate for " + name)
	case "cert_failed":
		l.Error(fmt.Sprintf("acme: cannot %s the certificate for %s; it will be tried again", verb, name), "error", oneLine(data["error"]))
	case "cert_ocsp_revoked":
		l.Error("acme: a certificate was revoked and is replaced", "names", fmt.Sprint(data["subjects"]))
	}
}

func oneLine(v any) string { return strings.Join(strings.Fields(fmt.Sprint(v)), " ") }

// core passes certmagic's log to slog, from warnings on. What has an event is
// left to report.
type core struct{ to *slog.Logger }

func (c *core) Enabled(l zapcore.Level) bool { return l >= zapcore.WarnLevel }

// With implements zapcore.Core.
func (c *core) With(fields []zapcore.Field) zapcore.Core { return &core{c.to.With(attrs(fields)...)} }

// Check implements zapcore.Core.
func (c *core) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) && !reported[e.Message] {
		return ce.AddCore(e, c)
	}
	return ce
}

// reported are messages that repeat what report says, what has gone as it should,
// or what any client can cause.
var reported = map[string]bool{
	"could not get certificate from issuer": true,
	"will retry":                            true,
	"job failed":                            true,
	"HTTP request failed; retrying":         true,
	"validating authorization":              true, // after "challenge failed"
	"tls-alpn challenge":                    true,
	"looking up info for HTTP challenge":    true,
	"stapling OCSP":                         true, // authorities that have no OCSP
	"unable to unlock":                      true, // after Close has
	"unable to fetch ACME renewal information; skipping ARI": true,
}

// Write implements zapcore.Core.
func (c *core) Write(e zapcore.Entry, fields []zapcore.Field) error {
	level := slog.LevelWarn
	if e.Level >= zapcore.ErrorLevel {
		level = slog.LevelError
	}
	c.to.Log(context.Background(), level, "acme: "+oneLine(e.Message), attrs(fields)...)
	return nil
}

// Sync implements zapcore.Core.
func (c *core) Sync() error { return nil }

func attrs(fields []zapcore.Field) (all []any) {
	m := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(m)
		if v, ok := m.Fields[f.Key]; ok {
			all = append(all, slog.String(f.Key, oneLine(v)))
		}
	}
	return all
}
