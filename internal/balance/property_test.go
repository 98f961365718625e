package balance

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/chert-http/chert/internal/testing/race"
	"pgregory.net/rapid"
)

// drawMembers draws servers with weights from 0 to 100, often equal ones, of which the first
// has one.
func drawMembers(t *rapid.T) []Member {
	n := rapid.IntRange(1, 64).Draw(t, "servers")
	highest := rapid.SampledFrom([]int{1, 3, 100}).Draw(t, "highest weight")
	salt := rapid.Uint16().Draw(t, "salt")
	list := make([]Member, n)
	for i := range list {
		list[i] = Member{Server: NewServer(fmt.Sprintf("%d.app:%d", i, salt)), Weight: rapid.IntRange(0, highest).Draw(t, "weight")}
	}
	list[0].Weight = max(list[0].Weight, 1)
	return list
}

func hashSet(t rapid.TB, list []Member, bound float64) *Set {
	s, err := NewSet(list, &Options{Policy: Hash, Bound: bound})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Keys of a server that is ejected, or leaves, move, and no others; when it is back they are
// too. The order of the list and duplicates make no difference.
func TestRemoval(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list := drawMembers(t)
		gone := rapid.IntRange(0, len(list)-1).Draw(t, "gone")
		all := hashSet(t, list, 0)
		without := hashSet(t, slices.Delete(slices.Clone(list), gone, gone+1), 0)
		mixed := hashSet(t, append(rapid.Permutation(list).Draw(t, "order"), list[gone]), 0)
		seed := rapid.Uint64().Draw(t, "seed")
		victim := list[gone].Server
		for i := range uint64(200) {
			key := mix(seed + i)
			before := pick(all, Request{Key: key})
			if got := pick(mixed, Request{Key: key}); got != before {
				t.Fatalf("in another order %s, not %s", got, before)
			}
			victim.SetState(Down, 0)
			down := pick(all, Request{Key: key})
			victim.SetState(Up, 0)
			if left := pick(without, Request{Key: key}); left != down || before != victim.addr && down != before {
				t.Fatalf("%s is down: from %s to %s; removed: %s", victim.addr, before, down, left)
			}
			if second := pick(all, Request{Key: key, Tried: []*Server{victim}}); second != down {
				t.Fatalf("the second choice is %s, not %s", second, down)
			}
			if back := pick(all, Request{Key: key}); back != before {
				t.Fatalf("back: %s, not %s", back, before)
			}
		}
	})
}

// A higher weight moves keys only to the server that has it.
func TestRaise(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list := drawMembers(t)
		low := hashSet(t, list, 0)
		at := rapid.IntRange(0, len(list)-1).Draw(t, "at")
		more := slices.Clone(list)
		more[at].Weight += rapid.SampledFrom([]int{1, 5, 1000}).Draw(t, "more")
		high := hashSet(t, more, 0)
		seed := rapid.Uint64().Draw(t, "seed")
		for i := range uint64(500) {
			a, b := low.Home(mix(seed+i)), high.Home(mix(seed+i))
			if a != b && b != list[at].Server {
				t.Fatalf("moved from %s to %s; the weight of %s was raised", a.addr, b.addr, list[at].Server.addr)
			}
		}
	})
}

// keys is the size of statistics, whose seeds are fixed: they hold or they do not.
func keys() uint64 {
	if testing.Short() || race.Enabled {
		return 1e5
	}
	return 1e6
}

func within4(got, p float64, n uint64) bool {
	return math.Abs(got-float64(n)*p) <= 4*math.Sqrt(float64(n)*p*(1-p))+1e-9
}

// Shares are those of the weights. The keys of a server that leaves are spread by weight, and
// as many move as Moved says, also when weights change.
func TestShares(t *testing.T) {
	t.Parallel()
	for seed, weights := range [][]int{
		{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {3, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {100, 1, 50, 2, 7}, {1, 65535}, {1, 2},
	} {
		list := members(servers(len(weights)), weights...)
		lower := slices.Clone(list)
		lower[0].Weight = (lower[0].Weight + 1) / 2
		lower[1].Weight *= 2
		if lower[1].Weight > MaxWeight {
			lower[1].Weight = 30000
		}
		s, without, changed := hashSet(t, list, 0), hashSet(t, list[1:], 0), hashSet(t, lower, 0)
		n, sum := keys(), 0.0
		for _, w := range weights {
			sum += float64(w)
		}
		count, spread, moved := map[*Server]float64{}, map[*Server]float64{}, 0.0
		for i := range n {
			key := mix(mix(uint64(seed)) + i)
			home := s.Home(key)
			count[home]++
			if home == list[0].Server {
				spread[without.Home(key)]++
			}
			if home != changed.Home(key) {
				moved++
			}
		}
		chi := 0.0
		for i, m := range list {
			if !within4(count[m.Server], float64(m.Weight)/sum, n) {
				t.Errorf("weights %v: server %d has %v of %d", weights, i, count[m.Server], n)
			}
			if i > 0 {
				want := count[list[0].Server] * float64(m.Weight) / (sum - float64(weights[0]))
				chi += (spread[m.Server] - want) * (spread[m.Server] - want) / max(want, 1)
			}
		}
		// p = 0.001 by Wilson and Hilferty.
		if df := float64(len(list) - 2); df > 0 {
			x := 1 - 2/(9*df) + 3.09*math.Sqrt(2/(9*df))
			if limit := df * x * x * x; chi > limit {
				t.Errorf("weights %v: chi-square of the keys that moved is %.1f, over %.1f", weights, chi, limit)
			}
		}
		if want := Moved(s, changed); !within4(moved, want, n) {
			t.Errorf("weights %v: %v of %d moved; Moved is %v", weights, moved, n, want)
		}
		if got, want := Moved(s, without), float64(weights[0])/sum; math.Abs(got-want) > 1e-12 {
			t.Errorf("weights %v: Moved is %v for the first server; want %v", weights, got, want)
		}
	}
}

func TestMovedOfNothing(t *testing.T) {
	t.Parallel()
	none, some := hashSet(t, nil, 0), hashSet(t, members(servers(3), 1), 0)
	for _, c := range []struct {
		a, b *Set
		want float64
	}{{none, none, 0}, {none, some, 1}, {some, none, 1}, {some, some, 0}} {
		if got := Moved(c.a, c.b); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v; want %v", got, c.want)
		}
	}
	if none.Home(1) != nil || none.Settled(1, 0) || none.Acquire(&Request{}) != nil {
		t.Error("a server of none")
	}
}

// No server gets more than its bound when it is chosen, and keys return home when there is
// room.
func TestBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list := drawMembers(t)
		c := rapid.OneOf(rapid.Float64Range(1.01, 3), rapid.SampledFrom([]float64{1.25, 1.5, 2, 3})).Draw(t, "c")
		s := hashSet(t, list, c)
		sum, weights := 0, map[*Server]int{}
		for _, m := range list {
			sum += m.Weight
			weights[m.Server] = m.Weight
		}
		var held []*Server
		distinct := rapid.Uint64Range(1, 50).Draw(t, "distinct keys")
		seed := rapid.Uint64().Draw(t, "seed")
		for i := range uint64(300) {
			got := s.Acquire(&Request{Key: mix(seed + mix(i)%distinct)})
			if got == nil {
				t.Fatal("no server has room")
			}
			held = append(held, got)
			// n <= ceil(x) is n-1 < x, multiplied out.
			if n := got.inFlight.Load(); float64(n-1)*float64(sum) >= c*float64(weights[got])*float64(len(held)) {
				t.Fatalf("%s has %d of %d in flight, over its bound", got.addr, n, len(held))
			}
			if mix(i)%3 == 0 {
				at := int(mix(i+1) % uint64(len(held)))
				held[at].Release()
				held = slices.Delete(held, at, at+1)
			}
		}
		for _, srv := range held {
			srv.Release()
		}
		for i := range distinct {
			if got, home := pick(s, Request{Key: mix(seed + i)}), s.Home(mix(seed+i)); got != home.addr {
				t.Fatalf("at %s, not at home at %s", got, home.addr)
			}
		}
	})
}

// Callers that choose together exceed the bound by one each at most.
func TestBoundsConcurrent(t *testing.T) {
	t.Parallel()
	const callers, each, c = 4, 500, 1.25
	all := servers(10)
	s := hashSet(t, members(all, 1), c)
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range each {
				s.Acquire(&Request{Key: 1}) // all of one key, and never released
			}
		})
	}
	wg.Wait()
	for _, srv := range all {
		// The total only rises, so the bound at the end is the highest.
		if n, bound := srv.inFlight.Load(), math.Ceil(c*callers*each/10)+callers; float64(n) > bound {
			t.Errorf("%s has %d; its bound is %v", srv.addr, n, bound)
		}
	}
}

// Whatever the members, states and requests are: a server is chosen exactly if one is
// permitted, it is one of those, and under Hash the first in the order of the key.
func FuzzAcquire(f *testing.F) {
	f.Add([]byte{2, 0, 1, 0, 1, 0, 2, 1, 3}, uint64(1), uint64(2))
	f.Add([]byte{3, 150, 5, 3, 1, 2, 0x83, 4, 0x41, 3, 1, 1}, uint64(9), uint64(1<<63))
	f.Add([]byte{1, 0, 1, 3, 1, 3, 1, 0}, uint64(0), uint64(0))
	f.Fuzz(func(t *testing.T, in []byte, key, random uint64) {
		if len(in) < 2 {
			return
		}
		o := Options{Policy: Policy(in[0] % 4)}
		if in[1] > 100 {
			o.Bound = float64(in[1]) / 100
		}
		in = in[2:min(len(in), 2+2*60)]
		var list []Member
		var tried []*Server
		for i := 0; i+1 < len(in); i += 2 {
			srv := NewServer(fmt.Sprint("s", i))
			srv.SetState(State(in[i+1]&0x3f)%states, 0)
			srv.SetDraining(in[i+1]&0x40 != 0, 0)
			list = append(list, Member{srv, int(in[i] & 0x3f), in[i+1]&0x80 != 0})
			if in[i]&0x40 != 0 {
				tried = append(tried, srv)
			}
		}
		s, err := NewSet(list, &o)
		if err != nil {
			t.Fatal(err)
		}
		r := Request{Key: key, Random: random, Tried: tried, Fresh: true, Now: int64(random >> 1)}
		want := permitted(list, tried)
		got := s.Acquire(&r)
		if got == nil && len(want) > 0 || got != nil && !slices.ContainsFunc(want, func(m Member) bool { return m.Server == got }) {
			t.Fatalf("%v of %v", got, want)
		}
		if got == nil {
			return
		}
		if o.Policy >= Hash { // nothing else is in flight, so all have room
			alone := hashSet(t, want, 0)
			if home := alone.Home(key); home != got {
				t.Fatalf("%s, not %s", got.addr, home.addr)
			}
		}
		if got.inFlight.Load() != 1 {
			t.Fatalf("%d in flight", got.inFlight.Load())
		}
	})
}

// permitted says in the words of the package's comment which members may get a fresh request.
func permitted(list []Member, tried []*Server) []Member {
	var tiers [2][]Member
	var up, sum [2]int
	for _, m := range list {
		if m.Server.Draining() {
			continue
		}
		sum[index(m.Backup)] += m.Weight
		if st := m.Server.State(); st == Up || st == Unknown {
			up[index(m.Backup)] += m.Weight
		}
	}
	for _, m := range list {
		b := index(m.Backup)
		panics := float64(up[b]) < float64(sum[b])/2
		if b == 0 && up[0] == 0 && up[1] > 0 {
			panics = false
		}
		st := m.Server.State()
		if m.Weight == 0 || m.Server.Draining() || st == Down || st == Ejected && !panics || slices.Contains(tried, m.Server) {
			continue
		}
		m.Backup = false
		tiers[b] = append(tiers[b], m)
	}
	if len(tiers[0]) > 0 {
		return tiers[0]
	}
	return tiers[1]
}
