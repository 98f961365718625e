package conn

import (
	"testing"
	"unsafe"
)

// Each idle connection of WebSockets or TLS has a queue, and with TLS a layer, which are to stay in
// their classes of sizes.
func TestQueueSize(t *testing.T) {
	t.Parallel()
	if size := unsafe.Sizeof(queue{}); size > 48 {
		t.Errorf("a queue has %d bytes: the allocator gives 64", size)
	}
	if size := unsafe.Sizeof(layered{}); size > 64 {
		t.Errorf("a layer has %d bytes: the allocator gives 80", size)
	}
}
