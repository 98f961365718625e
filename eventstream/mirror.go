package eventstream

import (
	"errors"
	"time"
)

// This file is what a store needs to keep the events of a topic, so that several processes
// share it: package redistopic below this one is such a store. The topic is then a mirror of
// the newest events that the store has, and does with them what it does with its own: a client
// costs the store nothing.
//
// A client names the event that it has received last, perhaps from another process, which may
// be ahead of this one. IDs of a store are ordered, so the client is known to be ahead, and
// waits for what follows. What this process has not got and the store has not either is lost.

// ErrID is returned for an event with an ID of its own that is published in a topic of a
// store, which gives IDs itself.
var ErrID = errors.New("eventstream: an event of a store must not have an ID of its own")

// A Source is the store of one topic, as the topic sees it: a package for a store implements
// it, as redistopic does. Its methods are safe for
// concurrent use.
type Source interface {
	// Publish stores an event, which has no ID, and returns the ID that it has got. It may
	// wait for the store.
	Publish(e Event) (id string, err error)
	// Compare compares two IDs, as [strings.Compare] does. ok is false if one of them is not
	// of this store.
	Compare(a, b string) (order int, ok bool)
	// Wanted is called when a stream has joined a topic that is not loaded. It must not wait.
	Wanted()
	// Ahead is called when a client has received an event that this process has not got: the
	// store is to call [Mirror.Mark] and [Mirror.Current]. It must not wait.
	Ahead()
}

// stored is what a Topic has for its store. source is nil if there is none, and immutable.
type stored struct {
	source   Source
	unloaded bool                   // the log is not known yet
	base     string                 // the ID before the first of log; "" if that is not known
	fresh    uint64                 // the end of what was loaded
	since    func(time.Time) string // of Mirror.Load, during it
	waiters  int                    // members that wait
	marks    uint32                 // how often Mark has been called
	current  uint32                 // and by when the log had all that the store had
}

// A Mirror is the side of a [Topic] that a store has. Its methods belong to one goroutine.
type Mirror struct{ t *Topic }

// NewMirror makes a topic whose events are those of a store, for the package of that store. It is
// empty until [Mirror.Load]: streams may join before, and wait. o may be nil.
func NewMirror(s Source, o *TopicOptions) (*Topic, Mirror, error) {
	own := TopicOptions{}
	if o != nil {
		own = *o
	}
	if own.Gap == nil {
		own.Gap = &Event{Type: "gap"}
	}
	t, err := NewTopic(&own)
	if err != nil {
		return nil, Mirror{}, err
	}
	t.source, t.unloaded = s, true
	return t, Mirror{t}, nil
}

// Load begins with the events that the store has, of which base is the ID of the one before
// the first, or "" if that is not known. Streams that have joined get what has followed the
// events that their clients name. Those whose clients name none get what the store got after
// they have joined: since returns, for a time, an ID that is less than those of all events
// since then. If it is nil they get what follows all.
func (m Mirror) Load(base string, all []Event, since func(time.Time) string) {
	t := m.t
	t.mu.Lock()
	if t.unloaded {
		t.empty(base)
		for _, e := range all {
			if e.check() == nil {
				t.append(e.ID, e.frame())
			}
		}
		t.sent, t.unsent = t.end(), 0
		t.trim()
		t.unloaded, t.fresh, t.since = false, t.end(), since
	}
	t.mu.Unlock()
	t.resume()
	t.mu.Lock()
	t.since = nil // all that waited for Load have begun
	ahead := t.waiters > 0
	t.mu.Unlock()
	if ahead {
		t.source.Ahead()
	}
}

// fewMembers is up to how many streams of a topic the store's goroutine sends to itself. For more
// it would keep other topics waiting; for fewer another goroutine costs more than what it does.
const fewMembers = 64

// Append adds events that have followed in the store, and sends them together. It returns how
// many were refused: those that others have stored there with a Type or an ID that would forge
// other fields.
func (m Mirror) Append(more []Event) (refused int) {
	t := m.t
	t.mu.Lock()
	refused = t.extend(more)
	n := t.all.Len()
	own := !t.pumping && n > 0 && n <= fewMembers
	if own {
		t.pumping = true
	} else {
		t.send()
	}
	t.mu.Unlock()
	if own {
		t.pump()
	}
	return refused
}

// extend adds events of the store, and returns how many were refused. It waits for pump as Publish does; the last
// ones are still to be sent. mu is held.
func (t *Topic) extend(more []Event) (refused int) {
	for i := range more {
		e := &more[i]
		if e.check() != nil || e.ID == "" {
			refused++
			continue
		}
		if t.lag() {
			t.send()
			t.wait()
		}
		t.append(e.ID, e.frame())
	}
	return refused
}

// Lost is called when the store does not have the newest event of the topic any more, of
// which all is what it has: it has lost events, or dropped some that this process has not read.
// All streams get TopicOptions.Gap, and then what of all they have not got.
func (m Mirror) Lost(all []Event) {
	t := m.t
	t.mu.Lock()
	defer t.mu.Unlock()
	all = t.unknown(all)
	t.wait()
	t.append("", *t.gap)
	t.extend(all)
	t.send()
}

// unknown returns the events of a store that follow those of the log. mu is held.
func (t *Topic) unknown(all []Event) []Event {
	have := make(map[string]bool, len(t.log))
	for i := range t.log {
		have[t.log[i].id] = true
	}
	newest := t.newest()
	for i := len(all) - 1; i >= 0; i-- {
		if have[all[i].ID] {
			return all[i+1:]
		}
	}
	for i := range all {
		// Nothing in common: what has an older ID may have been sent long ago.
		if order, ok := t.source.Compare(all[i].ID, newest); ok && order > 0 {
			return all[i:]
		}
	}
	return nil
}

// Newest returns the ID of the newest event, that before the first if there is none, or "".
func (m Mirror) Newest() string {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	return m.t.newest()
}

// Mark is called before the store is read.
func (m Mirror) Mark() {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	m.t.marks++
}

// Current is called when the topic has all that was in the store at the last Mark: clients
// that have been waiting since before for what follows an event that is not there wait in
// vain. They get TopicOptions.Gap.
func (m Mirror) Current() {
	t := m.t
	t.mu.Lock()
	t.current = t.marks
	t.mu.Unlock()
	t.resume()
}

// Unload drops the events of a topic that has no streams, and reports whether it has none.
// After that the topic has to be loaded again when the Source says so.
func (m Mirror) Unload() bool {
	t := m.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all.Len() > 0 || t.pumping {
		return false
	}
	t.empty("")
	t.unloaded = true
	return true
}

// empty drops all events. base is the ID of the one before the next. mu is held.
func (t *Topic) empty(base string) {
	t.first = t.end()
	t.sent, t.unsent = t.first, 0
	t.log, t.bytes, t.base = nil, 0, base
}

// waiting is of a member that waits for the store.
type waiting struct {
	after    string // the ID that the client has named; "" for from now on
	announce bool   // it gets the ID of the newest event
	mark     uint32 // Topic.marks when it began
	joined   time.Time
}

// find makes m a member of a topic of a store that gets what follows the event with this ID.
// mu is held. If it is not known yet what that is, m waits, and complete is true.
func (t *Topic) find(m *subscription, id string, announce bool) (complete bool) {
	if !t.unloaded && id == "" {
		m.next = t.end()
		return true
	}
	if !t.unloaded && t.seek(m, id) {
		return !m.missed
	}
	m.wait = &waiting{after: id, announce: announce, mark: t.marks, joined: time.Now()}
	m.behind = true
	t.waiters++
	return true
}

// seek finds the place of m after the event with this ID, and returns false if that is newer
// than what there is. m.missed is set if events between are missing. mu is held.
func (t *Topic) seek(m *subscription, id string) bool {
	if _, ok := t.source.Compare(id, id); !ok { // of another store
		m.next, m.missed, m.anywhere = t.first, true, true
		return true
	}
	n := t.end()
	for i := len(t.log) - 1; i >= 0; i-- {
		have := t.log[i].id
		if have == id {
			m.next = t.first + uint64(i) + 1
			return true
		}
		if order, ok := t.source.Compare(have, id); ok && order < 0 {
			break // usually at once, since clients name one of the newest
		}
		n = t.first + uint64(i)
	}
	if n == t.first && id == t.base {
		m.next = n
		return true
	}
	if n == t.end() {
		return false
	}
	m.next, m.missed, m.anywhere = n, true, n == t.first
	return true
}

// found ends the waiting of m, if what it waits for has come. s.mu and Topic.mu are held.
func (t *Topic) found(m *subscription) (ok bool) {
	w := m.wait
	switch {
	case t.unloaded:
		return false
	case w.after == "":
		t.begin(m)
	case t.seek(m, w.after):
	case int32(t.current-w.mark) > 0:
		m.next, m.missed = t.end(), true
	default:
		return false
	}
	m.wait, m.behind = nil, false
	t.waiters--
	return true
}

// settled ends the waiting of m, if what it waits for has come. s.mu is held.
func (m *subscription) settled() bool {
	t, w := m.t, m.wait
	t.mu.Lock()
	ok := t.found(m)
	last := t.before(m.next)
	t.mu.Unlock()
	if ok && w.announce && last != "" {
		m.s.announce(last)
	}
	return ok
}

// begin finds the place of m, which has waited for Load, after what there was when it joined. mu
// is held.
func (t *Topic) begin(m *subscription) {
	m.next = max(t.fresh, t.first)
	if t.since == nil {
		return
	}
	then := t.since(m.wait.joined)
	newer := func(id string) bool {
		order, ok := t.source.Compare(id, then)
		return ok && order > 0
	}
	for m.next > t.first && newer(t.log[m.next-t.first-1].id) {
		m.next--
	}
	m.missed = m.next == t.first && newer(t.base)
	m.anywhere = m.missed
}

// resume lets all members that wait go on, as far as they can.
func (t *Topic) resume() {
	t.mu.Lock()
	if t.waiters == 0 {
		t.mu.Unlock()
		return
	}
	all := t.all.Snapshot()
	t.mu.Unlock()
	for m := range all.All() {
		m.s.mu.Lock()
		if m.wait != nil && m.open() {
			m.catchUp()
		}
		m.s.mu.Unlock()
	}
}
