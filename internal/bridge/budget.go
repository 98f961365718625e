package bridge

import "time"

// A Budget bounds what a client may do that costs work and brings nothing. It has
// some for a burst, and grows with time.
type Budget struct {
	left, most int32
	perSecond  int32
	at         int64 // when it has grown, of sys.Nanotime
}

// Init gives b most, at now of sys.Nanotime, and perSecond more each second, up to most.
func (b *Budget) Init(most, perSecond int32, now int64) {
	*b = Budget{left: most, most: most, perSecond: perSecond, at: now}
}

// Spend takes n, and reports whether there were so many. now gives the time, which is
// asked for only if there were not.
func (b *Budget) Spend(n int32, now func() int64) bool {
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

// Refund gives n back.
func (b *Budget) Refund(n int32) { b.left = min(b.left+n, b.most) }
