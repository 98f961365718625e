package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/balance"
	"github.com/chert-http/chert/internal/health"
	"github.com/chert-http/chert/internal/http1"
	"github.com/chert-http/chert/internal/origin"
	"github.com/chert-http/chert/internal/outbound"
	"github.com/chert-http/chert/internal/retry"
	"github.com/chert-http/chert/internal/sys"
)

// Pool has what is known about servers: their health, requests in flight, and the
// connections that are kept. Upstreams of one Pool that have the same server (address, TLS
// name and check) share it. So a program that makes the Upstreams of a new configuration
// before it closes the old ones forgets nothing. It is safe for concurrent use.
type Pool struct {
	logger   *slog.Logger
	registry *health.Registry
	resolver resolver
	ctx      context.Context // of everything that runs
	cancel   context.CancelFunc
	running  sync.WaitGroup
	waiters  atomic.Int64 // requests in the queues of all Upstreams

	mu        sync.Mutex
	upstreams []*Upstream // in order of creation
	entries   map[health.Key]*entry
	sweeper   *time.Timer // nil while no connection is idle
	closed    bool
}

// NewPool returns a Pool without Upstreams.
func NewPool(o *PoolOptions) *Pool {
	p := &Pool{logger: slog.Default(), entries: map[health.Key]*entry{}, resolver: systemResolver}
	if o != nil && o.Logger != nil {
		p.logger = o.Logger
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.registry = health.NewRegistry(&health.RegistryOptions{Changed: p.changed})
	return p
}

// Upstream returns a new Upstream, and begins to resolve names and to check servers. It is
// an error if an option cannot be used; servers need not run yet.
func (p *Pool) Upstream(o *UpstreamOptions) (*Upstream, error) {
	if o == nil || !http1.ValidFieldName(o.Name) {
		return nil, errors.New("proxy: Upstream: Name is not a token")
	}
	u := &Upstream{pool: p, o: *o, ready: make(chan struct{})}
	u.o.Servers = slices.Clone(o.Servers)
	if err := u.o.complete(); err != nil {
		return nil, fmt.Errorf("proxy: Upstream: %s: %w", o.Name, err)
	}
	u.ctx, u.cancel = context.WithCancel(p.ctx)
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		u.cancel()
		return nil, errors.New("proxy: Upstream: the Pool is closed")
	}
	p.upstreams = append(p.upstreams, u)
	p.mu.Unlock()
	if err := u.start(); err != nil {
		u.Close()
		return nil, fmt.Errorf("proxy: Upstream: %s: %w", o.Name, err)
	}
	return u, nil
}

// Close closes all Upstreams and the connections that are idle. Requests under way go on.
// It waits until nothing runs but for them.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	all := slices.Clone(p.upstreams)
	if p.sweeper != nil {
		p.sweeper.Stop()
	}
	p.mu.Unlock()
	p.cancel()
	for _, u := range all {
		u.Close()
	}
	p.running.Wait()
	return nil
}

// Status returns the state of all Upstreams that are not closed, in the order in which they
// were made.
func (p *Pool) Status() []UpstreamStatus {
	all := p.list()
	s := make([]UpstreamStatus, 0, len(all))
	for _, u := range all {
		s = append(s, u.Status())
	}
	return s
}

func (p *Pool) list() []*Upstream {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.upstreams)
}

// changed is called for each change of a server's health.
func (p *Pool) changed(s *health.Server, c health.Change) {
	p.mu.Lock()
	e := p.entries[s.Key()]
	p.mu.Unlock()
	if e != nil && e.ref.Server == s {
		e.sync()
	}
	p.log(s.Key(), c)
}

// log writes one line that says what has changed, why, and until when. The first success of
// a server is no news.
func (p *Pool) log(k health.Key, c health.Change) {
	from, to := c.From.String(), c.To.String()
	if c.From == c.To {
		from, to = c.CheckFrom.String(), c.CheckTo.String()
	}
	level := slog.LevelInfo
	switch checked := c.From == c.To; {
	case !checked && c.To == health.Ejected, checked && c.CheckTo == health.Failing:
		level = slog.LevelWarn
	case c.Rule == health.FirstSuccess, checked && c.CheckFrom == health.Unchecked:
		level = slog.LevelDebug
	}
	text := "proxy: server " + k.Addr + ": " + from + " -> " + to + ": " + c.Rule.String()
	if cause := c.Cause.String(); cause != "" {
		text += ", " + cause
	}
	args := []slog.Attr{slog.String("server", k.Addr), slog.String("from", from), slog.String("to", to),
		slog.String("rule", c.Rule.String()), slog.String("cause", c.Cause.String())}
	if c.Until != 0 {
		until := wall(c.Until)
		text += ", until " + until.Format(time.TimeOnly)
		args = append(args, slog.Time("until", until))
	}
	p.logger.LogAttrs(context.Background(), level, text, args...)
}

// acquire returns the entry and the connections of a server of an Upstream, with a
// reference to each.
func (p *Pool) acquire(u *Upstream, addr, host string) (*entry, *link) {
	var config *tls.Config
	key := health.Key{Addr: addr, Check: u.checkKey}
	if u.o.TLS != nil {
		config = u.o.TLS.Clone()
		if config.ServerName == "" {
			config.ServerName = host
		}
		if config.ClientSessionCache == nil {
			config.ClientSessionCache = tls.NewLRUClientSessionCache(8)
		}
		config.NextProtos = []string{"http/1.1"}
		if u.o.Protocol == ProtocolHTTP2 {
			config.NextProtos = []string{"h2"}
		}
		key.TLSName = config.ServerName
	}
	at := now()
	ref := p.registry.Acquire(at, key, u.healthOptions())
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entries[key]
	if e == nil {
		e = &entry{pool: p, key: key, ref: ref, bal: balance.NewServer(addr), links: map[linkKey]*link{}}
		p.entries[key] = e
		e.apply() // the Registry may have known the server before
		if u.o.Check != nil {
			e.check(u.o.Check, u.o.Protocol, config)
		}
	} else {
		ref.Release(at)
	}
	e.refs++
	k := linkKey{u.o.TLS, key.TLSName, u.o.Protocol}
	l := e.links[k]
	if l == nil {
		l = &link{entry: e, key: k, limit: retry.NewIdleLimit(24 * time.Hour),
			dialer: origin.Dialer{Addr: addr, TLS: config, Timeout: u.o.ConnectTimeout}}
		if u.o.Protocol == ProtocolHTTP2 {
			l.h2 = newH2(l, &u.o)
		}
		if remote, err := sys.NewRemote(origin.Address(addr)); err == nil && u.onLoops() {
			l.out = outbound.NewServer(remote, config, l.limit)
		}
		e.links[k] = l
	}
	l.refs++
	l.most.Store(int64(u.o.IdleTimeout))
	return e, l
}

// release gives back what acquire has returned.
func (p *Pool) release(e *entry, l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.refs--; l.refs == 0 {
		delete(e.links, l.key)
		l.close()
	}
	if e.refs--; e.refs == 0 {
		delete(p.entries, e.key)
		e.close()
	}
}

// sweepInterval is how exactly the end of an idle connection is seen.
const sweepInterval = 250 * time.Millisecond

// sweepSoon starts sweeping, which goes on while there are idle connections.
func (p *Pool) sweepSoon() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sweeper == nil && !p.closed {
		p.sweeper = time.AfterFunc(sweepInterval, p.sweep)
	}
}

// sweep closes idle connections that servers have closed, or that are too old.
func (p *Pool) sweep() {
	p.mu.Lock()
	var links []*link
	for _, e := range p.entries {
		for _, l := range e.links {
			links = append(links, l)
		}
	}
	p.sweeper = nil
	p.mu.Unlock()
	at, left := now(), false
	for _, l := range links {
		most := min(l.most.Load(), int64(l.limit.Limit(at)))
		if l.idle.Sweep(at, func(age int64) bool { return age < most }, l.closed) {
			left = true
		}
	}
	if left {
		p.sweepSoon()
	}
}
