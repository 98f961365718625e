package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/refusal"
)

// Options are the options of Handler.
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
	// Default: 1. It gets the request of a direct.Exchange; on the plain way that
	// has no Body.
	Cost func(r *direct.Request) int64
}

// Handler passes requests that the rules admit to next. The others are answered 429
// (RFC 6585 section 4) with Retry-After, or 503 if the store has failed and its
// policy refuses them. Responses have the fields of
// draft-ietf-httpapi-ratelimit-headers-10, with a RateLimit line for each rule. The
// body of a refusal is text, problem details (RFC 9457) if Accept names JSON, or
// what middleware.Refusals makes of it.
//
// The result is a direct.Handler if next is one, the store is not Blocking, and no
// rule uses ByFunc. A request that next leaves to the plain way gets its tokens
// back first, and is charged there.
//
// Handler returns an error if there are no rules, if two have the same Name, or if
// NewLimit returns one.
func Handler(next http.Handler, o *Options) (http.Handler, error) {
	if o == nil || len(o.Rules) == 0 {
		return nil, errors.New("ratelimit: no rules")
	}
	h := &handler{next: next, store: o.Store, fields: !o.NoFields, rules: make([]*rule, len(o.Rules))}
	if h.store == nil {
		h.store = NewMemory(nil)
	}
	inner, isDirect := next.(direct.Handler)
	isDirect = isDirect && !h.store.Blocking()
	for i, r := range o.Rules {
		l, err := NewLimit(r.Name, r.Rate, h.store)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(o.Rules[:i], func(p Rule) bool { return p.Name == r.Name }) {
			return nil, fmt.Errorf("ratelimit: two rules have the name %q", r.Name)
		}
		if r.Key.of == nil {
			r.Key = ByAddress()
		}
		isDirect = isDirect && !r.Key.plain
		h.rules[i] = &rule{limit: l, key: r.Key, cost: r.Cost}
		if h.policy += policy(l); i < len(o.Rules)-1 {
			h.policy += ", "
		}
	}
	if isDirect {
		d := &directHandler{handler: h, direct: inner}
		if m, ok := h.store.(*Memory); ok && len(h.rules) == 1 && h.rules[0].cost == nil && h.rules[0].key.address {
			d.memory, d.one = m, h.rules[0]
		}
		return d, nil
	}
	return h, nil
}

// handler is immutable.
type handler struct {
	next   http.Handler
	store  Store
	rules  []*rule
	policy string // of RateLimit-Policy
	fields bool
}

type rule struct {
	limit *Limit
	key   Key
	cost  func(r *direct.Request) int64
	lines lineCache
}

// call is the state of a request, reused for later ones.
type call struct {
	claims []Claim
	rules  []*rule // of claims
	buf    []byte  // the keys
	req    direct.Request
	who    subject
}

var calls = sync.Pool{New: func() any { return new(call) }}

func (c *call) done() {
	// What they point to is kept alive until the next garbage collection at most.
	c.claims, c.rules, c.buf = c.claims[:0], c.rules[:0], c.buf[:0]
	c.who = subject{}
	if cap(c.buf) <= 4<<10 { // else a long header field has made it grow
		calls.Put(c)
	}
}

// ask charges the request c.who, and reports whether it is admitted.
func (h *handler) ask(ctx context.Context, c *call) bool {
	for _, rule := range h.rules {
		cost := int64(1)
		if rule.cost != nil {
			if cost = rule.cost(c.who.x); cost <= 0 {
				continue
			}
		}
		n := len(c.buf)
		var secret bool
		c.buf, secret = rule.key.append(c.buf, &c.who)
		// If buf grows, earlier keys stay in the old one.
		c.claims = append(c.claims, Claim{Limit: rule.limit, Key: c.buf[n:len(c.buf):len(c.buf)], Secret: secret, Cost: cost})
		c.rules = append(c.rules, rule)
	}
	if len(c.claims) == 0 {
		return true
	}
	h.store.Take(ctx, c.claims) // the store reports its error
	return allowed(c.claims)
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := calls.Get().(*call)
	c.req = request(r)
	c.who = subject{&c.req, r, r.Pattern}
	if !h.ask(r.Context(), c) {
		direct.Respond(w, r, func(x *direct.Exchange) { h.refuse(x, c, refusal.Around(w)) })
		c.req = direct.Request{}
		c.done()
		return
	}
	if h.fields && len(c.claims) > 0 {
		header := w.Header()
		// Lines of a handler around this one stay.
		header[policyField] = append(slices.Clip(header[policyField]), h.policy)
		header[limitField] = append(slices.Clip(header[limitField]), c.lines()...)
	}
	c.req = direct.Request{}
	c.done()
	h.next.ServeHTTP(w, r)
}

// directHandler is a handler whose next is direct.
type directHandler struct {
	*handler
	direct direct.Handler
	memory *Memory // if serveOne can serve, else nil
	one    *rule
}

// ServeDirect implements direct.Handler.
func (h *directHandler) ServeDirect(x *direct.Exchange) bool {
	if h.memory != nil {
		return h.serveOne(x)
	}
	c := calls.Get().(*call)
	c.who = subject{x: &x.Request, pattern: x.Pattern}
	// done is not deferred: if next panics, the pool makes a new call.
	if !h.ask(context.Background(), c) {
		h.refuse(x, c, refusal.In(x))
		c.done()
		return true
	}
	if h.fields && len(c.claims) > 0 {
		x.Keep(policyName, h.policy)
		for i := range c.claims {
			if d := &c.claims[i].Decision; !d.Failed {
				x.Keep(limitName, c.rules[i].lines.line(c.rules[i].limit, d))
			}
		}
	}
	answered := h.direct.ServeDirect(x)
	if !answered && len(c.claims) > 0 {
		h.store.Refund(context.Background(), c.claims)
	}
	c.done()
	return answered
}
