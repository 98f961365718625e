package h2

import (
	"testing"
	"unsafe"
)

// A stream is allocated for each request. With the word that the allocator keeps before
// it, it fits the size class of 1,280 bytes; the next one has 1,408.
func TestSizeOfStream(t *testing.T) {
	if n := unsafe.Sizeof(stream{}); unsafe.Sizeof(uintptr(0)) == 8 && n > 1280-8 {
		t.Errorf("%d bytes", n)
	}
}
