package balance

import (
	"fmt"
	"testing"
)

func benchmark(b *testing.B, o Options, weights ...int) {
	for _, n := range []int{2, 10, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			all := servers(n)
			s := newSet(b, members(all, weights...), o)
			for _, srv := range all {
				srv.Observe(1e6, 1)
				if o.Bound > 0 { // so that the bounds are looked at
					srv.acquire(false)
				}
			}
			r := Request{Now: 1}
			b.ReportAllocs()
			for b.Loop() {
				r.Key += 0x9e3779b97f4a7c15
				r.Random = r.Key
				s.Acquire(&r).Release()
			}
		})
	}
}

func BenchmarkRoundRobin(b *testing.B)    { benchmark(b, Options{}, 1) }
func BenchmarkLeast(b *testing.B)         { benchmark(b, Options{Policy: Least}, 1) }
func BenchmarkLeastWeighted(b *testing.B) { benchmark(b, Options{Policy: Least}, 3, 1) }
func BenchmarkHash(b *testing.B)          { benchmark(b, Options{Policy: Hash}, 1) }
func BenchmarkHashWeighted(b *testing.B)  { benchmark(b, Options{Policy: Hash}, 3, 1) }
func BenchmarkHashBounded(b *testing.B)   { benchmark(b, Options{Policy: Hash, Bound: 1.5}, 1) }

// A change of a state before each choice.
func BenchmarkChange(b *testing.B) {
	all := servers(10)
	s := newSet(b, members(all, 1), Options{Policy: Hash})
	b.ReportAllocs()
	for b.Loop() {
		all[0].SetState(all[0].State()%Ejected+1, 1)
		s.Acquire(&Request{Now: 1}).Release()
	}
}
