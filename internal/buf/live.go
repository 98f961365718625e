package buf

import "sync/atomic"

// One shared counter would bounce its cache line between all loops on every
// Get. Go gives no cheap number of the current processor, but sync.Pool keeps
// a buffer with the processor that released it. So each buffer is dealt a
// shard when it is made and counts there for life: the buffers that circulate
// on one loop touch a few lines that the other loops rarely touch.
// BenchmarkCounter compares the two.

const shards = 64 // a power of two, fits Buf.shard

type counter struct {
	n atomic.Int64
	_ [120]byte // two cache lines: processors fetch them in pairs
}

var (
	live  [shards]counter
	dealt atomic.Uint32 // touched only when a buffer is made
)

func nextShard() uint8 {
	return uint8(dealt.Add(1) % shards)
}

// Live returns how many buffers are taken and not given back. It is exact when
// no other goroutine is inside Get or Release, so let the server stop before
// asking.
func Live() int64 {
	var sum int64
	for i := range live {
		sum += live[i].n.Load()
	}
	return sum
}
