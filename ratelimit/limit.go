package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"strings"
	"sync/atomic"
	"time"
)

// A Decision is the result of a request for tokens.
type Decision struct {
	Allowed bool
	// Failed reports that the store failed, and that its failure policy has
	// decided.
	Failed    bool
	Limit     int64 // the size of the bucket, in tokens
	Remaining int64 // whole tokens that were left right after the decision
	// RetryAfter is the time until enough tokens have come back, if no other
	// request takes any. It is 0 if Allowed, and Never if the bucket is too small.
	RetryAfter time.Duration
	Reset      time.Duration // until the bucket is full again
}

// Never is the RetryAfter of a request for more tokens than the bucket can hold.
const Never time.Duration = -1

// A Limit limits the rate per key: each key has a bucket in its store. It is safe for
// concurrent use.
type Limit struct {
	name     string
	rate     Rate
	interval int64 // between two tokens, in nanoseconds
	window   int64 // in which an empty bucket becomes full
	salt     uint64
	store    Store
	// table is set if store is a Memory. It changes if that has dropped it.
	table atomic.Pointer[table]
}

// NewLimit returns a Limit with buckets in store. Limits of a store with the same
// name and rate share their buckets, also when they are made one after the other,
// as by a reload. A name is up to 64 letters, digits, "-", "_" and ".". NewLimit
// returns an error if name or rate is invalid, or store is nil.
func NewLimit(name string, rate Rate, store Store) (*Limit, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	if err := rate.check(); err != nil {
		return nil, fmt.Errorf("ratelimit: %s: rate %v: %w", name, rate, err)
	}
	if store == nil {
		return nil, errors.New("ratelimit: " + name + ": no store")
	}
	rate.Burst = rate.burst()
	l := &Limit{name: name, rate: rate, interval: rate.interval(), window: rate.interval() * rate.Burst,
		salt: maphash.String(seed, name+" "+rate.String()), store: store}
	if m, ok := store.(*Memory); ok {
		m.register(l)
	}
	return l, nil
}

func checkName(name string) error {
	bad := func(c rune) bool {
		return (c|0x20 < 'a' || 'z' < c|0x20) && (c < '0' || '9' < c) && !strings.ContainsRune("-_.", c)
	}
	if name == "" || len(name) > 64 || strings.ContainsFunc(name, bad) {
		return fmt.Errorf("ratelimit: name %q: want up to 64 of letters, digits and -_. in it", name)
	}
	return nil
}

// Name returns the limit's name.
func (l *Limit) Name() string { return l.name }

// Rate returns the limit's rate, with Burst filled in.
func (l *Limit) Rate() Rate { return l.rate }

// Interval returns the time in which one token comes back.
func (l *Limit) Interval() time.Duration { return time.Duration(l.interval) }

// Window returns the time in which an empty bucket becomes full.
func (l *Limit) Window() time.Duration { return time.Duration(l.window) }

// Allow takes cost tokens from the bucket of key, or none if fewer are left. With cost 0
// it takes none and reports what is left. When the store fails, Allow returns its error,
// and a decision made by the store's failure policy. With a Memory it does not allocate
// or fail. A negative cost is an error.
func (l *Limit) Allow(ctx context.Context, key string, cost int64) (Decision, error) {
	if cost < 0 {
		return Decision{Limit: l.rate.Burst}, errCost
	}
	if m, ok := l.store.(*Memory); ok {
		d, _ := m.take(l, hashString(l, key), cost)
		return d, nil
	}
	c := [1]Claim{{Limit: l, Key: []byte(key), Cost: cost}}
	err := l.store.Take(ctx, c[:])
	return c[0].Decision, err
}

var errCost = errors.New("ratelimit: the cost is negative")

// Decide is the arithmetic of every Store; a Store of your own calls it too. ahead
// is the time until the bucket is full, before anything is taken. If the decision is
// Allowed the bucket is ahead by another cost intervals.
func (l *Limit) Decide(ahead time.Duration, cost int64) Decision {
	return l.decide(min(max(0, int64(ahead)), l.window), cost) // no bucket is emptier than empty
}

func (l *Limit) decide(ahead, cost int64) Decision {
	d := Decision{Limit: l.rate.Burst}
	if cost > l.rate.Burst {
		d.RetryAfter = Never
	} else if after := ahead + cost*l.interval; after <= l.window {
		d.Allowed, ahead = true, after
	} else {
		d.RetryAfter = time.Duration(after - l.window)
	}
	d.Remaining = max(0, l.window-ahead) / l.interval
	d.Reset = time.Duration(ahead)
	return d
}

// A Claim is a request for tokens of one limit.
type Claim struct {
	Limit *Limit
	Key   []byte // of the bucket; the store must not retain it
	// Secret reports that the key may be a credential, and must not be readable in
	// a store.
	Secret bool
	Cost   int64 // tokens; not negative
	// Decision is set by the store. If another claim was refused, a claim that
	// would have been allowed is Allowed, with what would have been left, but is
	// not charged.
	Decision Decision
	// At is set by the store to the time of the decision, in nanoseconds of its
	// clock. Refund needs it.
	At int64
}

// A Store keeps the buckets of limits. It is safe for concurrent use.
type Store interface {
	// Take charges all claims or, if one of them is refused, none, and sets their
	// Decision and At. When the store fails, its failure policy sets the
	// decisions, and Take returns the cause.
	Take(ctx context.Context, claims []Claim) error
	// Refund gives back what Take has charged for all claims, except for what may
	// have come back by itself since: the rate times the time that has passed.
	Refund(ctx context.Context, claims []Claim) error
	// Blocking reports whether Take may wait, for a network for example.
	Blocking() bool
}

// allowed reports whether all claims are.
func allowed(claims []Claim) bool {
	for i := range claims {
		if !claims[i].Decision.Allowed {
			return false
		}
	}
	return true
}

// seed is the same for all stores, so that a limit has one salt.
var seed = maphash.MakeSeed()

func hashString(l *Limit, key string) uint64 { return maphash.String(seed, key) ^ l.salt }
func hashBytes(l *Limit, key []byte) uint64  { return maphash.Bytes(seed, key) ^ l.salt }
