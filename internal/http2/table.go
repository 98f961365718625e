package http2

import "github.com/chert-http/chert/internal/pack"

// table is a dynamic table (RFC 7541 section 2.3.2): the bytes of its entries in one
// slice, oldest first, and a ring of what is known of them. Both grow with what is
// in them, up to what the table's size allows.
type table struct {
	max, size uint32 // as RFC 7541 section 4.1 counts
	data      []byte
	head      int    // where the oldest entry begins in data
	base      uint32 // what data[0] counts as for entry.at
	ring      []entry
	first, n  uint32 // the oldest entry's place in ring, and how many there are
}

// entry is a field of a table. Names that have a NameID are not kept as bytes.
type entry struct {
	at                  uint32 // of its bytes; see table.base
	nameSize, valueSize uint32
	id                  pack.NameID
	bad                 bool // no message may have it
	spaced              bool // pack.Fields.Trim has something to take off its value
}

func (e *entry) size() int { return int(e.nameSize + e.valueSize) }

// kept is how many bytes of it are in table.data.
func (e *entry) kept() uint32 {
	if e.id != 0 {
		return e.valueSize
	}
	return e.nameSize + e.valueSize
}

// at is the entry of an index of both tables, nil if there is none.
func (t *table) at(i uint64) *entry {
	i -= uint64(len(static)) // huge for 0
	if i >= uint64(t.n) {
		return nil
	}
	return &t.ring[(t.first+t.n-1-uint32(i))&uint32(len(t.ring)-1)]
}

// bytes are the name of e, if it is kept, and its value.
func (t *table) bytes(e *entry) (name, value []byte) {
	b := t.data[e.at-t.base:][:e.kept()]
	n := e.kept() - e.valueSize
	return b[:n], b[n:]
}

// resize sets the table's size (RFC 7541 section 4.3).
func (t *table) resize(max uint32) {
	t.max = max
	t.shrink(max)
}

// shrink drops the oldest entries until the rest has size bytes at most.
func (t *table) shrink(size uint32) {
	for t.size > size {
		e := &t.ring[t.first]
		t.size -= uint32(e.size()) + pack.FieldCost
		t.head += int(e.kept())
		t.first = (t.first + 1) & uint32(len(t.ring)-1)
		t.n--
	}
	if t.n == 0 {
		t.data, t.head = t.data[:0], 0
	}
}

// add adds e, of which at and valueSize are set here (RFC 7541 section 4.4). name is empty if
// e.id is not 0; e.nameSize is its length all the same.
func (t *table) add(name, value []byte, e entry) {
	e.valueSize = uint32(len(value))
	need := e.nameSize + e.valueSize + pack.FieldCost
	if need > t.max {
		t.shrink(0)
		return
	}
	t.shrink(t.max - need)
	if t.n == uint32(len(t.ring)) {
		t.growRing()
	}
	if n := len(name) + len(value); len(t.data)+n > cap(t.data) && t.head > len(t.data)/4 {
		t.base += uint32(t.head)
		t.data = t.data[:copy(t.data, t.data[t.head:])]
		t.head = 0
	}
	e.at = t.base + uint32(len(t.data))
	t.ring[(t.first+t.n)&uint32(len(t.ring)-1)] = e
	t.data = append(append(t.data, name...), value...)
	t.size += need
	t.n++
}

func (t *table) growRing() {
	ring := make([]entry, max(8, 2*len(t.ring)))
	for i := range t.n {
		ring[i] = t.ring[(t.first+i)&uint32(len(t.ring)-1)]
	}
	t.ring, t.first = ring, 0
}
