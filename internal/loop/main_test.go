package loop

import (
	"fmt"
	"testing"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/testing/leak"
)

// TestMain fails the package if a test leaves goroutines, descriptors or buffers
// behind.
func TestMain(m *testing.M) {
	warm := func() {
		if l, err := New(); err == nil {
			l.Discard()
		}
	}
	leak.Main(m, warm, func() string {
		if n := buf.Live(); n != 0 {
			return fmt.Sprintf("%d buffers were left behind", n)
		}
		return ""
	})
}
