package proxy

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/chert-http/chert/filter"
)

// Error is why a request was not answered by an upstream, or not completely.
type Error struct {
	// Upstream and Server are what the latest try was for; Server is "" if none was chosen.
	Upstream, Server string
	// Reason is a few words.
	Reason string
	// Status is that of the response, or of the log: 499 for a client that is gone.
	Status int
	// Sent: a byte of the request may have reached the server.
	Sent bool
	// Reused: the connection had carried a request before, and was idle for Idle.
	Reused bool
	Idle   time.Duration
	// Method is that of the request.
	Method string
	// Retried is how often the request was tried again.
	Retried int
	// NotRetried is why it was not tried once more.
	NotRetried string
	// Truncated: the response had begun, and was cut off.
	Truncated bool
	// Err is what the system or a library has said; may be nil.
	Err error

	kind        string // of Proxy-Status
	unavailable bool   // the client may try again
}

// Error returns one line, such as "upstream app 10.0.0.2:8080: closed before the response;
// reused, idle 4.9s; POST, sent, not retried: not idempotent".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("upstream ")
	b.WriteString(e.Upstream)
	if e.Server != "" {
		b.WriteByte(' ')
		b.WriteString(e.Server)
	}
	b.WriteString(": ")
	b.WriteString(e.Reason)
	if e.Err != nil {
		b.WriteString(" (")
		b.WriteString(e.Err.Error())
		b.WriteByte(')')
	}
	if e.Reused {
		b.WriteString("; reused, idle ")
		b.WriteString(e.Idle.Round(100 * time.Millisecond).String())
	}
	b.WriteString("; ")
	b.WriteString(e.Method)
	if e.Sent {
		b.WriteString(", sent")
	} else {
		b.WriteString(", nothing sent")
	}
	if e.Retried > 0 {
		b.WriteString(", retried ")
		b.WriteString(strconv.Itoa(e.Retried))
	}
	if e.NotRetried != "" {
		b.WriteString(", not retried: ")
		b.WriteString(e.NotRetried)
	}
	return b.String()
}

// Unwrap returns e.Err.
func (e *Error) Unwrap() error { return e.Err }

// Report is how a request was forwarded, for a log that is written after the handler.
type Report struct {
	Upstream, Server string
	// Tries is the number of tries; 0 if no server was chosen.
	Tries int
	// Connect is the time for a new connection, FirstByte from the begin of the latest try to
	// the head of the response, Total that of the handler.
	Connect, FirstByte, Total time.Duration
	// Reused: the connection had carried a request before.
	Reused bool
	// Tunnel: the connection has become one, by an upgrade.
	Tunnel bool
	// Err is nil if the response was forwarded completely.
	Err *Error
}

type reportKey struct{}

// WithReport returns a context for a request, in which a Handler fills r. Only one request
// may have it; r may be read after the Handler has returned.
func WithReport(ctx context.Context, r *Report) context.Context {
	return context.WithValue(ctx, reportKey{}, r)
}

// reportOf returns what WithReport has set, or nil.
func reportOf(v filter.Values) *Report {
	r, _ := v.Value(reportKey{}).(*Report)
	return r
}
