package health

import (
	"container/list"
	"math/bits"
	"sync"
	"time"
)

// A Key is what has a health of its own. Two upstreams, sites or generations of a configuration with the same Key share
// a Server.
type Key struct {
	// Addr is an address as it is connected to: what a name has resolved to, not the name.
	Addr string
	// TLSName is the name that the certificate must have, "" without TLS. A server may fail for one name alone.
	TLSName string
	// Check is what is asked to check the server, as the caller writes it: two that differ in method, path, Host or the
	// status they expect are not the same. "" for no checks.
	Check string
}

// RegistryOptions are those of NewRegistry. The zero RegistryOptions is the default.
type RegistryOptions struct {
	// Unused is how many Servers without a reference are kept, so that an address which is back soon, as those of DNS
	// may be, has its state. Default 1024; negative: none.
	Unused int
	// UnusedTime is how long one is kept. Default 10 min; negative: not at all.
	UnusedTime time.Duration
	// Changed is called for each change of a Server, by the caller that caused it, without locks. It must not block.
	Changed func(*Server, Change)
	// Random returns random bits, and is safe for concurrent use. Default: math/rand/v2.
	Random func() uint64
}

// A Registry has the Servers of a process, and forgets those that are no longer used. It is safe for concurrent use.
// What it holds is bounded by what is in use at the same time and RegistryOptions.Unused.
type Registry struct {
	options RegistryOptions // immutable
	random  func() uint64   // immutable

	mu     sync.Mutex
	byKey  map[Key]*entry
	unused list.List // of *entry, the one unused for longest first
	ids    uint64
}

type entry struct {
	server *Server
	refs   int
	since  int64         // when refs became 0
	at     *list.Element // in unused, nil while refs is not 0
}

// NewRegistry returns an empty Registry.
func NewRegistry(o *RegistryOptions) *Registry {
	r := &Registry{byKey: make(map[Key]*entry)}
	if o != nil {
		r.options = *o
	}
	or(&r.options.Unused, 1024)
	or(&r.options.UnusedTime, 10*time.Minute)
	r.random = chance(r.options.Random)
	return r
}

// A Ref is a reference to a Server. It keeps the Server in its Registry until Release.
type Ref struct {
	*Server
	released bool // under the Registry's mu
}

// Acquire returns a reference to the Server of a key, which it makes if there is none. From then on o holds for all who
// share it; nil is the default. A new generation of a configuration acquires before the old one releases, so that the
// state remains; UnusedTime covers the rest.
func (r *Registry) Acquire(now int64, key Key, o *Options) *Ref {
	o = defaults(o)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expire(now)
	e := r.byKey[key]
	if e == nil {
		r.ids++
		e = &entry{server: r.newServer(now, key, o)}
		r.byKey[key] = e
	} else {
		if e.refs == 0 {
			r.unused.Remove(e.at)
			e.at = nil
		}
		e.server.adopt(now, o, e.refs == 0)
	}
	e.refs++
	return &Ref{Server: e.server}
}

func (r *Registry) newServer(now int64, key Key, o *Options) *Server {
	s := &Server{id: r.ids, key: key, reg: r}
	s.word.Store(pack(Unknown, Unchecked, 1))
	s.info.Since, s.info.CheckSince = now, now
	s.adopt(now, o, true)
	return s
}

// adopt sets the options, and spreads the first checks of many Servers over the interval. first: nothing has used the
// Server just before. Otherwise the next check stays due when it was, or frequent reloads would put it off for ever.
func (s *Server) adopt(now int64, o *Options, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.options.Store(o)
	if first {
		s.check.out = false // nothing waits for its result
	}
	if c := &s.check; first && c.due <= now || c.due-now > int64(o.Interval) {
		wait, _ := bits.Mul64(uint64(o.Interval), s.reg.random())
		c.due = now + int64(wait)
	}
}

// Release gives the reference back. A second Release of the same Ref does nothing.
func (f *Ref) Release(now int64) {
	r := f.reg
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.released {
		return
	}
	f.released = true
	e := r.byKey[f.key]
	if e.refs--; e.refs == 0 {
		e.since = now
		e.at = r.unused.PushBack(e)
	}
	r.expire(now)
}

// expire forgets what has been unused for too long, or is too much.
func (r *Registry) expire(now int64) {
	for e := r.unused.Front(); e != nil; e = r.unused.Front() {
		one := e.Value.(*entry)
		if r.unused.Len() <= r.options.Unused && now-one.since < int64(r.options.UnusedTime) {
			return
		}
		r.unused.Remove(e)
		delete(r.byKey, one.server.key)
	}
}

// uses returns the number of references to s, 0 if it is forgotten.
func (r *Registry) uses(s *Server) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.byKey[s.key]; e != nil && e.server == s {
		return e.refs
	}
	return 0
}

// Servers returns those in use, in no order.
func (r *Registry) Servers() []*Server {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]*Server, 0, len(r.byKey))
	for _, e := range r.byKey {
		if e.refs > 0 {
			all = append(all, e.server)
		}
	}
	return all
}
