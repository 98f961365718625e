package balance

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// Policy is how a Set chooses.
type Policy uint8

const (
	// RoundRobin takes servers in turn, those of a higher weight more often.
	RoundRobin Policy = iota
	// Least takes the better of two that Request.Random draws.
	Least
	// Hash takes the server at which Request.Key is at home.
	Hash
	// Sticky is Hash for keys that the caller has given to clients.
	Sticky

	policies
)

const (
	// MaxWeight is the highest weight, which is that of SRV records (RFC 2782).
	MaxWeight = 1<<16 - 1
	// MaxServers is how many servers a Set can have.
	MaxServers = 4096
	// MaxHashed is how many it can have under Hash and Sticky, which look at each server for
	// each request.
	MaxHashed = 256
)

// Member is a server in a Set.
type Member struct {
	Server *Server // never nil
	// Weight is the server's part of requests relative to others, up to MaxWeight. 0: none.
	Weight int
	// Backup servers get requests only if no others can.
	Backup bool
}

// Options are options of a Set. The zero value takes servers in turn.
type Options struct {
	Policy Policy
	// Bound, under Hash and Sticky, limits the requests in flight of each server to Bound times
	// its share of all, rounded up. What it has no room for goes to the next server in the order
	// of the key. Callers that choose at the same time may exceed the limit by one each. From
	// more than 1 to 10, or 0: no limit.
	Bound float64
	// SlowStart is how long a server that comes back gets less than its weight, in
	// nanoseconds. 0: it gets all at once.
	SlowStart int64
}

// Request is what a choice depends on.
type Request struct {
	// Now is the time in nanoseconds.
	Now int64
	// Key is what Hash and Sticky choose by, see KeyOf. A request that lacks what it is to be
	// hashed by may have a random one.
	Key uint64
	// Random is what Least draws with, for example from math/rand/v2, whose Uint64 takes no
	// lock.
	Random uint64
	// Tried are servers that must not be chosen again. With them Hash takes the second and third
	// choice of the key.
	Tried []*Server
	// Fresh, under Sticky, means that Key has been made for this request. A server that drains
	// does not get it.
	Fresh bool
}

func (r *Request) tried(s *Server) bool {
	return len(r.Tried) > 0 && slices.Contains(r.Tried, s)
}

// Set is a list of servers and a policy. It is immutable, but for what it keeps to be fast,
// and safe for concurrent use.
type Set struct {
	policy    Policy
	bound     float64
	slowStart int64
	members   []Member // those with a weight
	homes     tier     // where keys are at home while all servers are up

	view atomic.Pointer[view]

	// For RoundRobin.
	mu     sync.Mutex
	credit []int64 // by member
}

// NewSet returns a Set. A server that is listed twice counts once, with the higher weight,
// and as a backup only if both are. The order of members matters for RoundRobin alone, which
// begins with the first. A Set without servers is valid, and chooses none.
func NewSet(members []Member, o *Options) (*Set, error) {
	if o == nil {
		o = &Options{}
	}
	switch {
	case o.Policy >= policies:
		return nil, fmt.Errorf("balance: unknown policy %d", o.Policy)
	case o.Bound != 0 && !(o.Bound > 1 && o.Bound <= 10): // so written for NaN
		return nil, fmt.Errorf("balance: Bound is %v; want 0 or more than 1, to 10", o.Bound)
	case o.SlowStart < 0 || o.SlowStart > maxSlowStart:
		return nil, fmt.Errorf("balance: SlowStart is %d ns; want 0 to %d", o.SlowStart, int64(maxSlowStart))
	}
	s := &Set{policy: o.Policy, bound: o.Bound, slowStart: o.SlowStart}
	if err := s.add(members); err != nil {
		return nil, err
	}
	limit := MaxServers
	if o.Policy == Hash || o.Policy == Sticky {
		limit = MaxHashed
	}
	if len(s.members) > limit {
		return nil, fmt.Errorf("balance: %d servers; a set with this policy has at most %d", len(s.members), limit)
	}
	s.credit = make([]int64, len(s.members))
	s.homes = s.configured()
	return s, nil
}

// add sets the members, each once.
func (s *Set) add(members []Member) error {
	seen := make(map[uint64]int, len(members))
	for i, m := range members {
		switch {
		case m.Server == nil:
			return fmt.Errorf("balance: member %d has no server", i)
		case m.Weight < 0 || m.Weight > MaxWeight:
			return fmt.Errorf("balance: weight of %s is %d; want 0 to %d", m.Server.addr, m.Weight, MaxWeight)
		case m.Weight == 0:
			continue
		}
		at, again := seen[m.Server.hash]
		if !again {
			seen[m.Server.hash] = len(s.members)
			s.members = append(s.members, m)
			continue
		}
		old := &s.members[at]
		if old.Server != m.Server {
			return errors.New("balance: two servers have the address " + m.Server.addr + " or its hash")
		}
		old.Weight, old.Backup = max(old.Weight, m.Weight), old.Backup && m.Backup
	}
	return nil
}

// Acquire chooses a server and counts a request on it, which ends with Server.Release. It
// returns nil if no server can have the request.
func (s *Set) Acquire(r *Request) *Server {
	v := s.current(r.Now)
	for i := range v.tiers {
		t := &v.tiers[i]
		if len(t.servers) == 0 {
			continue
		}
		var got *Server
		switch s.policy {
		case RoundRobin:
			got = s.robin(t, r)
		case Least:
			got = s.least(t, r)
		default:
			got = s.hashed(t, r)
		}
		if got != nil {
			return got
		}
	}
	return nil
}

// Home returns the server that Hash and Sticky choose for key while all servers are up and
// none is at its bound. It is nil if the Set has no servers.
func (s *Set) Home(key uint64) *Server {
	if len(s.homes.servers) == 0 {
		return nil
	}
	return s.homes.servers[s.homes.first(key)]
}

// Settled reports whether key's home would get a request with a fresh key now, its bound
// left aside. A caller that makes keys for sticky sessions should make another if it is not:
// the session would otherwise move when its home comes back, or leave with it. Give up after
// some, since there may be no such key.
func (s *Set) Settled(key uint64, now int64) bool {
	home := s.Home(key)
	if home == nil || home.Draining() || home.State() == Probing {
		return false
	}
	v := s.current(now)
	for i := range v.tiers {
		if t := &v.tiers[i]; len(t.servers) > 0 {
			return t.servers[t.first(key)] == home
		}
	}
	return false
}

// Panics reports whether so few servers are up that ejections are ignored.
func (s *Set) Panics(now int64) bool { return s.current(now).panics }
