package natstopic

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/chert-http/chert/eventstream"
	"github.com/chert-http/chert/internal/backlog"
	"github.com/chert-http/chert/stats"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A Store makes topics that are shared through NATS. Its methods are safe for concurrent use.
type Store struct {
	o        Options
	nc       *nats.Conn
	js       jetstream.JetStream
	queue    backlog.Queue
	r        *reader
	instance string // random
	tokens   atomic.Uint64
	end      atomic.Pointer[place] // of the stream, when it was looked at last; epoch 0: not yet
	away     atomic.Int32          // whether the reader cannot read, and 1 more for the queue
	closing  context.Context
	cancel   context.CancelFunc

	published, failed, read, cuts, gaps atomic.Uint64

	mu     sync.Mutex
	topics map[string]weak.Pointer[eventstream.Topic] // that the program still knows
}

// ErrFull is returned by Publish when Options.Queue events wait.
var ErrFull = errors.New("natstopic: the queue is full")

// errClosed is returned after Store.Close.
var errClosed = fmt.Errorf("natstopic: the store: %w", net.ErrClosed)

// maxName bounds names of topics.
const maxName = 512

// patience is how long commands that read may take.
const patience = 5 * time.Second

// Open makes a Store. It begins to connect in the background; see [Store.Check]. urls are one or
// more addresses of servers, separated by commas: nats://HOST:PORT, tls:// for TLS.
func Open(urls string, o *Options) (*Store, error) {
	if o == nil {
		o = new(Options)
	}
	s := &Store{o: *o, topics: make(map[string]weak.Pointer[eventstream.Topic])}
	if err := s.defaults(); err != nil {
		return nil, err
	}
	var random [8]byte
	rand.Read(random[:]) // never fails
	s.instance = base64.RawURLEncoding.EncodeToString(random[:])
	s.end.Store(&place{})
	s.closing, s.cancel = context.WithCancel(context.Background())
	s.queue = backlog.Queue{Max: s.o.Queue, Temporary: temporary, Away: func(why error) {
		if why != nil {
			s.setAway(1, why)
		} else {
			s.setAway(-1, nil)
		}
	}, Dropped: s.dropped}
	s.r = newReader(s)
	opts := append([]nats.Option{
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(50 * time.Millisecond),
		nats.ReconnectBufSize(-1), // what is written while it is away would be written at an unknown time
		nats.Timeout(patience), nats.PingInterval(5 * time.Second),
		nats.IgnoreAuthErrorAbort(), // a password that is refused may be accepted later
	}, s.o.NATS...)
	opts = append(opts, // these are the store's
		nats.ConnectHandler(func(*nats.Conn) { s.r.reconnected() }),
		nats.ReconnectHandler(func(*nats.Conn) { s.r.reconnected() }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { s.r.disconnected(err) }),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) { s.r.missed() }), // it may have dropped some
	)
	nc, err := nats.Connect(urls, opts...)
	if err != nil {
		return nil, fmt.Errorf("natstopic: %w", err)
	}
	s.nc = nc
	if !nc.IsConnected() {
		s.r.setAway(cmp.Or(nc.LastError(), nats.ErrNoServers))
	}
	if s.js, err = jetstream.New(nc, jetstream.WithDefaultTimeout(s.o.Timeout)); err != nil {
		nc.Close()
		return nil, fmt.Errorf("natstopic: %w", err)
	}
	s.r.start()
	return s, nil
}

// defaults fills in and checks the options.
func (s *Store) defaults() error {
	o := &s.o
	if o.Stream == "" {
		o.Stream = "chert"
	}
	for _, c := range o.Stream {
		if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') && c != '-' && c != '_' {
			return fmt.Errorf("natstopic: Stream %q: want letters, digits, - and _", o.Stream)
		}
	}
	if o.History == 0 {
		o.History = 1000
	}
	if o.Topics.HistoryEvents == 0 {
		o.Topics.HistoryEvents = o.History
	}
	if o.Replicas == 0 {
		o.Replicas = 1
	}
	if o.Timeout == 0 {
		o.Timeout = 2 * time.Second
	}
	if o.room == 0 {
		o.room = room
	}
	o.MaxAge, o.Queue = max(o.MaxAge, 0), max(o.Queue, 0)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	switch {
	case o.Replicas < 0 || o.Replicas > 5:
		return fmt.Errorf("natstopic: Replicas %d: want 1 to 5", o.Replicas)
	case o.Timeout < time.Millisecond:
		return fmt.Errorf("natstopic: Timeout %v: want 1 ms at least", o.Timeout)
	}
	if _, err := eventstream.NewTopic(&o.Topics); err != nil {
		return fmt.Errorf("natstopic: Topics: %w", err)
	}
	return nil
}

// Check reports why NATS cannot be used. It waits for at most 5 s.
func (s *Store) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for !s.nc.IsConnected() {
		if !backlog.Pause(ctx, 20*time.Millisecond) {
			err := s.nc.LastError()
			if err == nil {
				err = ctx.Err()
			}
			return fmt.Errorf("natstopic: NATS cannot be reached: %w", err)
		}
	}
	if _, err := s.stream(ctx); err != nil {
		return fmt.Errorf("natstopic: the stream %q cannot be used: %w", s.o.Stream, err)
	}
	return nil
}

// Close ends the reading and the connection to NATS. Streams stay open, and get no more events.
// What waits in the queue is dropped. Topic and Publish return an error that is [net.ErrClosed]
// then.
func (s *Store) Close() error {
	s.cancel()
	s.nc.Close()
	s.queue.Close()
	s.r.running.Wait()
	return nil
}

// Topic returns the topic with a name of 1 to 512 bytes, the same one as long as the program has
// it. It does not ask NATS: what the topic has is read when a stream joins it.
func (s *Store) Topic(name string) (*eventstream.Topic, error) {
	if name == "" || len(name) > maxName {
		return nil, fmt.Errorf("natstopic: Topic: a name of %d bytes; want 1 to %d", len(name), maxName)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Err() != nil {
		return nil, errClosed
	}
	if t := s.topics[name].Value(); t != nil {
		return t, nil
	}
	// A token of a subject has no dots, spaces and wildcards.
	src := &topic{s: s, token: base64.RawURLEncoding.EncodeToString([]byte(name))}
	t, mirror, err := eventstream.NewMirror(src, &s.o.Topics)
	if err != nil {
		return nil, err // cannot happen: Open has made one
	}
	src.mirror = mirror
	p := weak.Make(t)
	s.topics[name] = p
	runtime.AddCleanup(t, s.forget, forgotten{name, p})
	return t, nil
}

// forgotten is a topic that the program has not any more.
type forgotten struct {
	name string
	p    weak.Pointer[eventstream.Topic]
}

func (s *Store) forget(f forgotten) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.topics[f.name] == f.p { // not made again meanwhile
		delete(s.topics, f.name)
	}
}

// topic is the source of one topic.
type topic struct {
	s      *Store
	token  string // in subjects
	mirror eventstream.Mirror

	// The reader's.
	cursor uint64    // the sequence of the newest event that has been read
	at     time.Time // when that was stored
	live   *nats.Subscription

	// Guarded by reader.mu.
	wanted, again, ahead bool
}

func (t *topic) subject() string { return t.s.o.Stream + ".topic." + t.token }

// The fields of a message's header.
const (
	fieldType  = "Chert-Type"
	fieldRetry = "Chert-Retry"
	// fieldSpaced has a type, quoted, that begins or ends with spaces, which nats.go removes.
	fieldSpaced = "Chert-Type-Spaced"
)

func typeOf(h nats.Header) string {
	if spaced, err := strconv.Unquote(h.Get(fieldSpaced)); err == nil {
		return spaced
	}
	return h.Get(fieldType)
}

// Publish implements eventstream.Source.
func (t *topic) Publish(e eventstream.Event) (id string, err error) {
	s := t.s
	if s.closing.Err() != nil {
		return "", errClosed
	}
	m := nats.NewMsg(t.subject())
	m.Data = []byte(e.Data)
	token := s.instance + "-" + strconv.FormatUint(s.tokens.Add(1), 36)
	m.Header.Set(jetstream.MsgIDHeader, token)
	if e.Type != "" {
		m.Header.Set(fieldType, e.Type)
		if strings.Trim(e.Type, " \t") != e.Type {
			m.Header.Set(fieldSpaced, strconv.Quote(e.Type))
		}
	}
	if e.Retry > 0 {
		m.Header.Set(fieldRetry, strconv.FormatInt(max(e.Retry.Milliseconds(), 1), 10))
	}
	after := s.end.Load()
	write := func(maybe bool) error {
		if maybe {
			if there, err := t.has(token, after); there || err != nil {
				return err
			}
		}
		_, err := t.publish(m)
		return err
	}
	if s.o.Queue > 0 {
		if queued, err := s.queue.Follow(write); queued || err != nil {
			return "", ours(err)
		}
	}
	if id, err = t.publish(m); err == nil {
		return id, nil
	}
	if s.o.Queue > 0 && temporary(err) {
		return "", ours(s.queue.Begin(write, err))
	}
	s.failed.Add(1)
	return "", fmt.Errorf("natstopic: %w", err)
}

func ours(err error) error {
	switch err {
	case backlog.ErrFull:
		return ErrFull
	case backlog.ErrClosed:
		return errClosed
	}
	return err
}

// publish stores an event, once.
func (t *topic) publish(m *nats.Msg) (id string, err error) {
	s := t.s
	ctx, cancel := context.WithTimeout(s.closing, s.o.Timeout)
	defer cancel()
	epoch := s.end.Load().epoch
	if epoch == 0 { // the first of this process
		st, err := s.stream(ctx)
		if err != nil {
			return "", err
		}
		epoch = epochOf(st)
	}
	ack, err := s.js.PublishMsg(ctx, m, jetstream.WithRetryAttempts(0))
	if err != nil {
		if errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse) {
			s.r.missed() // there is no stream any more, or not yet
		}
		return "", err
	}
	s.published.Add(1)
	return idOf(epoch, ack.Sequence), nil
}

// temporary reports whether an error is one that passes. An event that is larger than the server's
// max_payload is refused by nats.go, without the server.
func temporary(err error) bool {
	var api *jetstream.APIError
	return !errors.Is(err, nats.ErrMaxPayload) && (!errors.As(err, &api) || api.Code >= 500)
}

// dropped is called when something that has waited will not be written.
func (s *Store) dropped(why error) {
	s.failed.Add(1)
	if why != backlog.ErrFull && why != backlog.ErrClosed {
		s.o.Logger.Error("event streams: NATS refuses what has waited for it", "error", why)
	}
}

// setAway is called with 1 when a part of the store finds that NATS does not respond, and with
// -1 when it does again.
func (s *Store) setAway(change int32, why error) {
	now := s.away.Add(change)
	switch {
	case s.closing.Err() != nil:
	case change > 0 && now == 1:
		s.o.Logger.Error("event streams: NATS fails; clients stay, and get what is published when it responds again",
			"error", why)
	case change < 0 && now == 0:
		s.o.Logger.Info("event streams: NATS responds again", "nats", s.nc.ConnectedUrlRedacted())
	}
}

// idOf returns the ID of an event.
func idOf(epoch, seq uint64) string {
	return strconv.FormatUint(epoch, 10) + "-" + strconv.FormatUint(seq, 10)
}

// parse parses an ID.
func parse(id string) (epoch, seq uint64, ok bool) {
	a, b, found := strings.Cut(id, "-")
	if !found || strings.HasPrefix(a, "+") || strings.HasPrefix(b, "+") {
		return 0, 0, false
	}
	epoch, err := strconv.ParseUint(a, 10, 64)
	if err != nil {
		return 0, 0, false
	}
	seq, err = strconv.ParseUint(b, 10, 64)
	return epoch, seq, err == nil
}

// Compare implements eventstream.Source.
func (t *topic) Compare(a, b string) (order int, ok bool) {
	ae, as, aok := parse(a)
	be, bs, bok := parse(b)
	if !aok || !bok {
		return 0, false
	}
	if ae == be {
		ae, be = as, bs
	}
	switch {
	case ae < be:
		return -1, true
	case ae > be:
		return 1, true
	}
	return 0, true
}

// Wanted implements eventstream.Source.
func (t *topic) Wanted() { t.s.r.want(t) }

// Ahead implements eventstream.Source.
func (t *topic) Ahead() { t.s.r.isAhead(t) }

// Stats returns what has been counted since the Store was opened, for metrics.
func (s *Store) Stats() stats.Store {
	s.r.mu.Lock()
	topics := s.r.reading
	s.r.mu.Unlock()
	return stats.Store{Name: "topics", Away: s.away.Load() > 0, Streams: topics, Read: s.read.Load(),
		Published: s.published.Load(), Failed: s.failed.Load(), Waiting: s.queue.Len(), Cuts: s.cuts.Load(),
		Gaps: s.gaps.Load()}
}
