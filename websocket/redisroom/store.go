package redisroom

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"time"
	"weak"

	"github.com/chert-http/chert/internal/backlog"
	"github.com/chert-http/chert/internal/redisstream"
	"github.com/chert-http/chert/stats"
	"github.com/chert-http/chert/websocket"
)

// Options configure a [Store]. All processes that share rooms must have the same Prefix, Shards
// and History.
type Options struct {
	// Prefix begins the name of every key in Redis. It must be printable ASCII without spaces
	// and braces. Default "chert:room:".
	Prefix string
	// Shards is over how many hash slots of a Cluster the rooms are spread. A process reads
	// each with a command of its own. Default 16 with a Cluster and otherwise 1; at most 1024.
	// Negative is an error: there must be one.
	Shards int
	// History is how many messages of a room clients may have missed and get when they connect
	// again. Default, and negative: none; they get messages from then on.
	History int
	// Encode, if not nil, returns the message that connections get for one that was sent, which
	// has got an ID: with History clients have to know it. It is called once for each process,
	// and must neither wait nor call the Room. A message for which it panics is left out, and the panic logged.
	Encode func(id string, t websocket.Type, p []byte) (websocket.Type, []byte)
	// Gap is sent, as text, to a connection that has missed messages which are not in the
	// history any more, or that Redis has lost. Default: nothing.
	Gap string
	// Expire is after how long without a new message a room's history is deleted. Default 24 h;
	// negative: never.
	Expire time.Duration
	// Timeout is how long Broadcast waits for Redis. Default 2 s, at least 1 ms; negative is an
	// error.
	Timeout time.Duration
	// Queue is how many messages wait while Redis is away; Broadcast then returns neither an ID
	// nor an error. They are lost if the process ends. Default, and negative: none.
	Queue int
	// Logger receives a line when Redis fails and one when it responds again. Default
	// slog.Default.
	Logger *slog.Logger
}

// least is how many messages of a room Redis keeps, for processes whose connections were cut.
const least = 1000

// A Store makes rooms that are shared through Redis. Its methods are safe for concurrent use.
type Store struct {
	streams  *redisstream.Client
	o        Options
	presence *presence

	mu     sync.Mutex
	rooms  map[string]weak.Pointer[Room] // that the program still knows
	users  map[string]*websocket.Room    // the connections of users here
	inbox  *redisstream.Stream           // of messages to them; nil before the first
	closed bool

	got string // the ID of the message to a user that was read last; of the inbox's reader
}

// ErrFull is returned by Broadcast and Send when Options.Queue messages wait.
var ErrFull = errors.New("redisroom: the queue is full")

// errClosed is returned after Store.Close.
var errClosed = fmt.Errorf("redisroom: the store: %w", net.ErrClosed)

// maxName bounds names of rooms and users.
const maxName = 512

func checkName(what, name string) error {
	if name == "" || len(name) > maxName {
		return fmt.Errorf("redisroom: a %s with a name of %d bytes; want 1 to %d", what, len(name), maxName)
	}
	return nil
}

// OpenURL makes a Store. It does not connect yet; see [Store.Check]. The URL is one of those of
// ratelimit/redisstore.OpenURL. OpenURL turns off the logger of go-redis, for the whole process.
func OpenURL(rawURL string, o *Options) (*Store, error) {
	if o == nil {
		o = new(Options)
	}
	s := &Store{o: *o, rooms: make(map[string]weak.Pointer[Room]), users: make(map[string]*websocket.Room)}
	s.o.History = max(o.History, 0)
	d := redisstream.Options{Package: "redisroom", Prefix: o.Prefix, What: "rooms",
		Shards: o.Shards, MaxLen: max(o.History, least),
		Expire: o.Expire, Timeout: o.Timeout, Queue: max(o.Queue, 0), Logger: o.Logger,
		OnBack: func() { s.presence.back() }}
	if d.Prefix == "" {
		d.Prefix = "chert:room:"
	}
	if d.Expire == 0 {
		d.Expire = 24 * time.Hour
	}
	if d.Timeout == 0 {
		d.Timeout = 2 * time.Second
	}
	c, err := redisstream.Open(rawURL, d)
	if err != nil {
		return nil, err
	}
	s.streams, s.presence = c, newPresence(c, d.Prefix)
	return s, nil
}

// Check reports, in one line, why Redis cannot be used. It waits for at most 5 s.
func (s *Store) Check(ctx context.Context) error { return s.streams.Check(ctx) }

// Close ends the reading, tells others that the users of this process are gone, and closes the
// connections to Redis. WebSockets stay open. Methods return an error that is [net.ErrClosed] then.
func (s *Store) Close() error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	s.mu.Unlock()
	if first {
		s.presence.close()
	}
	return s.streams.Close()
}

// Room returns the room with a name of 1 to 512 bytes that does not begin with a zero byte, the same
// one as long as the program has it. It does not ask Redis.
func (s *Store) Room(name string) (*Room, error) {
	if err := checkName("room", name); err != nil {
		return nil, err
	}
	if strings.HasPrefix(name, inboxPrefix) {
		return nil, errors.New("redisroom: a room with a name that begins with a zero byte")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	if r := s.rooms[name].Value(); r != nil {
		return r, nil
	}
	r := newRoom(s, name)
	p := weak.Make(r)
	s.rooms[name] = p
	runtime.AddCleanup(r, s.forget, forgotten{name, p})
	return r, nil
}

// forgotten is a room that the program has not any more.
type forgotten struct {
	name string
	p    weak.Pointer[Room]
}

func (s *Store) forget(f forgotten) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rooms[f.name] == f.p { // not made again meanwhile
		delete(s.rooms, f.name)
	}
}

// Connect makes a connection one of a user, for Send, until it ends.
func (s *Store) Connect(c *websocket.Conn, user string) error {
	if err := checkName("user", user); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	if s.inbox == nil {
		s.inbox = s.streams.Stream(inboxOf(s.streams.Instance()), (*inbox)(s))
		s.inbox.Wanted()
	}
	room := s.users[user]
	if room == nil {
		room = &websocket.Room{OnLeave: func(*websocket.Conn) { s.left(user) }}
		s.users[user] = room
		s.presence.add(atUser+user, "")
	}
	if !room.Join(c) && room.Len() == 0 {
		s.drop(user)
	}
	return nil
}

// left is called when a connection of a user has ended.
func (s *Store) left(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if room := s.users[user]; room != nil && room.Len() == 0 {
		s.drop(user)
	}
}

// drop forgets a user without connections. mu is held.
func (s *Store) drop(user string) {
	delete(s.users, user)
	s.presence.remove(atUser+user, "")
}

// Send sends a message to all connections of a user, on all processes, and returns on how many
// processes there are some: 0 if the user is not connected. A connection that is opened or that
// ends meanwhile may miss it.
func (s *Store) Send(ctx context.Context, user string, t websocket.Type, p []byte) (processes int, err error) {
	at, err := s.at(ctx, atUser+user)
	if err != nil {
		return 0, err
	}
	for _, who := range at {
		inbox := s.streams.Stream(inboxOf(who.instance), nil)
		if _, err := inbox.Add(append(fieldsOf(t, p), fieldUser, user)...); err != nil {
			return processes, ours(err)
		}
		processes++
	}
	return processes, nil
}

// at returns who is in a set.
func (s *Store) at(ctx context.Context, set string) ([]who, error) {
	if s.streams.Closed() {
		return nil, errClosed
	}
	all, err := s.presence.list(ctx, set)
	if err != nil {
		return nil, s.streams.Explain(err)
	}
	return all, nil
}

// inboxPrefix begins the names of streams that are no rooms.
const inboxPrefix = "\x00"

// inboxOf returns the name of the stream of messages to users of a process.
func inboxOf(instance string) string { return inboxPrefix + instance }

// inbox is a Store as the reader of its messages to users sees it.
type inbox Store

// Load implements redisstream.Sink.
func (i *inbox) Load(base string, all []redisstream.Entry, _ func(time.Time) string) {
	i.got = base
	i.Append(all)
}

// Append implements redisstream.Sink.
func (i *inbox) Append(more []redisstream.Entry) {
	s := (*Store)(i)
	for k := range more {
		s.got = more[k].ID
		t, p := messageOf(&more[k])
		user, _ := more[k].Values[fieldUser].(string)
		s.mu.Lock()
		room := s.users[user]
		s.mu.Unlock()
		if room != nil {
			room.Broadcast(t, p)
		}
	}
}

// Lost implements redisstream.Sink. The newest is not there any more if the inbox has expired.
func (i *inbox) Lost(all []redisstream.Entry) { i.Append(newerThan(i.got, all)) }

// Mark implements redisstream.Sink.
func (i *inbox) Mark() {}

// Current implements redisstream.Sink.
func (i *inbox) Current() {}

// Unload implements redisstream.Sink.
func (i *inbox) Unload() bool { return false }

// Stats returns what has been counted since the Store was opened, for metrics.
func (s *Store) Stats() stats.Store {
	counted := s.streams.Stats()
	counted.Name = "rooms"
	return counted
}

// ours returns the package's own error for one of redisstream.
func ours(err error) error {
	switch err {
	case backlog.ErrFull:
		return ErrFull
	case backlog.ErrClosed:
		return errClosed
	}
	return err
}
