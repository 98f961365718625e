package place

import (
	"fmt"
	"math/rand"
	"testing"
	"time"
)

// clocked is a table with a clock that the test moves.
type clocked struct {
	*Table
	now time.Duration
	rnd *rand.Rand
}

func newClocked() *clocked {
	c := &clocked{Table: newTable(), rnd: rand.New(rand.NewSource(1))}
	c.brake.clock = func() int64 { return int64(c.now) + 1 }
	return c
}

// request is what the server does with a request that takes so long. It reports
// whether the request has held a loop for too long, which takes an overstay's time.
func (c *clocked) request(target string, took time.Duration) (overstayed bool) {
	switch quick := c.lookup("GET", target); {
	case quick && took > time.Millisecond:
		c.now += overstay
		c.Overstayed("GET", target, overstay)
		return true
	case !quick || c.rnd.Intn(64) == 0:
		c.Ran("GET", target, took)
	}
	return false
}

const overstay = 2 * time.Millisecond

// The level that a row of overstays leads to, and how it falls.
func TestBrakeLevel(t *testing.T) {
	for _, tt := range []struct {
		why    string
		n      int
		every  time.Duration
		after  time.Duration
		level  uint32
		epochs uint32
	}{
		{"none", 0, 0, 0, 0, 0},
		{"a pause", 1, 0, 0, 0, 0},
		{"the same pause, on many loops", 64, 10 * time.Microsecond, 0, 0, 0},
		{"a pause a second", 100, time.Second, 0, 0, 0},
		{"as many as are paid for", 100, payOff, 0, 0, 0},
		{"as many as are free", freeOverstays, overstay, 0, 0, 0},
		{"one more", freeOverstays + 1, overstay, 0, perOverstay, 1},
		{"one more, soon after", freeOverstays + 1, overstay, payOff - 4*overstay, perOverstay, 1},
		{"one more, paid off", freeOverstays + 1, overstay, payOff, 0, 1},
		{"more", freeOverstays + 4, overstay, 0, 4 * perOverstay, 4},
		{"more, half paid off", freeOverstays + 4, overstay, 2 * payOff, 2 * perOverstay, 4},
		{"an attack", 1000, overstay, 0, maxLevel, 1000 - freeOverstays},
		{"an attack, paid off", 1000, overstay, mostOverstays * payOff, 0, 1000 - freeOverstays},
	} {
		c := newClocked()
		c.now = time.Hour
		for range tt.n {
			c.now += tt.every
			c.Overstayed("GET", "/new", overstay)
		}
		c.now += tt.after
		if level, epochs := c.brake.level(), c.brake.epoch.Load(); level != tt.level || epochs != tt.epochs {
			t.Errorf("%s: level %d after %d epochs, want %d after %d", tt.why, level, epochs, tt.level, tt.epochs)
		}
		if level := c.NewRoutes().brake.level(); level != tt.level {
			t.Errorf("%s: routes have level %d, want %d", tt.why, level, tt.level)
		}
	}
}

// A run that holds a loop for less than an overstay counts for a part of one, and is no
// strike.
func TestBrakeParts(t *testing.T) {
	const n = 20
	for _, tt := range []struct {
		held  time.Duration
		level uint32
	}{
		{Quick + 1, 0},
		{Overstay / 4, (n/4 - freeOverstays) * perOverstay},
		{Overstay * 3 / 8, (n*3/8 - freeOverstays + 1) * perOverstay},
		{Overstay, maxLevel},
		{time.Hour, maxLevel},
	} {
		for _, direct := range []bool{false, true} {
			c := newClocked()
			c.times(proveAfter, "GET", "/a", 0)
			asked := false
			for range n {
				c.now += together
				if direct {
					asked = c.Late("GET", "/a", tt.held)
				} else {
					c.Overstayed("GET", "/a", tt.held)
				}
			}
			if level := c.brake.level(); level != tt.level {
				t.Errorf("%v: level %d, want %d", tt.held, level, tt.level)
			}
			if want := tt.level > 0; direct && asked != want {
				t.Errorf("%v: direct handlers need proof: %v", tt.held, asked)
			}
			r, _ := c.find(c.hash("GET", "/a"))
			if want := tt.held >= Overstay; r.strikes() > 0 != want || (want || !direct) && r.count() > 0 {
				t.Errorf("%v: %d strikes, count %d", tt.held, r.strikes(), r.count())
			}
		}
	}
	c := newClocked()
	if c.Late("GET", "/a", Quick) || c.brake.clear.Load() != 0 {
		t.Error("a quick run of a direct handler counts")
	}
}

// A debt that is paid is forgotten, so that the clock is read no more.
func TestBrakeForgets(t *testing.T) {
	c := newClocked()
	c.Overstayed("GET", "/", overstay)
	c.now += payOff
	c.lookup("GET", "/")
	c.brake.clock = func() int64 { t.Error("the clock was read"); return 0 }
	c.lookup("GET", "/")
}

// However many proofs are hoarded: few of them are good for an overstay when all are
// used at once.
func TestBrakeHoard(t *testing.T) {
	for _, tt := range []struct {
		why         string
		runs, bound int
	}{
		{"proven", proveAfter, freeOverstays + 1},
		{"with four times the runs", 4 * proveAfter, freeOverstays + 2},
		{"with many", proveAfter << 6, freeOverstays + 4},
		{"with more than any level asks for", proveAfter << (maxLevel + 1), 30},
	} {
		c := newClocked()
		const paths = 30
		for i := range paths {
			c.times(tt.runs, "GET", fmt.Sprintf("/%d", i), 0)
		}
		c.now = time.Hour
		n := 0
		for i := range paths {
			if c.request(fmt.Sprintf("/%d", i), overstay) {
				n++
			}
		}
		if n > tt.bound || n < tt.bound/2 {
			t.Errorf("%s: %d overstays, want %d", tt.why, n, tt.bound)
		}
	}
}

// A memo does not outlive the proof that a level takes away, nor keep it away for
// longer.
func TestBrakeMemo(t *testing.T) {
	c := newClocked()
	c.times(proveAfter<<perOverstay, "GET", "/good", 0)
	c.times(proveAfter<<(2*perOverstay), "GET", "/better", 0)
	var good, better Memo
	is := func(wantGood, wantBetter bool, what string) {
		t.Helper()
		if g, b := c.Quick("GET", "/good", &good), c.Quick("GET", "/better", &better); g != wantGood || b != wantBetter {
			t.Errorf("%s: quick are %v and %v", what, g, b)
		}
	}
	for level := range 4 {
		for n := freeOverstays; n > 0; n-- {
			if level > 0 {
				n = 1
			}
			c.now += overstay
			c.Overstayed("GET", "/bad", overstay)
		}
		is(level < 2, level < 3, fmt.Sprint("level ", level))
	}
	c.now += payOff
	is(false, true, "one less")
	c.now += payOff
	is(true, true, "two less")
}

// What needs no proof as a rule needs one while the brake works.
func TestBrakeStruck(t *testing.T) {
	c := newClocked()
	c.times(proveAfter<<perOverstay, "GET", "/proven", 0)
	for range freeOverstays + 1 {
		c.now += overstay
		c.Late("GET", "/bad", overstay)
	}
	for path, want := range map[string]bool{"/other": true, "/proven": false, "/proven/x": false, "/bad": true} {
		if got := c.Struck("GET", path); got != want {
			t.Errorf("%s: struck is %v", path, got)
		}
	}
	c.now += payOff
	for path, want := range map[string]bool{"/other": false, "/proven": false, "/bad": true} {
		if got := c.Struck("GET", path); got != want {
			t.Errorf("%s: struck is %v afterwards", path, got)
		}
	}
}

// A new record has a strike less than the prefix before its own.
func TestInherited(t *testing.T) {
	for strikes := range maxStrikes + 1 {
		tab := newTable()
		tab.Ran("GET", "/q", 0)
		tab.times(1, "GET", "/q/old", 0)
		for range strikes {
			tab.Overstayed("GET", "/q", overstay)
		}
		for path, want := range map[string]int{
			"/q/new":  proveAfter << max(strikes-1, 0),
			"/q/a/b":  proveAfter << max(strikes-2, 0), // /q/a itself needs more
			"/other":  proveAfter,
			"/q/old":  proveAfter - 1,
			"/q2/new": proveAfter,
		} {
			n := 0
			for ; !tab.lookup("GET", path); n++ {
				tab.Ran("GET", path, 0)
				tab.Ran("GET", "/q", slow) // which keeps it unproven
			}
			if n != want {
				t.Errorf("%d strikes: %s is proven after %d runs, want %d", strikes, path, n, want)
			}
		}
	}
}

// Random paths do not wash strikes away.
func TestStrikesStay(t *testing.T) {
	tab := newTable()
	tab.Ran("GET", "/q", 0)
	for range maxStrikes {
		tab.Overstayed("GET", "/q", overstay)
	}
	for i := range 30_000 {
		tab.Ran("GET", fmt.Sprintf("/%d", i), 0)
		tab.Ran("GET", fmt.Sprintf("/q/%d", i), 0)
		tab.Ran("GET", "/q/slow", slow)
	}
	if r, _ := tab.find(tab.hash("GET", "/q")); r.strikes() != maxStrikes {
		t.Errorf("%d strikes are left", r.strikes())
	}
}

// A client that keeps proving new paths and being slow has few overstays, and what
// many request for stays on the loop as a rule.
func TestBrakeSustained(t *testing.T) {
	const lasts, each = 15 * time.Second, 50 * time.Microsecond // 20,000 requests a second
	for _, prefix := range []string{"/q/", "/"} {
		c := newClocked()
		paths, overstays, hot, inline := 0, 0, 0, 0
		for c.now < lasts {
			paths++
			path := fmt.Sprint(prefix, paths)
			c.request(path, 5*time.Millisecond)
			for !c.lookup("GET", path) && c.now < lasts {
				c.request(path, 0)
				c.now += each
				if c.lookup("GET", "/hot") {
					inline++
				}
				hot++
				c.request("/hot", 0)
			}
			if c.request(path, 5*time.Millisecond) {
				overstays++
			}
		}
		if most := int(lasts/payOff) + mostOverstays; overstays > most {
			t.Errorf("%s: %d overstays, want at most %d", prefix, overstays, most)
		}
		if inline < hot*9/10 {
			t.Errorf("%s: of %d requests for another %d were inline", prefix, hot, inline)
		}
		t.Logf("%s: %d paths, %d overstays, %d of %d inline", prefix, paths, overstays, inline, hot)
	}
}

// Strikes are forgiven one by one, each for as many quick runs more as the proof took.
func TestForgiven(t *testing.T) {
	tab := newTable()
	tab.Ran("GET", "/a", 0)
	for range maxStrikes {
		tab.Overstayed("GET", "/a", overstay)
	}
	strikes := func() uint32 {
		r, _ := tab.find(tab.hash("GET", "/a"))
		return r.strikes()
	}
	tab.times(proveAfter<<maxStrikes, "GET", "/a", 0)
	for n := uint32(maxStrikes); n > 0; n-- {
		if !tab.lookup("GET", "/a") {
			t.Fatalf("with %d strikes left it is not proven", n)
		}
		tab.times(proveAfter<<n, "GET", "/a", 0)
		if got := strikes(); got != n {
			t.Fatalf("%d strikes are left too soon, want %d", got, n)
		}
		tab.Ran("GET", "/a", 0)
		if got := strikes(); got != n-1 {
			t.Fatalf("%d strikes are left, want %d", got, n-1)
		}
	}
	tab.Overstayed("GET", "/a", overstay)
	if strikes() != 1 || tab.lookup("GET", "/a") {
		t.Error("what was forgiven is not struck anew")
	}
}

// A machine that pauses every four seconds and slows one run in two hundred: a quick
// route is on the loop most of the time, however long that lasts.
func TestPauses(t *testing.T) {
	const every = 4 * time.Second
	c := newClocked()
	n, inline := 0, 0
	pause := every
	for c.now < time.Minute {
		c.now += 200 * time.Microsecond
		took := time.Duration(0)
		switch {
		case c.now > pause:
			took, pause = overstay, pause+every
		case c.rnd.Intn(200) == 0:
			took = slow
		}
		if c.lookup("GET", "/a/b") {
			inline++
		}
		n++
		c.request("/a/b", took)
	}
	if inline < n*80/100 {
		t.Errorf("of %d requests %d were inline", n, inline)
	}
	t.Logf("%d of %d inline", inline, n)
}

// A slow route among quick ones, and a slow run of each now and then, do not cost the
// quick ones the loop.
func TestOneSlowRoute(t *testing.T) {
	for _, quick := range []string{"/api/users/%d", "/%[1]d/x", "/api/v1/%d"} {
		c := newClocked()
		r := c.rnd
		n, inline, overstays := 0, 0, 0
		for i := range 100_000 {
			c.now += 100 * time.Microsecond
			switch {
			case i%20 == 0:
				c.request("/api/report", 20*time.Millisecond)
			case i%20 == 1:
				c.request("/upload", time.Duration(r.Intn(2))*time.Second)
			case r.Intn(5000) == 0: // a pause of the machine
				if c.request(fmt.Sprintf(quick, r.Intn(20)), overstay) {
					overstays++
				}
			default:
				path := fmt.Sprintf(quick, r.Intn(20))
				if c.lookup("GET", path) {
					inline++
				}
				n++
				c.request(path, 0)
			}
		}
		if inline < n*95/100 {
			t.Errorf("%s: of %d quick requests %d were inline", quick, n, inline)
		}
		t.Logf("%s: %d of %d inline, %d pauses", quick, inline, n, overstays)
	}
}
