package loop

import "github.com/chert-http/chert/internal/poll"

// pageSlots is how many slots a page has: 6 KiB.
const pageSlots = 256

// slots are where a loop's Socks are. They are in pages, which never move, so that no turn
// copies half a million of them when there are more than ever before. Slot 0 stays empty:
// Handle{} refers to nothing, and its timer is the pool's.
type slots struct {
	pages []*[pageSlots]slot
	count int    // slots that there are, 0 included
	free  uint32 // the first empty one, which has the next; 0: none
}

// A slot is the place of one Sock. Its index is the ID of the Sock's timer.
type slot struct {
	sock Sock // nil: empty
	gen  uint32
	// state has queued if the Sock is in due or later, for this generation, and the events
	// that wait with it below that. Of an empty slot it is the next empty one; 0: none.
	state uint32
}

const queued = 1 << 8

// missed returns the events that wait for the Sock's entry in the queue.
func (sl *slot) missed() poll.Ready { return poll.Ready(sl.state &^ queued) }

func (s *slots) at(i uint32) *slot { return &s.pages[i/pageSlots][i%pageSlots] }

// take returns an empty slot, which belongs to the caller.
func (s *slots) take() (i uint32) {
	if i = s.free; i != 0 {
		s.free = s.at(i).state
		return i
	}
	if s.count%pageSlots == 0 {
		s.pages = append(s.pages, new([pageSlots]slot))
		s.count = max(s.count, 1)
	}
	i = uint32(s.count)
	s.count++
	return i
}

// put returns slot i, which is empty.
func (s *slots) put(i uint32) {
	s.at(i).state = s.free
	s.free = i
}
