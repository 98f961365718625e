package websocket

import (
	"testing"
	"unsafe"
)

// A Conn stays with each idle client, and is to stay in its class of sizes.
func TestConnSize(t *testing.T) {
	t.Parallel()
	if size := unsafe.Sizeof(Conn{}); size > 176 {
		t.Errorf("%d bytes: the allocator gives 192", size)
	}
}
