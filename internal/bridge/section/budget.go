package section

import (
	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/pack"
)

// The budgets of a connection; see bridge.Budget.
const (
	// ResetBudget is for requests that end before their answers do, by the client or because of it
	// (CVE-2023-44487, CVE-2025-8671): so many, and resetRate more each second. Each request that is answered
	// gives one back.
	ResetBudget = 500
	resetRate   = 50
	// IdleBudget is for frames that do nothing: of HTTP/2 PING, SETTINGS, PRIORITY, WINDOW_UPDATE and frames of
	// streams that are closed; of HTTP/3 PRIORITY_UPDATE, cancellations of QPACK and streams of unknown types;
	// of both empty DATA and unknown frames. Each request, and over HTTP/2 each DATA frame that is sent, gives
	// UsefulWorth back.
	IdleBudget  = 10_000
	idleRate    = 330
	UsefulWorth = 4
	// UselessSize is how many bytes of what does nothing count as one frame more; those of header blocks, of
	// HTTP/3 such as are too large, are as they are on the wire or as SETTINGS_MAX_HEADER_LIST_SIZE counts them,
	// whichever is more: decoding 10,000 of the largest blocks would take seconds.
	UselessSize = 2 << 10
	// maxFields bounds the fields of all requests of a connection, in times of what one may have: over HTTP/2 a
	// reference of a byte stands for as many bytes as the table has, and the handlers may keep them.
	maxFields = 64
	// keepFields bounds what of a field section's room is kept, in bytes.
	keepFields = 16 << 10
)

// InitBudgets sets the budgets of a connection that begins now. A frugal one's do not grow with time.
func InitBudgets(resets, useless *bridge.Budget, frugal bool, now int64) {
	perReset, perUseless := int32(resetRate), int32(idleRate)
	if frugal {
		perReset, perUseless = 0, 0
	}
	resets.Init(ResetBudget, perReset, now)
	useless.Init(IdleBudget, perUseless, now)
}

// TooMany reports whether size bytes are more than the fields of all requests of a connection may have.
func TooMany(size int, l pack.Limits) bool { return size/maxFields > l.Bytes }

// Reset makes f empty, for another section.
func (f *Fields) Reset() { f.Fields.Reset(keepFields) }
