package middleware

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/middleware/internal/wrap"
)

// This file decides whether a request is logged, where, and with which fields.

// overrideKey is the key of the *AccessLog that Override has set on the fast path.
type overrideKey struct{}

// Override makes l write the lines of the requests that reach next, instead of the
// AccessLog that wraps it further outside; of several the innermost does. So sites and
// routes can have logs of their own, within one that measures a request as a whole:
//
//	all := middleware.NewAccessLog(&middleware.AccessLogOptions{Output: out})
//	shop := middleware.NewAccessLog(&middleware.AccessLogOptions{Output: shopFile, Format: middleware.LogJSON})
//	mux.Handle("/shop/", shop.Override(shopHandler))
//	srv := &chert.Server{Handler: all.Wrap(mux)}
//
// Without an AccessLog outside nothing is logged. It does not allocate. While the buffer of
// l is full, the requests whose lines it writes wait, and no others: those with a log
// further inside are only kept from the fast path.
func (l *AccessLog) Override(next http.Handler) http.Handler {
	return wrap.Handler(next,
		func(w http.ResponseWriter, r *http.Request) {
			to := noteLog(w, l)
			next.ServeHTTP(w, r)
			// Now, when it is known whose line it is.
			if to != nil && l.instead(to.Log()) == l {
				l.admit()
			}
		},
		func(x *direct.Exchange, next direct.Handler) bool {
			if l.full() {
				return false // the ordinary path may wait
			}
			x.Wire().SetValue(overrideKey{}, l)
			return next.ServeDirect(x)
		})
}

// AddLogAttrs adds attributes to the line of a request in LogText, LogJSON and a Logger, such
// as which server has answered it; of several calls for one request the last one counts. It
// is for handlers on the ordinary path, until they return. w is the handler's, or one that
// has Unwrap. Every AccessLog around the handler has them; without one nothing is done.
func AddLogAttrs(w http.ResponseWriter, attrs ...slog.Attr) {
	for w := range wrap.Layers(w) {
		if n, ok := w.(interface{ NoteMore(more any) bool }); ok {
			n.NoteMore(attrs)
		}
	}
}

// addedKey is the key of what AddLogAttrsLater was given.
type addedKey struct{}

// AddLogAttrsLater is AddLogAttrs for the fast path. attrs is called when the response has been
// sent, if there is a line. It must not block, and must not use the exchange, which is over then.
func AddLogAttrsLater(x *direct.Exchange, attrs func() []slog.Attr) {
	x.Wire().SetValue(addedKey{}, attrs)
}

// noter is the writer of an AccessLog.
type noter interface {
	NoteLog(log any) bool
	Log() any
}

// noteLog tells the writer of the next AccessLog outside, and returns it; nil if there is
// none.
func noteLog(w http.ResponseWriter, l *AccessLog) noter {
	for w := range wrap.Layers(w) {
		if n, ok := w.(noter); ok && n.NoteLog(l) {
			return n
		}
	}
	return nil
}

// instead returns the log that Override has chosen, or l.
func (l *AccessLog) instead(chosen any) *AccessLog {
	if other, _ := chosen.(*AccessLog); other != nil {
		return other
	}
	return l
}

// taken is instead for the fast path. A log further outside is not overridden too.
func (l *AccessLog) taken(x *wire.Exchange) *AccessLog {
	to := l.instead(x.Value(overrideKey{}))
	if to != l {
		x.SetValue(overrideKey{}, (*AccessLog)(nil))
	}
	return to
}

// leavesOut reports whether requests for a path have no line.
func (l *AccessLog) leavesOut(path string) bool { return l.none || l.o.Skip != nil && l.o.Skip(path) }

// LogFields is a set of fields of LogText and LogJSON; the zero value is all of them.
type LogFields uint32

const (
	fieldMethod LogFields = 1 << iota
	fieldPath
	fieldQuery
	fieldStatus
	fieldBytes
	fieldLatency
	fieldRemote
	fieldHost
	fieldProto
	fieldAborted
	fieldPattern
	fieldUser
	fieldRequestID
	fieldReferer
	fieldUserAgent
	fieldAdded
	endOfFields
	allFields = endOfFields - 1
)

// fieldNames are the names of the fields, in the order of the constants and of a line.
var fieldNames = strings.Fields("method path query status bytes latency remote host proto aborted pattern user " +
	"request_id referer user_agent added")

// ParseLogFields returns the set of some fields:
//
//	method path query status bytes latency remote host proto aborted pattern user
//	request_id referer user_agent added
//
// The last one stands for all of AddLogAttrs.
//
// A line has those of them that are known, in this order. Without names it is all.
func ParseLogFields(names ...string) (LogFields, error) {
	var set LogFields
next:
	for _, name := range names {
		for i, known := range fieldNames {
			if name == known {
				set |= 1 << i
				continue next
			}
		}
		return 0, fmt.Errorf("middleware: there is no field %q in the log; there are %s", name,
			strings.Join(fieldNames, ", "))
	}
	return set, nil
}
