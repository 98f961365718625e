package h2

import "time"

// A budget bounds what a client may do that costs work and brings nothing. It has
// some for a burst, and grows with time.
type budget struct {
	left, most int32
	perSecond  int32
	at         int64 // when it has grown, of sys.Nanotime
}

const (
	// resetBudget is for streams that end before their answer does, by the client or
	// because of it (CVE-2023-44487, CVE-2025-8671): so many, and resetRate more each
	// second. Each request that is answered gives one back.
	resetBudget = 500
	resetRate   = 50
	// idleBudget is for frames that do nothing: PING, SETTINGS, PRIORITY, WINDOW_UPDATE,
	// empty DATA, frames of streams that are closed, and unknown ones. Each
	// request and each DATA frame that is sent gives usefulWorth back.
	idleBudget  = 10_000
	idleRate    = 330
	usefulWorth = 4
	// uselessSize is how many bytes of a header block that does nothing count as one frame,
	// as they are on the wire or as SETTINGS_MAX_HEADER_LIST_SIZE counts them: decoding 10,000 of
	// the largest would take seconds.
	uselessSize = 2 << 10
	// maxFields bounds the fields of all streams of a connection, in times of what one
	// request may have: a reference of a byte stands for as many bytes as the table has, and the
	// handler may keep them.
	maxFields = 64
	// maxContinuations bounds the frames of one header block (CVE-2024-27316), besides those
	// that a large one needs.
	maxContinuations = 16
)

func (b *budget) init(most, perSecond int32, now int64) {
	*b = budget{left: most, most: most, perSecond: perSecond, at: now}
}

// spend takes n, and reports whether there were so many. now gives the time, which is
// asked for only if there were not.
func (b *budget) spend(n int32, now func() int64) bool {
	if b.left -= n; b.left >= 0 {
		return true
	}
	t := now()
	// In milliseconds: it may be a year.
	grown := min((t-b.at)/int64(time.Millisecond)*int64(b.perSecond)/1000, int64(b.most))
	if grown > 0 {
		b.at = t
		b.left += int32(grown)
	}
	return b.left >= 0
}

// refund gives n back.
func (b *budget) refund(n int32) { b.left = min(b.left+n, b.most) }
