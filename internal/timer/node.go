package timer

// An ID is one timer of a Wheel. Its owner chooses it: small numbers, since the Wheel keeps
// what it knows of all timers up to the largest that was armed.
type ID = uint32

// node is what a Wheel knows of a timer, in 16 bytes without a pointer. The zero node is unarmed.
type node struct {
	next, prev ID     // a circular list; meaningless unless armed
	low        uint32 // of the tick in which it fires; see at
	high       int16
	list       uint16 // 1 + the index of the list it is in; 0 means unarmed
}

// at returns the tick in which n fires. Of 64 bits of nanoseconds a tick has 41.
func (n *node) at() int64 { return int64(n.high)<<32 | int64(n.low) }

func (n *node) set(tick int64) { n.high, n.low = int16(tick>>32), uint32(tick) }

// pageNodes is how many nodes a page has: 4 KiB. Pages never move, so that a Wheel of half a
// million timers copies nothing when there is one more.
const pageNodes = 256

func (w *Wheel) node(id ID) *node { return &w.pages[id/pageNodes][id%pageNodes] }

// has reports whether there is room for the timer: it may have been armed.
func (w *Wheel) has(id ID) bool { return id/pageNodes < ID(len(w.pages)) }

// grow makes room for a timer that may be armed for the first time.
func (w *Wheel) grow(id ID) {
	for !w.has(id) {
		w.pages = append(w.pages, new([pageNodes]node))
	}
}

// none stands for the head of an empty list. IDs are stored one higher there.
const none = 0

// link appends timer id to a list.
func (w *Wheel) link(id ID, n *node, list int) {
	n.list = uint16(list) + 1
	w.armed++
	if w.head[list] == none {
		n.next, n.prev = id, id
		w.head[list] = id + 1
		if list < wheelSlots {
			w.used[list/slots] |= 1 << (list % slots)
		}
		return
	}
	first := w.head[list] - 1
	h := w.node(first)
	n.next, n.prev = first, h.prev
	w.node(h.prev).next = id
	h.prev = id
}

// unlink removes an armed timer from its list and disarms it.
func (w *Wheel) unlink(id ID, n *node) {
	list := int(n.list) - 1
	if n.next == id {
		w.head[list] = none
		if list < wheelSlots {
			w.used[list/slots] &^= 1 << (list % slots)
		}
	} else {
		w.node(n.prev).next = n.next
		w.node(n.next).prev = n.prev
		if w.head[list] == id+1 {
			w.head[list] = n.next + 1
		}
	}
	n.list = 0
	w.armed--
}
