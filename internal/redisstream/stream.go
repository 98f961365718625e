package redisstream

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/chert-http/chert/internal/backlog"
	"github.com/redis/go-redis/v9"
)

// An Entry is one of a stream.
type Entry = redis.XMessage

// A Sink is what reads a stream. All methods but those of the interface's user are called by
// one goroutine, and without locks.
type Sink interface {
	// Load begins with the newest entries, of which base is the ID of the one before the
	// first, or "" if that is not known. since returns an ID that is less than those of all
	// entries that were written after a time of this process, and perhaps of some just before.
	Load(base string, all []Entry, since func(time.Time) string)
	// Append is called with what has followed.
	Append(more []Entry)
	// Lost is called instead if the newest entry is not there any more, or others were dropped before they could be
	// read, with all that there is.
	Lost(all []Entry)
	// Mark is called before entries are read, after Stream.Ahead, and Current when all that
	// there were then have been read.
	Mark()
	Current()
	// Unload reports whether the entries are not wanted any more: then Stream.Wanted is called
	// when they are again. It must be atomic with that.
	Unload() bool
}

// A Stream is one of Redis. Its methods are safe for concurrent use.
type Stream struct {
	c    *Client
	r    *reader
	key  string
	sink Sink
	// The reader's: the ID of the last entry that was read, "" if it is not loaded; how many there have been up to
	// it; the place in reader.active; and whether the key has been found to be something else.
	cursor  string
	count   int64
	index   int
	foreign bool

	// Guarded by r.mu.
	wanted bool // by the reader, or soon
	again  bool // Wanted has been called meanwhile
	ahead  bool // Ahead has been
}

// Stream returns a stream, of which sink reads the entries, and which is not read before Wanted.
// sink may be nil if it is only written.
func (c *Client) Stream(name string, sink Sink) *Stream {
	r := c.shard(name)
	return &Stream{c: c, r: r, key: r.prefix + name, sink: sink}
}

// Wanted makes the stream one that is read.
func (s *Stream) Wanted() {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	if s.again = true; !s.wanted {
		s.wanted = true
		s.r.add(s)
	}
}

// Ahead asks for Sink.Mark and Sink.Current.
func (s *Stream) Ahead() {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	if !s.ahead {
		s.ahead = true
		s.r.ahead = append(s.r.ahead, s)
	}
}

// Compare compares two IDs. ok is false if one of them is none.
func Compare(a, b string) (order int, ok bool) {
	am, as, aok := parse(a)
	bm, bs, bok := parse(b)
	if !aok || !bok {
		return 0, false
	}
	switch {
	case am != bm:
		order = 1
		if am < bm {
			order = -1
		}
	case as != bs:
		order = 1
		if as < bs {
			order = -1
		}
	}
	return order, true
}

// parse parses an ID: milliseconds, "-", and a number within them.
func parse(id string) (ms, seq uint64, ok bool) {
	a, b, found := strings.Cut(id, "-")
	if !found || len(a) == 0 || len(b) == 0 || a[0] == '+' || b[0] == '+' {
		return 0, 0, false
	}
	ms, err := strconv.ParseUint(a, 10, 64)
	if err != nil {
		return 0, 0, false
	}
	seq, err = strconv.ParseUint(b, 10, 64)
	return ms, seq, err == nil
}

// tokenField is the name of the field that tells an entry from all others, for those that are
// written again when it is not known whether they were.
const tokenField = "k"

// Add writes an entry of names and values, and returns its ID. It waits for Redis, up to
// Options.Timeout. With Options.Queue it returns no ID, and no error, if the entry waits to be
// written. Without, it is not known after an error of the network whether it was.
func (s *Stream) Add(fields ...string) (id string, err error) {
	c := s.c
	if c.closing.Err() != nil {
		return "", backlog.ErrClosed
	}
	began := time.Now()
	write := func(maybe bool) error {
		if maybe {
			return s.addAgain(fields, began)
		}
		_, err := s.add(fields)
		return err
	}
	if c.o.Queue > 0 {
		fields = append(fields, tokenField, c.instance+"-"+strconv.FormatUint(c.tokens.Add(1), 36))
		if queued, err := c.queue.Follow(write); queued || err != nil {
			return "", err
		}
	}
	id, err = s.add(fields)
	if err == nil {
		return id, nil
	}
	if c.o.Queue > 0 && Temporary(err) {
		return "", c.queue.Begin(write, err)
	}
	c.failed.Add(1)
	return "", c.Explain(err)
}

// add writes an entry, once.
func (s *Stream) add(fields []string) (id string, err error) {
	c := s.c
	ctx, cancel := context.WithTimeout(c.closing, c.o.Timeout)
	defer cancel()
	for {
		node, err := c.node(ctx, s.key)
		if err != nil {
			return "", err
		}
		pipe := node.Pipeline()
		add := pipe.XAdd(ctx, &redis.XAddArgs{Stream: s.key, MaxLen: int64(c.o.MaxLen), Approx: true, Values: fields})
		if c.o.Expire > 0 {
			pipe.PExpire(ctx, s.key, c.o.Expire)
		}
		pipe.Exec(ctx) // the errors are those of its commands
		if id, err = add.Result(); err == nil {
			c.published.Add(1)
			return id, nil
		}
		if !c.moved(ctx, err) || !backlog.Pause(ctx, 20*time.Millisecond) {
			return "", err
		}
	}
}

// again writes an entry unless it has been written: it is looked for among the newest and those since it was first
// tried, since a stream may have millions, and Redis does nothing else meanwhile.
//
//	ARGV  the token, MAXLEN, the time to live, how many are the newest, how long ago the first try began, the fields
var again = redis.NewScript(`
local function find(some)
	for _, e in ipairs(some) do
		for i = 1, #e[2], 2 do
			if e[2][i] == 'k' and e[2][i + 1] == ARGV[1] then
				return e[1]
			end
		end
	end
end
local some = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', ARGV[4])
local id = find(some)
if not id and #some == tonumber(ARGV[4]) then
	local t = redis.call('TIME')
	local since = string.format('%d', math.max(t[1] * 1000 + t[2] / 1000 - ARGV[5], 0))
	id = find(redis.call('XREVRANGE', KEYS[1], some[#some][1], since))
end
if id then
	return id
end
id = redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[2], '*', unpack(ARGV, 6))
if tonumber(ARGV[3]) > 0 then
	redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
return id
`)

// clocks is by how much the clocks of servers that take over from each other may differ.
const clocks = time.Minute

// addAgain is add for an entry that may have been written since some time.
func (s *Stream) addAgain(fields []string, since time.Time) error {
	c := s.c
	ctx, cancel := context.WithTimeout(c.closing, max(c.o.Timeout, patience))
	defer cancel()
	node, err := c.node(ctx, s.key)
	if err != nil {
		return err
	}
	args := []any{fields[len(fields)-1], c.o.MaxLen, c.o.Expire.Milliseconds(), loadMax,
		(time.Since(since) + clocks).Milliseconds()}
	for _, f := range fields {
		args = append(args, f)
	}
	if err = again.Run(ctx, node, []string{s.key}, args...).Err(); err == nil {
		c.published.Add(1)
	} else {
		c.moved(ctx, err)
	}
	return err
}

// Temporary reports whether an error is one that passes: the same command may be accepted
// later.
func Temporary(err error) bool {
	if _, ok := errors.AsType[redis.Error](err); !ok {
		return true
	}
	return hasPrefix(err, "LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "MOVED", "ASK", "NOREPLICAS",
		"MISCONF", "OOM", "BUSY")
}
