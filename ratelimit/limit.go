package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"strings"
	"time"
)

// A Limiter says whether something may be done. Any number may ask at the same
// time.
type Limiter interface {
	// Allow takes cost tokens from the bucket of key, or none if there are not
	// so many. With cost 0 it only looks. An error is the store's; the decision
	// is valid then too, by the store's policy for failures.
	Allow(ctx context.Context, key string, cost int64) (Decision, error)
}

// A Decision is what came of a request for tokens.
type Decision struct {
	Allowed bool
	// Failed: the store did not answer, and its policy has decided.
	Failed    bool
	Limit     int64 // what the bucket holds
	Remaining int64 // whole tokens that are left, at least
	// RetryAfter is the time until there are as many tokens as were asked for,
	// if nobody takes any: 0 if Allowed, Never if the bucket is too small.
	RetryAfter time.Duration
	Reset      time.Duration // until the bucket is full
}

// Never is the RetryAfter of who asks for more than the bucket can hold.
const Never time.Duration = -1

// A Limit is a rate with a name, in a store. It is a Limiter and immutable.
type Limit struct {
	name     string
	rate     Rate
	interval int64 // between two tokens, in nanoseconds
	window   int64 // in which an empty bucket gets full
	salt     uint64
	store    Store
	space    *space // if store is a Memory
}

// NewLimit makes a Limit. name tells the limits of a store apart: two with the
// same name and rate share their buckets. It may have letters, digits, "-", "_"
// and ".", and no more than 64 of them. It is an error if name or rate is not
// what it may be, or if there is no store.
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
		l.space = m.rent(l)
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

// Name is what NewLimit was given.
func (l *Limit) Name() string { return l.name }

// Rate is what NewLimit was given, with Burst filled in.
func (l *Limit) Rate() Rate { return l.rate }

// Interval is the time between two tokens.
func (l *Limit) Interval() time.Duration { return time.Duration(l.interval) }

// Window is the time in which an empty bucket gets full.
func (l *Limit) Window() time.Duration { return time.Duration(l.window) }

// Allow implements Limiter. With a Memory it does not allocate. A negative cost
// is an error.
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

// Decide is the arithmetic of every store. ahead is how much later than now the
// bucket will be full, before anything is taken; 0 if it is. Who is allowed has
// it ahead by cost intervals more. For stores.
func (l *Limit) Decide(ahead time.Duration, cost int64) Decision {
	return l.decide(max(0, int64(ahead)), cost)
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

// A Claim asks a limit for tokens.
type Claim struct {
	Limit *Limit
	Key   []byte // whose bucket; the store does not keep it
	// Secret: the key is a credential, or made of one, and must not be readable
	// in a store.
	Secret bool
	Cost   int64
	// Decision is the store's answer. If another claim was refused, one that
	// would have been allowed is Allowed and as it would have been, but it is
	// not charged.
	Decision Decision
	// At is when it was decided, in nanoseconds of the store's clock. For Refund.
	At int64
}

// A Store keeps buckets. Any number may use it at the same time.
type Store interface {
	// Take charges all claims or, if one of them is refused, none. It sets
	// their Decision. No cost is negative. Where the store fails the policy of
	// the store decides, and the error says why.
	Take(ctx context.Context, claims []Claim) error
	// Refund gives back what Take has charged for all claims, but for what may
	// have come back by itself since: the rate times the time between.
	Refund(ctx context.Context, claims []Claim) error
	// Waits reports whether Take may wait for something, such as a network.
	Waits() bool
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

// seed is one for all stores, so that a limit's salt is.
var seed = maphash.MakeSeed()

func hashString(l *Limit, key string) uint64 { return maphash.String(seed, key) ^ l.salt }
func hashBytes(l *Limit, key []byte) uint64  { return maphash.Bytes(seed, key) ^ l.salt }
