package buf

import (
	"bytes"
	"fmt"
	"math/rand"
	"sync"
	"testing"

	"github.com/chert-http/chert/internal/testing/race"
)

func TestGetSizes(t *testing.T) {
	for _, tt := range []struct {
		size, want int
		why        string
	}{
		{-1, 512, "nonsense takes the smallest"},
		{0, 512, "the smallest class"},
		{512, 512, "a class fits its own size"},
		{513, 768, "one more is the next class"},
		{768, 768, "a class between powers of two fits its own size"},
		{769, 1 << 10, "one more than that is a power of two"},
		{4 << 10, 4 << 10, "in the middle"},
		{4<<10 + 1, 6 << 10, "in the middle, one more"},
		{6<<10 + 1, 8 << 10, "in the middle, one more than a class between"},
		{192<<10 + 1, 256 << 10, "more than the last but one"},
		{256 << 10, 256 << 10, "the largest class"},
		{256<<10 + 1, 256<<10 + 1, "beyond the classes: exact"},
		{5 << 20, 5 << 20, "far beyond"},
	} {
		b := Get(tt.size)
		if len(b.B) != 0 || cap(b.B) != tt.want || b.Cap() != tt.want {
			t.Errorf("Get(%d): len %d cap %d, want 0 and %d (%s)", tt.size, len(b.B), cap(b.B), tt.want, tt.why)
		}
		b.Release()
	}
}

func TestReleaseKeepsWholeArray(t *testing.T) {
	for _, tt := range []struct {
		why string
		do  func(b *Buf)
	}{
		{"consumed from the front", func(b *Buf) { b.B = append(b.B, "abcdef"...)[4:] }},
		{"capacity cut", func(b *Buf) { b.B = b.B[:0:7] }},
		{"set to nil", func(b *Buf) { b.B = nil }},
		{"appended out of the array", func(b *Buf) { b.B = append(b.B, make([]byte, 5000)...) }},
	} {
		b := Get(4096)
		array := &b.full[0]
		tt.do(b)
		b.Release()
		if b.B != nil {
			t.Errorf("%s: B is usable after Release", tt.why)
		}
		// Read the struct rather than the pool: the pool may drop it.
		if len(b.full) != 4096 || &b.full[0] != array {
			t.Errorf("%s: the array came back changed", tt.why)
		}
	}
}

func TestGrow(t *testing.T) {
	const text = "0123456789"
	for _, tt := range []struct {
		size, skip, n int
		same          bool
		why           string
	}{
		{512, 0, 0, true, "nothing asked"},
		{512, 0, 502, true, "fits after it"},
		{512, 0, 503, false, "one too many"},
		{512, 6, 508, true, "fits after moving to the front"},
		{512, 6, 509, false, "does not, even so"},
		{512, 10, 512, true, "all consumed"},
		{512, 0, 300 << 10, false, "beyond the classes"},
		{300 << 10, 0, 300 << 10, false, "from beyond the classes"},
	} {
		before := Live()
		b := Get(tt.size)
		b.B = append(b.B, text...)[tt.skip:]
		g := b.Grow(tt.n)
		if (g == b) != tt.same {
			t.Errorf("%s: same buffer is %v", tt.why, g == b)
		}
		if string(g.B) != text[tt.skip:] {
			t.Errorf("%s: contents %q", tt.why, g.B)
		}
		if free := cap(g.B) - len(g.B); free < tt.n {
			t.Errorf("%s: room for %d, want %d", tt.why, free, tt.n)
		}
		g.Release()
		if n := Live() - before; n != 0 {
			t.Errorf("%s: %d buffers leaked", tt.why, n)
		}
	}
}

// Bytes that the owner appended out of the array must come along too.
func TestGrowAfterOverrun(t *testing.T) {
	b := Get(512)
	want := bytes.Repeat([]byte("x"), 600)
	b.B = append(b.B, want...)
	b = b.Grow(1000)
	defer b.Release()
	if !bytes.Equal(b.B, want) || cap(b.B)-len(b.B) < 1000 {
		t.Errorf("len %d cap %d", len(b.B), cap(b.B))
	}
}

// The size must double, also past the largest class, or appending in small
// steps would be quadratic.
func TestGrowDoubles(t *testing.T) {
	b := Get(0)
	moves := 0
	for range 8 << 10 {
		g := b.Grow(512)
		if g != b {
			moves++
		}
		b = g
		b.B = b.B[:len(b.B)+512]
	}
	b.Release()
	if moves > 14 {
		t.Errorf("4 MiB in steps of 512 bytes moved %d times", moves)
	}
}

func TestMisusePanics(t *testing.T) {
	for _, tt := range []struct {
		why  string
		size int
		do   func(b *Buf)
	}{
		{"double release", 512, (*Buf).Release},
		{"double release of an unpooled buffer", 1 << 20, (*Buf).Release},
		{"grow after release", 512, func(b *Buf) { b.Grow(1) }},
	} {
		before := Live()
		b := Get(tt.size)
		b.Release()
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", tt.why)
				}
			}()
			tt.do(b)
		}()
		if Live() != before {
			t.Errorf("%s: changed Live", tt.why)
		}
	}
}

func TestLive(t *testing.T) {
	before := Live()
	var held []*Buf
	for i := range 200 {
		held = append(held, Get(i*2000)) // pooled and unpooled
	}
	if n := Live() - before; n != 200 {
		t.Errorf("200 taken, Live counts %d", n)
	}
	for _, b := range held {
		b.Release()
	}
	if n := Live() - before; n != 0 {
		t.Errorf("all given back, Live counts %d", n)
	}
}

func TestNoAllocs(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector makes sync.Pool drop buffers")
	}
	for c := range classes {
		size := sizeOf(c)
		if got := classOf(size); got != c {
			t.Errorf("class %d has size %d, which is of class %d", c, size, got)
		}
		if n := testing.AllocsPerRun(1000, func() { Get(size).Release() }); n != 0 {
			t.Errorf("Get(%d) and Release: %v allocations", size, n)
		}
	}
	if n := testing.AllocsPerRun(1000, func() {
		b := Get(512)
		b.B = b.B[:512]
		b.Grow(512).Release()
	}); n != 0 {
		t.Errorf("Grow: %v allocations", n)
	}
}

// Goroutines fill buffers with a mark of their own, hand some to each other
// and check the mark: a buffer lent twice shows as a wrong byte or as a race.
func TestStress(t *testing.T) {
	const workers, rounds = 8, 3000
	before := Live()
	handed := make(chan *Buf, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			rnd := rand.New(rand.NewSource(int64(w)))
			for i := range rounds {
				mark := byte(w*31 + i)
				b := Get(rnd.Intn(8 << 10))
				for range rnd.Intn(4) {
					n := rnd.Intn(3000)
					b = b.Grow(n)
					b.B = append(b.B, bytes.Repeat([]byte{mark}, n)...)
				}
				for _, c := range b.B {
					if c != mark {
						t.Errorf("worker %d: another goroutine wrote in its buffer", w)
						return
					}
				}
				select {
				case handed <- b:
				case other := <-handed:
					other.Release()
					b.Release()
				}
			}
		})
	}
	wg.Wait()
	close(handed)
	for b := range handed {
		b.Release()
	}
	if n := Live() - before; n != 0 {
		t.Errorf("%d buffers leaked", n)
	}
}

var sizes = []int{512, 4 << 10, 64 << 10}

func BenchmarkGetRelease(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Get(size).Release()
			}
		})
	}
}

func BenchmarkGetReleaseParallel(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					Get(size).Release()
				}
			})
		})
	}
}

// What Live costs: one counter for all processors against one for each.
func BenchmarkCounter(b *testing.B) {
	run := func(pick func() *counter) func(*testing.B) {
		return func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				c := pick()
				for pb.Next() {
					c.n.Add(1)
					c.n.Add(-1)
				}
			})
		}
	}
	b.Run("shared", run(func() *counter { return &live[0] }))
	b.Run("sharded", run(func() *counter { return &live[nextShard()] }))
}
