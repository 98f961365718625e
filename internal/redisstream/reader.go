package redisstream

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/chert-http/chert/internal/backlog"
	"github.com/redis/go-redis/v9"
)

// reader reads the streams of a shard, on a goroutine of its own, which runs from the first
// stream on.
type reader struct {
	c      *Client
	prefix string // of the keys of the shard, which are in one hash slot
	wakeup string // the key of a stream that ends a command before its time

	mu      sync.Mutex
	started bool
	added   []*Stream // to be read
	ahead   []*Stream // that want Mark and Current
	asleep  bool      // a command blocks
	waking  bool      // it is about to be ended
	reading int       // how many streams are read
	signal  chan struct{}

	// The goroutine's.
	number  int // in Client.readers; immutable
	active  []*Stream
	left    []*Stream // out, until look: their keys are not streams
	command command
	changed bool // the command is to be encoded again
	moves   int  // of what follows a cursor, since the command was sent
	byKey   map[string]*Stream
	looked  time.Time // when unwanted streams were looked for
	bad     int       // how often reading has failed in a row
	current time.Time // all that was written until then has been read
}

// How long is waited after reading has failed, about.
const (
	firstWait = 20 * time.Millisecond
	maxWait   = time.Second
)

// Redis looks at each stream of a command, which takes it about a microsecond. So a reader begins
// one pace for each of its streams after the one before, and takes at most a fortieth of Redis's
// time; more entries come with each command then. Up to a millisecond is not waited, and not more
// than maxPause.
const (
	pace     = 40 * time.Microsecond
	minPause = time.Millisecond
	maxPause = 50 * time.Millisecond
)

// perStream is how many entries of a stream are read at once.
const perStream = 500

// lookEvery is how often streams that nothing wants are looked for.
const lookEvery = 15 * time.Second

func newReader(c *Client, shard int) *reader {
	prefix := c.o.Prefix + "{" + strconv.Itoa(shard) + "}"
	return &reader{c: c, number: shard, prefix: prefix, wakeup: prefix + "wake:" + c.instance,
		byKey: make(map[string]*Stream), signal: make(chan struct{}, 1)}
}

// add makes s one that is read. mu is held.
func (r *reader) add(s *Stream) {
	if r.c.closing.Err() != nil {
		return
	}
	r.added = append(r.added, s)
	if !r.started {
		r.started = true
		r.c.running.Go(r.run)
	}
	select {
	case r.signal <- struct{}{}:
	default:
	}
	if r.asleep && !r.waking {
		r.waking = true
		r.c.running.Go(r.wake)
	}
}

// wake ends a command that blocks. If it fails, that ends by itself.
func (r *reader) wake() {
	ctx, cancel := context.WithTimeout(r.c.closing, patience)
	defer cancel()
	node, err := r.c.node(ctx, r.wakeup)
	if err != nil {
		return
	}
	pipe := node.Pipeline()
	pipe.XAdd(ctx, &redis.XAddArgs{Stream: r.wakeup, MaxLen: 1, Values: []string{"wake", "1"}})
	pipe.Expire(ctx, r.wakeup, time.Minute)
	pipe.Exec(ctx)
}

// run reads until the client is closed.
func (r *reader) run() {
	c, wait := r.c, firstWait
	for c.closing.Err() == nil {
		err := r.session()
		if c.closing.Err() != nil {
			return
		}
		c.cuts.Add(1)
		c.moved(c.closing, err)
		if r.bad++; r.bad == 2 { // a connection may end without a failure of Redis
			c.setAway(1, err)
		}
		if r.bad == 1 {
			wait = firstWait
		}
		if !backlog.Pause(c.closing, rand.N(wait)+wait/2) {
			return
		}
		wait = min(2*wait, maxWait)
	}
}

// works is called when Redis has responded.
func (r *reader) works() {
	if r.bad >= 2 {
		r.c.setAway(-1, nil)
	}
	r.bad = 0
}

// session reads with one connection, until it fails.
func (r *reader) session() error {
	c := r.c
	node, err := c.node(c.closing, r.prefix)
	if err != nil {
		return err
	}
	conn := node.Conn() // not one of the pool for each command: that would be replaced silently
	defer conn.Close()
	if err := r.resume(conn); err != nil {
		return err
	}
	r.changed = true
	woken := "0-0" // the last entry of wakeup
	for {
		if len(r.active) == 0 {
			r.current = time.Now()
		}
		if err := r.begin(conn); err != nil {
			return err
		}
		if len(r.active) == 0 {
			r.works() // if it has failed before, there were streams, which begin or resume has left out
			var again <-chan time.Time
			if len(r.left) > 0 {
				again = time.After(c.lookEvery)
			}
			select {
			case <-r.signal:
			case <-again:
			case <-c.closing.Done():
				return c.closing.Err()
			}
			r.look()
			continue
		}
		marked := r.mark()
		began := time.Now()
		all, err := r.read(conn, woken)
		if err != nil {
			r.unmark(marked)
			return err
		}
		r.works()
		r.current = began
		for i := range all {
			one := &all[i]
			if len(one.Messages) == 0 {
				continue
			}
			last := one.Messages[len(one.Messages)-1].ID
			if s := r.byKey[one.Stream]; s != nil {
				if err := r.follow(conn, s, one.Messages); err != nil {
					r.unmark(marked)
					return err
				}
			} else if one.Stream == r.wakeup {
				woken = last
				r.advance(len(r.command.at)-1, last)
			}
		}
		r.caughtUp(marked, all)
		r.look()
		r.pause(time.Since(began))
	}
}

// follow goes on with the entries that have been read of s.
func (r *reader) follow(conn *redis.Conn, s *Stream, read []Entry) error {
	if missed, err := r.missed(conn, s, read); err != nil {
		return err
	} else if missed {
		r.changed = true
		return r.reload(conn, []*Stream{s})
	}
	s.cursor = read[len(read)-1].ID
	s.count += int64(len(read))
	r.advance(s.index, s.cursor)
	r.c.entries.Add(uint64(len(read)))
	s.sink.Append(read)
	return nil
}

// pause lets entries gather, some time after a command began, unless there are more streams to
// begin with.
func (r *reader) pause(passed time.Duration) {
	d := min(time.Duration(len(r.active))*pace, maxPause)
	if d < minPause || d <= passed {
		return
	}
	t := time.NewTimer(d - passed)
	defer t.Stop()
	select {
	case <-t.C:
	case <-r.signal:
	case <-r.c.closing.Done():
	}
}

// maxMoves is how often what follows a cursor is moved before it costs less to encode the command again. Both
// take as long as the command is, so without a limit the first entries of all streams would take its square.
const maxMoves = 32

// advance puts a cursor into the command.
func (r *reader) advance(i int, cursor string) {
	if !r.changed && r.command.set(i, cursor) {
		r.moves++
		r.changed = r.moves == maxMoves
	}
}

// read sends the command that reads all streams. It does not block if there are others to begin
// with, or after a failure.
func (r *reader) read(conn *redis.Conn, woken string) ([]redis.XStream, error) {
	ctx, cancel := context.WithTimeout(r.c.closing, block+patience)
	defer cancel()
	wait := block
	if r.c.o.Expire > 0 {
		wait = min(wait, r.c.o.Expire/4) // for r.current
	}
	r.mu.Lock()
	if r.bad > 0 || len(r.added) > 0 {
		wait = time.Millisecond
	} else {
		r.asleep = true
	}
	r.mu.Unlock()
	if r.changed || r.command.block != wait {
		r.command.encode(wait, r.active, r.wakeup, woken)
		r.changed = false
	}
	r.moves = 0
	cmd := r.standIn(ctx)
	conn.Process(ctx, cmd) // the error is the command's
	all, err := cmd.Result()
	r.mu.Lock()
	r.asleep, r.waking = false, false
	r.mu.Unlock()
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	return all, err
}

// mark calls Mark for the streams that have asked for it.
func (r *reader) mark() []*Stream {
	r.mu.Lock()
	marked := r.ahead
	r.ahead = nil
	for _, s := range marked {
		s.ahead = false
	}
	r.mu.Unlock()
	for _, s := range marked {
		s.sink.Mark()
	}
	return marked
}

// unmark keeps those that have asked for the next time.
func (r *reader) unmark(marked []*Stream) {
	for _, s := range marked {
		s.Ahead()
	}
}

// caughtUp calls Current for the streams that Mark has been called for, unless there is more.
func (r *reader) caughtUp(marked []*Stream, all []redis.XStream) {
	if len(marked) == 0 {
		return
	}
	more := make(map[string]bool)
	for _, one := range all {
		more[one.Stream] = len(one.Messages) >= perStream
	}
	for _, s := range marked {
		if more[s.key] || r.byKey[s.key] != s {
			s.Ahead()
			continue
		}
		s.sink.Current()
	}
}

// look unloads streams that nothing wants, and has those that were left out loaded again.
func (r *reader) look() {
	if time.Since(r.looked) < r.c.lookEvery {
		return
	}
	r.looked = time.Now()
	keep := r.active[:0]
	for _, s := range r.active {
		if !r.unload(s) {
			keep = append(keep, s)
			continue
		}
		delete(r.byKey, s.key)
		r.changed = true
	}
	clear(r.active[len(keep):])
	r.active = keep
	left := slices.DeleteFunc(r.left, r.unload)
	r.left = nil
	r.mu.Lock()
	defer r.mu.Unlock()
	r.added = append(r.added, left...)
	r.reading = len(r.active)
}

// unload unloads a stream that nothing wants, and reports whether it has.
func (r *reader) unload(s *Stream) bool {
	r.mu.Lock()
	s.again = false
	r.mu.Unlock()
	if !s.sink.Unload() {
		return false
	}
	s.cursor = ""
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.wanted = s.again; s.again {
		r.added = append(r.added, s)
	}
	return true
}
