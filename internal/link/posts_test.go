package link

import (
	"slices"
	"sync"
	"testing"
)

// What is posted is called in order, also by what is called; the last request counts, and an end drops the rest.
func TestPosts(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var p Posts
	var got []int
	add := func(n int, then ...func() Next) {
		mu.Lock()
		defer mu.Unlock()
		p.Add(func() Next {
			got = append(got, n)
			next := More
			for _, f := range then {
				next = f()
			}
			return next
		})
	}
	if next := p.Deliver(&mu, Pause); next != Pause || p.Any() {
		t.Errorf("nothing makes %d", next)
	}
	add(1)
	add(2, func() Next { add(4); return Requeue })
	add(3)
	if !p.Any() {
		t.Error("nothing waits")
	}
	if next := p.Deliver(&mu, Pause); next != Requeue || !slices.Equal(got, []int{1, 2, 3, 4}) {
		t.Errorf("%d, after %v", next, got)
	}
	got = nil
	add(1, func() Next { return Reset })
	add(2)
	if next := p.Deliver(&mu, More); next != Reset || !slices.Equal(got, []int{1}) {
		t.Errorf("%d, after %v", next, got)
	}
	if p.Close(); p.Any() || p.Add(func() Next { return More }) || p.Any() {
		t.Error("something waits after Close")
	}
}
