package ratelimit

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/refusal"
)

// Names in canonical form, which is net/http's; case does not matter.
const (
	policyField = "Ratelimit-Policy"
	limitField  = "Ratelimit"
)

var policyName, limitName = direct.NewName(policyField), direct.NewName(limitField)

// policy is a limit as RateLimit-Policy has it, q tokens in w seconds
// (draft-ietf-httpapi-ratelimit-headers-10 section 3). A limit that fills its
// bucket in less than a second allows more than it says there.
func policy(l *Limit) string {
	return `"` + l.name + `";q=` + strconv.FormatInt(l.rate.Burst, 10) + ";w=" + strconv.FormatInt(seconds(l.Window()), 10)
}

// seconds rounds up, to 1 at least.
func seconds(d time.Duration) int64 { return max(1, int64((d+time.Second-1)/time.Second)) }

// shown keeps lines that were made, by tokens left: with the same left the
// seconds are the same but for one.
type shown [256]atomic.Pointer[line]

type line struct {
	left, secs int64
	text       string
}

// line is a decision as RateLimit has it, r tokens left and t seconds until
// there are q again (section 4 of the draft).
func (s *shown) line(l *Limit, d *Decision) string {
	left, secs := d.Remaining, int64((d.Reset+time.Second-1)/time.Second)
	at := &s[left&255]
	if p := at.Load(); p != nil && p.left == left && p.secs == secs {
		return p.text
	}
	var buf [120]byte
	b := append(append(append(buf[:0], '"'), l.name...), `";r=`...)
	b = strconv.AppendInt(append(strconv.AppendInt(b, left, 10), ";t="...), secs, 10)
	p := &line{left, secs, string(b)}
	at.Store(p)
	return p.text
}

func (c *call) lines() (all []string) {
	for i := range c.claims {
		if d := &c.claims[i].Decision; !d.Failed {
			all = append(all, c.rules[i].shown.line(c.rules[i].limit, d))
		}
	}
	return all
}

// problemTypes are the draft's, section 6.
const problemTypes = "https://iana.org/assignments/http-problem-types#"

// refuse answers a request that is not admitted; hook may be nil.
func (h *handler) refuse(x *direct.Exchange, c *call, hook *refusal.Hook) {
	p := refusal.Problem{Type: problemTypes + "quota-exceeded", Title: "Too many requests", Status: http.StatusTooManyRequests}
	head := http.Header{"Cache-Control": {"no-store"}}
	if h.fields {
		head[policyField] = []string{h.policy}
	}
	wait := time.Duration(0)
	for i := range c.claims {
		d := &c.claims[i].Decision
		if d.Allowed {
			continue
		}
		if d.Failed && d.Remaining == 0 && d.Reset == 0 { // by no bucket
			p = refusal.Problem{Type: problemTypes + "temporary-reduced-capacity", Title: "The limits cannot be checked", Status: http.StatusServiceUnavailable}
		} else {
			p.Violated = append(p.Violated, c.claims[i].Limit.name)
			if h.fields && !d.Failed {
				head[limitField] = append(head[limitField], c.rules[i].shown.line(c.claims[i].Limit, d))
			}
		}
		if d.RetryAfter == Never || wait == Never {
			wait = Never
		} else {
			wait = max(wait, d.RetryAfter)
		}
	}
	text := strconv.Itoa(p.Status) + " " + p.Title + "\n"
	if wait != Never {
		// RFC 9110 section 10.2.3: delay-seconds.
		after := strconv.FormatInt(seconds(wait), 10)
		head["Retry-After"] = []string{after}
		text = strconv.Itoa(p.Status) + " " + p.Title + "; try again in " + after + " s\n"
	}
	head["Content-Type"] = []string{"text/plain; charset=utf-8"}
	body := []byte(text)
	switch {
	case hook != nil:
		body = hook.Body(&p, head)
	case wantsJSON(x.Fields.Get("Accept")):
		head["Content-Type"] = []string{"application/problem+json"}
		body = p.JSON()
	}
	x.SetStatus(p.Status)
	for name, values := range head {
		if name != limitField { // those of a handler around this one stay
			x.DelField(name)
		}
		for _, v := range values {
			x.AddField(name, v)
		}
	}
	x.Write(body)
}

// wantsJSON reports whether Accept names JSON of some kind, and not as a browser
// does after HTML.
func wantsJSON(accept []byte) bool {
	for i := 0; i+4 <= len(accept); i++ {
		switch string(accept[i : i+4]) {
		case "html":
			return false
		case "json":
			return true
		}
	}
	return false
}
