package tlsio

import (
	"testing"
	"unsafe"
)

// A wire stays with each idle connection, and is to stay in its class of sizes.
func TestWireSize(t *testing.T) {
	t.Parallel()
	if size := unsafe.Sizeof(wire{}); size > 80 {
		t.Errorf("%d bytes: the allocator gives 96", size)
	}
}
