package health

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/reason"
	"github.com/chert-http/chert/internal/testing/race"
)

// The table, once more, as the picture in doc.go has it.
func TestMoves(t *testing.T) {
	t.Parallel()
	want := "unknown>up unknown>ejected unknown>draining up>ejected up>draining ejected>probing ejected>draining " +
		"probing>up probing>ejected probing>draining draining>unknown"
	var got []string
	for from := range states {
		for to := range states {
			if moves[from][to] {
				got = append(got, from.String()+">"+to.String())
			}
		}
	}
	if strings.Join(got, " ") != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	got = nil
	for from := range checks {
		for to := range checks {
			if checkMoves[from][to] {
				got = append(got, from.String()+">"+to.String())
			}
		}
	}
	if want := "unchecked>passing unchecked>failing passing>failing failing>passing"; strings.Join(got, " ") != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	texts := map[string]bool{}
	for r := range endOfRules + 1 {
		if texts[r.String()] || (r.String() == "") != (r == NoRule) {
			t.Errorf("%d: %q", r, r)
		}
		texts[r.String()] = true
	}
	if states.String() != "?" || checks.String() != "?" {
		t.Error("a state that is none has a name")
	}
}

// use sends a request at a time, which must be admitted.
func use(t *testing.T, f *Ref, now int64, code reason.Code) {
	t.Helper()
	ticket, ok := f.Admit(now, false)
	if !ok {
		t.Fatalf("not admitted at %d: %+v", now, f.Info(now))
	}
	f.Done(now, ticket, code)
}

func state(t *testing.T, f *Ref, want State) {
	t.Helper()
	if got := f.Info(0).State; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// "5 consecutive connect failures, resets or 502/503/504 within 10 s"
func TestConsecutive(t *testing.T) {
	t.Parallel()
	const ok, bad = reason.None, reason.Refused
	type event struct {
		at   float64
		code reason.Code
	}
	for _, tt := range []struct {
		name   string
		o      Options
		events []event
		want   State
	}{
		{"four", Options{}, []event{{0, bad}, {1, bad}, {2, bad}, {3, bad}}, Unknown},
		{"five", Options{}, []event{{0, bad}, {1, bad}, {2, bad}, {3, bad}, {4, bad}}, Ejected},
		{"five of different kinds", Options{}, []event{{0, bad}, {1, reason.Reset}, {2, reason.Status502}, {3, reason.Status503}, {4, reason.Status504}}, Ejected},
		{"a success between", Options{}, []event{{0, bad}, {1, bad}, {2, bad}, {3, bad}, {3, ok}, {4, bad}}, Up},
		{"five after a success", Options{}, []event{{0, ok}, {0, bad}, {1, bad}, {2, bad}, {3, bad}, {4, bad}}, Ejected},
		{"within 10 s", Options{}, []event{{0, bad}, {1, bad}, {2, bad}, {3, bad}, {10, bad}}, Ejected},
		{"too slow", Options{}, []event{{0, bad}, {1, bad}, {2, bad}, {3, bad}, {10.1, bad}}, Unknown},
		{"the last five of more", Options{}, []event{{0, bad}, {8, bad}, {9, bad}, {10.5, bad}, {11, bad}, {12, bad}}, Ejected},
		{"clients that go", Options{}, []event{{0, bad}, {1, bad}, {2, bad}, {3, bad}, {4, reason.ClientGone}}, Unknown},
		{"and do not end the sequence", Options{}, []event{{0, bad}, {1, bad}, {2, bad}, {3, bad}, {4, reason.ClientGone}, {4, bad}}, Ejected},
		{"off", Options{Consecutive: -1}, slices.Repeat([]event{{0, bad}}, 19), Unknown},
		{"one", Options{Consecutive: 1}, []event{{0, bad}}, Ejected},
		{"the most", Options{Consecutive: 99, Percent: -1}, slices.Repeat([]event{{0, bad}}, maxConsecutive), Ejected},
		{"one less", Options{Consecutive: 99, Percent: -1}, slices.Repeat([]event{{0, bad}}, maxConsecutive-1), Unknown},
		{"another time", Options{Within: time.Second}, []event{{0, bad}, {1, bad}, {2, bad}, {3, bad}, {4, bad}}, Unknown},
	} {
		f, _ := one(&tt.o, "")
		for _, e := range tt.events {
			use(t, f, int64(e.at*float64(s)), e.code)
		}
		if i := f.Info(0); i.State != tt.want || tt.want == Ejected && i.Rule != Consecutive {
			t.Errorf("%s: %s by %q, want %s", tt.name, i.State, i.Rule, tt.want)
		}
	}
}

// "or 50 % failures of at least 20"
func TestRate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		o      Options
		ok     int
		pairs  int           // a success and a failure each
		apart  time.Duration // between pairs
		want   State
		failed uint64
	}{
		{"half of 20", Options{}, 0, 10, 0, Ejected, 10},
		{"half of 18", Options{}, 0, 9, 0, Up, 9},
		{"less than half", Options{}, 1, 300, 0, Up, 300},
		{"old successes do not count", Options{}, 0, 12, 2 * time.Second, Up, 12}, // nor old failures: 10 at a time
		{"20 in 10 s", Options{}, 0, 10, time.Second, Ejected, 10},
		{"off", Options{Percent: -1}, 0, 300, 0, Up, 300},
		{"20 %", Options{Percent: 20}, 30, 10, 0, Ejected, 10}, // 10 of 50
		{"of 2", Options{Least: 2}, 0, 1, 0, Ejected, 1},
	} {
		f, _ := one(&tt.o, "")
		now := int64(0)
		for range tt.ok {
			use(t, f, now, reason.None)
		}
		for range tt.pairs {
			use(t, f, now, reason.None)
			use(t, f, now, reason.Reset)
			now += int64(tt.apart)
		}
		if i := f.Info(now); i.State != tt.want || i.Failed != tt.failed || tt.want == Ejected && i.Rule != FailureRate {
			t.Errorf("%s: %s by %q after %d failures", tt.name, i.State, i.Rule, i.Failed)
		}
	}
}

// eject makes a server fail until it is ejected, and returns until when.
func eject(t *testing.T, f *Ref, now int64) int64 {
	t.Helper()
	for range 5 {
		use(t, f, now, reason.Refused)
	}
	i := f.Info(now)
	if i.State != Ejected || i.Since != now || i.Cause != reason.Refused || i.Rule != Consecutive {
		t.Fatalf("%+v", i)
	}
	return i.Until
}

// "for 5 s x 2^k up to 60 s"; each failed probe doubles, and time up takes back.
func TestEjectionTimes(t *testing.T) {
	t.Parallel()
	f, _ := one(nil, "")
	now := int64(0)
	until := eject(t, f, now)
	for _, want := range []int64{5, 10, 20, 40, 60, 60, 60} {
		if d := until - now; d < want*s-10 || d > want*s+10 {
			t.Fatalf("ejected for %v, want %d s", time.Duration(d), want)
		}
		if _, ok := f.Admit(until-1, false); ok {
			t.Fatal("admitted too early")
		}
		now = until
		use(t, f, now, reason.Reset)
		i := f.Info(now)
		until = i.Until
		if i.Rule != ProbeFailed || i.Cause != reason.Reset {
			t.Fatalf("%+v", i)
		}
	}
	// Up for 3 times MaxEjection: of the level of 60 s, 5, 10, 20, 40, it goes to that of 10 s.
	recoverUp(t, f, until)
	now = until + 180*s
	if d := eject(t, f, now) - now; d < 10*s-10 || d > 10*s+10 {
		t.Errorf("ejected for %v, want 10 s", time.Duration(d))
	}
	recoverUp(t, f, now+20*s)
	now += 1e6 * s
	if d := eject(t, f, now) - now; d < 5*s-10 || d > 5*s+10 {
		t.Errorf("ejected for %v, want 5 s", time.Duration(d))
	}
}

func recoverUp(t *testing.T, f *Ref, now int64) {
	t.Helper()
	for range 3 {
		use(t, f, now, reason.None)
	}
	if i := f.Info(now); i.State != Up || i.Rule != ProbesPassed || i.Until != 0 {
		t.Fatalf("%+v", i)
	}
}

// "20 % more or less"
func TestSpread(t *testing.T) {
	t.Parallel()
	for _, d := range []int64{1, 7, 5 * s, 60 * s, 24 * 3600 * s} {
		low, high := spread(d, 0), spread(d, math.MaxUint64)
		if math.Abs(float64(low)-0.8*float64(d)) > 1 || math.Abs(float64(high)-1.2*float64(d)) > 1 {
			t.Errorf("%d: from %d to %d", d, low, high)
		}
	}
}

// "then one probing request at a time; three successes -> up"
func TestProbing(t *testing.T) {
	t.Parallel()
	f, changes := one(nil, "")
	now := eject(t, f, 0)
	if f.Standing(now-1) != Out || f.Standing(now) != Due {
		t.Error("standing of an ejected server")
	}
	first, ok := f.Admit(now, false)
	if !ok || first.probe == 0 || f.Standing(now) != Out {
		t.Fatal("no probe")
	}
	if _, ok := f.Admit(now, false); ok {
		t.Fatal("two probes")
	}
	f.Done(now, first, reason.None)
	f.Done(now, first, reason.None) // twice is once
	f.Done(now, first, reason.None)
	state(t, f, Probing)
	// One that says nothing is no success and no failure.
	gone, _ := f.Admit(now, false)
	f.Done(now, gone, reason.ClientGone)
	stale, _ := f.Admit(now, false)
	f.Abandon(stale)
	f.Abandon(stale)
	if i := f.Info(now); i.ProbesPassed != 1 || i.ProbeOut {
		t.Errorf("%+v", i)
	}
	// One that is lost holds the server up to ProbeTimeout, and counts no more.
	lost, _ := f.Admit(now, false)
	now += 120 * s
	if f.Standing(now-1) != Out {
		t.Error("two probes")
	}
	second, ok := f.Admit(now, false)
	if !ok {
		t.Fatal("no probe after one that was lost")
	}
	f.Done(now, lost, reason.Reset)
	f.Abandon(lost)
	if i := f.Info(now); i.State != Probing || !i.ProbeOut {
		t.Errorf("%+v", i)
	}
	f.Done(now, second, reason.None)
	use(t, f, now, reason.None)
	state(t, f, Up)
	if f.Standing(now) != Ready {
		t.Error("not ready")
	}
	var got []string
	for _, c := range *changes {
		got = append(got, fmt.Sprintf("%s>%s:%s", c.From, c.To, c.Rule))
	}
	if want := []string{"unknown>ejected:consecutive failures", "ejected>probing:ejection over", "probing>up:probes passed"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// Successes before a probe that fails do not count for the next ejection.
func TestProbesInSequence(t *testing.T) {
	t.Parallel()
	f, _ := one(nil, "")
	now := eject(t, f, 0)
	use(t, f, now, reason.None)
	use(t, f, now, reason.None)
	use(t, f, now, reason.Status502)
	now = f.Info(now).Until
	use(t, f, now, reason.None)
	use(t, f, now, reason.None)
	state(t, f, Probing)
	use(t, f, now, reason.None)
	state(t, f, Up)
}

// Requests from before an ejection say nothing about the time after it.
func TestLate(t *testing.T) {
	t.Parallel()
	f, _ := one(nil, "")
	var early []Ticket
	for range 40 {
		ticket, _ := f.Admit(0, false)
		early = append(early, ticket)
	}
	until := eject(t, f, 0)
	for _, ticket := range early[:10] {
		f.Done(s, ticket, reason.Refused)
	}
	if i := f.Info(s); i.Until != until || i.Failed != 5 {
		t.Errorf("%+v", i)
	}
	probe, _ := f.Admit(until, false)
	for _, ticket := range early[10:20] {
		f.Done(until, ticket, reason.None)
	}
	state(t, f, Probing)
	f.Done(until, probe, reason.None)
	recoverUpFrom := until
	use(t, f, recoverUpFrom, reason.None)
	use(t, f, recoverUpFrom, reason.None)
	for _, ticket := range early[20:] {
		f.Done(until, ticket, reason.ResponseTimeout)
	}
	state(t, f, Up)
}

// "if fewer than half of the weight is up, ejection is ignored (active checks are not)"
func TestOverride(t *testing.T) {
	t.Parallel()
	f, _ := one(nil, "/healthz")
	until := eject(t, f, 0)
	ticket, ok := f.Admit(s, true)
	if !ok || ticket.probe != 0 {
		t.Fatal("not admitted")
	}
	f.Done(s, ticket, reason.Refused)
	f.Done(s, ticket, reason.None)
	if i := f.Info(s); i.State != Ejected || i.Until != until {
		t.Errorf("%+v", i)
	}
	// A probe that is due comes first.
	if ticket, ok := f.Admit(until, true); !ok || ticket.probe == 0 {
		t.Error("no probe")
	}
	if ticket, ok := f.Admit(until, true); !ok || ticket.probe != 0 {
		t.Error("two probes")
	}
	f.Drain(until, true)
	if _, ok := f.Admit(until, true); ok || f.Standing(until) != Barred {
		t.Error("a draining server is admitted")
	}
	f.Drain(until, false)
	checked(t, f, until+10*s, reason.Refused)
	checked(t, f, until+20*s, reason.Refused)
	if _, ok := f.Admit(until, true); ok || f.Standing(until) != Barred {
		t.Error("a server is admitted whose checks fail")
	}
}

func TestDrain(t *testing.T) {
	t.Parallel()
	f, _ := one(nil, "")
	use(t, f, 0, reason.None)
	before, _ := f.Admit(0, false)
	if f.Drain(s, false) || !f.Drain(s, true) || f.Drain(s, true) {
		t.Error("what Drain returns")
	}
	if i := f.Info(s); i.State != Draining || i.Rule != ByOperator || i.Cause != reason.Operator || i.Since != s {
		t.Errorf("%+v", i)
	}
	f.Done(s, before, reason.Refused)
	if i := f.Info(s); i.Failed != 0 {
		t.Errorf("%+v", i)
	}
	f.Drain(9*s, false)
	if i := f.Info(9 * s); i.State != Unknown {
		t.Errorf("%+v", i)
	}
	use(t, f, 9*s, reason.None)
	if i := f.Info(9 * s); i.State != Up || i.Rule != FirstSuccess {
		t.Errorf("%+v", i)
	}
	// While a probe is in flight.
	now := eject(t, f, 10*s)
	probe, _ := f.Admit(now, false)
	f.Drain(now, true)
	f.Done(now, probe, reason.Refused)
	f.Abandon(probe)
	state(t, f, Draining)
}

// The first success takes no failures back that came before it.
func TestUnknown(t *testing.T) {
	t.Parallel()
	f, _ := one(&Options{Consecutive: -1}, "")
	for range 10 {
		use(t, f, 0, reason.Reset)
	}
	for range 9 {
		use(t, f, 0, reason.None)
	}
	if i := f.Info(0); i.State != Up || i.Requests != 19 || i.Failures != 10 {
		t.Errorf("%+v", i)
	}
	use(t, f, 0, reason.Reset)
	state(t, f, Ejected)
}

// Epochs and probes are counted in 32 bits; 0 stands for none of either.
func TestWrap(t *testing.T) {
	t.Parallel()
	f, _ := one(nil, "")
	f.word.Store(pack(Up, Unchecked, math.MaxUint32))
	f.probe.seq = math.MaxUint32
	until := eject(t, f, 0)
	probe, _ := f.Admit(until, false)
	if probe.probe == 0 || f.load().epoch() != 2 {
		t.Errorf("probe %v, epoch %d", probe, f.load().epoch())
	}
	f.Done(until, Ticket{}, reason.Reset)
	f.Done(until, probe, reason.None)
	if i := f.Info(until); i.State != Probing || i.ProbesPassed != 1 {
		t.Errorf("%+v", i)
	}
}

// A move that is not in the table is not made. Not parallel: it replaces what TestMain has set.
func TestViolated(t *testing.T) {
	before := violated
	defer func() { violated = before }()
	var got []string
	violated = func(move string) { got = append(got, move) }
	f, changes := one(nil, "/")
	f.mu.Lock()
	f.move(0, Probing, EjectionOver, reason.None, 0)
	f.moveCheck(0, Unchecked, ChecksPassed, reason.None)
	f.unlock()
	if state(t, f, Unknown); fmt.Sprint(got) != "[unknown -> probing unchecked -> unchecked]" || len(*changes) != 0 {
		t.Errorf("%q, %+v", got, *changes)
	}
}

// Only the latest changes are kept.
func TestRecent(t *testing.T) {
	t.Parallel()
	f, all := one(nil, "")
	for i := range 25 {
		f.Drain(int64(i), i%2 == 0)
	}
	got := f.Info(25).Recent
	if len(got) != recent || !slices.Equal(got, (*all)[25-recent:]) || got[recent-1].Seq != 25 || got[recent-1].At != 24 {
		t.Errorf("%+v", got)
	}
}

// Loops that use a server at the same time, while it fails and recovers, never have two probes in flight.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	var last sync.Map // Seq -> Change
	r := NewRegistry(&RegistryOptions{Changed: func(_ *Server, c Change) { last.Store(c.Seq, c) }})
	f := r.Acquire(0, Key{Addr: "a", Check: "/"}, &Options{Ejection: 10 * time.Millisecond, MaxEjection: 40 * time.Millisecond})
	var clock, probes atomic.Int64
	var all sync.WaitGroup
	for loop := range 4 {
		all.Go(func() {
			for i := range 5000 {
				now := clock.Add(int64(100 * time.Microsecond))
				ticket, ok := f.Admit(now, i%7 == 0)
				if !ok {
					continue
				}
				if ticket.probe != 0 && probes.Add(1) > 1 {
					t.Error("two probes in flight")
				}
				code := reason.None
				if i/100%2 == loop%2 {
					code = reason.Refused
				}
				if ticket.probe != 0 {
					probes.Add(-1)
				}
				f.Done(now, ticket, code)
				f.Info(now)
				if c, _, ok := f.BeginCheck(now); ok {
					f.EndCheck(now, c, code)
				}
			}
		})
	}
	all.Wait()
	i := f.Info(clock.Load())
	if i.Ejections == 0 {
		t.Error("nothing happened")
	}
	before := Change{To: Unknown}
	n := uint64(0)
	for last.Range(func(_, _ any) bool { n++; return true }); n > 0; n-- {
		if _, ok := last.Load(n); !ok {
			t.Fatalf("change %d was not reported", n)
		}
	}
	for seq := uint64(1); ; seq++ {
		v, ok := last.Load(seq)
		if !ok {
			break
		}
		c := v.(Change)
		if c.From != before.To || c.CheckFrom != before.CheckTo {
			t.Errorf("%+v after %+v", c, before)
		}
		before = c
	}
}

func TestNoAllocs(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	r := NewRegistry(nil)
	f := r.Acquire(0, Key{Addr: "a", Check: "/"}, nil)
	now := int64(0)
	for _, code := range []reason.Code{reason.None, reason.Refused, reason.ClientGone} {
		if n := testing.AllocsPerRun(1000, func() {
			now += s
			f.Standing(now)
			if ticket, ok := f.Admit(now, false); ok {
				f.Done(now, ticket, code)
			}
			f.Admit(now, true)
			f.NextCheck()
			if c, _, ok := f.BeginCheck(now); ok {
				f.EndCheck(now, c, code)
			}
		}); n != 0 {
			t.Errorf("%q: %v allocations", code, n)
		}
	}
}

// What a request costs while all is well.
func BenchmarkRequest(b *testing.B) {
	f := NewRegistry(nil).Acquire(0, Key{Addr: "a"}, nil)
	now := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		now += 1000
		ticket, _ := f.Admit(now, false)
		f.Done(now, ticket, reason.None)
	}
}
