package h1

import (
	"testing"
	"unsafe"
)

// An idle connection is one allocation, which is to stay in its class of sizes.
func TestConnectionSize(t *testing.T) {
	if size := unsafe.Sizeof(connection{}); size > 224 {
		t.Errorf("%d bytes: the allocator gives 240", size)
	}
}

// An exchange is allocated for each request. With the word that the allocator keeps
// before it, it fits the size class of 704 bytes; the next one has 768.
func TestExchangeSize(t *testing.T) {
	if size := unsafe.Sizeof(exchange{}); unsafe.Sizeof(uintptr(0)) == 8 && size > 704-8 {
		t.Errorf("%d bytes", size)
	}
}
