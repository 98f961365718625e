package redisstream

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/backlog"
	"github.com/chert-http/chert/internal/redisconn"
	"github.com/chert-http/chert/stats"
	"github.com/redis/go-redis/v9"
)

// Options configure a [Client].
type Options struct {
	// Prefix begins the name of every key. It is printable ASCII without spaces and braces.
	Prefix string
	// Package is the name of the user's package, in errors of Open.
	Package string
	// What the client is for, in the log: "event streams".
	What string
	// Shards is over how many hash slots of a Cluster the streams are spread, and how many
	// commands read them. Default 1, with a Cluster 16.
	Shards int
	// MaxLen is how many entries of a stream are kept in Redis, at least; negative: all.
	MaxLen int
	// Expire is after how long without a new entry a stream is deleted; negative: never.
	Expire time.Duration
	// Timeout is how long Add waits. At least a millisecond.
	Timeout time.Duration
	// Queue is how many entries wait while Redis is away; 0 for none.
	Queue int
	// Logger receives a line when Redis fails, and one when it responds again.
	Logger *slog.Logger
	// OnBack is called by a reader when Redis responds again. It must not wait.
	OnBack func()
}

// A Client is what a process has of a Redis. Its methods are safe for concurrent use.
type Client struct {
	redis    redis.UniversalClient
	cluster  *redis.ClusterClient // the same, or nil
	where    string
	o        Options
	instance string // random
	readers  []*reader
	secret   string // and how a command begins that stands for that of a reader
	standing []byte
	queue    backlog.Queue
	closing  context.Context
	cancel   context.CancelFunc
	running  sync.WaitGroup
	tokens   atomic.Uint64
	// lookEvery is that of tests, or the constant; immutable once the client is used.
	lookEvery time.Duration
	away      atomic.Int32 // how many readers cannot read, and 1 more for the queue

	entries, published, failed, cuts, lost atomic.Uint64
}

// clusterShards is the default of Options.Shards with a Cluster.
const clusterShards = 16

// block is how long a command waits for entries.
const block = 2 * time.Second

// patience is how long commands that do not block may take, and how much longer one that does.
const patience = 5 * time.Second

// Open makes a Client, which does not connect yet. The URL is one of redisconn.Open.
func Open(rawURL string, o Options) (*Client, error) {
	for _, b := range []byte(o.Prefix) {
		if b <= ' ' || b >= 0x7f || b == '{' || b == '}' {
			return nil, fmt.Errorf("%s: Prefix %q: spaces, braces and what is not ASCII cannot be in it", o.Package,
				o.Prefix)
		}
	}
	switch {
	case o.Shards < 0 || o.Shards > 1024:
		return nil, fmt.Errorf("%s: Shards %d: want 1 to 1024", o.Package, o.Shards)
	case o.Timeout < time.Millisecond:
		return nil, fmt.Errorf("%s: Timeout %v: want 1 ms at least", o.Package, o.Timeout)
	case o.Expire > 0 && o.Expire < time.Second:
		return nil, fmt.Errorf("%s: Expire %v: want 1 s at least", o.Package, o.Expire)
	}
	// Each reader has a connection of its own, and all may be those of one server.
	client, where, err := redisconn.Open(rawURL, patience, cmp.Or(o.Shards, clusterShards))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Package, err)
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	c := &Client{redis: client, where: where, o: o, lookEvery: lookEvery, secret: rand.Text()}
	c.standing = fmt.Appendf(nil, "*3\r\n$5\r\nxread\r\n$%d\r\n%s\r\n", len(c.secret), c.secret)
	if c.cluster, _ = client.(*redis.ClusterClient); c.cluster != nil {
		c.cluster.OnNewNode(func(node *redis.Client) { node.AddHook(hook{c}) })
	} else {
		client.AddHook(hook{c})
	}
	if c.o.Shards == 0 {
		if c.o.Shards = 1; c.cluster != nil {
			c.o.Shards = clusterShards
		}
	}
	if c.o.MaxLen < 0 {
		c.o.MaxLen = math.MaxInt32
	}
	var random [8]byte
	rand.Read(random[:]) // never fails
	c.instance = strconv.FormatUint(binary.NativeEndian.Uint64(random[:]), 36)
	c.closing, c.cancel = context.WithCancel(context.Background())
	for i := range c.o.Shards {
		c.readers = append(c.readers, newReader(c, i))
	}
	c.queue = backlog.Queue{Max: o.Queue, Temporary: Temporary, Away: func(why error) {
		if why != nil {
			c.setAway(1, why)
		} else {
			c.setAway(-1, nil)
		}
	}, Dropped: c.dropped}
	return c, nil
}

// Close ends all reading and closes the connections. What waits to be written is dropped, and
// counted in Stats.Failed.
func (c *Client) Close() error {
	for _, r := range c.readers {
		r.mu.Lock()
	}
	c.cancel() // no reader begins after this
	for _, r := range c.readers {
		r.mu.Unlock()
	}
	err := c.redis.Close() // which ends commands that block
	c.queue.Close()
	c.running.Wait()
	return err
}

// Check reports, in one line, why Redis cannot be used. It writes and reads a stream of its own.
func (c *Client) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	key := c.o.Prefix + "{0}check:" + c.instance
	pipe := c.redis.TxPipeline()
	pipe.XAdd(ctx, &redis.XAddArgs{Stream: key, MaxLen: 1, Values: []string{"check", "1"}})
	pipe.PExpire(ctx, key, patience)
	pipe.XRevRangeN(ctx, key, "+", "-", 1)
	if _, err := pipe.Exec(ctx); err != nil {
		return c.Explain(err)
	}
	return nil
}

// Redis returns the client of go-redis, which Close closes.
func (c *Client) Redis() redis.UniversalClient { return c.redis }

// Instance returns a name of this process that no other has.
func (c *Client) Instance() string { return c.instance }

// Stats returns what has been counted.
func (c *Client) Stats() stats.Store {
	s := stats.Store{Away: c.away.Load() > 0, Read: c.entries.Load(), Published: c.published.Load(),
		Failed: c.failed.Load(), Waiting: c.queue.Len(), Cuts: c.cuts.Load(), Gaps: c.lost.Load()}
	for _, r := range c.readers {
		r.mu.Lock()
		s.Streams += r.reading
		r.mu.Unlock()
	}
	return s
}

// Explain puts an error into one line for operators.
func (c *Client) Explain(err error) error { return redisconn.Explain(err, c.where, c.o.Timeout) }

// setAway is called with 1 when a part of the client finds that Redis does not respond, and
// with -1 when it does again.
func (c *Client) setAway(change int32, why error) {
	now := c.away.Add(change)
	switch {
	case c.closing.Err() != nil:
	case change > 0 && now == 1:
		c.o.Logger.Error(c.o.What+": Redis fails; clients stay, and get what is published when it responds again",
			"error", c.Explain(why))
	case change < 0 && now == 0:
		c.o.Logger.Info(c.o.What+": Redis responds again", "redis", c.where)
		if c.o.OnBack != nil {
			c.o.OnBack()
		}
	}
}

// dropped is called when something that has waited will not be written.
func (c *Client) dropped(why error) {
	c.failed.Add(1)
	if why != backlog.ErrFull && why != backlog.ErrClosed {
		c.o.Logger.Error(c.o.What+": Redis refuses what has waited for it", "error", c.Explain(why))
	}
}

// node returns the client of the server that has a key. It does not repeat commands of its own
// accord, as that of a Cluster does.
func (c *Client) node(ctx context.Context, key string) (*redis.Client, error) {
	if c.cluster != nil {
		return c.cluster.MasterForKey(ctx, key)
	}
	return c.redis.(*redis.Client), nil
}

// moved is called with the error of a command, and has the client ask where keys are if that
// may have changed. It reports whether the command was refused because of that.
func (c *Client) moved(ctx context.Context, err error) bool {
	if c.cluster == nil || err == nil {
		return false
	}
	_, answered := errors.AsType[redis.Error](err)
	refused := hasPrefix(err, "MOVED", "ASK", "CLUSTERDOWN", "TRYAGAIN", "READONLY")
	if refused || !answered { // a server that does not answer may have been replaced
		c.cluster.ReloadState(ctx)
	}
	return refused
}

// hasPrefix reports whether err is one of Redis that begins with one of the words.
func hasPrefix(err error, words ...string) bool {
	e, ok := errors.AsType[redis.Error](err)
	if !ok {
		return false
	}
	text := e.Error()
	if strings.HasPrefix(text, "ERR Error running script") { // before Redis 7: "...: @user_script: 9: -READONLY ..."
		_, text, _ = strings.Cut(text, ": -")
	}
	for _, w := range words {
		if strings.HasPrefix(text, w) {
			return true
		}
	}
	return false
}

// shard returns the reader of a stream.
func (c *Client) shard(name string) *reader {
	h := fnv.New32a()
	h.Write([]byte(name))
	return c.readers[h.Sum32()%uint32(len(c.readers))]
}

// Closed reports whether Close has been called.
func (c *Client) Closed() bool { return c.closing.Err() != nil }
