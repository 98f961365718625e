package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/chert-http/chert/filter"
)

// Options are the options of New.
type Options struct {
	// Store keeps the buckets. Default: a new Memory.
	Store Store
	// Rules are the limits, at least one. All must admit a request, and none is
	// charged if one does not. In a Redis Cluster, put rules with the same Key
	// side by side, and the rule that refuses most first.
	Rules []Rule
	// NoFields leaves out the fields RateLimit and RateLimit-Policy. Retry-After is
	// always sent.
	NoFields bool
}

// A Rule is a limit for requests.
type Rule struct {
	Name string // as for NewLimit, and unique in Rules; clients see it
	Rate Rate
	Key  Key // default: ByAddress
	// Cost returns how many tokens a request takes; with 0 or less it is free.
	// Default: 1.
	Cost func(c *filter.Call) int64
}

// New returns middleware that passes requests which the rules admit. The others are
// answered 429 (RFC 6585 section 4) with Retry-After, or 503 if the store has failed
// and its policy refuses them. Responses have the fields of
// draft-ietf-httpapi-ratelimit-headers-10, with a RateLimit line for each rule. The
// body of a refusal is text, problem details (RFC 9457) if Accept names JSON, or
// what middleware.Problems makes of it. All handlers that it wraps share the buckets.
//
// A wrapped handler is a direct.Handler if the handler is one, the store is not
// Blocking, and no rule uses ByFunc. A request that the handler leaves to the ordinary
// path gets its tokens back first, and is charged there.
//
// New returns an error if there are no rules, if two have the same Name, if NewLimit
// returns one, or if a Key cannot be used.
func New(o *Options) (func(http.Handler) http.Handler, error) {
	h, err := newHandler(o)
	if err != nil {
		return nil, err
	}
	serve := h.serve
	if h.one != nil {
		serve = h.serveOne
	}
	wrap := filter.Around(serve)
	if !h.plain {
		return wrap, nil
	}
	return func(next http.Handler) http.Handler { return wrap(http.HandlerFunc(next.ServeHTTP)) }, nil
}

func newHandler(o *Options) (*handler, error) {
	if o == nil || len(o.Rules) == 0 {
		return nil, errors.New("ratelimit: Rules: there are none")
	}
	h := &handler{store: o.Store, fields: !o.NoFields, rules: make([]*rule, len(o.Rules))}
	if h.store == nil {
		h.store = NewMemory(nil)
	}
	h.plain = h.store.Blocking()
	for i, r := range o.Rules {
		l, err := NewLimit(r.Name, r.Rate, h.store)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(o.Rules[:i], func(p Rule) bool { return p.Name == r.Name }) {
			return nil, fmt.Errorf("ratelimit: Rules: two have the name %q", r.Name)
		}
		if r.Key.err != nil {
			return nil, fmt.Errorf("ratelimit: Rules: %s: Key: %w", r.Name, r.Key.err)
		}
		if r.Key.of == nil {
			r.Key = ByAddress()
		}
		h.plain = h.plain || r.Key.plain
		h.rules[i] = &rule{limit: l, key: r.Key, cost: r.Cost, lines: newLineCache(l)}
		if h.policy += policy(l); i < len(o.Rules)-1 {
			h.policy += ", "
		}
	}
	if m, ok := h.store.(*Memory); ok && len(h.rules) == 1 && h.rules[0].cost == nil && h.rules[0].key.address {
		h.memory, h.one = m, h.rules[0]
	}
	return h, nil
}

// Must returns v, and panics if err is not nil. It is for constant options and rates:
//
//	limit := ratelimit.Must(ratelimit.New(&ratelimit.Options{
//		Rules: []ratelimit.Rule{{Name: "address", Rate: ratelimit.Must(ratelimit.ParseRate("100/s"))}},
//	}))
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// handler is immutable.
type handler struct {
	store  Store
	rules  []*rule
	policy string // of RateLimit-Policy
	fields bool
	plain  bool    // for plain handlers only
	memory *Memory // if serveOne can serve, else nil
	one    *rule
}

type rule struct {
	limit *Limit
	key   Key
	cost  func(c *filter.Call) int64
	lines lineCache
}

// charge is what a request is charged, reused for later ones.
type charge struct {
	claims []Claim
	rules  []*rule // of claims
	buf    []byte  // the keys
}

var charges = sync.Pool{New: func() any { return new(charge) }}

func (c *charge) done() {
	// Their pointers keep objects alive until the next garbage collection at
	// most.
	c.claims, c.rules, c.buf = c.claims[:0], c.rules[:0], c.buf[:0]
	if cap(c.buf) <= 4<<10 { // else a long header field has made it grow
		charges.Put(c)
	}
}

// ask charges a request, and reports whether it is admitted.
func (h *handler) ask(r *filter.Call, c *charge) bool {
	for _, rule := range h.rules {
		cost := int64(1)
		if rule.cost != nil {
			if cost = rule.cost(r); cost <= 0 {
				continue
			}
		}
		n := len(c.buf)
		var secret bool
		c.buf, secret = rule.key.append(c.buf, r)
		// If buf grows, earlier keys stay in the old one.
		c.claims = append(c.claims, Claim{Limit: rule.limit, Key: c.buf[n:len(c.buf):len(c.buf)], Secret: secret,
			Cost: cost})
		c.rules = append(c.rules, rule)
	}
	if len(c.claims) == 0 {
		return true
	}
	h.store.Take(r.Context(), c.claims) // the store reports its error
	return allowed(c.claims)
}

func (h *handler) serve(r *filter.Call, next filter.Next) filter.Outcome {
	c := charges.Get().(*charge)
	// done is not deferred: if next panics, the pool makes a new charge.
	if !h.ask(r, c) {
		return h.refuse(r, c)
	}
	if h.fields && len(c.claims) > 0 {
		r.Keep(policyName, h.policy)
		for i := range c.claims {
			if d := &c.claims[i].Decision; !d.Failed {
				r.Keep(limitName, c.rules[i].lines.line(c.rules[i].limit, d))
			}
		}
	}
	if !r.Direct() {
		c.done()
		return filter.Pass
	}
	o := next.Serve(r)
	if o == filter.OnPlain && len(c.claims) > 0 {
		h.store.Refund(context.Background(), c.claims)
	}
	c.done()
	return o
}
