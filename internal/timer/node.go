package timer

// Node is one timer, meant to be embedded in the struct it times. Its zero
// value is unarmed. An armed node must not be copied or moved: its neighbours
// point to it. 32 bytes on 64-bit systems.
type Node struct {
	next, prev *Node // a circular list; meaningless unless armed
	when       int64
	// Key is for the owner, to find what has expired. The wheel does not use
	// it.
	Key  uint32
	list uint16 // 1 + the index of the list it is in; 0 means unarmed
}

// Armed reports whether n is waiting to fire.
func (n *Node) Armed() bool { return n.list != 0 }

// When returns the time n was last armed for. It is kept after n has fired or
// was stopped.
func (n *Node) When() int64 { return n.when }

// link appends n to a list.
func (w *Wheel) link(n *Node, list int) {
	n.list = uint16(list) + 1
	w.armed++
	h := w.head[list]
	if h == nil {
		n.next, n.prev = n, n
		w.head[list] = n
		if list < wheelSlots {
			w.used[list/slots] |= 1 << (list % slots)
		}
		return
	}
	n.next, n.prev = h, h.prev
	h.prev.next = n
	h.prev = n
}

// unlink removes an armed node from its list and disarms it.
func (w *Wheel) unlink(n *Node) {
	list := int(n.list) - 1
	if n.next == n {
		w.head[list] = nil
		if list < wheelSlots {
			w.used[list/slots] &^= 1 << (list % slots)
		}
	} else {
		n.prev.next = n.next
		n.next.prev = n.prev
		if w.head[list] == n {
			w.head[list] = n.next
		}
	}
	// The links are cleared so that an idle node keeps no other owner alive.
	n.next, n.prev = nil, nil
	n.list = 0
	w.armed--
}
