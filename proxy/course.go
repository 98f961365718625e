package proxy

import (
	"time"

	"github.com/chert-http/chert/internal/reason"
	"github.com/chert-http/chert/internal/retry"
)

// course is what decides about the tries of one request, however it is forwarded.
type course struct {
	choice choice
	tries  retry.Tries
}

// after decides about a try at p that has failed, which it reports. It returns the server of
// the next one, which may be the same on a fresh connection; p is released then unless it is
// that. Otherwise it returns why there is none, "" if nothing stands against it.
func (c *course) after(
	u *Upstream, p *pick, a *retry.Attempt, q retry.Request,
) (next *pick, fresh bool, obstacle string) {
	if a.Blames() {
		p.entry.done(p.ticket, a.Reason)
	} else {
		p.entry.ref.Abandon(p.ticket)
	}
	c.choice.tried = append(c.choice.tried, p.entry.bal)
	if u.o.Retry.Off {
		return nil, false, "retries are off"
	}
	if retry.Decide(&u.policy, &q, a).Action == retry.Next {
		next, _ = u.attempt(u.current.Load(), &c.choice)
	}
	v := c.tries.Failed(now(), &u.policy, &q, a, next != nil, &u.budget)
	switch v.Action {
	case retry.Next:
		p.release()
		// Not one that was idle, which may be closed as well: the request has no third chance
		// (retry.Tries.Failed).
		return next, true, ""
	case retry.Reconnect:
		if next != nil {
			next.abandon()
		}
		p.ticket, _ = p.entry.ref.Admit(now(), true)
		c.choice.tried = c.choice.tried[:len(c.choice.tried)-1]
		return p, true, ""
	}
	if next != nil {
		next.abandon()
	}
	return nil, false, v.Obstacle.String()
}

// repeats reports whether a request could be sent a second time if a connection that was idle turns out to be closed.
// holds: its whole body is held, or will be when it has come.
func (u *Upstream) repeats(q *retry.Request, holds bool) bool {
	return holds && !u.o.Retry.Off && (q.Idempotent || q.Key && u.policy.Keys)
}

// error returns what is known of a failure. p is nil if no server was chosen.
func (c *course) error(u *Upstream, p *pick, code reason.Code, err error, method string) *Error {
	e := &Error{Reason: code.String(), Status: code.Status(), Err: err, Method: method,
		Retried: max(c.tries.Len()-1, 0), kind: code.ErrorType(), unavailable: code.Status() == 503}
	if u != nil {
		e.Upstream = u.o.Name
	}
	if p != nil {
		e.Server = p.addr
	}
	return e
}

// tried sets what an attempt says.
func (e *Error) tried(a *retry.Attempt, idle time.Duration) {
	e.Sent, e.Reused, e.Idle = a.Progress > retry.Unsent, a.Reused, idle
}
