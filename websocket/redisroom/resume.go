package redisroom

import (
	"time"

	"github.com/chert-http/chert/internal/redisstream"
	"github.com/chert-http/chert/websocket"
)

// This file has how connections that wait become those that get messages.

// waiting is a connection that gets what follows the message with an ID, which is not here yet.
type waiting struct {
	after string // "" until Load, for from now on
	mark  uint32
	// joined is when that now was; zero if a message may have had the ID.
	joined time.Time
	begun  bool // it is to get no more before it has accepted what has been sent
}

// enter makes a connection one that gets messages. mu is held.
func (r *Room) enter(c *websocket.Conn) {
	if delete(r.waiting, c); !r.local.Join(c) {
		r.absent(c)
	}
}

// place sends a connection that waits what it has missed, as far as there is room for that, and
// reports false if it is not known yet. mu is held.
func (r *Room) place(c *websocket.Conn) bool {
	w := r.waiting[c]
	if !r.loaded {
		return false
	}
	if w.begun && c.Congested() { // first: there may be many, which do not read
		r.later()
		return true
	}
	next, missed := r.find(w)
	if next < 0 {
		if int32(r.current-w.mark) <= 0 {
			return false
		}
		next, missed = len(r.log), true
	}
	rest, history := r.log[next:], r.s.o.History > 0 // without, what does not fit now will be gone
	if history && len(rest) > 0 && c.Congested() {
		w.begun = true
		r.waiting[c] = w
		r.later()
		return true
	}
	if missed && r.s.o.Gap != "" {
		c.Send(websocket.TypeText, []byte(r.s.o.Gap))
	}
	for _, m := range rest {
		if c.Send(m.t, m.p); history && m.id != "" && c.Congested() {
			r.waiting[c] = waiting{after: m.id, mark: w.mark, begun: true}
			r.later()
			return true
		}
	}
	r.enter(c)
	return true
}

// drainTime is after what time it is looked whether connections have accepted what was sent.
const drainTime = 10 * time.Millisecond

// later lets those go on that have got a part of what they have missed. mu is held.
func (r *Room) later() {
	if r.timed {
		return
	}
	r.timed = true
	time.AfterFunc(drainTime, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.timed = false; r.loaded {
			r.settle()
		}
	})
}

// find returns the index of the message that w gets next, -1 if the one before is newer than
// all, and whether some between are missing, of which the log does not tell. mu is held.
func (r *Room) find(w waiting) (next int, missed bool) {
	if _, ok := redisstream.Compare(w.after, w.after); !ok {
		return 0, true
	}
	now := !w.joined.IsZero()
	if !now && newer(w.after, r.newest) {
		return -1, false
	}
	for next = len(r.log); next > 0; next-- {
		order, ok := redisstream.Compare(r.log[next-1].id, w.after)
		if !ok || order > 0 { // not of a gap
			continue
		}
		told := next == len(r.log) || r.log[next].id == ""
		return next, order < 0 && !now && !told
	}
	if now {
		return 0, newer(r.base, w.after)
	}
	return 0, w.after != r.base && (len(r.log) == 0 || r.log[0].id != "")
}

// newerThan returns the entries whose IDs are greater than one.
func newerThan(id string, all []redisstream.Entry) []redisstream.Entry {
	for i := range all {
		if newer(all[i].ID, id) {
			return all[i:]
		}
	}
	return nil
}

// newer reports whether a is an ID that is greater than b.
func newer(a, b string) bool {
	order, ok := redisstream.Compare(a, b)
	return ok && order > 0
}

// settle sends those who wait what they have missed, if that is known. mu is held.
func (r *Room) settle() {
	ahead := false
	for c := range r.waiting {
		ahead = !r.place(c) || ahead
	}
	if ahead {
		r.stream.Ahead()
	}
}
