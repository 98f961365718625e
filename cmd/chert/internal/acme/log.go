package acme

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"go.uber.org/zap/zapcore"
)

// A reporter logs what happens to certificates, a line each. It is safe for concurrent use.
type reporter struct {
	log *slog.Logger

	mu sync.Mutex
	// obtained has the names of certificates that are stored and not in use yet.
	obtained map[string]bool
}

// event implements certmagic.Config.OnEvent.
func (r *reporter) event(_ context.Context, event string, data map[string]any) error {
	name := fmt.Sprint(data["identifier"])
	verb := "get"
	if data["renewal"] == true {
		verb = "renew"
	}
	switch event {
	case "cert_obtained":
		if verb == "renew" {
			r.log.Info("acme: renewed the certificate for " + name)
			break
		}
		// A handshake that follows the message must find the certificate.
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.obtained == nil {
			r.obtained = make(map[string]bool)
		}
		r.obtained[name] = true
	case "cached_managed_cert":
		names, _ := data["sans"].([]string)
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, name := range names {
			if r.obtained[name] {
				delete(r.obtained, name)
				r.log.Info("acme: got the certificate for " + name)
			}
		}
	case "cert_failed":
		r.log.Error(fmt.Sprintf("acme: cannot %s the certificate for %s; it will be tried again", verb, name), "error",
			oneLine(data["error"]))
	case "cert_ocsp_revoked":
		r.log.Error("acme: a certificate was revoked and is replaced", "names", fmt.Sprint(data["subjects"]))
	}
	return nil
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
