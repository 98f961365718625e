package redisroom

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chert-http/chert/internal/redisstream"
	"github.com/redis/go-redis/v9"
)

// This file has who is where, over all processes: a hash for each room and for each user, with a
// field for each member and process. A process says that it lives by a key that expires; fields
// of others are of those who have died, and are removed by whoever finds them.

// What begins the names of sets.
const (
	atRoom = "room:"
	atUser = "user:"
)

const (
	// beat is how often a process says that it lives.
	beat = 10 * time.Second
	// life is for how long it is believed.
	life = 3 * beat
	// setLife is for how long a set exists that no process confirms.
	setLife = 10 * life
)

// presence is what this process has in the sets.
type presence struct {
	c      *redisstream.Client
	prefix string
	every  time.Duration // that of tests, or beat; immutable once there is a member

	mu     sync.Mutex
	have   map[string]map[string]int // how often a member is in a set
	dirty  map[entry]bool            // what Redis is to be told, and whether it may have it
	began  bool
	lost   bool // Redis has been away, and may have lost what it was told
	unsure bool // the last beat has failed; of run
	failed bool // the last flush has
	signal chan struct{}
	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// entry is a member of a set.
type entry struct{ set, member string }

func newPresence(c *redisstream.Client, prefix string) *presence {
	p := &presence{c: c, prefix: prefix, every: beat, have: make(map[string]map[string]int),
		dirty: make(map[entry]bool), signal: make(chan struct{}, 1)}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// add adds a member to a set, once more.
func (p *presence) add(set, member string) { p.change(set, member, 1) }

// remove removes it, once.
func (p *presence) remove(set, member string) { p.change(set, member, -1) }

func (p *presence) change(set, member string, by int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	members := p.have[set]
	if members == nil {
		members = make(map[string]int)
		p.have[set] = members
	}
	if members[member] += by; members[member] == 0 {
		delete(members, member)
	} else if members[member] != 1 || by < 0 {
		return
	}
	if len(members) == 0 {
		delete(p.have, set)
	}
	e := entry{set, member}
	switch may, known := p.dirty[e]; {
	case !known:
		p.dirty[e] = by < 0
	case by < 0 && !may: // nothing is to be told, or this would grow as long as Redis is away
		delete(p.dirty, e)
	}
	if !p.began && p.ctx.Err() == nil {
		p.began = true
		p.done.Go(p.run)
	}
	p.soon()
}

// soon lets Redis be told.
func (p *presence) soon() {
	select {
	case p.signal <- struct{}{}:
	default:
	}
}

// back is called when Redis responds again.
func (p *presence) back() {
	p.mu.Lock()
	p.lost = true
	p.mu.Unlock()
	p.soon()
}

// wasAway reports whether back has been called since.
func (p *presence) wasAway() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.lost
	p.lost = false
	return was
}

// run tells Redis.
func (p *presence) run() {
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	for p.beat(); ; {
		if p.flush() != nil {
			select { // not at once again
			case <-time.After(time.Second):
			case <-p.ctx.Done():
			}
		}
		select {
		case <-p.signal:
			if p.wasAway() {
				p.beat()
			}
		case <-tick.C:
			p.beat()
		case <-p.ctx.Done():
			return
		}
	}
}

// close removes what this process has in the sets.
func (p *presence) close() {
	p.mu.Lock()
	p.cancel()
	p.mu.Unlock()
	p.done.Wait()
	p.mu.Lock()
	began := p.began
	for set, members := range p.have {
		for m := range members {
			p.dirty[entry{set, m}] = true
		}
	}
	clear(p.have)
	p.mu.Unlock()
	if began {
		p.flush() // an error is no matter: it expires
	}
}

func (p *presence) key(set string) string        { return p.prefix + "at:{" + escape(set) + "}" }
func (p *presence) alive(instance string) string { return p.prefix + "alive:" + instance }
func (p *presence) field(member string) string   { return p.c.Instance() + " " + member }
func split(field string) (instance, member string) {
	instance, member, _ = strings.Cut(field, " ")
	return
}

// escape makes a name one that may be between braces.
func escape(name string) string {
	return strings.NewReplacer("%", "%25", "{", "%7B", "}", "%7D").Replace(name)
}

// flush tells Redis what has changed. What it refuses for good, since a key is something else, is not told again
// before the set is: others would be told again with it, and without end.
func (p *presence) flush() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	p.mu.Lock()
	nothing, failed := len(p.dirty) == 0, p.failed
	p.mu.Unlock()
	switch {
	case nothing:
		return nil
	case failed: // of what is sent to a Redis that does not respond it is not known whether it has it
		if err := p.c.Redis().Ping(ctx).Err(); err != nil {
			return err
		}
	}
	p.mu.Lock()
	in, may := make(map[entry]bool, len(p.dirty)), maps.Clone(p.dirty)
	for e := range p.dirty {
		in[e] = p.have[e.set][e.member] > 0
		p.dirty[e] = true
	}
	p.mu.Unlock()
	pipe := p.c.Redis().Pipeline()
	told := make(map[entry]*redis.IntCmd, len(in))
	for e, there := range in {
		if key, field := p.key(e.set), p.field(e.member); there {
			told[e] = pipe.HSet(ctx, key, field, "")
			pipe.PExpire(ctx, key, setLife)
		} else {
			told[e] = pipe.HDel(ctx, key, field)
		}
	}
	pipe.Exec(ctx) // the errors are those of its commands
	p.mu.Lock()
	defer p.mu.Unlock()
	for e, cmd := range told {
		has, now := in[e], p.have[e.set][e.member] > 0
		if why := cmd.Err(); why != nil && redisstream.Temporary(why) {
			err = why
			if has = may[e] || in[e] && !undone(why); has || now {
				p.dirty[e] = has
				continue
			}
		}
		if delete(p.dirty, e); has != now { // it has changed meanwhile
			p.dirty[e] = has
		}
	}
	p.failed = err != nil
	return err
}

// undone reports whether the command of an error has done nothing.
func undone(err error) bool {
	if _, refused := errors.AsType[redis.Error](err); refused {
		return true
	}
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// beat says that this process lives, and tells Redis again what it has lost: if it has been silent
// for longer than its life, others have removed what it has in the sets, which may exist.
func (p *presence) beat() {
	ctx, cancel := context.WithTimeout(p.ctx, 5*time.Second)
	defer cancel()
	p.mu.Lock()
	sets := make([]string, 0, len(p.have))
	for set := range p.have {
		sets = append(sets, set)
	}
	p.mu.Unlock()
	pipe := p.c.Redis().Pipeline()
	lived := pipe.Exists(ctx, p.alive(p.c.Instance()))
	pipe.Set(ctx, p.alive(p.c.Instance()), "", life)
	there := make([]*redis.BoolCmd, len(sets))
	for i, set := range sets {
		there[i] = pipe.PExpire(ctx, p.key(set), setLife)
	}
	_, err := pipe.Exec(ctx)
	all := p.unsure || lived.Val() == 0
	if p.unsure = err != nil; err != nil {
		return // the next repairs it
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, set := range sets {
		if all || !there[i].Val() {
			for member := range p.have[set] {
				p.dirty[entry{set, member}] = true
			}
			p.soon()
		}
	}
}

// who is a member of a set, on a process.
type who struct{ member, instance string }

// list returns the members of a set on processes that live, ordered by name. What this process
// has in it need not be known to Redis yet.
func (p *presence) list(ctx context.Context, set string) ([]who, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	fields, err := p.c.Redis().HKeys(ctx, p.key(set)).Result()
	if err != nil {
		return nil, err
	}
	own := p.c.Instance()
	fields = slices.DeleteFunc(fields, func(f string) bool { i, _ := split(f); return i == own })
	pipe := p.c.Redis().Pipeline()
	lives := make(map[string]*redis.IntCmd)
	for _, f := range fields {
		if instance, _ := split(f); lives[instance] == nil {
			lives[instance] = pipe.Exists(ctx, p.alive(instance))
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	var all []who
	var dead []string
	for _, f := range fields {
		if instance, member := split(f); lives[instance].Val() > 0 {
			all = append(all, who{member, instance})
		} else {
			dead = append(dead, f)
		}
	}
	p.mu.Lock()
	for member := range p.have[set] {
		all = append(all, who{member, own})
	}
	p.mu.Unlock()
	if len(dead) > 0 {
		p.c.Redis().HDel(ctx, p.key(set), dead...) // an error is no matter: they are not listed
	}
	slices.SortFunc(all, func(a, b who) int {
		if c := strings.Compare(a.member, b.member); c != 0 {
			return c
		}
		return strings.Compare(a.instance, b.instance)
	})
	return all, nil
}
