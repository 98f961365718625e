package health

import "github.com/chert-http/chert/internal/reason"

// State is what a server's requests, and the operator, say about it.
type State uint8

const (
	// Unknown: no request has succeeded yet. It is used like Up.
	Unknown State = iota
	Up
	// Ejected: it gets no requests until a time.
	Ejected
	// Probing: it gets one request at a time.
	Probing
	// Draining: the operator wants no requests on it.
	Draining
	states
)

func (s State) String() string {
	switch s {
	case Unknown:
		return "unknown"
	case Up:
		return "up"
	case Ejected:
		return "ejected"
	case Probing:
		return "probing"
	case Draining:
		return "draining"
	}
	return "?"
}

// Check is what checks say about a server.
type Check uint8

const (
	// Unchecked: there are no checks, or none has a result yet. The server is used.
	Unchecked Check = iota
	Passing
	// Failing: the server gets no requests, even if no other is left.
	Failing
	checks
)

func (c Check) String() string {
	switch c {
	case Unchecked:
		return "unchecked"
	case Passing:
		return "passing"
	case Failing:
		return "failing"
	}
	return "?"
}

// moves are the changes of State there are.
var moves = [states][states]bool{
	Unknown:  {Up: true, Ejected: true, Draining: true},
	Up:       {Ejected: true, Draining: true},
	Ejected:  {Probing: true, Draining: true},
	Probing:  {Up: true, Ejected: true, Draining: true},
	Draining: {Unknown: true},
}

// checkMoves are those of Check.
var checkMoves = [checks][checks]bool{
	Unchecked: {Passing: true, Failing: true},
	Passing:   {Failing: true},
	Failing:   {Passing: true},
}

// A Rule is what made a state change.
type Rule uint8

const (
	NoRule Rule = iota
	FirstSuccess
	Consecutive  // failures
	FailureRate  // of requests
	EjectionOver // its time
	ProbeFailed  //
	ProbesPassed // as many as it takes
	ByOperator   // drained, or no longer
	ChecksFailed // as many as it takes
	ChecksPassed //
	endOfRules
)

var ruleTexts = [endOfRules]string{
	NoRule:       "",
	FirstSuccess: "first success",
	Consecutive:  "consecutive failures",
	FailureRate:  "failure rate",
	EjectionOver: "ejection over",
	ProbeFailed:  "probe failed",
	ProbesPassed: "probes passed",
	ByOperator:   "operator",
	ChecksFailed: "checks failed",
	ChecksPassed: "checks passed",
}

// String returns a few words for a log line or the admin page, "" for NoRule.
func (r Rule) String() string {
	if r >= endOfRules {
		return "?"
	}
	return ruleTexts[r]
}

// A Change is one change of a server's State or of its Check.
type Change struct {
	// Seq counts the changes of a server from 1 on. Two that are reported at the same time may come out of order.
	Seq uint64
	At  int64
	// From and To, or CheckFrom and CheckTo, differ.
	From, To           State
	CheckFrom, CheckTo Check
	Rule               Rule
	// Cause is the failure that was one too many, None if the change has none.
	Cause reason.Code
	// Until is when Ejected ends, 0 for other states.
	Until int64
}
