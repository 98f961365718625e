package redisstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/redisconn"
	"github.com/chert-http/chert/ratelimit"
	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"
)

// Store is a ratelimit.Store in Redis. It is safe for concurrent use.
type Store struct {
	client  redis.UniversalClient
	owned   bool
	where   string
	split   bool // claims with different keys are a script each
	o       Options
	breaker *gobreaker.CircuitBreaker[[]int64]
	reports reports

	closing context.Context // ends with Close
	close   context.CancelFunc
	mu      sync.Mutex     // of warming.Add and close
	warming sync.WaitGroup // goroutines of warm
	warmers atomic.Int32
}

// New returns a Store that uses client, which the caller closes. It does not connect
// yet; see Check. The client must have ContextTimeoutEnabled, or it would wait longer
// than Timeout, and should have MaxRetries -1, as a retry may charge twice. Its
// DialTimeout, ReadTimeout and WriteTimeout may be longer than Timeout; decisions end
// after Timeout all the same. New returns an error if client is nil or lacks
// ContextTimeoutEnabled, or if o is invalid.
func New(client redis.UniversalClient, o *Options) (*Store, error) {
	if client == nil {
		return nil, errors.New("redisstore: no client")
	}
	opt, err := o.defaults()
	if err != nil {
		return nil, err
	}
	s := &Store{client: client, o: opt}
	var deadlines bool
	s.where = redisconn.Where(client)
	if s.split, deadlines = describe(client); !deadlines {
		return nil, errors.New("redisstore: the client's options lack ContextTimeoutEnabled, without which it waits " +
			"longer than Timeout")
	}
	s.closing, s.close = context.WithCancel(context.Background())
	s.breaker = gobreaker.NewCircuitBreaker[[]int64](gobreaker.Settings{
		Timeout: opt.Pause,
		ReadyToTrip: func(c gobreaker.Counts) bool {
			return opt.Failures > 0 && int(c.ConsecutiveFailures) >= opt.Failures
		},
		// A key that is something else is no failure of Redis, which has all others.
		IsSuccessful: func(err error) bool {
			e, said := errors.AsType[redis.Error](err)
			return err == nil || said && strings.Contains(e.Error(), "WRONGTYPE")
		},
	})
	return s, nil
}

// Close stops background work, and closes the client if OpenURL made it. Decisions
// after Close are made by the failure policy.
func (s *Store) Close() error {
	s.mu.Lock()
	s.close()
	s.mu.Unlock()
	var err error
	if s.owned {
		err = s.client.Close()
	}
	s.warming.Wait()
	return err
}

// Blocking implements ratelimit.Store. It returns true.
func (s *Store) Blocking() bool { return true }

// checkTime is how long Check waits; the first connection may take long.
const checkTime = 5 * time.Second

// Check reports, in one line, why Redis cannot be used: it cannot be reached, refuses
// the password, is read-only, or is too old. It runs the script of decisions on a key
// of its own, and waits for at most 5 s, or Timeout if that is longer.
func (s *Store) Check(ctx context.Context) error {
	limit := max(checkTime, s.o.Timeout)
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if by, ok := ctx.Deadline(); ok && time.Until(by) < limit {
		limit = 0 // the caller does not wait for that long
	}
	key := s.o.Prefix + "{check}:check"
	_, err := take.Run(bounded, s.client, []string{key}, 1, 1000, 1).Int64Slice()
	if err == nil {
		return nil
	}
	return redisconn.Explain(err, s.where, limit)
}

// Take implements ratelimit.Store.
func (s *Store) Take(ctx context.Context, claims []ratelimit.Claim) error {
	start := time.Now()
	ctx, cancel := s.deadline(ctx) // of all round trips together
	defer cancel()
	for i := range claims {
		claims[i].Decision = ratelimit.Decision{}
	}
	var at int64
	var err error
	done := 0
	for _, group := range s.groups(claims) {
		if at, err = s.takeGroup(ctx, group); err != nil || !allowed(group) {
			break
		}
		done += len(group)
	}
	switch {
	case err != nil:
		// What was charged stays charged: Redis should not be asked more now.
		s.fail(claims, err)
	case done < len(claims):
		s.giveBack(ctx, claims[:done])
		s.notAsked(claims[done:])
	}
	e := Event{Claims: len(claims), Allowed: allowed(claims)}
	if err == nil {
		e.Time = time.Unix(0, at)
		s.answered()
	}
	s.observe(e, start, err)
	return err
}

// notAsked fills in the decisions of claims after one that was refused.
func (s *Store) notAsked(claims []ratelimit.Claim) {
	for i := range claims {
		if c := &claims[i]; c.Decision.Limit == 0 {
			c.Decision = c.Limit.Decide(0, 0)
		}
	}
}

// groups are the claims that can be one script. Claims with the same key must be
// neighbours for that; they are where they come from one request.
func (s *Store) groups(claims []ratelimit.Claim) [][]ratelimit.Claim {
	if !s.split || len(claims) == 1 {
		return [][]ratelimit.Claim{claims}
	}
	var all [][]ratelimit.Claim
	for len(claims) > 0 {
		n := 1
		for n < len(claims) && slices.Equal(claims[n].Key, claims[0].Key) && claims[n].Secret == claims[0].Secret {
			n++
		}
		all, claims = append(all, claims[:n]), claims[n:]
	}
	return all
}

// takeGroup is one round trip. at is Redis's time, in nanoseconds since 1970.
func (s *Store) takeGroup(ctx context.Context, claims []ratelimit.Claim) (at int64, err error) {
	keys, args := make([]string, len(claims)), make([]any, 0, 3*len(claims))
	for i := range claims {
		c := &claims[i]
		keys[i] = s.key(c)
		args = append(args, int64(c.Limit.Interval()), int64(c.Limit.Window()), c.Cost)
	}
	reply, err := s.run(ctx, take, keys, args)
	if err == nil && len(reply) != 3+len(claims) {
		err = fmt.Errorf("redisstore: a reply of %d numbers for %d claims", len(reply), len(claims))
	}
	if err != nil {
		return 0, err
	}
	at = reply[1]*1e9 + reply[2]
	for i := range claims {
		c := &claims[i]
		c.At = at
		c.Decision = c.Limit.Decide(time.Duration(reply[3+i]), c.Cost)
	}
	return at, nil
}

// deadline makes ctx end after Timeout, and not before, even if the client of the
// request disconnects: a client that starts and aborts requests would make
// connections to Redis close and open again.
func (s *Store) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.o.Timeout < 0 {
		return context.WithoutCancel(ctx), func() {}
	}
	return context.WithTimeout(context.WithoutCancel(ctx), s.o.Timeout)
}

// run runs a script, unless Redis has failed too often or the Store is closed.
func (s *Store) run(ctx context.Context, script *redis.Script, keys []string, args []any) ([]int64, error) {
	if s.closing.Err() != nil {
		return nil, redis.ErrClosed
	}
	reply, err := s.breaker.Execute(func() ([]int64, error) {
		cmd := script.Run(ctx, s.client, keys, args...)
		if _, said := errors.AsType[redis.Error](cmd.Err()); cmd.Err() != nil && !said {
			s.warm()
		}
		if script == refund {
			return nil, cmd.Err()
		}
		return cmd.Int64Slice()
	})
	if err == gobreaker.ErrOpenState || err == gobreaker.ErrTooManyRequests {
		err = ErrNotAsked
	}
	return reply, err
}

// maxWarmers is how many connections are made at a time in the background.
const maxWarmers = 8

// warm makes a connection in the background, if none in the pool is free. A decision
// ends after Timeout, and with it the connection that it was making: where TLS or a
// login takes longer there would never be one.
func (s *Store) warm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Err() != nil {
		return
	}
	if s.warmers.Add(1) > maxWarmers {
		s.warmers.Add(-1)
		return
	}
	s.warming.Go(func() {
		defer s.warmers.Add(-1)
		ctx, cancel := context.WithTimeout(s.closing, max(checkTime, s.o.Timeout))
		defer cancel()
		// The next decision reports an error.
		if c, ok := s.client.(*redis.ClusterClient); ok {
			c.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return node.Ping(ctx).Err() })
			return
		}
		s.client.Ping(ctx)
	})
}

// key returns the name of a claim's bucket. Keys that are secret, long, or have bytes
// that do not belong in a name are hashed.
func (s *Store) key(c *ratelimit.Claim) string {
	if c.Secret || !readable(c.Key) {
		sum := sha256.Sum256(c.Key)
		return s.o.Prefix + "{#" + hex.EncodeToString(sum[:16]) + "}:" + c.Limit.Name()
	}
	return s.o.Prefix + "{" + string(c.Key) + "}:" + c.Limit.Name()
}

// readable keys may have spaces and braces, as routes have: what a Cluster finds the node by
// ends with the first closing brace, and is the same for all limits of a key unless it is empty.
func readable(key []byte) bool {
	for _, c := range key {
		if c < ' ' || c >= 0x7f || c == '#' {
			return false
		}
	}
	return 0 < len(key) && len(key) <= 64 && key[0] != '}'
}

// Refund implements ratelimit.Store.
func (s *Store) Refund(ctx context.Context, claims []ratelimit.Claim) error {
	start := time.Now()
	ctx, cancel := s.deadline(ctx)
	defer cancel()
	err := s.giveBack(ctx, claims)
	s.observe(Event{Claims: len(claims), Refund: true, Allowed: true}, start, err)
	return err
}

// observe fills in what every event has.
func (s *Store) observe(e Event, start time.Time, err error) {
	if s.o.Observe == nil {
		return
	}
	e.Took, e.Err, e.Policy = time.Since(start), err, s.o.Failure
	s.o.Observe(e)
}

func (s *Store) giveBack(ctx context.Context, claims []ratelimit.Claim) error {
	if len(claims) > 0 && claims[0].Decision.Failed {
		if s.o.Failure == FailureLocal {
			stand := s.standIns(claims)
			return s.o.Memory.Refund(ctx, stand)
		}
		return nil
	}
	var errs []error
	for _, group := range s.groups(claims) {
		keys, args := make([]string, 0, len(group)), make([]any, 0, 3*len(group))
		for i := range group {
			if c := &group[i]; c.Cost > 0 {
				keys = append(keys, s.key(c))
				args = append(args, c.At/1e9, c.At%1e9, c.Cost*int64(c.Limit.Interval()))
			}
		}
		if len(keys) > 0 {
			_, err := s.run(ctx, refund, keys, args)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func allowed(claims []ratelimit.Claim) bool {
	for i := range claims {
		if !claims[i].Decision.Allowed {
			return false
		}
	}
	return true
}

// reports limits what Logger gets to one record a second.
type reports struct {
	last atomic.Int64 // the time of the last record, in nanoseconds since start
	down atomic.Bool  // the last record was an error
	why  atomic.Pointer[error]
}
