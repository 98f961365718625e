package h2

import "iter"

// table has the streams of a connection. Most are over before the next one begins: the newest
// is not in the map, which would be most of what they cost here. The zero value is empty.
type table struct {
	newest *stream
	older  map[uint32]*stream
}

func (t *table) get(id uint32) *stream {
	if t.newest != nil && t.newest.id == id {
		return t.newest
	}
	return t.older[id]
}

func (t *table) add(st *stream) {
	if t.newest != nil {
		if t.older == nil {
			t.older = make(map[uint32]*stream)
		}
		t.older[t.newest.id] = t.newest
	}
	t.newest = st
}

func (t *table) remove(st *stream) {
	if t.newest == st {
		t.newest = nil
	} else {
		delete(t.older, st.id)
	}
}

func (t *table) len() int {
	if t.newest != nil {
		return 1 + len(t.older)
	}
	return len(t.older)
}

// all are the streams, in no order. Those that the loop's body removes do not come.
func (t *table) all() iter.Seq[*stream] {
	return func(yield func(*stream) bool) {
		if t.newest != nil && !yield(t.newest) {
			return
		}
		for _, st := range t.older {
			if !yield(st) {
				return
			}
		}
	}
}
