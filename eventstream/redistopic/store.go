package redistopic

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"runtime"
	"strconv"
	"sync"
	"time"
	"weak"

	"github.com/chert-http/chert/eventstream"
	"github.com/chert-http/chert/internal/backlog"
	"github.com/chert-http/chert/internal/redisstream"
	"github.com/chert-http/chert/stats"
)

// A Store makes topics that are shared through Redis. Its methods are safe for concurrent use.
type Store struct {
	streams *redisstream.Client
	o       eventstream.TopicOptions

	mu sync.Mutex
	// topics has those that the program still knows: names may be many, as those of chats are.
	topics map[string]weak.Pointer[eventstream.Topic]
	closed bool
}

// ErrFull is returned by Publish when Options.Queue events wait.
var ErrFull = errors.New("redistopic: the queue is full")

// errClosed is returned after Store.Close.
var errClosed = fmt.Errorf("redistopic: the store: %w", net.ErrClosed)

// maxName bounds names of topics.
const maxName = 512

// OpenURL makes a Store. It does not connect yet; see [Store.Check]. The URL is one of those of
// ratelimit/redisstore.OpenURL. OpenURL turns off the logger of go-redis, for the whole process.
func OpenURL(rawURL string, o *Options) (*Store, error) {
	opt, topics := o.defaults()
	if _, err := eventstream.NewTopic(&topics); err != nil {
		return nil, fmt.Errorf("redistopic: Topics: %w", err)
	}
	c, err := redisstream.Open(rawURL, opt)
	if err != nil {
		return nil, err
	}
	return &Store{streams: c, o: topics, topics: make(map[string]weak.Pointer[eventstream.Topic])}, nil
}

// Check reports, in one line, why Redis cannot be used. It waits for at most 5 s.
func (s *Store) Check(ctx context.Context) error { return s.streams.Check(ctx) }

// Close ends the reading and closes the connections to Redis. Streams stay open, and get no more
// events. What waits in the queue is dropped. Topic and Publish return an error that is
// [net.ErrClosed] then.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	return s.streams.Close()
}

// Topic returns the topic with a name of 1 to 512 bytes, the same one as long as the program has
// it. It does not ask Redis: what the topic has is read when a stream joins it.
func (s *Store) Topic(name string) (*eventstream.Topic, error) {
	if name == "" || len(name) > maxName {
		return nil, fmt.Errorf("redistopic: Topic: a name of %d bytes; want 1 to %d", len(name), maxName)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	if t := s.topics[name].Value(); t != nil {
		return t, nil
	}
	src := &source{}
	t, mirror, err := eventstream.NewMirror(src, &s.o)
	if err != nil {
		return nil, err // cannot happen: OpenURL has made one
	}
	src.stream = s.streams.Stream(name, sink{mirror})
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

// source is the store of one topic as the topic sees it.
type source struct{ stream *redisstream.Stream }

// Publish implements eventstream.Source.
func (s *source) Publish(e eventstream.Event) (id string, err error) {
	fields := append(make([]string, 0, 8), fieldData, e.Data)
	if e.Type != "" {
		fields = append(fields, fieldType, e.Type)
	}
	if e.Retry > 0 {
		fields = append(fields, fieldRetry, strconv.FormatInt(max(e.Retry.Milliseconds(), 1), 10))
	}
	switch id, err = s.stream.Add(fields...); err {
	case backlog.ErrFull:
		return "", ErrFull
	case backlog.ErrClosed:
		return "", errClosed
	}
	return id, err
}

// Compare implements eventstream.Source.
func (s *source) Compare(a, b string) (order int, ok bool) { return redisstream.Compare(a, b) }

// Wanted implements eventstream.Source.
func (s *source) Wanted() { s.stream.Wanted() }

// Ahead implements eventstream.Source.
func (s *source) Ahead() { s.stream.Ahead() }

// The names of an entry's fields.
const (
	fieldData  = "d"
	fieldType  = "t"
	fieldRetry = "r"
)

// sink is a topic as the reader of its stream sees it.
type sink struct{ eventstream.Mirror }

// Load implements redisstream.Sink.
func (s sink) Load(base string, all []redisstream.Entry, since func(time.Time) string) {
	s.Mirror.Load(base, events(all), since)
}

// Append implements redisstream.Sink. What others have written that is no event is left out.
func (s sink) Append(more []redisstream.Entry) { s.Mirror.Append(events(more)) }

// Lost implements redisstream.Sink.
func (s sink) Lost(all []redisstream.Entry) { s.Mirror.Lost(events(all)) }

func events(entries []redisstream.Entry) []eventstream.Event {
	all := make([]eventstream.Event, len(entries))
	for i := range entries {
		all[i] = event(&entries[i])
	}
	return all
}

func event(e *redisstream.Entry) eventstream.Event {
	text := func(name string) string {
		s, _ := e.Values[name].(string)
		return s
	}
	out := eventstream.Event{ID: e.ID, Type: text(fieldType), Data: text(fieldData)}
	if ms, err := strconv.ParseInt(text(fieldRetry), 10, 64); err == nil && ms > 0 {
		out.Retry = time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
	}
	return out
}

// Stats returns what has been counted since the Store was opened, for metrics.
func (s *Store) Stats() stats.Store {
	counted := s.streams.Stats()
	counted.Name = "topics"
	return counted
}
