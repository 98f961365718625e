package proxy

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/chert-http/chert/internal/http1"
)

// Pool has what is known about servers: their health, requests in flight, and the
// connections that are kept. Upstreams of one Pool that have the same server (address, TLS
// name and check) share it. So a program that makes the Upstreams of a new configuration
// before it closes the old ones forgets nothing. It is safe for concurrent use.
type Pool struct {
	logger *slog.Logger

	mu        sync.Mutex
	upstreams []*Upstream // in order of creation
	closed    bool
}

// NewPool returns a Pool without Upstreams.
func NewPool(o *PoolOptions) *Pool {
	p := &Pool{logger: slog.Default()}
	if o != nil && o.Logger != nil {
		p.logger = o.Logger
	}
	return p
}

// Upstream returns a new Upstream, and begins to resolve names and to check servers. It is
// an error if an option cannot be used; servers need not run yet.
func (p *Pool) Upstream(o *UpstreamOptions) (*Upstream, error) {
	if o == nil || !http1.ValidFieldName(o.Name) {
		return nil, errors.New("proxy: Upstream: Name is not a token")
	}
	u := &Upstream{pool: p, o: *o}
	u.o.Servers = slices.Clone(o.Servers)
	if err := u.o.complete(); err != nil {
		return nil, fmt.Errorf("proxy: Upstream: %s: %w", o.Name, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.upstreams = append(p.upstreams, u)
	return u, nil
}

// Close closes all Upstreams and the connections that are idle. Requests under way go on.
func (p *Pool) Close() error { return nil }

// Status returns the state of all Upstreams, in the order in which they were made.
func (p *Pool) Status() []UpstreamStatus {
	p.mu.Lock()
	all := slices.Clone(p.upstreams)
	p.mu.Unlock()
	s := make([]UpstreamStatus, 0, len(all))
	for _, u := range all {
		s = append(s, u.Status())
	}
	return s
}
