package bridge

import (
	"testing"
	"unsafe"
)

// A taken stays with each idle WebSocket, and is to stay in its class of sizes.
func TestTakenSize(t *testing.T) {
	t.Parallel()
	if size := unsafe.Sizeof(taken{}); size > 48 {
		t.Errorf("%d bytes: the allocator gives 64", size)
	}
}
