package h1

import (
	"testing"
	"unsafe"
)

// An idle connection is one allocation, which is to stay in its class of sizes.
func TestConnectionSize(t *testing.T) {
	if size := unsafe.Sizeof(connection{}); size > 288 {
		t.Errorf("%d bytes: the allocator gives 320", size)
	}
}
