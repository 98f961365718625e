package engines

import (
	"slices"
	"testing"

	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/stats"
)

// UpToDate returns statistics to which every loop has contributed: those of a loop that has had no processor for 100 ms
// are stale.
func UpToDate(t testing.TB, s stats.Source) (sn stats.Snapshot) {
	t.Helper()
	servertest.Eventually(t, "every loop answers in time", func() bool {
		sn = s.Stats()
		return !slices.ContainsFunc(sn.Loops, func(l stats.Loop) bool { return l.Stale })
	})
	return sn
}
