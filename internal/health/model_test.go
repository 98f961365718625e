package health

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/chert-http/chert/internal/reason"
)

// model is what a Server should do, from lists of everything that happened.
type model struct {
	t       *rapid.T
	f       *Ref
	now     int64
	changes []Change

	state    State
	check    Check
	epoch    int
	since    int64
	until    int64
	level    int
	outcomes []outcome // of the epoch
	tickets  []ticket
	probe    *ticket // in flight
	probeEnd int64
	passed   int

	checks  []CheckTicket
	begun   int64 // the latest check, if out
	out     bool
	results []bool // since the latest change, or of all
}

type outcome struct {
	at     int64
	failed bool
}

type ticket struct {
	Ticket
	epoch int // 0 if it does not count
	state State
}

func newModel(t *rapid.T) *model {
	m := &model{t: t, epoch: 1, now: rapid.Int64Range(0, 1000*s).Draw(t, "start")}
	m.since = m.now
	r := NewRegistry(&RegistryOptions{
		Random: rapid.Custom(func(t *rapid.T) func() uint64 {
			n := rapid.Uint64().Draw(t, "random")
			return func() uint64 { n = n*6364136223846793005 + 1442695040888963407; return n }
		}).Draw(t, "chance"),
		Changed: func(_ *Server, c Change) { m.changes = append(m.changes, c) },
	})
	m.f = r.Acquire(m.now, Key{Addr: "192.0.2.1:80", Check: "/healthz"}, nil)
	return m
}

// to is a change of state.
func (m *model) to(s State) {
	if m.state != Unknown || s != Up {
		m.epoch++
		m.outcomes = nil
	}
	m.state, m.since, m.probe, m.passed, m.until = s, m.now, nil, 0, 0
}

// ejected checks for how long, and takes that over: it is chance.
func (m *model) ejected() {
	if m.state != Probing {
		m.level = max(0, m.level-int((m.now-m.since)/(60*s)))
	}
	d := min(5*s<<m.level, 60*s)
	m.level = min(m.level+1, 4)
	until := m.f.Info(m.now).Until
	if got := until - m.now; got < d*8/10-1 || got > d*12/10+1 {
		m.t.Fatalf("ejected for %v, want %v", time.Duration(got), time.Duration(d))
	}
	m.to(Ejected)
	m.until = until
}

func (m *model) standing() Standing {
	switch {
	case m.state == Draining || m.check == Failing:
		return Barred
	case m.state == Unknown || m.state == Up:
		return Ready
	case m.state == Ejected && m.now < m.until, m.state == Probing && m.probe != nil && m.now < m.probeEnd:
		return Out
	}
	return Due
}

func (m *model) admit() {
	override := rapid.Bool().Draw(m.t, "override")
	standing := m.standing()
	got, ok := m.f.Admit(m.now, override)
	want := standing == Ready || standing == Due || standing == Out && override
	if ok != want || (got.probe != 0) != (standing == Due) {
		m.t.Fatalf("admitted %v, probe %v; it is %d, overridden %v", ok, got.probe != 0, standing, override)
	}
	if !ok {
		return
	}
	one := ticket{got, m.epoch, m.state}
	switch standing {
	case Out:
		one.epoch = 0
	case Due:
		if m.state == Ejected {
			m.to(Probing)
		}
		one.epoch = m.epoch
		m.probe, m.probeEnd = &one, m.now+120*s
	}
	m.tickets = append(m.tickets, one)
}

// done ends one of the requests that were admitted, or ends one for the second time.
func (m *model) done() {
	if len(m.tickets) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.tickets)-1).Draw(m.t, "ticket")
	one := m.tickets[i]
	if rapid.IntRange(0, 9).Draw(m.t, "again") > 0 {
		m.tickets[i] = m.tickets[len(m.tickets)-1]
		m.tickets = m.tickets[:len(m.tickets)-1]
	}
	code := rapid.SampledFrom([]reason.Code{reason.None, reason.None, reason.Refused, reason.Status503, reason.Reset, reason.ClientGone}).Draw(m.t, "code")
	m.f.Done(m.now, one.Ticket, code)
	says := code == reason.None || code.Blames()
	switch {
	case one.probe != 0:
		if m.probe == nil || m.probe.Ticket != one.Ticket || m.state != Probing {
			return
		}
		m.probe = nil
		if m.passed++; !says {
			m.passed--
		} else if code != reason.None {
			m.ejected()
		} else if m.passed == 3 {
			m.to(Up)
		}
	case says && one.epoch == m.epoch:
		m.counted(code != reason.None)
	}
}

func (m *model) counted(failed bool) {
	m.outcomes = append(m.outcomes, outcome{m.now, failed})
	if !failed {
		if m.state == Unknown {
			m.to(Up)
		}
		return
	}
	streak, all, bad := 0, 0, 0
	for i := len(m.outcomes) - 1; i >= 0 && m.outcomes[i].failed && streak < 5; i-- {
		if streak++; streak == 5 && m.now-m.outcomes[i].at <= 10*s {
			m.ejected()
			return
		}
	}
	for _, o := range m.outcomes {
		if m.now/s-o.at/s < 10 {
			if all++; o.failed {
				bad++
			}
		}
	}
	if all >= 20 && 2*bad >= all {
		m.ejected()
	}
}

func (m *model) beginCheck() {
	next, ok := m.f.NextCheck()
	if !ok {
		m.t.Fatal("no checks")
	}
	got, deadline, ok := m.f.BeginCheck(m.now)
	if ok != (m.now >= next) || m.out && ok && m.now < m.begun+2*s || ok && deadline != m.now+2*s {
		m.t.Fatalf("check %v at %d, due at %d", ok, m.now, next)
	}
	if !ok {
		return
	}
	if again, _ := m.f.NextCheck(); again <= m.now || again > m.now+5*s {
		m.t.Fatalf("the next check at %d, now is %d", again, m.now)
	}
	if m.out {
		m.result(false)
	}
	m.out, m.begun = true, m.now
	m.checks = append(m.checks, got)
}

func (m *model) endCheck() {
	if len(m.checks) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.checks)-1).Draw(m.t, "check")
	code := rapid.SampledFrom([]reason.Code{reason.None, reason.CheckStatus, reason.NoSocket}).Draw(m.t, "result")
	m.f.EndCheck(m.now, m.checks[i], code)
	if i < len(m.checks)-1 || !m.out {
		return
	}
	if m.now > m.begun+2*s {
		code = reason.CheckTimeout
	}
	m.out = false
	if code != reason.NoSocket {
		m.result(code == reason.None)
	}
}

func (m *model) result(passed bool) {
	m.results = append(m.results, passed)
	n := len(m.results)
	alike := n >= 2 && m.results[n-2] == passed
	switch {
	case passed && (m.check == Unchecked || m.check == Failing && alike):
		if m.check == Failing {
			m.epoch++
			m.outcomes = nil
		}
		m.check = Passing
	case !passed && m.check != Failing && alike:
		m.check = Failing
		m.epoch++
		m.outcomes = nil
	}
}

func (m *model) drain() {
	on := rapid.Bool().Draw(m.t, "drain")
	if m.f.Drain(m.now, on) != (on != (m.state == Draining)) {
		m.t.Fatal("what Drain returns")
	}
	if on && m.state != Draining {
		m.to(Draining)
	} else if !on && m.state == Draining {
		m.to(Unknown)
	}
}

// agree compares all that can be seen.
func (m *model) agree() {
	i := m.f.Info(m.now)
	if i.State != m.state || i.Check != m.check || i.Since != m.since || i.Until != m.until || m.f.Standing(m.now) != m.standing() {
		m.t.Fatalf("%s, %s since %d until %d; want %s, %s, %d, %d", i.State, i.Check, i.Since, i.Until, m.state, m.check, m.since, m.until)
	}
	if m.state == Probing && (i.ProbesPassed != m.passed || i.ProbeOut != (m.probe != nil)) {
		m.t.Fatalf("%d probes, in flight %v; want %d, %v", i.ProbesPassed, i.ProbeOut, m.passed, m.probe != nil)
	}
	var all, bad uint64
	for _, o := range m.outcomes {
		if m.now/s-o.at/s < 10 {
			if all++; o.failed {
				bad++
			}
		}
	}
	if i.Requests != all || i.Failures != bad {
		m.t.Fatalf("%d of %d requests failed, want %d of %d", i.Failures, i.Requests, bad, all)
	}
}

// Whatever happens to a server, it is in the state that the lists say, and goes only from state to state as in the table,
// with a rule and a cause.
func run(t *rapid.T) {
	m := newModel(t)
	// Some ways are rare if all is even: servers that mostly fail, or have many requests.
	weights := []func(){m.admit, m.admit, m.done, m.done, m.done, m.beginCheck, m.endCheck}
	slow := rapid.Int64Range(1, 100).Draw(t, "slow")
	for range rapid.IntRange(1, 150).Draw(t, "steps") {
		m.now += rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, s/slow), rapid.Int64Range(0, 20*s/slow), rapid.Int64Range(0, 200*s/slow)).Draw(t, "later")
		if rapid.IntRange(0, 39).Draw(t, "operator") == 0 {
			m.drain()
		} else {
			rapid.SampledFrom(weights).Draw(t, "step")()
		}
		m.agree()
	}
	from, checkFrom := Unknown, Unchecked
	for n, c := range m.changes {
		if c.From != from || c.CheckFrom != checkFrom || c.Seq != uint64(n+1) || c.Rule == NoRule || (c.From == c.To) == (c.CheckFrom == c.CheckTo) {
			t.Fatalf("%+v after %s, %s", c, from, checkFrom)
		}
		if c.From != c.To && !moves[c.From][c.To] || c.CheckFrom != c.CheckTo && !checkMoves[c.CheckFrom][c.CheckTo] {
			t.Fatalf("%+v is not in the table", c)
		}
		if bad := c.From != c.To && (c.To == Ejected || c.To == Draining) || c.CheckFrom != c.CheckTo && c.CheckTo == Failing; bad != (c.Cause != reason.None) {
			t.Fatalf("%+v: cause %q", c, c.Cause)
		}
		if ejected := c.From != c.To && c.To == Ejected; ejected && (c.Until < c.At+4*s-1 || c.Until > c.At+72*s+1) || !ejected && c.Until != 0 {
			t.Fatalf("%+v: until", c)
		}
		from, checkFrom = c.To, c.CheckTo
	}
	if from != m.state || checkFrom != m.check {
		t.Fatalf("a change was not reported: %s, %s", m.state, m.check)
	}
}

func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, run)
}

func FuzzModel(f *testing.F) { f.Fuzz(rapid.MakeFuzz(run)) }
