package takeover

import (
	"net/http"
	"sync/atomic"
)

// A Budget bounds what the streams of one connection keep together, in bytes. The zero
// Budget is empty. It is safe for concurrent use.
type Budget struct{ used atomic.Int64 }

// Take adds n bytes, unless they would be more than limit with what was taken before. It
// reports whether it did.
func (b *Budget) Take(n, limit int64) bool {
	for {
		used := b.used.Load()
		if used > limit-n {
			return false
		}
		if b.used.CompareAndSwap(used, used+n) {
			return true
		}
	}
}

// Give returns n bytes.
func (b *Budget) Give(n int64) { b.used.Add(-n) }

// A Budgeted is an http.ResponseWriter, or its connection, that may be one stream of many.
type Budgeted interface {
	// Budget returns the connection's Budget, or nil if it has no streams.
	Budget() *Budget
}

// BudgetOf returns the Budget of the connection of w, or nil. It unwraps w as Find does.
func BudgetOf(w http.ResponseWriter) *Budget {
	if b := Find[Budgeted](w); b != nil {
		return b.Budget()
	}
	return nil
}
