package roster

import (
	"iter"
	"slices"
)

// pageLen is how many members a page has: 4 KiB.
const pageLen = 512

type page[T any] struct {
	epoch uint64
	at    [pageLen]*T
}

// A Roster is a list of members, in the order of Add as long as none is removed. A slice would
// be copied when it grows, and for each snapshot. The zero value is empty. Its user locks it.
type Roster[T any] struct {
	pages []*page[T]
	n     int
	// epoch is how many snapshots there have been. A page of an earlier one is part of a
	// snapshot, and copied before it is written to.
	epoch uint64
	// latest is the pages of the latest snapshot; nil after a change.
	latest []*page[T]
}

// Len returns how many members there are.
func (r *Roster[T]) Len() int { return r.n }

// Add appends m, and returns its index.
func (r *Roster[T]) Add(m *T) (index int) {
	index = r.n
	if index == len(r.pages)*pageLen {
		r.pages = append(r.pages, &page[T]{epoch: r.epoch})
	}
	r.n++
	r.set(index, m)
	return index
}

// Remove removes the member m with an index. The last one takes its place, and is returned, or
// nil if m was the last itself. ok is false if m is not the member with that index.
func (r *Roster[T]) Remove(index int, m *T) (moved *T, ok bool) {
	last := r.n - 1
	if index < 0 || index > last || r.at(index) != m {
		return nil, false
	}
	if index != last {
		moved = r.at(last)
		r.set(index, moved)
	}
	r.set(last, nil)
	r.n = last
	// One empty page is kept, for those who come and go at its edge.
	if keep := (r.n+pageLen-1)/pageLen + 1; len(r.pages) > keep {
		r.pages[keep] = nil
		r.pages = r.pages[:keep]
	}
	return moved, true
}

func (r *Roster[T]) at(i int) *T { return r.pages[i/pageLen].at[i%pageLen] }

func (r *Roster[T]) set(i int, m *T) {
	r.latest = nil
	p := r.pages[i/pageLen]
	if p.epoch != r.epoch {
		p = &page[T]{epoch: r.epoch, at: p.at}
		r.pages[i/pageLen] = p
	}
	p.at[i%pageLen] = m
}

// Copy copies members from index i on to dst, and returns how many.
func (r *Roster[T]) Copy(dst []*T, i int) (n int) {
	for n < len(dst) && i+n < r.n {
		p := r.pages[(i+n)/pageLen]
		from := (i + n) % pageLen
		n += copy(dst[n:], p.at[from:min(pageLen, from+r.n-i-n)])
	}
	return n
}

// Snapshot returns the members that there are now.
func (r *Roster[T]) Snapshot() Snapshot[T] {
	if r.latest == nil {
		r.epoch++
		r.latest = slices.Clone(r.pages)
	}
	return Snapshot[T]{r.latest, r.n}
}

// A Snapshot is the members that a Roster had. It is immutable.
type Snapshot[T any] struct {
	pages []*page[T]
	n     int
}

// All iterates over the members, in the order of the Roster.
func (s Snapshot[T]) All() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		left := s.n
		for _, p := range s.pages {
			for _, m := range p.at[:min(left, pageLen)] {
				if !yield(m) {
					return
				}
			}
			left -= min(left, pageLen)
		}
	}
}
