package h2

import (
	"testing"
	"unsafe"
)

// An exchange is allocated for each request. With the word that the allocator keeps
// before it, it fits the size class of 704 bytes; the next one has 768.
func TestSizeOfExchange(t *testing.T) {
	if n := unsafe.Sizeof(exchange{}); unsafe.Sizeof(uintptr(0)) == 8 && n > 704-8 {
		t.Errorf("%d bytes", n)
	}
}
