package chertest

import (
	"testing"
	"time"

	"github.com/chert-http/chert/internal/testing/leak"
)

// patience bounds every wait for something that must happen; nothing passes by
// waiting it out.
const patience = 30 * time.Second

// TestMain fails the package if its tests leave goroutines or descriptors
// behind.
func TestMain(m *testing.M) {
	leak.Main(m, func() { NewServer(nil).Close() })
}

// await waits until done is closed or sent to.
func await[T any](t *testing.T, done <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-done:
	case <-time.After(patience):
		t.Fatalf("waited too long for %s", what)
	}
	return v
}
