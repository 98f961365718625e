package health

import "github.com/chert-http/chert/internal/reason"

// recent is how many changes a Server keeps.
const recent = 8

// An Info is the state of a Server for people, with the causes.
type Info struct {
	Key   Key
	ID    uint64
	Uses  int // references to it
	State State
	Check Check

	// Of State: since when it is so, until when if that is known, and why.
	Since, Until int64
	Rule         Rule
	Cause        reason.Code
	// Of Check.
	CheckSince int64
	CheckCause reason.Code

	// Requests and Failures are those of the last 10 s, without those before the latest ejection.
	Requests, Failures uint64
	// Since the Server was made. Requests that were admitted before an ejection and fail after it are not counted.
	Failed, Ejections, Checks, FailedChecks uint64
	// LastFailure is that of a request, CheckFailure that of a check.
	LastFailure   reason.Code
	LastFailureAt int64
	CheckFailure  reason.Code
	// ProbesPassed, and whether one is in flight.
	ProbesPassed int
	ProbeOut     bool

	// Recent are the latest changes, the newest last.
	Recent []Change
}

func (i *Info) note(now int64, code reason.Code) {
	i.Failed++
	i.LastFailure, i.LastFailureAt = code, now
}

// Info returns the state of now. An ejection that is over stays Ejected until a request probes the server.
func (s *Server) Info(now int64) Info {
	uses := s.reg.uses(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	i, w := s.info, s.load()
	i.Key, i.ID, i.Uses = s.key, s.id, uses
	i.State, i.Check = w.state(), w.check()
	i.Requests, i.Failures = s.requests.Sum(now), s.failed.Sum(now)
	i.ProbesPassed, i.ProbeOut = s.probe.passed, s.probe.out
	if i.State != Probing {
		i.ProbesPassed = 0
	}
	i.Recent = make([]Change, 0, recent)
	for n := s.seq - min(s.seq, recent); n < s.seq; n++ {
		i.Recent = append(i.Recent, s.ring[n%recent])
	}
	return i
}

// changed keeps a change, and reports it once mu is free. Under mu; there is one at a time.
func (s *Server) changed(c Change) {
	c.Seq = s.seq + 1
	s.ring[s.seq%recent] = c
	s.seq = c.Seq
	s.report = true
}

// unlock unlocks mu.
func (s *Server) unlock() {
	var c Change
	report := s.report
	if report {
		s.report, c = false, s.ring[(s.seq-1)%recent]
	}
	s.mu.Unlock()
	if report && s.reg.options.Changed != nil {
		s.reg.options.Changed(s, c)
	}
}
