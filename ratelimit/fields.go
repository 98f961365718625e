package ratelimit

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/filter"
	"github.com/chert-http/chert/internal/refusal"
)

// Field names in net/http's canonical form.
const (
	policyField = "Ratelimit-Policy"
	limitField  = "Ratelimit"
)

var policyName, limitName = wire.NewName(policyField), wire.NewName(limitField)

// policy formats a limit for RateLimit-Policy: q tokens in w seconds
// (draft-ietf-httpapi-ratelimit-headers-10 section 3). A limit that fills its bucket
// in less than a second allows more than that.
func policy(l *Limit) string {
	return `"` + l.name + `";q=` + strconv.FormatInt(l.rate.Burst, 10) + ";w=" +
		strconv.FormatInt(seconds(l.Window()), 10)
}

// seconds rounds up, to at least 1.
func seconds(d time.Duration) int64 { return max(1, int64((d+time.Second-1)/time.Second)) }

// lineCache keeps formatted lines, for all clients. The fuller a bucket is, the more tokens
// are left and the fewer seconds, so the tokens that are missing plus the seconds are a
// number of its own for each line of a limit. Lines beyond mostLines share places.
type lineCache []atomic.Pointer[line]

// mostLines is as many lines as most limits have; each takes some 80 bytes.
const mostLines = 1024

func newLineCache(l *Limit) lineCache {
	return make(lineCache, min(l.rate.Burst, mostLines)+min(seconds(l.Window()), mostLines)+1)
}

type line struct {
	left, secs int64
	text       string
}

// line formats a decision for RateLimit: r tokens left, and t seconds until there
// are q again (section 4 of the draft). It allocates only lines that are not in the cache.
func (s lineCache) line(l *Limit, d *Decision) string {
	left, secs := d.Remaining, int64((d.Reset+time.Second-1)/time.Second)
	at := &s[uint64(l.rate.Burst-left+secs)%uint64(len(s))]
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

// problemTypes are the draft's, section 6.
const problemTypes = "https://iana.org/assignments/http-problem-types#"

// refuse responds to a request that was not admitted, and releases c.
func (h *handler) refuse(r *filter.Call, c *charge) filter.Outcome {
	var hook *refusal.Hook
	if w, _ := r.Plain(); w != nil {
		hook = refusal.Around(w)
	} else {
		hook = refusal.In((*direct.Exchange)(r))
	}
	defer c.done()
	return r.Respond(func(x *direct.Exchange) { h.writeRefusal(x, c, hook) })
}

// writeRefusal makes the response. hook may be nil.
func (h *handler) writeRefusal(x *direct.Exchange, c *charge, hook *refusal.Hook) {
	p := refusal.Problem{Type: problemTypes + "quota-exceeded", Title: "Too many requests",
		Status: http.StatusTooManyRequests}
	var room [8]wire.Field
	fields := append(room[:0], wire.Field{Name: "Cache-Control", Value: "no-store"})
	if h.fields {
		fields = append(fields, wire.Field{Name: policyField, Value: h.policy})
	}
	wait := time.Duration(0)
	for i := range c.claims {
		d := &c.claims[i].Decision
		if d.Allowed {
			continue
		}
		if d.Failed && d.Remaining == 0 && d.Reset == 0 { // not by a bucket
			p = refusal.Problem{Type: problemTypes + "temporary-reduced-capacity",
				Title: "The limits cannot be checked", Status: http.StatusServiceUnavailable}
		} else {
			p.Violated = append(p.Violated, c.claims[i].Limit.name)
			if h.fields && !d.Failed {
				fields = append(fields, wire.Field{Name: limitField,
					Value: c.rules[i].lines.line(c.claims[i].Limit, d)})
			}
		}
		if d.RetryAfter == Never || wait == Never {
			wait = Never
		} else {
			wait = max(wait, d.RetryAfter)
		}
	}
	text := append(append(strconv.AppendInt(make([]byte, 0, 64), int64(p.Status), 10), ' '), p.Title...)
	if wait != Never {
		// RFC 9110 section 10.2.3: delay-seconds.
		after := strconv.FormatInt(seconds(wait), 10)
		fields = append(fields, wire.Field{Name: "Retry-After", Value: after})
		text = append(append(append(text, "; try again in "...), after...), " s"...)
	}
	text = append(text, '\n')
	contentType := "text/plain; charset=utf-8"
	if hook == nil && wantsJSON(x.RequestHeader("Accept")) {
		contentType, text = "application/problem+json", p.JSON()
	}
	fields = append(fields, wire.Field{Name: "Content-Type", Value: contentType})
	if hook != nil {
		fields, text = hooked(hook, &p, fields)
	}
	x.SetStatus(p.Status)
	for i, f := range fields {
		// Lines of a handler around this one stay, and those set before.
		if f.Name == limitField || i > 0 && fields[i-1].Name == f.Name {
			x.AddHeader(f.Name, f.Value)
		} else {
			x.SetHeader(f.Name, f.Value)
		}
	}
	x.Write(text)
}

// hooked returns what a hook makes of a refusal, with the fields sorted by name.
func hooked(hook *refusal.Hook, p *refusal.Problem, fields []wire.Field) ([]wire.Field, []byte) {
	head := make(http.Header, len(fields))
	for _, f := range fields {
		head[f.Name] = append(head[f.Name], f.Value)
	}
	body := hook.Body(p, head)
	fields = fields[:0]
	for _, name := range slices.Sorted(maps.Keys(head)) {
		for _, v := range head[name] {
			fields = append(fields, wire.Field{Name: name, Value: v})
		}
	}
	return fields, body
}

// wantsJSON reports whether Accept names some kind of JSON, and not after HTML as
// browsers do.
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
