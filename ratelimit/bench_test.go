package ratelimit

import (
	"strconv"
	"sync"
	"testing"
	"time"
)

func mustRate(t testing.TB, s string) Rate {
	t.Helper()
	r, err := ParseRate(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mustLimit(t testing.TB, rate string, s Store) *Limit {
	t.Helper()
	l, err := NewLimit("test", mustRate(t, rate), s)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// One key, used by all cores (-cpu 1,2).
func BenchmarkOneKey(b *testing.B) {
	for _, bb := range []struct{ name, rate string }{
		{"admitted", "10000000/s burst 70000000000"}, // every decision writes
		{"refused", "1/d"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			l := mustLimit(b, bb.rate, NewMemory(nil))
			ctx := b.Context()
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					l.Allow(ctx, "192.0.2.1", 1)
				}
			})
		})
	}
}

// A million existing keys.
func BenchmarkManyKeys(b *testing.B) {
	l := mustLimit(b, "1000/h", NewMemory(nil))
	keys := make([]string, 1<<20)
	for i := range keys {
		keys[i] = strconv.Itoa(i)
		l.Allow(b.Context(), keys[i], 1)
	}
	ctx := b.Context()
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for i := uint32(1); pb.Next(); i = i*1664525 + 1013904223 {
			l.Allow(ctx, keys[i>>12], 1)
		}
	})
}

// A new key each time.
func BenchmarkNewKeys(b *testing.B) {
	l := mustLimit(b, "100/s", NewMemory(nil))
	ctx := b.Context()
	b.ReportAllocs()
	var key []byte
	for i := range b.N {
		key = strconv.AppendInt(key[:0], int64(i), 10)
		l.Allow(ctx, string(key), 1)
	}
}

// The usual way, for the scale of this machine: a mutex and a map of buckets.
func BenchmarkMutexAndMap(b *testing.B) {
	type bucket struct {
		tokens float64
		last   time.Time
	}
	var mu sync.Mutex
	buckets := make(map[string]*bucket)
	allow := func(key string) bool {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		t := buckets[key]
		if t == nil {
			t = &bucket{tokens: 1000, last: now}
			buckets[key] = t
		}
		t.tokens = min(1000, t.tokens+now.Sub(t.last).Seconds()*1000)
		t.last = now
		if t.tokens < 1 {
			return false
		}
		t.tokens--
		return true
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			allow("192.0.2.1")
		}
	})
}
