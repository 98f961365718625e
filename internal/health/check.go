package health

import "github.com/chert-http/chert/internal/reason"

// check is the state of the active checks.
type check struct {
	due    int64 // the next one
	seq    uint64
	out    bool  // the latest has no result yet
	end    int64 // of the latest, at the latest
	passed int   // in sequence
	failed int   // in sequence
}

// A CheckTicket stands for one check. The zero value stands for none.
type CheckTicket struct{ seq uint64 }

// NextCheck returns when BeginCheck is to be called next; false if the key has no check.
func (s *Server) NextCheck() (int64, bool) {
	if s.key.Check == "" {
		return 0, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.check.out {
		return max(s.check.due, s.check.end), true
	}
	return s.check.due, true
}

// BeginCheck asks whether a check is due, and begins it: of all callers one gets it. It has a result by EndCheck until
// deadline; after that it is one that failed.
func (s *Server) BeginCheck(now int64) (t CheckTicket, deadline int64, ok bool) {
	if s.key.Check == "" {
		return CheckTicket{}, 0, false
	}
	s.mu.Lock()
	defer s.unlock()
	c, o := &s.check, s.options.Load()
	if now < c.due || c.out && now < c.end {
		return CheckTicket{}, 0, false
	}
	if c.out {
		s.result(now, reason.CheckTimeout)
	}
	c.seq++
	c.out, c.end = true, now+int64(o.Timeout)
	// What is missed while the process is stopped is not made up for.
	if c.due += int64(o.Interval); c.due <= now {
		c.due = now + int64(o.Interval)
	}
	return CheckTicket{c.seq}, c.end, true
}

// EndCheck notes the result of a check; None is success, and any other code is a failure but those that do not blame
// the server, which are no result. A check that is over already changes nothing.
func (s *Server) EndCheck(now int64, t CheckTicket, code reason.Code) {
	s.mu.Lock()
	defer s.unlock()
	c := &s.check
	if !c.out || c.seq != t.seq {
		return
	}
	if now > c.end {
		code = reason.CheckTimeout
	}
	c.out = false
	if code == reason.None || code.Blames() {
		s.result(now, code)
	}
}

// result counts a check. Under mu.
func (s *Server) result(now int64, code reason.Code) {
	c, o, state := &s.check, s.options.Load(), s.load().check()
	s.info.Checks++
	if code == reason.None {
		c.passed, c.failed = c.passed+1, 0
		if state == Unchecked || state == Failing && c.passed >= o.Rise {
			s.moveCheck(now, Passing, ChecksPassed, code)
		}
		return
	}
	s.info.FailedChecks++
	s.info.CheckFailure = code
	c.passed, c.failed = 0, c.failed+1
	if state != Failing && c.failed >= o.Fall {
		s.moveCheck(now, Failing, ChecksFailed, code)
	}
}

// moveCheck changes Check. Under mu.
func (s *Server) moveCheck(now int64, to Check, rule Rule, cause reason.Code) {
	w := s.load()
	if !checkMoves[w.check()][to] {
		violated(w.check().String() + " -> " + to.String())
		return
	}
	if w.check() == Unchecked && to == Passing {
		s.word.Store(pack(w.state(), to, w.epoch())) // it was in use all the time
	} else {
		s.renew(w.state(), to)
	}
	s.info.CheckSince, s.info.CheckCause = now, cause
	s.changed(Change{At: now, From: w.state(), To: w.state(), CheckFrom: w.check(), CheckTo: to, Rule: rule,
		Cause: cause})
}
