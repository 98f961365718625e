package redisstream

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// atOnce is for how many streams commands are sent together.
const atOnce = 256

// loadAtOnce is how many streams are loaded together, which bounds the memory for that.
const loadAtOnce = 16

// loadMax is how many entries a stream begins with at most.
const loadMax = 10000

// together is how many streams are loaded together now: those that have failed twice may take too long, and would do
// so again and again.
func (r *reader) together() int {
	if r.bad > 1 {
		return 1
	}
	return loadAtOnce
}

// begin loads the streams that are to be read from now on.
func (r *reader) begin(conn *redis.Conn) error {
	for {
		r.mu.Lock()
		n := min(len(r.added), r.together())
		added := slices.Clone(r.added[:n])
		r.mu.Unlock()
		if n == 0 {
			return nil
		}
		if err := r.load(conn, added); err != nil {
			return err // they are tried again
		}
		r.mu.Lock()
		if r.added = r.added[n:]; len(r.added) == 0 {
			r.added = nil
		}
		r.reading = len(r.active)
		r.mu.Unlock()
	}
}

// load loads streams and makes them active.
func (r *reader) load(conn *redis.Conn, added []*Stream) error {
	all, since, err := r.newest(conn, added)
	if err != nil {
		return err
	}
	for i, s := range added {
		n := &all[i]
		if n.foreign {
			r.leaveOut(s)
			continue
		}
		was := s.cursor // of one that was left out meanwhile
		s.goOn(n)
		base := n.base
		if n.dropped {
			base = ""
		}
		r.active, r.changed = append(r.active, s), true
		r.byKey[s.key] = s
		if s.foreign = false; was != "" {
			r.c.lost.Add(1)
			s.sink.Lost(n.entries)
			continue
		}
		s.sink.Load(base, n.entries, since)
	}
	return nil
}

// leaveOut does not read a stream until look: its key is something else, and commands that read it
// fail for all others.
func (r *reader) leaveOut(s *Stream) {
	r.left = append(r.left, s)
	r.active = slices.DeleteFunc(r.active, func(a *Stream) bool { return a == s })
	r.changed = true
	delete(r.byKey, s.key)
	r.mu.Lock()
	r.reading = len(r.active)
	r.mu.Unlock()
	if !s.foreign {
		s.foreign = true
		r.c.o.Logger.Error(r.c.o.What+": a key of Redis is not a stream, and is left out", "key", s.key)
	}
}

// newest is the newest entries of a stream, in order. base is the ID before the first, or an
// older one if dropped.
type newest struct {
	base    string
	dropped bool
	foreign bool // the key is something else
	entries []Entry
	count   int64 // of all that there have been
}

// goOn makes what follows n what is read next.
func (s *Stream) goOn(n *newest) {
	if s.cursor = n.base; len(n.entries) > 0 {
		s.cursor = n.entries[len(n.entries)-1].ID
	}
	s.count = n.count
}

// newest asks for the newest entries of streams. since is that of Sink.Load.
func (r *reader) newest(conn *redis.Conn, streams []*Stream) (all []newest, since func(time.Time) string, err error) {
	ctx, cancel := context.WithTimeout(r.c.closing, patience)
	defer cancel()
	limit := int64(min(r.c.o.MaxLen, loadMax))
	first := limit + 1
	if r.together() == 1 {
		first = min(first, perStream)
	}
	pipe := conn.TxPipeline() // all are to be of one moment
	clock := pipe.Time(ctx)
	ranges, infos := make([]*redis.XMessageSliceCmd, len(streams)), make([]*redis.XInfoStreamCmd, len(streams))
	for i, s := range streams {
		ranges[i] = pipe.XRevRangeN(ctx, s.key, "+", "-", first)
		infos[i] = pipe.XInfoStream(ctx, s.key)
	}
	if _, err := pipe.Exec(ctx); err != nil && !noKey(err) && !foreign(err) {
		return nil, nil, err
	}
	since = sinceBy(clock.Val())
	all = make([]newest, len(streams))
	for i := range streams {
		entries, err := ranges[i].Result()
		if foreign(err) {
			all[i].foreign = true
			continue
		}
		if err == nil && int64(len(entries)) == first {
			entries, err = r.older(conn, streams[i], entries, int(limit+1))
		}
		if err != nil {
			return nil, nil, err
		}
		info, err := infos[i].Result()
		if err != nil && !noKey(err) {
			return nil, nil, err
		}
		slices.Reverse(entries)
		n := newest{base: "0-0", entries: entries}
		if err == nil {
			n.count = info.EntriesAdded
		}
		switch {
		case int64(len(entries)) > limit:
			n.base, n.entries = entries[0].ID, entries[1:]
		case err != nil || info.EntriesAdded == int64(len(entries)): // it has all that there ever were
		case len(entries) == 0:
			n.base = info.LastGeneratedID
		default:
			n.dropped = true
		}
		all[i] = n
	}
	return all, since, nil
}

// older adds to the newest entries of a stream those before, a part at a time, until there are most: even one stream
// may take too long to be loaded at once.
func (r *reader) older(conn *redis.Conn, s *Stream, all []Entry, most int) ([]Entry, error) {
	for len(all) < most {
		last := all[len(all)-1].ID
		part := min(perStream, most-len(all)) + 1 // last comes again: Redis before 6.2 cannot leave it out
		ctx, cancel := context.WithTimeout(r.c.closing, patience)
		more, err := conn.XRevRangeN(ctx, s.key, last, "-", int64(part)).Result()
		cancel()
		if err != nil {
			return nil, err
		}
		if len(more) < 2 || more[0].ID != last {
			break // the others have been dropped meanwhile
		}
		all = append(all, more[1:]...)
	}
	return all, nil
}

// sinceBy returns a since of Sink.Load, by what the clock of Redis was a moment ago. IDs are of
// that clock, which need not be the process's. That moment may have been just now, or a round
// trip ago: the earlier of what may have been the time in Redis is taken, so nothing is missed.
func sinceBy(clock time.Time) func(time.Time) string {
	now := time.Now()
	return func(t time.Time) string {
		ms := clock.Add(t.Sub(now)).UnixMilli()
		return strconv.FormatInt(max(ms-1, 0), 10) + "-" + strconv.FormatUint(math.MaxUint64, 10)
	}
}

// noKey reports whether an error is that of XINFO for a stream that does not exist.
func noKey(err error) bool {
	e, ok := errors.AsType[redis.Error](err)
	return ok && strings.Contains(e.Error(), "no such key")
}

// foreign reports whether an error is that of a key that is not a stream.
func foreign(err error) bool { return hasPrefix(err, "WRONGTYPE") }

// resume looks, on a new connection, whether Redis still has the last entry of each stream that
// was read: the connection may have been cut because a server was restarted, or replaced by one
// that lacks what had not been replicated.
func (r *reader) resume(conn *redis.Conn) error {
	for rest := slices.Clone(r.active); len(rest) > 0; {
		some := rest[:min(len(rest), atOnce)]
		rest = rest[len(some):]
		lost, err := r.lost(conn, some)
		if err != nil {
			return err
		}
		for part := range slices.Chunk(lost, r.together()) {
			if err := r.reload(conn, part); err != nil {
				return err
			}
		}
	}
	return nil
}

// reload goes on with what there is of streams that have lost something.
func (r *reader) reload(conn *redis.Conn, lost []*Stream) error {
	all, since, err := r.newest(conn, lost)
	if err != nil {
		return err
	}
	for i, s := range lost {
		n := &all[i]
		if n.foreign {
			r.leaveOut(s)
			continue
		}
		if r.expired(s, n, since) {
			s.cursor, s.count = "0-0", 0 // from where on all that has followed is read
			continue
		}
		s.goOn(n)
		r.c.lost.Add(1)
		s.sink.Lost(n.entries)
	}
	return nil
}

// expired reports whether a stream is not there any more, or is another, because it has expired,
// and nothing but that: what was written after r.current has not expired yet.
func (r *reader) expired(s *Stream, n *newest, since func(time.Time) string) bool {
	age := r.c.o.Expire
	if age <= 0 || time.Since(r.current) >= age || n.dropped || n.base != "0-0" {
		return false
	}
	if len(n.entries) > 0 {
		if order, ok := Compare(n.entries[0].ID, s.cursor); !ok || order <= 0 {
			return false // it is an older state
		}
	}
	order, ok := Compare(s.cursor, since(time.Now().Add(-age)))
	return ok && order < 0
}

// lost returns those of some streams that lack the last entry that was read, or are none any more. One of which none
// was read may have had entries that have expired, if reading has failed for as long.
func (r *reader) lost(conn *redis.Conn, some []*Stream) (lost []*Stream, err error) {
	ctx, cancel := context.WithTimeout(r.c.closing, patience)
	defer cancel()
	pipe := conn.Pipeline()
	found := make([]*redis.XMessageSliceCmd, len(some))
	for i, s := range some {
		found[i] = pipe.XRangeN(ctx, s.key, s.cursor, s.cursor, 1)
	}
	if _, err := pipe.Exec(ctx); err != nil && !foreign(err) {
		return nil, err
	}
	long := r.c.o.Expire > 0 && time.Since(r.current) >= r.c.o.Expire
	for i, s := range some {
		all, err := found[i].Result()
		if err != nil && !foreign(err) {
			return nil, err
		}
		if len(all) == 0 && (err != nil || s.cursor != "0-0" || long) {
			lost = append(lost, s)
		}
	}
	return lost, nil
}

// missed reports whether entries before those that were read have been dropped since s was read: XREAD goes on with
// the oldest that there is. Nothing has been if fewer were read than are kept.
func (r *reader) missed(conn *redis.Conn, s *Stream, read []Entry) (bool, error) {
	if len(read) < min(perStream, r.c.o.MaxLen) {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(r.c.closing, patience)
	defer cancel()
	info, err := conn.XInfoStream(ctx, s.key).Result()
	if noKey(err) || foreign(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	n, last := int64(len(read)), read[len(read)-1].ID
	if info.EntriesAdded == 0 {
		return false, nil // Redis before 7 does not say how many there have been
	}
	if info.EntriesAdded < s.count+n {
		s.count = 0 // the stream has expired, and been made again
	}
	// The place of the oldest entry that there is now; -1 if it is one before those that were read.
	oldest := int64(slices.IndexFunc(read, func(e Entry) bool { return e.ID == info.FirstEntry.ID }))
	if order, ok := Compare(info.FirstEntry.ID, last); ok && order > 0 {
		oldest = n
	}
	missed := oldest >= 0 && info.EntriesAdded-info.Length-oldest > s.count
	if !missed && info.LastEntry.ID == last {
		s.count = info.EntriesAdded - n // which others may have made another, by XDEL or a new stream
	}
	return missed, nil
}
