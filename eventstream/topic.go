package eventstream

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"errors"
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
	// Gap is sent to a client that has missed events which the topic does not have any
	// more, before those that it still has: Join says so only to the program. Default: none,
	// and of a topic of a store an event of type "gap" without data. It must have no ID.
	Gap *Event
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
	// window is the last bytes of the events before number windowEnd, if compressed streams have
	// got the last of them. Only pump uses them.
	window    wsdeflate.Window
	windowEnd uint64

	gap *frame // nil for none; immutable
	stored
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
	most := func(n, def int) int {
		if n < 0 {
			return math.MaxInt
		}
		return cmp.Or(n, def)
	}
	t := &Topic{maxEvents: most(o.HistoryEvents, defaultEvents), maxBytes: most(o.HistoryBytes, defaultBytes)}
	if o.Gap != nil {
		if err := o.Gap.check(); err != nil {
			return nil, err
		}
		if o.Gap.ID != "" {
			return nil, errors.New("eventstream: TopicOptions: Gap: it has an ID")
		}
		f := o.Gap.frame()
		t.gap = &f
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
	missed   bool // Topic.gap is sent before what comes next; guarded by s.mu
	// wait is not nil if it is not known yet what m gets next: it is behind then. Guarded by s.mu
	// and Topic.mu: both are held where it is changed.
	wait *waiting
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
//
// If the topic is one of a store, it may not be known yet what the client has missed; then
// complete is true, and TopicOptions.Gap tells the client if something is missing.
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
	newest, complete := t.add(m, id, announce)
	if s.ended {
		t.remove(m)
		return complete
	}
	s.subs = append(s.subs, m)
	if announce && m.wait == nil && newest != "" {
		s.announce(newest)
	}
	m.catchUp()
	return complete
}

// announce sends the ID of the newest event. mu is held.
func (s *Stream) announce(newest string) {
	f := newFrame(len(newest)+16,
		func(b []byte) []byte { return append(append(append(b, "id: "...), newest...), "\n\n"...) })
	s.force(&f)
}

// add makes m a member that gets what follows the event with this ID. newest is the ID of
// the newest event.
func (t *Topic) add(m *subscription, id string, announce bool) (newest string, complete bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	newest = t.newest()
	if t.source != nil {
		complete = t.find(m, id, announce)
		defer t.ask(m)
	} else if m.next, complete = t.after(id); id == "" {
		m.next, complete = t.end(), true
	} else if !complete {
		m.next, m.anywhere, m.missed = t.first, true, true
	}
	m.index = t.all.Add(m)
	return newest, complete
}

// ask asks the store for what m waits for. mu is held.
func (t *Topic) ask(m *subscription) {
	if t.unloaded {
		t.source.Wanted()
	} else if m.wait != nil {
		t.source.Ahead()
	}
}

// newest returns the ID of the newest event, or what stands for it if there is none. mu is
// held.
func (t *Topic) newest() string {
	if id := t.before(t.end()); id != "" || t.source != nil {
		return id
	}
	return t.id(t.end())
}

// before returns the ID of the last event before number n. mu is held.
func (t *Topic) before(n uint64) string {
	for ; n > t.first; n-- {
		if id := t.log[n-t.first-1].id; id != "" { // not a gap
			return id
		}
	}
	return t.base
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
	if ok && m.wait != nil {
		t.waiters--
	}
}

// Len returns how many streams are in the topic.
func (t *Topic) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all.Len()
}

// Publish sends an event to all streams of the topic and returns its ID, which the topic
// makes up if the event has none; in a topic of a store it must have none. The event is encoded
// once, and sent by another goroutine together with those that are published meanwhile; Publish
// waits only while half of the history has not been sent yet, never for clients. All streams get the
// events in the same order, and before what Stream.Send sends afterwards. The error wraps
// ErrField if the event cannot be sent. In a topic of a store Publish waits for the store, and
// streams get the event when it comes from there; an error may be the store's.
func (t *Topic) Publish(e Event) (id string, err error) {
	if err := e.check(); err != nil {
		return "", err
	}
	if e.ID == "" && e.Type == "" && e.Data == "" && e.Retry <= 0 {
		e.Type = "message" // what it is without one; with an ID alone it would not be dispatched
	}
	if t.source != nil {
		if e.ID != "" {
			return "", ErrID
		}
		return t.source.Publish(e)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wait()
	if e.ID == "" {
		e.ID = t.id(t.end() + 1)
	}
	t.append(e.ID, e.frame())
	t.send()
	return e.ID, nil
}

// wait waits while much is unsent. mu is held, and released meanwhile.
func (t *Topic) wait() {
	for t.lag() {
		t.progress.Wait()
		if sched.On() {
			t.mu.Unlock()
			sched.Point("progress", 0)
			t.mu.Lock()
		}
	}
}

// append adds an event to the log. mu is held.
func (t *Topic) append(id string, f frame) {
	t.log = append(t.log, entry{id: id, frame: f})
	t.bytes += len(f.b)
	t.unsent += len(f.b)
}

// send has the event sent that append has added, by pump if there are streams, and drops the oldest ones. mu is
// held.
func (t *Topic) send() {
	switch {
	case t.pumping:
	case t.all.Len() > 0:
		t.pumping = true
		go t.pump()
	default:
		t.sent, t.unsent = t.end(), 0
	}
	t.trim()
}

// trim drops the oldest events that there is no room for. mu is held.
func (t *Topic) trim() {
	for len(t.log) > 1 && t.first < t.sent && (len(t.log) > t.maxEvents || t.bytes > t.maxBytes) {
		t.bytes -= t.log[0].size()
		if t.source != nil {
			t.base = t.log[0].id
		}
		t.log[0] = entry{}
		t.log = t.log[1:]
		t.first++
	}
}

// end is the number of the event after the newest. mu is held.
func (t *Topic) end() uint64 { return t.first + uint64(len(t.log)) }

// lag reports whether much is unsent: events must not be dropped from the history before
// they have been sent to clients that read. mu is held.
func (t *Topic) lag() bool {
	return t.end()-t.sent >= uint64(max(t.maxEvents/2, 1)) || t.unsent > t.maxBytes/2
}
