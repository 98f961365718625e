package buf

import (
	"math/bits"
	"sync"
)

// Classes are the powers of two from 512 bytes to 256 KiB, and what lies in the
// middle between two of them: so at most a third of a buffer above the smallest is
// wasted, and Go's allocator has these sizes too. Get(700) takes the class of 768 bytes; Get(300<<10) is
// beyond the last class, so it is allocated at its exact size and dropped on
// Release: such a buffer is rare and would waste memory in a pool.
const (
	minShift = 9
	maxShift = 18
	classes  = 2*(maxShift-minShift) + 1

	unpooled = classes // the class of a larger buffer
)

var pools [classes]sync.Pool

// Buf is a pooled buffer. Its methods and B belong to the owner and are not
// safe for concurrent use.
type Buf struct {
	// B is the bytes in use. The owner may append to it within its capacity
	// and reslice it from both ends. An append beyond the capacity is harmless,
	// but replaces the pooled array by one for the garbage collector: call Grow
	// first. Nil after Release.
	B []byte

	full  []byte // The whole array, independent of B. Immutable.
	class uint8  // Index into pools, or unpooled. Immutable.
	shard uint8  // Index into live. Immutable.
	lent  bool   // Between Get and Release; catches a double release.
}

// Get returns a buffer with len(B) == 0 and cap(B) >= size. The caller owns it
// until it calls Release.
func Get(size int) *Buf {
	c := classOf(size)
	var b *Buf
	if c == unpooled {
		b = newBuf(c, size)
	} else if v := pools[c].Get(); v != nil {
		b = v.(*Buf)
	} else {
		b = newBuf(c, sizeOf(c))
	}
	b.B = b.full[:0]
	b.lent = true
	live[b.shard].n.Add(b.weight())
	return b
}

// Release returns the whole array to the pool, even if B was resliced. Nothing
// that points into it may be used afterwards.
//
// A second Release panics unless Get has returned the buffer again in between;
// then it would release the new owner's buffer, which this package cannot
// detect. So do not rely on the panic.
func (b *Buf) Release() {
	if !b.lent {
		panic("buf: Release of a buffer that is not lent")
	}
	b.lent = false
	b.B = nil
	live[b.shard].n.Add(-b.weight())
	if b.class != unpooled {
		pools[b.class].Put(b)
	}
}

// Grow makes room for n more bytes after B and returns the buffer to use from
// now on. It may move the bytes: to the front of the same array if the consumed
// bytes there leave enough room, otherwise to another Buf, and then b has been
// released. Offsets into B stay valid; slices of it do not.
func (b *Buf) Grow(n int) *Buf {
	if !b.lent {
		panic("buf: Grow of a buffer that is not lent")
	}
	if cap(b.B)-len(b.B) >= n {
		return b
	}
	used := len(b.B)
	if len(b.full)-used >= n {
		copy(b.full, b.B)
		b.B = b.full[:used]
		return b
	}
	g := Get(max(used+n, 2*used)) // growing byte by byte would copy everything each time
	g.B = append(g.B, b.B...)
	b.Release()
	return g
}

// Own makes a Buf of the caller's array, which is not pooled. It must not be
// released, nor grown.
func Own(p []byte) *Buf { return &Buf{full: p, class: unpooled} }

// Whole returns the whole array, for an owner that no longer needs B.
func (b *Buf) Whole() []byte { return b.full }

// Cap returns the size of the whole array, which bounds what B can hold.
func (b *Buf) Cap() int { return len(b.full) }

func newBuf(class, size int) *Buf {
	return &Buf{full: make([]byte, size), class: uint8(class), shard: nextShard()}
}

// classOf returns the smallest class that holds size, or unpooled.
func classOf(size int) int {
	if size <= 1<<minShift {
		return 0
	}
	n := bits.Len(uint(size - 1)) // 1<<n is the next power of two
	c := 2 * (n - minShift)
	if size <= 3<<(n-2) {
		c--
	}
	return min(c, unpooled)
}

// sizeOf is the size of a class.
func sizeOf(c int) int { return (2 + c&1) << (minShift - 1 + c/2) }
