//go:build linux

package sim

import (
	"math"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/sys"
)

// A deadline that is further away than a duration can say has not passed.
func TestDeadlineFarAway(t *testing.T) {
	t.Parallel()
	for _, d := range []time.Time{time.Now().Add(math.MaxInt64), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if by := deadline(d); by <= sys.Nanotime() {
			t.Errorf("%v is %d of sys.Nanotime, which has passed", d, by)
		}
	}
	if by := deadline(time.Unix(1, 0)); by != 1 {
		t.Errorf("a deadline of long ago is %d, want 1", by)
	}
	if by := deadline(time.Time{}); by != 0 {
		t.Errorf("no deadline is %d", by)
	}
}
