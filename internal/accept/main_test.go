package accept

import (
	"testing"

	"github.com/chert-http/chert/internal/testing/servertest"
)

// TestMain fails if the tests leave goroutines, descriptors or pooled buffers.
func TestMain(m *testing.M) { servertest.Main(m, servertest.UseTCP) }
