package tlsio

import (
	"container/list"

	"github.com/chert-http/chert/internal/loop"
)

// line is the handshakes that have not begun, by the addresses of their clients. An address
// that has just come is next, one that was served waits for all others that were: so a
// flood from some addresses does not delay the clients of others, however long the line is.
//
// Among addresses that have just come, and among the clients of one, the newest is next: in
// an overload the oldest are those whose clients have given up. But every fourth time the
// one that has waited longest is next, so that a client that stays is served in the end:
// in turn of the addresses that were served and of those that have just come, either of
// which others may keep coming to.
type line struct {
	n       int
	by      map[string]*address
	arrived list.List // of *address, not served since they wait; oldest first
	served  list.List // of *address, the one that was served longest ago first
	turn    int
}

// address is a client's address, and its handshakes that wait.
type address struct {
	host    string
	waiting list.List // of *Handshake, oldest first
	in      *list.List
	at      *list.Element
}

// fair is how many times out of which the one that has waited longest is next.
const fair = 4

func (l *line) push(h *Handshake) {
	host := loop.Host(h.link.Peer().RemoteAddr)
	a := l.by[host]
	if a == nil {
		if l.by == nil {
			l.by = make(map[string]*address)
		}
		a = &address{host: host, in: &l.arrived}
		a.at = a.in.PushBack(a)
		l.by[host] = a
	}
	h.from, h.at = a, a.waiting.PushBack(h)
	l.n++
}

func (l *line) remove(h *Handshake) {
	a := h.from
	a.waiting.Remove(h.at)
	h.from, h.at = nil, nil
	if l.n--; a.waiting.Len() == 0 {
		a.in.Remove(a.at)
		delete(l.by, a.host)
	}
}

// take removes the next one. There must be one.
func (l *line) take() (h *Handshake) {
	l.turn = (l.turn + 1) % (2 * fair)
	longest := l.turn%fair == 0
	e := l.arrived.Back()
	switch {
	case l.turn == 0 && l.served.Len() > 0 || e == nil:
		e = l.served.Front()
	case longest:
		e = l.arrived.Front()
	}
	a := e.Value.(*address)
	next := a.waiting.Back()
	if longest {
		next = a.waiting.Front()
	}
	h = next.Value.(*Handshake)
	l.remove(h)
	if a.waiting.Len() > 0 {
		a.in.Remove(a.at)
		a.in = &l.served
		a.at = a.in.PushBack(a)
	}
	return h
}
