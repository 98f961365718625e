package place

import (
	"fmt"
	"math/rand"
	"slices"
	"sync"
	"testing"
	"time"
)

const slow = Quick + 1

// newTable is a table whose time stands still, so that overstays count for their
// records alone, and in which nothing is random: a set full of proven records gives
// none up.
func newTable() *Table {
	t := New()
	t.brake.clock = func() int64 { return 1 }
	t.random = func() uint32 { return 1 }
	return t
}

func (t *Table) times(n int, method, target string, took time.Duration) {
	for range n {
		t.Ran(method, target, took)
	}
}

func TestPrefixes(t *testing.T) {
	for target, want := range map[string][]string{
		"/":             {"/"},
		"/a":            {"/a"},
		"/a/":           {"/a", "/a/"},
		"/a/b":          {"/a", "/a/b"},
		"/a/b/c":        {"/a", "/a/b", "/a/b/c"},
		"/a/b/c/d":      {"/a", "/a/b", "/a/b/c"},
		"/a?b/c":        {"/a"},
		"?":             {""},
		"*":             {"*"},
		"":              {""},
		"//":            {"/", "//"},
		"http://h/a/b":  {"http:", "http:/", "http://h"},
		"example.com:1": {"example.com:1"},
	} {
		var got []string
		for p := (prefixes{rest: target}); p.next(); {
			got = append(got, p.prefix)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", target, got, want)
		}
	}
}

// A route has one record, whatever slashes its pattern has.
func TestRoutes(t *testing.T) {
	tab := newTable().NewRoutes()
	const pattern, sibling = "GET /a/{x}/c?d", "GET /a/{x}/d"
	tab.times(proveAfter+1, "GET", pattern, Quick)
	var m Memo
	for _, tt := range []struct {
		method, pattern string
		want            bool
	}{
		{"GET", pattern, true},
		{"HEAD", pattern, false},
		{"GET", sibling, false},
		{"GET", "GET /a", false},
		{"GET", "GET ", false},
		{"GET", "", false},
	} {
		if got := tab.Quick(tt.method, tt.pattern, &m); got != tt.want {
			t.Errorf("%s %q: %v", tt.method, tt.pattern, got)
		}
	}
	tab.Overstayed("GET", sibling, overstay)
	if !tab.Quick("GET", pattern, &m) {
		t.Error("a sibling's run has demoted a route")
	}
	tab.Overstayed("GET", pattern, overstay)
	if tab.Quick("GET", pattern, &m) {
		t.Error("a run that was late has not demoted its route")
	}
}

// Every transition of the drawing in doc.go.
func TestTransitions(t *testing.T) {
	tab := newTable()
	is := func(want bool, what string) {
		t.Helper()
		if got := tab.lookup("GET", "/a/1"); got != want {
			t.Errorf("%s: quick is %v", what, got)
		}
	}
	is(false, "at first")
	tab.times(proveAfter-1, "GET", "/a/1", Quick)
	is(false, "not often enough")
	tab.Ran("GET", "/a/1", slow)
	tab.times(proveAfter-1, "GET", "/a/1", Quick)
	is(false, "a slow run takes them back")
	tab.Ran("GET", "/a/1", Quick)
	is(true, "proven")
	tab.Ran("GET", "/a/1", slow)
	is(false, "slow in a sample")
	tab.times(4*proveAfter, "GET", "/a/1", Quick)
	tab.times(3, "GET", "/a/1", slow)
	is(true, "with a history, slow in a few")
	tab.Ran("GET", "/a/1", slow)
	is(false, "slow in too many")
	tab.times(1<<18, "GET", "/a/1", Quick)
	tab.times(400, "GET", "/a/1", slow)
	is(false, "slow for good")
	tab.times(proveAfter, "GET", "/a/1", Quick)
	is(true, "proven as before")
	for strikes := 1; strikes <= maxStrikes+2; strikes++ {
		tab.Overstayed("GET", "/a/1", overstay)
		is(false, "overstayed")
		tab.times(proveAfter<<min(strikes, maxStrikes)-1, "GET", "/a/1", Quick)
		is(false, fmt.Sprintf("proven too soon with %d strikes", strikes))
		tab.Ran("GET", "/a/1", Quick)
		is(true, "proven in the end")
	}
}

func TestPrefixesProveEachOther(t *testing.T) {
	tab := newTable()
	for i := range proveAfter {
		tab.Ran("GET", fmt.Sprintf("/users/%d", i), 0)
	}
	if !tab.lookup("GET", "/users/999") || tab.lookup("POST", "/users/1") || tab.lookup("GET", "/other") {
		t.Error("a prefix proves what is below it, of its method, and nothing else")
	}
	// A slow sibling takes the common prefix down and not the sibling.
	tab.times(proveAfter, "GET", "/users/7/name", 0)
	tab.Overstayed("GET", "/users/8/all", overstay)
	if !tab.lookup("GET", "/users/7/name") || tab.lookup("GET", "/users/8/all") || tab.lookup("GET", "/users/9") {
		t.Error("a slow route must cost its own prefixes and no others")
	}
}

// Requests for random paths neither push out what is proven nor keep a route
// that is asked for from being proven.
func TestRandomPaths(t *testing.T) {
	tab := newTable()
	tab.times(proveAfter, "GET", "/good", 0)
	r := rand.New(rand.NewSource(1))
	noise := func() string { return fmt.Sprintf("/%x/%x/%x", r.Uint64(), r.Uint64(), r.Uint64()) }
	for range 100_000 {
		tab.Ran("GET", noise(), time.Duration(r.Intn(2))*slow)
	}
	if !tab.lookup("GET", "/good") {
		t.Error("random paths pushed out a proven one")
	}
	n := 0
	for ; !tab.lookup("GET", "/late") && n < 10_000; n++ {
		tab.Ran("GET", "/late", 0)
		tab.Ran("GET", noise(), 0)
	}
	if n == 10_000 {
		t.Error("random paths keep another from being proven")
	}
}

func TestTableIsConcurrent(t *testing.T) {
	tab := newTable()
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			r := rand.New(rand.NewSource(int64(i)))
			for range 20_000 {
				path := fmt.Sprintf("/%d/%d", r.Intn(50), r.Intn(50))
				switch r.Intn(10) {
				case 0:
					tab.Overstayed("GET", path, overstay)
				case 1:
					tab.Ran("GET", path, slow)
				case 2, 3, 4:
					tab.lookup("GET", path)
				default:
					tab.Ran("GET", path, 0)
				}
			}
		})
	}
	all.Wait()
	tab.times(proveAfter<<maxStrikes, "GET", "/1/1", 0)
	if !tab.lookup("GET", "/1/1") {
		t.Error("a record was spoilt")
	}
}

func TestNoAllocation(t *testing.T) {
	tab := newTable()
	if n := testing.AllocsPerRun(100, func() {
		tab.lookup("GET", "/a/b/c")
		tab.Ran("GET", "/a/b/c", 0)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkQuick(b *testing.B) {
	tab := newTable()
	tab.times(proveAfter, "GET", "/users/1", 0)
	for b.Loop() {
		tab.lookup("GET", "/users/2")
	}
}

func BenchmarkMemo(b *testing.B) {
	tab := New()
	tab.times(proveAfter, "GET", "/users/1", 0)
	var m Memo
	for b.Loop() {
		tab.Quick("GET", "/users/1", &m)
	}
}

// A memo answers as the table does, for one method and target, until anything
// is demoted.
func TestMemo(t *testing.T) {
	tab := newTable()
	var m Memo
	is := func(want, memo bool, method, target, what string) {
		t.Helper()
		if got := tab.Quick(method, target, &m); got != want {
			t.Errorf("%s: quick is %v", what, got)
		}
		if got := m.key == tab.memoKey(method, target); got != memo {
			t.Errorf("%s: remembered is %v", what, got)
		}
	}
	is(false, false, "GET", "/a", "at first")
	is(false, false, "GET", "", "an empty target")
	tab.times(proveAfter, "GET", "/a", 0)
	tab.times(proveAfter, "GET", "/b", 0)
	is(true, true, "GET", "/a", "proven")
	is(true, true, "GET", "/a", "remembered")
	is(false, false, "POST", "/a", "another method")
	is(false, false, "GET", "/c", "another target")
	is(true, true, "GET", "/a", "still remembered")
	is(true, true, "GET", "/a?x", "a query")
	is(true, true, "GET", "/b", "the last one only")
	is(true, true, "GET", "/a", "back again")
	before := m
	tab.Overstayed("GET", "/b", overstay)
	if tab.Quick("GET", "/a", &m); m == before {
		t.Error("a demotion of another was not noticed")
	}
	is(true, true, "GET", "/a", "looked up anew")
	for what, demote := range map[string]func(){
		"overstayed": func() { tab.Overstayed("GET", "/a/x", overstay) },
		"slow":       func() { tab.times(400, "GET", "/a", slow) },
		"late":       func() { tab.Late("GET", "/a", overstay) },
	} {
		tab.times(proveAfter<<maxStrikes, "GET", "/a", 0)
		is(true, true, "GET", "/a", "before "+what)
		demote()
		is(false, false, "GET", "/a", what)
	}
	// One that was not remembered is not made true by old memories.
	old := m
	m = Memo{}
	is(false, false, "GET", "/a", "nothing is remembered")
	m = old
	is(false, false, "GET", "/a", "an old memo")
}

// Only what was proven counts as demoted: else every slow run would cost all
// memos.
func TestDemotions(t *testing.T) {
	tab := newTable()
	want := uint32(0)
	is := func(what string) {
		t.Helper()
		if got := tab.brake.epoch.Load(); got != want {
			t.Errorf("%s: %d demotions, want %d", what, got, want)
		}
	}
	tab.Ran("GET", "/a/b/c", slow)
	tab.Overstayed("GET", "/a/b/c", overstay)
	tab.Late("GET", "/a/b/c", overstay)
	is("nothing was proven")
	tab.times(proveAfter<<1, "GET", "/a/b/c", 0)
	is("proving")
	tab.Ran("GET", "/a/b/c", slow)
	want += 3
	is("three prefixes were proven")
	tab.Ran("GET", "/a/b/c", slow)
	tab.Late("GET", "/a/b/c", overstay)
	is("no more")
	tab.times(proveAfter<<2, "GET", "/a/b/c", 0)
	tab.Overstayed("GET", "/a/b/d", overstay)
	want += 2
	is("a sibling takes the common ones")
	tab.Late("GET", "/a/b/c", overstay)
	want++
	is("and what was left")
	tab.Ran("GET", "/x", 0)
	tab.Ran("GET", "/x", slow)
	is("another was not proven")
}

// What needs no proof is struck by a late run, of itself or its like, until it
// is proven.
func TestLate(t *testing.T) {
	tab := newTable()
	is := func(want bool, method, target, what string) {
		t.Helper()
		if got := tab.Struck(method, target); got != want {
			t.Errorf("%s: %s %s struck is %v", what, method, target, got)
		}
	}
	is(false, "GET", "/a/1", "at first")
	tab.Ran("GET", "/a/1", 0)
	tab.Ran("GET", "/a/1", slow)
	is(false, "GET", "/a/1", "timed only")
	tab.Overstayed("GET", "/new/1", overstay)
	is(false, "GET", "/new/1", "of which there is no record")
	tab.Late("GET", "/a/1", overstay)
	is(true, "GET", "/a/1", "late")
	is(true, "GET", "/a/2", "a sibling")
	is(true, "GET", "/a/1?x", "with a query")
	is(false, "POST", "/a/1", "another method")
	is(false, "GET", "/b", "elsewhere")
	tab.Late("GET", "/b/1/2", overstay)
	for _, target := range []string{"/b", "/b/1", "/b/1/2", "/b/1/2/3", "/b/3"} {
		is(true, "GET", target, "late without a record")
	}
	// Proven again, and its siblings by their own.
	tab.times(proveAfter<<1-1, "GET", "/a/1", 0)
	is(true, "GET", "/a/1", "not yet proven")
	tab.times(2, "GET", "/a/1", 0)
	is(false, "GET", "/a/1", "proven")
	// Each late run makes it harder.
	for strikes := 2; strikes <= maxStrikes+1; strikes++ {
		tab.Late("GET", "/a/1", overstay)
		is(true, "GET", "/a/1", "late again")
		tab.times(proveAfter<<min(strikes, maxStrikes)-1, "GET", "/a/1", 0)
		is(true, "GET", "/a/1", fmt.Sprintf("proven too soon with %d strikes", strikes))
		tab.Ran("GET", "/a/1", 0)
		is(false, "GET", "/a/1", "proven in the end")
	}
}

// A set that is full of what is proven has no place for a strike as a rule: nothing
// proven is lost for it.
func TestLateWithoutPlace(t *testing.T) {
	tab := newTable()
	h := tab.hash("GET", "/late")
	set, tag := split(h)
	for i := range tab.sets[set] {
		tab.sets[set][i].Store(uint64(newRecord(tag+uint32(i+1)*2, 0, proveAfter)))
	}
	before := make([]uint64, ways)
	for i := range before {
		before[i] = tab.sets[set][i].Load()
	}
	tab.Late("GET", "/late", overstay)
	for i := range before {
		if tab.sets[set][i].Load() != before[i] {
			t.Error("a proven record was given up")
		}
	}
	if tab.Struck("GET", "/late") || tab.brake.epoch.Load() != 0 {
		t.Error("a strike without a place counts")
	}
	// Once in a while one is replaced: otherwise the set could be held forever.
	tab.random = func() uint32 { return evictEvery * 5 }
	tab.Late("GET", "/late", overstay)
	for i := range before {
		if kept := tab.sets[set][i].Load() == before[i]; kept != (i != 5) {
			t.Errorf("way %d is kept: %v", i, kept)
		}
	}
	if !tab.Struck("GET", "/late") {
		t.Error("a strike with a place does not count")
	}
}

// No memo says quick for what was demoted before it was asked.
func TestMemoIsConcurrent(t *testing.T) {
	tab := newTable()
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			own := fmt.Sprintf("/own%d", i)
			var m Memo
			for range 5 {
				tab.times(proveAfter<<maxStrikes, "GET", own, 0)
				if !tab.Quick("GET", own, &m) {
					t.Error("not quick though proven")
					return
				}
				tab.Late("GET", own, overstay)
				if tab.Quick("GET", own, &m) || !tab.Struck("GET", own) {
					// Another's update may have cost this one only if they
					// share a record, which these paths do not.
					t.Error("quick though demoted")
					return
				}
			}
		})
	}
	all.Wait()
}

func TestMethodOf(t *testing.T) {
	for m, name := range methodNames {
		if got := MethodOf(name); got != Method(m) {
			t.Errorf("%q: %d, want %d", name, got, m)
		}
	}
	if got := MethodOf("PROPFIND"); got != 0 {
		t.Errorf("PROPFIND: %d", got)
	}
}
