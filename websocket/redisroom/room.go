package redisroom

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/chert-http/chert/internal/exec"
	"github.com/chert-http/chert/internal/redisstream"
	"github.com/chert-http/chert/websocket"
)

// A Room is a set of connections, on any number of processes, that receive the same messages.
// Its methods are safe for concurrent use.
type Room struct {
	s      *Store
	name   string
	stream *redisstream.Stream
	local  websocket.Room // the connections here that get messages
	waited websocket.Room // those that wait or have waited, so that their end is known

	// mu orders messages and those who join. It comes before the locks of local and of streams.
	mu     sync.Mutex
	loaded bool
	log    []message // the newest
	base   string    // the ID before the first of log, or of newest; "" if that is not known
	newest string    // the ID of the message that was read last
	// waiting has connections of which it is not known yet what they have missed.
	waiting        map[*websocket.Conn]waiting
	marks, current uint32
	timed          bool                       // later has been called
	users          map[*websocket.Conn]string // that Join has named
}

// message is one as connections get it.
type message struct {
	id string // "" for Options.Gap
	t  websocket.Type
	p  []byte
}

func newRoom(s *Store, name string) *Room {
	r := &Room{s: s, name: name, waiting: make(map[*websocket.Conn]waiting), users: make(map[*websocket.Conn]string)}
	r.stream = s.streams.Stream(name, (*sink)(r))
	r.local.OnLeave, r.waited.OnLeave = r.gone, r.gone
	return r
}

// JoinOptions are what Join knows of a connection.
type JoinOptions struct {
	// User is who it is for Room.Users, at most 512 bytes. Default: nobody.
	User string
	// After is the ID of the last message that the client has received, after which the
	// connection continues, if there is Options.History; what it has missed is sent as fast as it
	// reads. Default: it gets messages from now on.
	After string
}

// Join adds a connection, until it leaves or ends. nil is a connection of nobody, from now on.
// With JoinOptions.After it first gets the messages that it has missed; if some are missing,
// Options.Gap comes before. A connection that is in the room already stays where it is.
func (r *Room) Join(c *websocket.Conn, o *JoinOptions) error {
	if o == nil {
		o = &JoinOptions{}
	}
	user, after := o.User, o.After
	if user != "" {
		if err := checkName("user", user); err != nil {
			return err
		}
	}
	if r.s.streams.Closed() {
		return errClosed
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.s.o.History == 0 {
		after = ""
	}
	if user != "" {
		if _, known := r.users[c]; !known {
			r.users[c] = user
			r.s.presence.add(atRoom+r.name, user)
		}
	}
	if _, waits := r.waiting[c]; waits || r.local.Has(c) {
		return nil
	}
	if !r.loaded {
		r.stream.Wanted()
	}
	w := waiting{after: after, mark: r.marks}
	if after == "" {
		if r.loaded {
			r.enter(c)
			return nil
		}
		w.joined = time.Now()
	}
	if !r.waited.Join(c) {
		r.absent(c)
		return nil
	}
	if r.waiting[c] = w; !r.place(c) && r.loaded {
		r.stream.Ahead()
	}
	return nil
}

// Leave ends what Join has begun.
func (r *Room) Leave(c *websocket.Conn) {
	r.mu.Lock()
	delete(r.waiting, c)
	r.absent(c)
	r.mu.Unlock()
	r.local.Leave(c) // only now: one that waits would have entered meanwhile
	r.waited.Leave(c)
}

// gone is called when a connection has left local or waited. The room itself makes none leave
// with mu held. One that is in local has joined again since; if it has ended, it leaves that too.
func (r *Room) gone(c *websocket.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.local.Has(c) {
		return
	}
	delete(r.waiting, c)
	r.absent(c)
}

// absent ends the presence of a connection's user. mu is held.
func (r *Room) absent(c *websocket.Conn) {
	if user, ok := r.users[c]; ok {
		delete(r.users, c)
		r.s.presence.remove(atRoom+r.name, user)
	}
}

// Len returns how many connections of this process are in the room.
func (r *Room) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.local.Len() + len(r.waiting)
}

// Users returns who is in the room, on all processes, each once and in order.
func (r *Room) Users(ctx context.Context) ([]string, error) {
	all, err := r.s.at(ctx, atRoom+r.name)
	if err != nil {
		return nil, err
	}
	var users []string
	for _, who := range all {
		if n := len(users); n == 0 || users[n-1] != who.member {
			users = append(users, who.member)
		}
	}
	return users, nil
}

// Broadcast sends a message to all connections in the room, on all processes, and returns its ID.
// It waits for Redis, up to Options.Timeout, never for clients. With Options.Queue there is no
// ID if the message waits for Redis.
func (r *Room) Broadcast(t websocket.Type, p []byte) (id string, err error) {
	if t > websocket.TypeBinary {
		return "", fmt.Errorf("redisroom: Broadcast: unknown type %d", t)
	}
	id, err = r.stream.Add(fieldsOf(t, p)...)
	return id, ours(err)
}

// The names of an entry's fields.
const (
	fieldText   = "t"
	fieldBinary = "b"
	fieldUser   = "u"
)

func fieldsOf(t websocket.Type, p []byte) []string {
	name := fieldText
	if t == websocket.TypeBinary {
		name = fieldBinary
	}
	return append(make([]string, 0, 6), name, string(p))
}

func messageOf(e *redisstream.Entry) (websocket.Type, []byte) {
	if p, ok := e.Values[fieldBinary].(string); ok {
		return websocket.TypeBinary, []byte(p)
	}
	p, _ := e.Values[fieldText].(string)
	return websocket.TypeText, []byte(p)
}

// sink is a Room as the reader of its stream sees it.
type sink Room

// message returns an entry as connections get it. ok is false if Options.Encode has panicked.
func (r *Room) message(e *redisstream.Entry) (m message, ok bool) {
	m.id = e.ID
	if m.t, m.p = messageOf(e); r.s.o.Encode == nil {
		return m, true
	}
	ok = exec.Call(func() { m.t, m.p = r.s.o.Encode(e.ID, m.t, m.p) }, func(end exec.End) {
		end.Log(r.s.o.Logger, "rooms: a panic in Encode; the message is left out", "room", r.name, "id", e.ID)
	})
	return m, ok
}

// keep adds a message to the log. mu is held.
func (r *Room) keep(m message) {
	if r.s.o.History == 0 {
		r.base = m.id
		return
	}
	r.log = append(r.log, m)
	r.trim()
}

// trim drops what is beyond the history. mu is held.
func (r *Room) trim() {
	for len(r.log) > r.s.o.History {
		r.base = r.log[0].id
		r.log[0] = message{}
		r.log = r.log[1:]
	}
}

// Load implements redisstream.Sink.
func (k *sink) Load(base string, all []redisstream.Entry, since func(time.Time) string) {
	r := (*Room)(k)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.loaded, r.base, r.log, r.newest = true, base, nil, base
	from := max(len(all)-r.s.o.History, 0)
	for c, w := range r.waiting {
		if w.after == "" {
			w.after = since(w.joined)
			r.waiting[c] = w
			for from > 0 && newer(all[from-1].ID, w.after) {
				from--
			}
		}
	}
	if from > 0 {
		r.base = all[from-1].ID
	}
	if len(all) > 0 {
		r.newest = all[len(all)-1].ID
	}
	for i := range all[from:] {
		if m, ok := r.message(&all[from+i]); ok {
			r.log = append(r.log, m)
		}
	}
	r.settle()
	r.trim()
}

// Append implements redisstream.Sink.
func (k *sink) Append(more []redisstream.Entry) {
	r := (*Room)(k)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range more {
		r.newest = more[i].ID
		m, ok := r.message(&more[i])
		if !ok {
			continue
		}
		r.local.Broadcast(m.t, m.p)
		r.keep(m)
		for c := range r.waiting {
			r.place(c)
		}
	}
}

// Lost implements redisstream.Sink.
func (k *sink) Lost(all []redisstream.Entry) {
	r := (*Room)(k)
	r.mu.Lock()
	newest := r.newest
	if r.s.o.Gap != "" {
		gap := message{t: websocket.TypeText, p: []byte(r.s.o.Gap)}
		r.local.Broadcast(gap.t, gap.p)
		r.keep(gap) // for those who come back across it
	}
	r.mu.Unlock()
	k.Append(newerThan(newest, all))
}

// Mark implements redisstream.Sink.
func (k *sink) Mark() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.marks++
}

// Current implements redisstream.Sink.
func (k *sink) Current() {
	r := (*Room)(k)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current = r.marks
	r.settle()
}

// Unload implements redisstream.Sink.
func (k *sink) Unload() bool {
	r := (*Room)(k)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.local.Len() > 0 || len(r.waiting) > 0 {
		return false
	}
	r.loaded, r.log, r.base = false, nil, ""
	return true
}
