package health

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/reason"
)

// checked makes a check at a time, which must be due.
func checked(t *testing.T, f *Ref, now int64, code reason.Code) {
	t.Helper()
	ticket, deadline, ok := f.BeginCheck(now)
	if !ok || deadline != now+2*s {
		t.Fatalf("no check at %d, or until %d", now, deadline)
	}
	f.EndCheck(now, ticket, code)
}

// "2 s timeout, 2 down, 2 up"
func TestChecks(t *testing.T) {
	t.Parallel()
	const ok, bad, gone = reason.None, reason.CheckStatus, reason.NoSocket
	for _, tt := range []struct {
		name  string
		codes []reason.Code
		want  Check
	}{
		{"none", nil, Unchecked},
		{"the first success", []reason.Code{ok}, Passing},
		{"one failure", []reason.Code{bad}, Unchecked},
		{"two failures", []reason.Code{bad, bad}, Failing},
		{"a success between", []reason.Code{bad, ok, bad}, Passing},
		{"down", []reason.Code{ok, bad, bad}, Failing},
		{"one success", []reason.Code{ok, bad, bad, ok}, Failing},
		{"a failure between", []reason.Code{bad, bad, ok, bad, ok}, Failing},
		{"up", []reason.Code{bad, bad, ok, ok}, Passing},
		{"no result", []reason.Code{bad, gone, bad}, Failing},
		{"no result is none", []reason.Code{gone, gone, gone}, Unchecked},
	} {
		f, _ := one(nil, "/healthz")
		for i, code := range tt.codes {
			checked(t, f, int64(i+1)*10*s, code)
		}
		if got := f.Info(0).Check; got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestCheckChange(t *testing.T) {
	t.Parallel()
	f, changes := one(nil, "/healthz")
	use(t, f, 0, reason.None)
	for range 4 {
		use(t, f, 0, reason.Reset)
	}
	before, _ := f.Admit(0, false)
	checked(t, f, 10*s, reason.Refused)
	checked(t, f, 20*s, reason.CheckTimeout)
	if i := f.Info(0); i.State != Up || i.Check != Failing || i.CheckSince != 20*s || i.CheckCause != reason.CheckTimeout || i.CheckFailure != reason.CheckTimeout ||
		i.Checks != 2 || i.FailedChecks != 2 || f.Standing(20*s) != Barred {
		t.Errorf("%+v", i)
	}
	checked(t, f, 30*s, reason.None)
	checked(t, f, 40*s, reason.None)
	// It starts anew.
	f.Done(40*s, before, reason.Reset)
	use(t, f, 40*s, reason.Reset)
	if i := f.Info(40 * s); i.State != Up || i.Check != Passing || i.Failures != 1 || f.Standing(40*s) != Ready {
		t.Errorf("%+v", i)
	}
	got := ""
	for _, c := range *changes {
		got += fmt.Sprintf("%s/%s>%s/%s:%s:%s ", c.From, c.CheckFrom, c.To, c.CheckTo, c.Rule, c.Cause)
	}
	if want := "unknown/unchecked>up/unchecked:first success: up/unchecked>up/failing:checks failed:check timed out " +
		"up/failing>up/passing:checks passed: "; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// What the checks say does not end an ejection, nor the other way.
func TestChecksAndRequests(t *testing.T) {
	t.Parallel()
	f, _ := one(nil, "/healthz")
	until := eject(t, f, 0)
	checked(t, f, 4*s, reason.None)
	if i := f.Info(4 * s); i.State != Ejected || i.Check != Passing || i.Until != until || f.Standing(4*s) != Out {
		t.Errorf("%+v", i)
	}
	probe, _ := f.Admit(until, false)
	checked(t, f, 10*s, reason.Reset)
	checked(t, f, 20*s, reason.Reset)
	if _, ok := f.Admit(20*s, true); ok {
		t.Error("admitted")
	}
	f.Done(20*s, probe, reason.None)
	checked(t, f, 30*s, reason.None)
	checked(t, f, 40*s, reason.None)
	use(t, f, 40*s, reason.None)
	use(t, f, 40*s, reason.None)
	if i := f.Info(40 * s); i.State != Up || i.Check != Passing {
		t.Errorf("%+v", i)
	}
}

// "every 5 s, staggered": one at a time, whoever asks.
func TestSchedule(t *testing.T) {
	t.Parallel()
	f, _ := one(nil, "/healthz")
	next := func(want int64) {
		t.Helper()
		if got, ok := f.NextCheck(); !ok || got != want {
			t.Errorf("next at %v, want %v", time.Duration(got), time.Duration(want))
		}
	}
	next(5 * s / 2) // the half of the interval, by chance
	if _, _, ok := f.BeginCheck(5*s/2 - 1); ok {
		t.Error("too early")
	}
	first, end, ok := f.BeginCheck(5 * s / 2)
	if !ok || end != 5*s/2+2*s {
		t.Fatal("no check")
	}
	if _, _, ok := f.BeginCheck(5 * s / 2); ok {
		t.Error("two checks")
	}
	f.EndCheck(3*s, first, reason.None)
	f.EndCheck(3*s, first, reason.Reset)
	if i := f.Info(0); i.Checks != 1 || i.Check != Passing {
		t.Errorf("%+v", i)
	}
	// A little late does not move the others.
	next(15 * s / 2)
	if first, _, ok = f.BeginCheck(8 * s); !ok {
		t.Fatal("no check")
	}
	next(25 * s / 2)
	// A result that comes too late is a failure, and so is one that never comes.
	f.EndCheck(11*s, first, reason.None)
	if i := f.Info(0); i.Checks != 2 || i.FailedChecks != 1 || i.CheckFailure != reason.CheckTimeout {
		t.Errorf("%+v", i)
	}
	lost, _, _ := f.BeginCheck(13 * s)
	// After a pause there is one, not one for each that was missed.
	if first, _, ok = f.BeginCheck(100 * s); !ok {
		t.Fatal("no check")
	}
	if i := f.Info(0); i.Checks != 3 || i.FailedChecks != 2 || i.Check != Failing {
		t.Errorf("%+v", i)
	}
	next(105 * s)
	f.EndCheck(100*s, lost, reason.None)
	f.EndCheck(100*s, CheckTicket{}, reason.None)
	if i := f.Info(0); i.Checks != 3 {
		t.Errorf("%+v", i)
	}
	f.EndCheck(100*s, first, reason.None)

	// A check that may take longer than the interval.
	f, _ = one(&Options{Interval: time.Second, Timeout: 3 * time.Second}, "/")
	f.BeginCheck(s)
	if _, _, ok := f.BeginCheck(3 * s); ok {
		t.Error("two checks")
	}
	if next(4 * s); t.Failed() {
		return
	}
	if _, _, ok := f.BeginCheck(4 * s); !ok {
		t.Error("no check")
	}

	f, _ = one(nil, "")
	if _, ok := f.NextCheck(); ok {
		t.Error("a check that is not configured")
	}
	if _, _, ok := f.BeginCheck(100 * s); ok {
		t.Error("a check that is not configured")
	}
}

// The longest times are as good as none: they do not overflow.
func TestLongestTimes(t *testing.T) {
	t.Parallel()
	f, _ := one(&Options{Timeout: math.MaxInt64, ProbeTimeout: math.MaxInt64, Fall: 1}, "/healthz")
	ticket, deadline, ok := f.BeginCheck(10 * s)
	if !ok || deadline < 10*s {
		t.Fatalf("%v, until %d", ok, deadline)
	}
	f.EndCheck(11*s, ticket, reason.None)
	if got := f.Info(0).Check; got != Passing {
		t.Errorf("a check without a limit of time: %s", got)
	}
	for range 5 {
		use(t, f, 11*s, reason.Reset)
	}
	if _, ok := f.Admit(100*s, false); !ok {
		t.Error("it is not probed")
	}
	if _, ok := f.Admit(100*s, false); ok {
		t.Error("it is probed twice at once")
	}
	f, _ = one(&Options{Interval: math.MaxInt64}, "/healthz")
	due, _ := f.NextCheck()
	if _, _, ok := f.BeginCheck(due); !ok {
		t.Fatal("no check")
	}
	if _, _, ok := f.BeginCheck(due + 10*s); ok {
		t.Error("the next one is due at once")
	}
}
