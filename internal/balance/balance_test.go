package balance

import (
	"bufio"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

const sec = int64(1e9)

// servers returns n of them.
func servers(n int) []*Server {
	all := make([]*Server, n)
	for i := range all {
		all[i] = NewServer(fmt.Sprintf("10.0.0.%d:8080", i))
	}
	return all
}

// members gives servers weights, the last of them to all that follow.
func members(all []*Server, weights ...int) []Member {
	list := make([]Member, len(all))
	for i, s := range all {
		list[i] = Member{Server: s, Weight: weights[min(i, len(weights)-1)]}
	}
	return list
}

func newSet(t testing.TB, list []Member, o Options) *Set {
	t.Helper()
	s, err := NewSet(list, &o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// pick chooses without keeping the request in flight.
func pick(s *Set, r Request) string {
	got := s.Acquire(&r)
	if got == nil {
		return ""
	}
	got.Release()
	return got.addr
}

func TestNewSetRefuses(t *testing.T) {
	t.Parallel()
	all := servers(MaxHashed + 1)
	for _, c := range []struct {
		why  string
		list []Member
		o    Options
		want string
	}{
		{"no server", []Member{{Weight: 1}}, Options{}, "member 0 has no server"},
		{"negative", members(all[:1], -1), Options{}, "weight of 10.0.0.0:8080 is -1"},
		{"beyond SRV's", members(all[:1], MaxWeight+1), Options{}, "weight of 10.0.0.0:8080 is 65536"},
		{"too many for a hash", members(all, 1), Options{Policy: Hash}, "257 servers"},
		{"too many for a cookie", members(all, 1), Options{Policy: Sticky}, "257 servers"},
		{"no bound at all", nil, Options{Bound: 1}, "Bound is 1"},
		{"no number", nil, Options{Bound: math.NaN()}, "Bound is NaN"},
		{"no bound either", nil, Options{Bound: math.Inf(1)}, "Bound is +Inf"},
		{"negative time", nil, Options{SlowStart: -1}, "SlowStart is -1"},
		{"unknown", nil, Options{Policy: policies}, "unknown policy"},
		{"two states for an address", members([]*Server{all[0], NewServer(all[0].addr)}, 1), Options{}, "two servers"},
	} {
		if _, err := NewSet(c.list, &c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.why, err, c.want)
		}
	}
	if _, err := NewSet(members(all, 1), &Options{Policy: Least}); err != nil {
		t.Errorf("many servers under Least: %v", err)
	}
}

// The higher weight counts, and primaries before backups.
func TestDuplicates(t *testing.T) {
	t.Parallel()
	all := servers(2)
	for _, list := range [][]Member{
		{{all[0], 1, true}, {all[0], 3, false}, {all[1], 1, false}},
		{{all[0], 3, false}, {all[1], 1, false}, {all[0], 1, true}},
	} {
		s := newSet(t, list, Options{})
		got := ""
		for range 4 {
			got += pick(s, Request{})[7:8]
		}
		if got != "0010" {
			t.Errorf("%s; want 0010", got)
		}
	}
}

// The order is nginx's.
func TestRoundRobin(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		weights []int
		want    string
	}{
		{[]int{1, 1, 1}, "012012"},
		{[]int{5, 1, 1}, "00102000010200"},
		{[]int{1, 0, 2}, "202202"},
	} {
		s := newSet(t, members(servers(3), c.weights...), Options{})
		got := ""
		for range c.want {
			got += pick(s, Request{})[7:8]
		}
		if got != c.want {
			t.Errorf("weights %v: %s; want %s", c.weights, got, c.want)
		}
	}
}

// Idle servers get requests by weight, and those of a lower cost the more.
func TestLeast(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	all := servers(3)
	s := newSet(t, members(all, 1, 2, 5), Options{Policy: Least})
	const n = 80000
	count := map[string]float64{}
	for range n {
		count[pick(s, Request{Random: rnd.Uint64()})]++
	}
	for i, w := range []float64{1, 2, 5} {
		if p := w / 8; math.Abs(count[all[i].addr]-n*p) > 4*math.Sqrt(n*p*(1-p)) {
			t.Errorf("weight %v: %v of %d", w, count[all[i].addr], n)
		}
	}
	// The slow one loses each pair, and is in all but those of the other two.
	s = newSet(t, members(all, 1), Options{Policy: Least})
	for i, ms := range []int64{1, 1, 30} {
		all[i].Observe(ms*1e6, sec)
	}
	for range 1000 {
		if pick(s, Request{Random: rnd.Uint64(), Now: sec}) == all[2].addr {
			t.Fatal("chose the slow one")
		}
	}
	// In flight, a server of twice the weight may have twice as many.
	s = newSet(t, members(all[:2], 1, 2), Options{Policy: Least})
	for range 300 {
		s.Acquire(&Request{Random: rnd.Uint64(), Now: sec})
	}
	if a, b := all[0].inFlight.Load(), all[1].inFlight.Load(); a < 98 || a > 102 || a+b != 300 {
		t.Errorf("%d and %d in flight", a, b)
	}
}

// The second of a pair is drawn by weight from the servers other than the first; also in the
// slow way, among those that are permitted.
func TestPair(t *testing.T) {
	t.Parallel()
	for _, weights := range [][]int{{1, 1, 1, 1}, {1, 2, 5, 4}, {1, 1, 1, 500}} {
		all := servers(4)
		s := newSet(t, members(all, weights...), Options{Policy: Least})
		v := s.current(0)
		sum := 0.0
		for _, w := range weights {
			sum += float64(w)
		}
		rnd := rand.New(rand.NewPCG(5, 5))
		const n = 100000
		var fast, slow [4][4]float64
		for range n {
			random := rnd.Uint64()
			i, j := v.tiers[0].pair(random)
			fast[i][j]++
			i, j = s.permitted(&v.tiers[0], &Request{Random: random})
			slow[i][j]++
		}
		for i := range all {
			for j := range all {
				p := 0.0
				if i != j {
					p = float64(weights[i]) / sum * float64(weights[j]) / (sum - float64(weights[i]))
				}
				if !within4(fast[i][j], p, n) || !within4(slow[i][j], p, n) {
					t.Errorf("%v: %d and %d: %v and %v of %d; want %v", weights, i, j, fast[i][j], slow[i][j], n, n*p)
				}
			}
		}
	}
}

func TestLatency(t *testing.T) {
	t.Parallel()
	s := NewServer("a")
	near := func(want float64) {
		t.Helper()
		if got := float64(s.Latency(100 * sec)); math.Abs(got-want) > want*1e-3 {
			t.Errorf("%v; want %v", got, want)
		}
	}
	near(0)
	s.Observe(1e6, 90*sec)
	s.Observe(5e6, 90*sec) // at once
	s.acquire(false)
	near(5e6)
	s.Observe(1e6, 100*sec) // tau later
	near(1e6 + 4e6/math.E)
	s.Release()
	s.Observe(3e6, 100*sec)
	s.Observe(1e6, 99*sec) // of a loop whose clock is behind
	near(3e6)
	if got := float64(s.Latency(110 * sec)); math.Abs(got-3e6/math.E) > 3e3 {
		t.Errorf("idle for tau: %v", got)
	}
	s.acquire(false)
	if got := s.Latency(200 * sec); got != int64(math.Float32frombits(math.Float32bits(3e6))) {
		t.Errorf("a server that hangs has become faster: %d", got)
	}
}

// States decide who may be chosen, whatever the policy.
func TestStates(t *testing.T) {
	t.Parallel()
	// A letter for each server: u up, n unknown, p probing, e ejected, d down, D draining;
	// upper-case B follows for a backup.
	for _, c := range []struct {
		why, states, want string
		panics            bool
	}{
		{"all", "un", "01", false},
		{"ejected ones are left out", "uue", "01", false},
		{"half is up", "ue", "0", false},
		{"fewer than half: ejections are ignored", "uee", "012", true},
		{"but not active checks", "udd e", "04", true},
		{"all ejected", "eee", "012", true},
		{"all down", "dd", "", true},
		{"backups only if they must", "ueBuBu", "0", false},
		{"backups instead of panic", "eeBu", "3", false},
		{"backups in panic", "dBeBe", "24", true},
		{"primaries in panic before backups in panic", "eBe", "0", true},
		{"a draining server gets nothing", "uD", "0", false},
		{"and does not count in the panic rule", "uDDD", "0", false},
		{"nothing but draining", "D", "", false},
		{"probing in panic is up", "pe", "01", true},
	} {
		for p := range policies {
			all := servers(len(c.states))
			var list []Member
			backup := false
			for i, l := range c.states {
				switch l {
				case 'B':
					backup = true
					continue
				case ' ':
					continue
				case 'D':
					all[i].SetDraining(true, 0)
				default:
					all[i].SetState(map[rune]State{'u': Up, 'n': Unknown, 'p': Probing, 'e': Ejected, 'd': Down}[l], 0)
				}
				list = append(list, Member{all[i], 1, backup})
				backup = false
			}
			s := newSet(t, list, Options{Policy: p})
			rnd := rand.New(rand.NewPCG(3, uint64(p)))
			got := map[string]bool{}
			for range 400 {
				got[pick(s, Request{Key: rnd.Uint64(), Random: rnd.Uint64(), Fresh: true})] = true
			}
			names := ""
			for i, s := range all {
				if got[s.addr] {
					names += fmt.Sprint(i)
				}
			}
			if names != c.want || s.Panics(0) != c.panics {
				t.Errorf("%s: policy %d: chose %q, panics %v; want %q, %v", c.why, p, names, s.Panics(0), c.want, c.panics)
			}
		}
	}
}

// A probing server has at most one request, and gets it from every policy.
func TestProbing(t *testing.T) {
	t.Parallel()
	for p := range policies {
		all := servers(4)
		s := newSet(t, members(all, 1), Options{Policy: p})
		all[1].SetState(Probing, 0)
		rnd := rand.New(rand.NewPCG(4, 4))
		for range 1000 {
			s.Acquire(&Request{Key: rnd.Uint64(), Random: rnd.Uint64(), Fresh: true})
			if n := all[1].inFlight.Load(); n > 1 {
				t.Fatalf("policy %d: %d in flight", p, n)
			}
		}
		if all[1].inFlight.Load() != 1 {
			t.Errorf("policy %d: no probe", p)
		}
	}
}

// Each further try gets another server, under Hash in the order of the key; then backups.
func TestTried(t *testing.T) {
	t.Parallel()
	for p := range policies {
		all := servers(5)
		list := members(all, 3, 1, 2, 1)
		list[4].Backup = true
		s := newSet(t, list, Options{Policy: p, Bound: 1.25})
		var tried []*Server
		for range all {
			got := s.Acquire(&Request{Key: 7, Random: 7, Tried: tried})
			if got == nil || slices.Contains(tried, got) {
				t.Fatalf("policy %d: %v after %d tries", p, got, len(tried))
			}
			tried = append(tried, got)
		}
		if tried[4] != all[4] {
			t.Errorf("policy %d: the backup was not the last", p)
		}
		if got := s.Acquire(&Request{Tried: tried}); got != nil {
			t.Errorf("policy %d: %s again", p, got.addr)
		}
	}
}

// Draining servers keep the sessions at home with them, and get no others.
func TestStickyDrain(t *testing.T) {
	t.Parallel()
	all := servers(4)
	s := newSet(t, members(all, 1), Options{Policy: Sticky})
	all[0].SetDraining(true, 0)
	all[1].SetState(Down, 0)
	for key := range uint64(1000) {
		home := s.Home(mix(key))
		got := pick(s, Request{Key: mix(key)})
		if home != all[1] && got != home.addr {
			t.Fatalf("a session moved from %s to %s", home.addr, got)
		}
		if home == all[1] && got == all[0].addr {
			t.Fatal("a session came to the draining server")
		}
		if got := pick(s, Request{Key: mix(key), Fresh: true}); got == all[0].addr {
			t.Fatal("a new session at the draining server")
		}
		if want := home != all[0] && home != all[1]; s.Settled(mix(key), 0) != want {
			t.Fatalf("settled is not %v", want)
		}
	}
}

func TestSlowStart(t *testing.T) {
	t.Parallel()
	all := servers(2)
	s := newSet(t, members(all, 100), Options{SlowStart: 10 * sec})
	all[1].SetState(Ejected, 0)
	all[1].SetState(Up, sec)
	for _, c := range []struct {
		at   int64
		want float64 // of the weight
	}{{sec / 2, 0.1}, // by a clock that is behind
		{sec, 0.1}, {6*sec + 1, 0.55}, {11 * sec, 0.97}, {11*sec + 1, 1}, {1e18, 1}} {
		v := s.prepare(c.at)
		got := float64(v.tiers[0].weights[1]) / (100 * unit)
		if math.Abs(got-c.want) > 0.005 || v.until <= c.at {
			t.Errorf("at %d: %v until %d; want %v", c.at, got, v.until, c.want)
		}
	}
	// Acquire notices each step.
	n := 0
	for now := sec; now < 11*sec; now += sec / 100 {
		if pick(s, Request{Now: now}) == all[1].addr {
			n++
		}
	}
	if n < 310 || n > 345 { // the mean of x/(1+x) from 0.1 to 1 is 0.336
		t.Errorf("%d of 1000 requests during the slow start", n)
	}
}

// Who comes back begins slowly, however that comes about, and so does who is found. Those that
// are there from the start do not.
func TestWhoBeginsSlowly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		back   func(s *Server)
		sticky float64 // of the weight, under Sticky
		want   float64 // under others
	}{
		{"from the start", func(s *Server) { s.SetState(Unknown, 0) }, 1, 1},
		{"first success", func(s *Server) { s.SetState(Up, 0) }, 1, 1},
		{"ejected", func(s *Server) { s.SetState(Ejected, 0); s.SetState(Probing, 0); s.SetState(Up, 0) }, 0.1, 0.1},
		{"down", func(s *Server) { s.SetState(Up, 0); s.SetState(Down, 0); s.SetState(Up, 0) }, 0.1, 0.1},
		{"down, unknown", func(s *Server) { s.SetState(Down, 0); s.SetState(Unknown, 0) }, 0.1, 0.1},
		{"down, unknown, up", func(s *Server) { s.SetState(Down, 0); s.SetState(Unknown, 0); s.SetState(Up, 1) }, 0.1, 0.1},
		{"drained", func(s *Server) { s.SetDraining(true, 0); s.SetDraining(false, 0) }, 1, 0.1},
		{"drained, then ejected", func(s *Server) {
			s.SetDraining(true, 0)
			s.SetDraining(false, 3)
			s.SetState(Ejected, 3)
			s.SetState(Up, 3)
		}, 0.1, 0.1},
		{"ejected, drained", func(s *Server) {
			s.SetState(Ejected, 0)
			s.SetDraining(true, 0)
			s.SetState(Unknown, 0)
			s.SetDraining(false, 0)
		}, 0.1, 0.1},
		{"drained, down meanwhile", func(s *Server) {
			s.SetDraining(true, 0)
			s.SetState(Down, 0)
			s.SetState(Up, 0)
			s.SetDraining(false, 0)
		}, 0.1, 0.1},
		{"not drained", func(s *Server) { s.SetDraining(false, 0) }, 1, 1},
		{"found", func(s *Server) { s.Warm(0) }, 0.1, 0.1},
		{"found, up", func(s *Server) { s.Warm(0); s.SetState(Up, 1) }, 0.1, 0.1},
	} {
		for p := range policies {
			all := servers(2)
			s := newSet(t, members(all, 100), Options{Policy: p, SlowStart: 10 * sec})
			c.back(all[1])
			want := c.want
			if p == Sticky {
				want = c.sticky
			}
			if got := float64(s.prepare(3).tiers[0].weights[1]) / (100 * unit); math.Abs(got-want) > 0.005 {
				t.Errorf("%s, policy %d: %v of the weight; want %v", c.name, p, got, want)
			}
		}
	}
}

func TestLogarithm(t *testing.T) {
	t.Parallel()
	for i, l := range logs {
		if want := (1 - math.Log2(1+float64(i)/cells)) * (1 << fraction); math.Abs(float64(l)-want) > 2 {
			t.Errorf("logs[%d] = %d; want %v", i, l, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		u := rapid.OneOf(rapid.Uint64(), rapid.Map(rapid.Uint64Range(0, 1<<40), func(x uint64) uint64 { return ^x }),
			rapid.Map(rapid.IntRange(0, 63), func(n int) uint64 { return ^(1<<n - 1) })).Draw(t, "u")
		got := arrival(u)
		if least := soonest(u); got < least {
			t.Fatalf("arrival(%#x) = %d, less than %d", u, got, least)
		}
		if u > 0 && arrival(u-1) < got {
			t.Fatalf("arrival rises at %#x", u)
		}
		want := (64 - math.Log2(float64(u))) * (1 << fraction)
		if u > 0 && u < 1<<63 && math.Abs(float64(got)-want) > want*1e-3 {
			t.Fatalf("arrival(%#x) = %d; want %v", u, got, want)
		}
	})
	// The highest product fits in 64 bits.
	if got := arrival(0); got != arrival(1) || got > math.MaxUint64/(MaxWeight*unit) {
		t.Errorf("arrival(0) = %d", got)
	}
}

// The file was made by this test with CHERT_GOLDEN=1; a difference means that instances of
// two versions would disagree.
func TestGolden(t *testing.T) {
	t.Parallel()
	all := servers(10)
	sets := []*Set{
		newSet(t, members(all, 1), Options{Policy: Hash}),
		newSet(t, members(all, 3, 1, 2, 100, 7), Options{Policy: Hash}),
	}
	var b strings.Builder
	for i := range 500 {
		key := fmt.Sprintf("/path/%d", i)
		fmt.Fprintf(&b, "%s %s %s\n", key, pick(sets[0], Request{Key: KeyOf(key)}),
			pick(sets[1], Request{Key: KeyOfBytes([]byte(key))}))
	}
	const name = "testdata/homes.txt"
	if os.Getenv("CHERT_GOLDEN") != "" {
		if err := os.WriteFile(name, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want := bufio.NewScanner(f)
	for line := range strings.Lines(b.String()) {
		if !want.Scan() || want.Text()+"\n" != line {
			t.Fatalf("%q; want %q", line, want.Text())
		}
	}
	if want.Scan() {
		t.Errorf("and %q", want.Text())
	}
}

func TestNoAllocs(t *testing.T) {
	for p := range policies {
		all := servers(10)
		s := newSet(t, members(all, 1, 2), Options{Policy: p, Bound: 1.25})
		all[3].SetState(Ejected, 0)
		all[4].SetState(Probing, 0)
		r := Request{Tried: []*Server{all[0]}}
		if n := testing.AllocsPerRun(1000, func() {
			r.Key, r.Random, r.Now = mix(r.Key+1), mix(r.Random+2), r.Now+1e6
			if got := s.Acquire(&r); got != nil {
				got.Observe(1e6, r.Now)
				got.Release()
			}
		}); n != 0 {
			t.Errorf("policy %d: %v allocations", p, n)
		}
	}
}

// States change while requests are chosen. Nothing is lost of the counts, and a change is
// seen by the next choice.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	for p := range policies {
		all := servers(8)
		s := newSet(t, members(all, 1, 2, 3), Options{Policy: p, Bound: 1.5, SlowStart: sec})
		var callers sync.WaitGroup
		for c := range uint64(4) {
			callers.Go(func() {
				rnd := rand.New(rand.NewPCG(c, 9))
				for i := range int64(3000) {
					r := Request{Now: i * 1e6, Key: rnd.Uint64(), Random: rnd.Uint64()}
					if got := s.Acquire(&r); got != nil {
						got.Observe(1e6, r.Now)
						got.Release()
					}
					if c == 0 {
						all[rnd.IntN(7)].SetState(State(rnd.IntN(int(states))), r.Now)
						all[rnd.IntN(7)].SetDraining(rnd.IntN(2) == 0, r.Now)
					}
				}
			})
		}
		callers.Wait()
		for i, srv := range all {
			if srv.inFlight.Load() != 0 {
				t.Errorf("policy %d: %d in flight", p, srv.inFlight.Load())
			}
			srv.SetState(Down, 0)
			if i < len(all)-1 {
				continue
			}
			if got := pick(s, Request{}); got != "" {
				t.Errorf("policy %d: %s, which is down", p, got)
			}
		}
	}
}
