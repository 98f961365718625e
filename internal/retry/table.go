package retry

import "github.com/chert-http/chert/internal/reason"

// Progress is how far a try has come. Each value includes those before it.
type Progress uint8

const (
	// Unsent: the socket has accepted no byte of the request; for HTTP/2, of its stream.
	Unsent Progress = iota
	// Sent: the socket has accepted at least a byte.
	Sent
	// Received: at least a byte of a response has come, interim responses included.
	Received
	// Passed: the client has been sent something of a response.
	Passed
)

// An Attempt is how a try ended that failed.
type Attempt struct {
	Reason   reason.Code
	Progress Progress
	// Reused: the connection had carried another request before. A shared one of HTTP/2 is never reused in this sense:
	// it does not end because it was idle.
	Reused bool
	// Awaited: the server had all that the client has sent of its body, and more was to come, when it ended the
	// connection. It may have waited for long enough.
	Awaited bool
}

// stale reports whether the connection ended before the server said anything, and had been idle before: it says
// something about the connection and nothing about the server.
func (a *Attempt) stale() bool {
	return a.Reused && a.Progress <= Sent && (a.Reason == reason.Closed || a.Reason == reason.Reset)
}

// Blames reports whether the failure counts against the server, for package health.
func (a *Attempt) Blames() bool {
	late := a.Awaited && (a.Reason == reason.Closed || a.Reason == reason.Reset)
	return a.Reason.Blames() && !a.stale() && !late
}

// Action is what to do after a failure.
type Action uint8

const (
	// Fail: respond with Verdict.Reason and its status, or if that is a status of the server forward its response.
	Fail Action = iota
	// Reconnect: send the request to the same server, on a new connection.
	Reconnect
	// Next: send it to another server, on a new connection.
	Next
)

func (a Action) String() string {
	switch a {
	case Reconnect:
		return "same server, new connection"
	case Next:
		return "next server"
	}
	return "fail"
}

// An Obstacle is why a request is not tried again. The zero Obstacle is none.
type Obstacle uint8

const (
	Free Obstacle = iota
	NotRetriable
	NotIdempotent
	Begun
	Lost
	TimeoutsOff
	StatusesOff
	TriesUsed
	NoOther
	OverBudget
	obstacles
)

var obstacleTexts = [obstacles]string{
	Free:          "",
	NotRetriable:  "another server could not help",
	NotIdempotent: "not idempotent",
	Begun:         "response begun",
	Lost:          "body no longer held",
	TimeoutsOff:   "timeouts are not retried",
	StatusesOff:   "statuses are not retried",
	TriesUsed:     "no tries left",
	NoOther:       "no other server",
	OverBudget:    "retry budget used up",
}

// String returns a few words for a log line, after "not retried: "; "" for Free.
func (o Obstacle) String() string {
	if o >= obstacles {
		return "?"
	}
	return obstacleTexts[o]
}

// A Verdict is what follows from a failure.
type Verdict struct {
	Action   Action
	Obstacle Obstacle    // why Action is Fail
	Reason   reason.Code // that of the attempt
	// Charged: a retry may cause a server work that another has done, so it is charged to the budget.
	Charged bool
	// Unsent: no server has a byte of the request. A client of HTTP/2 may be sent REFUSED_STREAM, which permits it to
	// send the request again (RFC 9113 section 8.7).
	Unsent bool
}

// Status returns the status of the response if Action is Fail; see reason.Code.Status.
func (v *Verdict) Status() int { return v.Reason.Status() }

// Decide returns what one failure permits. It does not know tries before this one, other servers and the budget: see
// Tries.Failed. It allocates nothing and is safe for concurrent use.
//
// Sent means that the socket has accepted a byte of the request.
//
//	what happened                                   idempotent       other methods
//	no connection, or nothing sent on a new one     next server      next server
//	reused connection closed, nothing sent          reconnect        reconnect
//	reused connection closed, no response byte      reconnect (*)    fail
//	GOAWAY below the stream                         next server      next server
//	REFUSED_STREAM                                  next server (*)  next server (*)
//	one of both, or an error of the protocol        next server (*)  fail
//	new connection closed, no response byte         next server (*)  fail
//	no response in time                             if Timeouts (*)  fail
//	502, 503, 504 of the server                     if Statuses (*)  fail
//	response begun, or passed to the client         fail             fail
//
// Those with (*) are charged to the budget. A body that is no longer held is an obstacle in every row. With Policy.Keys
// a request that has an Idempotency-Key is idempotent.
func Decide(p *Policy, r *Request, a *Attempt) Verdict {
	v := Verdict{Reason: a.Reason, Unsent: a.Progress == Unsent}
	v.Action, v.Obstacle = decide(p, r, a)
	if v.Action != Fail && r.Body == BodyGone {
		v.Action, v.Obstacle = Fail, Lost
	}
	// GOAWAY is how a server leaves: others take over what it has not begun. REFUSED_STREAM is how one says that it has
	// too much to do, and a retry adds to that.
	v.Charged = v.Action != Fail && !v.Unsent && a.Reason != reason.GoAway
	return v
}

func decide(p *Policy, r *Request, a *Attempt) (Action, Obstacle) {
	if a.Progress == Passed {
		return Fail, Begun
	}
	switch a.Reason {
	case reason.GoAway, reason.Unserved:
		if a.Progress == Received {
			return Fail, Begun // the server contradicts itself
		}
		return Next, Free
	case reason.Unclear:
		switch a.Progress {
		case Unsent:
			return Next, Free
		case Received:
			return Fail, Begun
		}
		return permitted(p, r, true, Free)
	case reason.Status502, reason.Status503, reason.Status504:
		return permitted(p, r, p.Statuses, StatusesOff)
	}
	switch {
	case !a.Reason.Blames():
		return Fail, NotRetriable
	case a.Progress == Received:
		return Fail, Begun
	case a.stale() && a.Progress == Unsent:
		return Reconnect, Free
	case a.Progress == Unsent:
		return Next, Free
	case a.stale():
		if !p.permits(r) {
			return Fail, NotIdempotent
		}
		return Reconnect, Free
	}
	switch a.Reason {
	case reason.Closed, reason.Reset:
		return permitted(p, r, true, Free)
	case reason.ResponseTimeout, reason.SendTimeout:
		return permitted(p, r, p.Timeouts, TimeoutsOff)
	}
	// A code that does not go with Progress: the safe answer.
	return Fail, Begun
}

// permitted is for failures after which a server may have acted on the request.
func permitted(p *Policy, r *Request, on bool, off Obstacle) (Action, Obstacle) {
	switch {
	case !p.permits(r):
		return Fail, NotIdempotent
	case !on:
		return Fail, off
	}
	return Next, Free
}
