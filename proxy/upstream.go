package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/balance"
	"github.com/chert-http/chert/internal/outbound"
	"github.com/chert-http/chert/internal/reason"
	"github.com/chert-http/chert/internal/retry"
)

// Upstream is a list of servers that are alike. It is safe for concurrent use.
type Upstream struct {
	pool     *Pool
	o        UpstreamOptions // complete; immutable
	targets  []target        // those of o.Servers; immutable
	policy   retry.Policy    // immutable
	checkKey string          // immutable
	terms    *outbound.Terms // on loops; immutable
	budget   retry.Budget
	ctx      context.Context // until Close
	cancel   context.CancelFunc

	// current is never nil after start.
	current atomic.Pointer[generation]
	ready   chan struct{} // closed when current has what names have resolved to
	once    sync.Once

	waiting queue

	mu     sync.Mutex // for changes of current
	closed bool
}

// generation is the servers of an Upstream until names resolve differently.
type generation struct {
	set     *balance.Set
	members []*member
	byBal   map[*balance.Server]*member
	failed  reason.Code // of the resolution, if there are no members
	err     error
}

// member is a server in a generation. Requests that have one may use it after the
// generation has ended.
type member struct {
	entry  *entry
	link   *link
	addr   string // that is connected to
	name   string // as it was configured
	weight int
	backup bool
	most   int // requests at a time; 0: no limit
}

func (o *UpstreamOptions) complete() error {
	if err := o.Balance.check(); err != nil {
		return fmt.Errorf("Balance: %w", err)
	}
	if o.Balance.Cookie == "" {
		o.Balance.Cookie = defaultCookie
	}
	switch {
	case (len(o.Servers) == 0) == (o.SRV == ""):
		return errors.New("either Servers or SRV is required")
	case o.SlowStart > time.Hour:
		return field("SlowStart", "more than an hour")
	case o.Protocol > ProtocolHTTP2:
		return field("Protocol", "unknown")
	case o.Check != nil && !o.Check.valid():
		return field("Check", "Path must be a path such as \"/healthz\", and Host a name")
	case o.Check != nil && o.Check.negative():
		return field("Check", "Interval, Timeout, Fall and Rise must not be negative")
	case o.Check != nil && o.Check.Status != 0 && (o.Check.Status < 200 || o.Check.Status > 599):
		return field("Check", "Status must be from 200 to 599")
	case o.Health.Within < 0 || o.Health.Least < 0 || o.Health.Ejection < 0 || o.Health.MaxEjection < 0:
		return field("Health", "Within, Least, Ejection and MaxEjection must not be negative")
	case o.Health.Consecutive > 16 || o.Health.Percent > 100:
		return field("Health", "Consecutive must be at most 16, and Percent at most 100")
	}
	orDefault(&o.SlowStart, 10*time.Second)
	orDefault(&o.QueueTimeout, time.Second)
	orDefault(&o.ConnectTimeout, 3*time.Second)
	orDefault(&o.ResponseTimeout, time.Minute)
	orDefault(&o.StallTimeout, time.Minute)
	if o.IdleTimeout < 0 {
		o.MaxIdle = -1
	}
	orDefault(&o.IdleTimeout, time.Minute)
	orDefault(&o.MaxIdle, 1024)
	o.MaxRequests, o.Queue = max(o.MaxRequests, 0), max(o.Queue, 0)
	return nil
}

// field returns the error of an option, which names it.
func field(name, format string, args ...any) error {
	return fmt.Errorf("%s: %s", name, fmt.Sprintf(format, args...))
}

// plain reports whether s can be a part of a request line or a field.
func plain(s string) bool {
	return !slices.ContainsFunc([]byte(s), func(c byte) bool { return c <= ' ' || c == 0x7f })
}

// orDefault replaces 0 by the default, and what is negative by 0, which is none.
func orDefault[T int | time.Duration](v *T, d T) {
	switch {
	case *v == 0:
		*v = d
	case *v < 0:
		*v = 0
	}
}

// start makes the first generation.
func (u *Upstream) start() error {
	u.checkKey = u.o.Check.key(u.o.Protocol)
	u.policy = retry.Policy{Keys: u.o.Retry.Keys, Timeouts: u.o.Retry.Timeouts, Statuses: u.o.Retry.Statuses}
	u.terms = outbound.NewTerms(&outbound.Terms{Connect: int64(u.o.ConnectTimeout),
		Response: int64(u.o.ResponseTimeout), Stall: int64(u.o.StallTimeout), Idle: u.o.MaxIdle,
		IdleTime: int64(u.o.IdleTimeout)})
	for i, s := range u.o.Servers {
		t, err := targetOf(s)
		if err != nil {
			return field(fmt.Sprintf("Servers[%d]", i), "%v", err)
		}
		if u.o.TLS != nil && u.o.TLS.ServerName == "" && t.host == "" {
			return field(fmt.Sprintf("Servers[%d]", i), "TLS to a unix socket needs TLS.ServerName")
		}
		u.targets = append(u.targets, t)
	}
	if !u.resolves() {
		return u.replace(u.targets, nil, reason.NoServer, nil)
	}
	if err := u.replace(nil, nil, reason.DNSTimeout, nil); err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.closed { // Pool.Close closes it before it waits for what runs
		u.pool.running.Go(u.resolve)
	}
	return nil
}

// resolved takes over answers.
func (u *Upstream) resolved(a *answers, code reason.Code, err error) {
	targets := u.targets
	if u.o.SRV != "" {
		targets = a.srv
	}
	if code == reason.None {
		code = reason.DNSFailed // if there are no addresses
	}
	if e := u.replace(targets, a, code, err); e != nil {
		u.pool.logger.Warn("proxy: upstream "+u.o.Name+": the addresses of its names cannot be used: "+e.Error(),
			slog.String("upstream", u.o.Name))
	}
	u.once.Do(func() { close(u.ready) })
}

// replace makes a generation of targets. Its own servers are acquired before those of the
// old one are released, so that none is forgotten.
func (u *Upstream) replace(targets []target, a *answers, failed reason.Code, err error) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return nil
	}
	g := &generation{byBal: map[*balance.Server]*member{}, failed: failed, err: err}
	old := u.current.Load()
	for _, t := range targets {
		for _, addr := range addresses(t, a) {
			if !slices.ContainsFunc(g.members, func(m *member) bool { return m.addr == addr }) {
				g.add(u, t, addr, old)
			}
		}
	}
	if g.same(old) && old != nil {
		for _, m := range g.members {
			u.pool.release(m.entry, m.link)
		}
		if len(old.members) > 0 && err == nil && old.err == nil {
			return nil
		}
		// Only the error has changed.
		g = &generation{set: old.set, members: old.members, byBal: old.byBal, failed: failed, err: err}
		u.current.Store(g)
		return nil
	}
	list := make([]balance.Member, 0, len(g.members))
	for _, m := range g.members {
		list = append(list, balance.Member{Server: m.entry.bal, Weight: m.weight, Backup: m.backup})
	}
	set, fault := balance.NewSet(list, &balance.Options{Policy: u.o.Balance.policy(), Bound: u.o.Balance.bound(),
		SlowStart: int64(u.o.SlowStart)})
	if fault != nil {
		g.release(u.pool)
		return fault
	}
	g.set = set
	u.current.Store(g)
	if old != nil {
		old.release(u.pool)
	}
	u.pool.wake()
	return nil
}

// addresses returns what t has resolved to.
func addresses(t target, a *answers) (all []string) {
	if !t.name {
		if t.host == "" {
			return []string{t.Addr}
		}
		return []string{net.JoinHostPort(t.host, t.port)}
	}
	if a != nil {
		for _, ip := range a.addrs[t.host] {
			all = append(all, net.JoinHostPort(ip.String(), t.port))
		}
	}
	return all
}

func (g *generation) add(u *Upstream, t target, addr string, old *generation) {
	m := &member{addr: addr, name: t.Addr, weight: t.weight(), backup: t.Backup, most: t.MaxRequests}
	m.entry, m.link = u.pool.acquire(u, addr, t.host)
	if m.most == 0 {
		m.most = u.o.MaxRequests
	}
	m.most = max(m.most, 0)
	g.members = append(g.members, m)
	g.byBal[m.entry.bal] = m
	// A server that a name has got since: it begins slowly.
	if old != nil && len(old.members) > 0 && old.byBal[m.entry.bal] == nil {
		m.entry.bal.Warm(now())
	}
}

func (g *generation) release(p *Pool) {
	for _, m := range g.members {
		p.release(m.entry, m.link)
	}
}

func (g *generation) same(old *generation) bool {
	return old != nil && slices.EqualFunc(g.members, old.members, func(a, b *member) bool { return *a == *b })
}

func (b *Balance) policy() balance.Policy {
	switch b.Policy {
	case PolicyRoundRobin:
		return balance.RoundRobin
	case PolicyHash:
		return balance.Hash
	case PolicySticky:
		return balance.Sticky
	}
	return balance.Least
}

func (u *Upstream) members() []*member {
	if g := u.current.Load(); g != nil {
		return g.members
	}
	return nil
}

// Name returns UpstreamOptions.Name.
func (u *Upstream) Name() string { return u.o.Name }

// Drain begins or ends the draining of a server, whose address is as it was configured or
// as a name has resolved: it gets no new requests, but those of sticky sessions that it
// has. All Upstreams of the Pool with the server are concerned. It is an error if there is no
// such server.
func (u *Upstream) Drain(addr string, on bool) error {
	found := false
	for _, m := range u.members() {
		if m.addr == addr || m.name == addr {
			found = true
			m.entry.ref.Drain(now(), on)
		}
	}
	if !found {
		return fmt.Errorf("proxy: Drain: upstream %s has no server %s", u.o.Name, addr)
	}
	return nil
}

// Close ends the resolution of names and gives the servers back to the Pool. Requests under
// way go on, and new ones are answered 503.
func (u *Upstream) Close() error {
	u.cancel()
	u.mu.Lock()
	if u.closed {
		u.mu.Unlock()
		return nil
	}
	u.closed = true
	old := u.current.Load()
	set, _ := balance.NewSet(nil, nil)
	u.current.Store(&generation{set: set, failed: reason.NoServer})
	u.mu.Unlock()
	u.once.Do(func() { close(u.ready) })
	u.waiting.signal() // each that leaves the queue wakes the next one
	if old != nil {
		old.release(u.pool)
	}
	p := u.pool
	p.mu.Lock()
	p.upstreams = slices.DeleteFunc(p.upstreams, func(o *Upstream) bool { return o == u })
	p.mu.Unlock()
	return nil
}

// Moved returns the share of all keys, from 0 to 1, that PolicyHash and PolicySticky send
// to another server under b than under a, while all servers are up.
func Moved(a, b *Upstream) float64 {
	return balance.Moved(a.current.Load().set, b.current.Load().set)
}

// Status returns the state of now.
func (u *Upstream) Status() UpstreamStatus {
	at, g := now(), u.current.Load()
	s := UpstreamStatus{Name: u.o.Name, Balance: u.o.Balance.String(), Panic: g.set.Panics(at) && len(g.members) > 0,
		Queue: u.waiting.len(), MaxQueue: u.o.Queue, Servers: make([]ServerStatus, 0, len(g.members))}
	b := u.budget.Balance(at)
	s.Retries = RetryStatus{Requests: b.Requests, Retries: b.Retries, Limit: b.Limit, Refused: b.Refused}
	if g.err != nil {
		s.Resolve = g.err.Error()
	}
	for _, m := range g.members {
		s.Servers = append(s.Servers, m.status(at))
	}
	return s
}

func (m *member) status(at int64) ServerStatus {
	e, i := m.entry, m.entry.ref.Info(at)
	s := ServerStatus{
		Addr: m.addr, State: i.State.String(), Check: i.Check.String(), Since: wall(i.Since),
		Weight: m.weight, Backup: m.backup, Draining: e.bal.Draining(),
		InFlight: e.slots.Load(), MaxRequests: m.most, Idle: int64(m.link.idle.Len()),
		Latency:   time.Duration(e.bal.Latency(at)),
		IdleLimit: min(m.link.limit.Limit(at), time.Duration(m.link.most.Load())),
		Requests:  e.requests.Load(), Failures: e.failures.Load(), Ejections: i.Ejections,
		Dials: e.dials.Load(), Reused: e.reused.Load(),
	}
	if o := m.link.out; o != nil {
		s.Idle += o.Kept.Load()
		s.Dials += o.Dials.Load()
		s.Reused += o.Reused.Load()
	}
	if m.name != m.addr {
		s.Name = m.name
	}
	s.Cause = cause(i.Rule.String(), i.Cause)
	if i.Until > 0 {
		s.Until = wall(i.Until)
	}
	if i.CheckCause != reason.None {
		s.Cause, s.Since = cause("checks failed", i.CheckCause), wall(i.CheckSince)
	}
	return s
}

func cause(rule string, code reason.Code) string {
	if code == reason.None {
		return rule
	}
	return rule + ": " + code.String()
}

// scheme is that of URLs for the servers.
func (u *Upstream) scheme() string {
	if u.o.TLS != nil {
		return "https"
	}
	return "http"
}
