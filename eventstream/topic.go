package eventstream

import (
	"crypto/rand"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/chert-http/chert/internal/roster"
	"github.com/chert-http/chert/internal/sched"
	"github.com/chert-http/chert/internal/wsdeflate"
)

// TopicOptions configure a [Topic].
type TopicOptions struct {
	// HistoryEvents and HistoryBytes bound the events that are kept for clients that
	// connect again or read slowly, with the compressed forms that some of them need. The newest event is kept in any
	// case. Defaults 1000
	// and 1 MiB; negative: no limit.
	HistoryEvents, HistoryBytes int
}

// A Topic is a set of streams that get the same events, and the last of these events.
// All methods are safe for concurrent use. Make it with [NewTopic].
type Topic struct {
	prefix    string // of the IDs that it gives
	maxEvents int
	maxBytes  int

	mu sync.Mutex
	// log has the last events, of which first is the number of the oldest: each event
	// has a number, and each member the number of the event that it gets next. So a
	// member that is behind needs no copies.
	log   []entry
	first uint64
	bytes int
	// sent is the number of the event that pump sends next, unsent the size of what it
	// has not sent yet.
	sent     uint64
	unsent   int
	pumping  bool
	progress sync.Cond // of pump
	all      roster.Roster[subscription]
	zipped   int // how many of all are compressed
	// window is the last bytes of the events before number windowEnd, if any of all are
	// compressed. Only pump uses them.
	window    wsdeflate.Window
	windowEnd uint64
}

// entry is an event in the log.
type entry struct {
	id string
	frame
	z *piece // nil until a compressed stream needs it; guarded by Topic.mu
}

func (e *entry) size() int {
	n := len(e.b)
	if e.z != nil {
		n += len(e.z.b)
	}
	return n
}

const (
	defaultEvents = 1000
	defaultBytes  = 1 << 20
	// pieceSize is how much of the history is sent at once.
	pieceSize = 16 << 10
)

// NewTopic makes a [Topic]. o may be nil.
func NewTopic(o *TopicOptions) (*Topic, error) {
	if o == nil {
		o = new(TopicOptions)
	}
	t := &Topic{maxEvents: o.HistoryEvents, maxBytes: o.HistoryBytes}
	for _, v := range []struct {
		n   *int
		def int
	}{{&t.maxEvents, defaultEvents}, {&t.maxBytes, defaultBytes}} {
		if *v.n == 0 {
			*v.n = v.def
		} else if *v.n < 0 {
			*v.n = math.MaxInt
		}
	}
	t.progress.L = &t.mu
	// IDs of other processes, and of other topics, are not to be mistaken for its own.
	var random [8]byte
	rand.Read(random[:]) // never fails
	t.prefix = strconv.FormatUint(binary.NativeEndian.Uint64(random[:])|1<<63, 36) + "-"
	return t, nil
}

// subscription is a Stream in a Topic.
type subscription struct {
	t      *Topic  // immutable
	s      *Stream // immutable
	index  int     // in t.all; guarded by t.mu
	next   uint64  // the number of the next event; guarded by s.mu
	behind bool    // it goes on when the client has read; guarded by s.mu
	// anywhere: nothing was sent yet, and it begins with what the history has by then: that the
	// history goes on meanwhile does not make the client a slow one. Guarded by s.mu.
	anywhere bool
}

// Join makes s get the events of the topic from now on. Called by OnOpen, it first sends
// those that the client has missed: what has followed the event of s.LastEventID. If the
// topic does not have that event, because it is too old or another process has sent it,
// these are all that it has, and complete is false. complete is also true if the client
// has named no event; it then receives the ID of the newest, so that it misses none if it
// is cut off before the next. A stream that is in the topic already stays where it is.
//
// A stream may be in several topics. Their events have different IDs, and a client names
// only the last that it has received: use JoinAfter with what your IDs say.
func (t *Topic) Join(s *Stream) (complete bool) {
	id := s.LastEventID()
	return t.join(s, id, id == "")
}

// JoinAfter is Join after the event with this ID; "" means from now on.
func (t *Topic) JoinAfter(s *Stream, id string) (complete bool) { return t.join(s, id, false) }

// join is JoinAfter. announce: the client receives the ID of the newest event.
func (t *Topic) join(s *Stream, id string, announce bool) (complete bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.subs, func(m *subscription) bool { return m.t == t }) {
		return true
	}
	m := &subscription{t: t, s: s}
	newest, complete := t.add(m, id)
	if s.gone {
		t.remove(m)
		return complete
	}
	s.subs = append(s.subs, m)
	if announce {
		f := newFrame(len(newest)+16,
			func(b []byte) []byte { return append(append(append(b, "id: "...), newest...), "\n\n"...) })
		s.force(&f)
	}
	m.catchUp()
	return complete
}

// add makes m a member that gets what follows the event with this ID. newest is the ID of
// the newest event.
func (t *Topic) add(m *subscription, id string) (newest string, complete bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	end := t.end()
	if newest = t.id(end); len(t.log) > 0 {
		newest = t.log[len(t.log)-1].id
	}
	if m.next, complete = t.after(id); id == "" {
		m.next, complete = end, true
	} else if !complete {
		m.next, m.anywhere = t.first, true
	}
	m.index = t.all.Add(m)
	if m.s.z != nil {
		t.zipped++
	}
	return newest, complete
}

// id returns the ID that the topic gives to the event before number n.
func (t *Topic) id(n uint64) string { return t.prefix + strconv.FormatUint(n, 10) }

// after returns the number of the event that follows the one with this ID, if the log has
// all from there on. mu is held.
func (t *Topic) after(id string) (n uint64, ok bool) {
	if v, own := strings.CutPrefix(id, t.prefix); own {
		n, err := strconv.ParseUint(v, 10, 64)
		return n, err == nil && n >= t.first && n <= t.end()
	}
	for i := len(t.log) - 1; i >= 0; i-- { // usually one of the newest
		if t.log[i].id == id {
			return t.first + uint64(i) + 1, true
		}
	}
	return 0, false
}

// Leave ends what Join has begun.
func (t *Topic) Leave(s *Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subs = slices.DeleteFunc(s.subs, func(m *subscription) bool {
		if m.t == t {
			t.remove(m)
		}
		return m.t == t
	})
}

func (t *Topic) remove(m *subscription) {
	t.mu.Lock()
	defer t.mu.Unlock()
	moved, ok := t.all.Remove(m.index, m)
	if moved != nil {
		moved.index = m.index
	}
	if ok && m.s.z != nil {
		t.zipped--
	}
}

// Len returns how many streams are in the topic.
func (t *Topic) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all.Len()
}

// Publish sends an event to all streams of the topic and returns its ID, which the topic
// makes up if the event has none. The event is encoded once, and sent by another
// goroutine together with those that are published meanwhile; Publish waits only while
// half of the history has not been sent yet, never for clients. All streams get the
// events in the same order, and before what Stream.Send sends afterwards. The error wraps
// ErrField if the event cannot be sent.
func (t *Topic) Publish(e Event) (id string, err error) {
	if err := e.check(); err != nil {
		return "", err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.lag() {
		t.progress.Wait()
		if sched.On() {
			t.mu.Unlock()
			sched.Point("progress", 0)
			t.mu.Lock()
		}
	}
	n := t.end()
	if e.ID == "" {
		e.ID = t.id(n + 1)
	}
	f := e.frame()
	t.log = append(t.log, entry{id: e.ID, frame: f})
	t.bytes += len(f.b)
	if t.unsent += len(f.b); !t.pumping {
		if t.all.Len() > 0 {
			t.pumping = true
			go t.pump()
		} else {
			t.sent, t.unsent = n+1, 0
		}
	}
	for len(t.log) > 1 && t.first < t.sent && (len(t.log) > t.maxEvents || t.bytes > t.maxBytes) {
		t.bytes -= t.log[0].size()
		t.log[0] = entry{}
		t.log = t.log[1:]
		t.first++
	}
	return e.ID, nil
}

// end is the number of the event after the newest. mu is held.
func (t *Topic) end() uint64 { return t.first + uint64(len(t.log)) }

// lag reports whether much is unsent: events must not be dropped from the history before
// they have been sent to clients that read. mu is held.
func (t *Topic) lag() bool {
	return t.end()-t.sent >= uint64(max(t.maxEvents/2, 1)) || t.unsent > t.maxBytes/2
}
