package chert

import (
	"fmt"
	"net"
	"testing"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/testing/leak"
)

// TestMain fails the package if its tests leave goroutines, descriptors or
// pooled buffers behind.
func TestMain(m *testing.M) {
	leak.Main(m, func() {
		if l, err := net.Listen("tcp", "127.0.0.1:0"); err == nil {
			l.Close()
		}
	}, func() string {
		if n := buf.Live(); n != 0 {
			return fmt.Sprintf("%d buffers were left behind", n)
		}
		return ""
	})
}
