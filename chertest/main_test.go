package chertest

import (
	"testing"

	"github.com/chert-http/chert/internal/testing/leak"
)

// TestMain fails the package if its tests leave goroutines or descriptors
// behind.
func TestMain(m *testing.M) {
	leak.Main(m, func() { NewServer(nil).Close() })
}
