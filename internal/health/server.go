package health

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/chert-http/chert/internal/reason"
	"github.com/chert-http/chert/internal/window"
)

// A Server is the health of one server. All methods are safe for concurrent use. Those that a request needs, Standing,
// Admit and Done, take no lock while the server is up and succeeds.
type Server struct {
	id  uint64 // immutable; of no other Server of the process's Registry
	key Key    // immutable
	reg *Registry

	options atomic.Pointer[Options] // those of the latest Acquire

	// word is State, Check and epoch; changed under mu.
	word atomic.Uint64
	// closed is until when Admit is false without a look at the rest: the end of the ejection, or of the probe in
	// flight. Changed under mu.
	closed atomic.Int64

	// Those of the epoch.
	streak           atomic.Uint64  // failures without a success; a success sets it to 0 without mu
	requests, failed window.Counter // of the last seconds

	mu sync.Mutex
	// times are those of the last failures of streak.
	times [maxConsecutive]int64
	level int // of the next ejection
	probe probe
	check check
	info  Info // what is kept for people; those that Info sets are not set
	// ring are the latest changes, seq their number, and report whether the latest has not been reported.
	ring   [recent]Change
	seq    uint64
	report bool
}

// probe is the one request that a server gets in Probing.
type probe struct {
	seq    uint32 // of the latest
	out    bool   // it has no result yet
	passed int    // in sequence
}

// A word is what most readers need of a server, to be read at once:
//
//	63                    32 31        16 15    8 7     0
//	+-----------------------+------------+-------+-------+
//	|         epoch         |     0      | Check | State |
//	+-----------------------+------------+-------+-------+
//
// An epoch begins when what earlier requests say no longer counts. It is never 0.
type word uint64

func (w word) state() State  { return State(w) }
func (w word) check() Check  { return Check(w >> 8) }
func (w word) epoch() uint32 { return uint32(w >> 32) }

func pack(s State, c Check, epoch uint32) uint64 {
	return uint64(epoch)<<32 | uint64(c)<<8 | uint64(s)
}

func (s *Server) load() word { return word(s.word.Load()) }

// ID returns a number that stands for this Server and no other one of its Registry, not even one of the same key that
// is made after this one was forgotten.
func (s *Server) ID() uint64 { return s.id }

// Key returns what the Server was acquired with.
func (s *Server) Key() Key { return s.key }

// Standing is what a balance needs to know of a server.
type Standing uint8

const (
	// Ready: it gets its share.
	Ready Standing = iota
	// Due: one request may probe it now.
	Due
	// Out: it is ejected, or a probe is in flight. The panic rule may override that.
	Out
	// Barred: its checks fail, or it is draining. Nothing overrides that.
	Barred
)

// Standing returns that of now. Admit may find another one, if other loops change it.
func (s *Server) Standing(now int64) Standing {
	w := s.load()
	switch {
	case w.state() == Draining || w.check() == Failing:
		return Barred
	case w.state() <= Up:
		return Ready
	case now < s.closed.Load():
		return Out
	}
	return Due
}

// A Ticket stands for a request that was admitted. Its zero value is that of a request whose result does not count.
type Ticket struct{ epoch, probe uint32 }

// Admit asks whether the server gets a request now, which begins a probe if one is due. override is for the panic rule:
// an ejected server is used as if it were not, and what comes of that does not count. For each Ticket the caller calls
// Done or Abandon once, also if the request is not sent.
func (s *Server) Admit(now int64, override bool) (Ticket, bool) {
	w := s.load()
	switch s.Standing(now) {
	case Barred:
		return Ticket{}, false
	case Ready:
		return Ticket{epoch: w.epoch()}, true
	case Due:
		if t, ok := s.begin(now); ok {
			return t, true
		}
	}
	return Ticket{}, override
}

// begin begins a probe.
func (s *Server) begin(now int64) (t Ticket, ok bool) {
	s.mu.Lock()
	defer s.unlock()
	w := s.load()
	if w.check() == Failing || w.state() != Ejected && w.state() != Probing || now < s.closed.Load() {
		return Ticket{}, false // another loop was faster
	}
	if w.state() == Ejected {
		s.probe.passed = 0
		s.move(now, Probing, EjectionOver, reason.None, 0)
	}
	p := &s.probe
	if p.seq++; p.seq == 0 {
		p.seq = 1
	}
	p.out = true
	s.closed.Store(now + int64(s.options.Load().ProbeTimeout))
	return Ticket{s.load().epoch(), p.seq}, true
}

// Done notes the result of a request: at the head of its response, None or the code of its status, and else why there
// is none. A code that does not blame the server is the same as Abandon. A failure after the head of a response, such
// as Truncated, may follow with the same Ticket.
func (s *Server) Done(now int64, t Ticket, code reason.Code) {
	if code != reason.None && !code.Blames() {
		s.Abandon(t)
		return
	}
	w := s.load()
	if t.probe != 0 {
		s.probed(now, t, code)
		return
	}
	if w.epoch() != t.epoch {
		return // before something that counts more, such as an ejection
	}
	if code != reason.None {
		s.failure(now, t, code)
		return
	}
	if s.requests.Add(now, 1); s.streak.Load() != 0 {
		s.streak.Store(0)
	}
	if w.state() == Unknown {
		s.first(now)
	}
}

// Abandon notes that a request says nothing about the server: it was not sent, its client has gone, or it met a
// connection that had been idle for too long.
func (s *Server) Abandon(t Ticket) {
	if t.probe == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.probe.out && s.probe.seq == t.probe && s.load().state() == Probing {
		s.probe.out = false
		s.closed.Store(0)
	}
}

// first is the first success.
func (s *Server) first(now int64) {
	s.mu.Lock()
	defer s.unlock()
	if s.load().state() == Unknown {
		s.move(now, Up, FirstSuccess, reason.None, 0)
	}
}

func (s *Server) failure(now int64, t Ticket, code reason.Code) {
	s.mu.Lock()
	defer s.unlock()
	w := s.load()
	if w.epoch() != t.epoch || w.state() > Up {
		return
	}
	s.info.note(now, code)
	s.requests.Add(now, 1)
	s.failed.Add(now, 1)
	o := s.options.Load()
	n := s.streak.Add(1)
	s.times[(n-1)%maxConsecutive] = now
	if c := uint64(max(o.Consecutive, 0)); c != 0 && n >= c && now-s.times[(n-c)%maxConsecutive] <= int64(o.Within) {
		s.eject(now, Consecutive, code)
		return
	}
	all := s.requests.Sum(now)
	if o.Percent > 0 && all >= uint64(max(o.Least, 1)) && s.failed.Sum(now)*100 >= all*uint64(o.Percent) {
		s.eject(now, FailureRate, code)
	}
}

// probed is Done for a probe.
func (s *Server) probed(now int64, t Ticket, code reason.Code) {
	s.mu.Lock()
	defer s.unlock()
	p := &s.probe
	if !p.out || p.seq != t.probe || s.load().state() != Probing {
		return
	}
	p.out = false
	s.closed.Store(0)
	if code != reason.None {
		s.info.note(now, code)
		s.eject(now, ProbeFailed, code)
		return
	}
	if p.passed++; p.passed >= s.options.Load().Probes {
		s.move(now, Up, ProbesPassed, reason.None, 0)
	}
}

// eject ejects the server, for longer than last time if that is not long ago.
func (s *Server) eject(now int64, rule Rule, code reason.Code) {
	o := s.options.Load()
	if s.load().state() != Probing {
		s.level -= int(min(max(now-s.info.Since, 0)/int64(o.MaxEjection), int64(s.level)))
	}
	d := int64(o.Ejection)
	for range s.level {
		d = min(2*d, int64(o.MaxEjection))
	}
	if d < int64(o.MaxEjection) {
		s.level++
	}
	s.info.Ejections++
	s.move(now, Ejected, rule, code, now+spread(d, s.reg.random()))
}

// spread returns d, 20 % more or less.
func spread(d int64, random uint64) int64 {
	more, _ := bits.Mul64(uint64(d/5*2+1), random)
	return d - d/5 + int64(more)
}

// Drain begins or ends draining. It reports whether that changes anything.
func (s *Server) Drain(now int64, on bool) bool {
	s.mu.Lock()
	defer s.unlock()
	switch draining := s.load().state() == Draining; {
	case on == draining:
		return false
	case on:
		s.move(now, Draining, ByOperator, reason.Operator, 0)
	default:
		s.move(now, Unknown, ByOperator, reason.None, 0)
	}
	return true
}

// violated is set by tests: a change that is not in the table is a mistake of this package. A running server stays in
// the state it has.
var violated = func(string) {}

// move changes State. Under mu.
func (s *Server) move(now int64, to State, rule Rule, cause reason.Code, until int64) {
	w := s.load()
	if !moves[w.state()][to] {
		violated(w.state().String() + " -> " + to.String())
		return
	}
	s.probe.out = false
	s.closed.Store(until)
	s.renew(to, w.check())
	i := &s.info
	i.Since, i.Until, i.Rule, i.Cause = now, until, rule, cause
	s.changed(Change{At: now, From: w.state(), To: to, CheckFrom: w.check(), CheckTo: w.check(), Rule: rule,
		Cause: cause, Until: until})
}

// renew stores both states.
func (s *Server) renew(state State, check Check) {
	w := s.load()
	epoch := w.epoch()
	// The failures before the first success still count.
	if w.state() != Unknown || state != Up {
		if epoch++; epoch == 0 {
			epoch = 1
		}
		s.streak.Store(0)
		s.requests.Reset()
		s.failed.Reset()
	}
	s.word.Store(pack(state, check, epoch))
}
