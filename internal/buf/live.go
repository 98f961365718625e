package buf

import "sync/atomic"

// One shared counter would bounce its cache line between all loops on every
// Get. Go has no cheap way to get the number of the current processor, but
// sync.Pool keeps a buffer with the processor that released it. So each buffer
// is assigned a shard when it is made and always counts there: the buffers that
// circulate on one loop touch a few lines that the other loops rarely touch.
// BenchmarkCounter compares the two.

const shards = 64 // a power of two, fits Buf.shard

type counter struct {
	n atomic.Int64 // sum of weights
	_ [120]byte    // two cache lines: processors fetch them in pairs
}

var (
	live  [shards]counter
	dealt atomic.Uint32 // touched only when a buffer is made
)

func nextShard() uint8 {
	return uint8(dealt.Add(1) % shards)
}

// Live returns how many buffers have been got and not released. It is exact if
// no other goroutine is inside Get or Release, so stop the server before
// calling it.
func Live() int64 {
	n, _ := Lent()
	return n
}

// A buffer is counted together with its size, by one operation: its weight is 1, and
// from bit sizeShift on its size in units that each class is a multiple of.
const (
	sizeShift = 32
	unitShift = minShift - 1
)

func (b *Buf) weight() int64 {
	return int64((len(b.full)+1<<unitShift-1)>>unitShift)<<sizeShift | 1
}

// Lent returns how many buffers have been got and not released, and their size in bytes,
// which is rounded up. It is exact as Live is.
func Lent() (n, bytes int64) {
	var sum int64
	for i := range live {
		sum += live[i].n.Load()
	}
	n = int64(int32(sum))
	return n, (sum - n) >> sizeShift << unitShift
}
