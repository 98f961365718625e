package retry

import (
	"testing"

	"github.com/chert-http/chert/internal/reason"
)

var methods = map[string]bool{
	"GET": true, "HEAD": true, "OPTIONS": true, "TRACE": true, "PUT": true, "DELETE": true,
	"POST": false, "PATCH": false, "CONNECT": false, "PROPFIND": false, "get": false, "": false,
}

// RFC 9110 section 9.2.2: "Of the request methods defined by this specification, PUT, DELETE, and safe request methods
// are idempotent."
func TestIdempotent(t *testing.T) {
	t.Parallel()
	for m, want := range methods {
		if Idempotent(m) != want {
			t.Errorf("%q: %v", m, !want)
		}
	}
}

// what is a failure, as the rows of the design name it.
type what struct {
	codes  []reason.Code
	from   Progress
	to     Progress
	reused []bool
}

var (
	either   = []bool{false, true}
	connects = []reason.Code{reason.Refused, reason.NoRoute, reason.DialTimeout, reason.DialFailed, reason.TLSTimeout,
		reason.TLSFailed, reason.TLSCertificate, reason.TLSAlert, reason.DNSFailed, reason.DNSTimeout}
	ends     = []reason.Code{reason.Closed, reason.Reset}
	statuses = []reason.Code{reason.Status502, reason.Status503, reason.Status504}
)

// Each row is quoted from the design: "sent" = one byte accepted by the socket; the columns are GET, HEAD, OPTIONS,
// TRACE, PUT, DELETE, and POST, PATCH, other.
func TestTable(t *testing.T) {
	t.Parallel()
	type verdict struct {
		action   Action
		obstacle Obstacle
		charged  bool
	}
	var (
		next        = verdict{Next, Free, false}
		nextPaid    = verdict{Next, Free, true}
		reconnect   = verdict{Reconnect, Free, true}
		reconnect0  = verdict{Reconnect, Free, false}
		no          = func(o Obstacle) verdict { return verdict{Fail, o, false} }
		timeoutsOn  = Policy{Timeouts: true}
		statusesOn  = Policy{Statuses: true}
		idempotent  = Request{Idempotent: true}
		post        = Request{}
		postWithKey = Request{Key: true}
	)
	for _, tt := range []struct {
		row           string
		what          what
		p             Policy
		first, second verdict // idempotent, other
	}{
		{row: "connect refused, timed out, TLS failed: nothing sent | next server | next server",
			what: what{connects, Unsent, Unsent, []bool{false}}, first: next, second: next},
		// A new connection that ends before a byte was accepted is the same.
		{row: "nothing sent: closed",
			what: what{ends, Unsent, Unsent, []bool{false}}, first: next, second: next},
		{row: "nothing sent: not accepted in time",
			what: what{[]reason.Code{reason.SendTimeout}, Unsent, Unsent, either}, first: next, second: next},
		{row: "reused, closed or reset, no response byte | once, new connection | no: 502 with the reason",
			what: what{ends, Sent, Sent, []bool{true}}, first: reconnect, second: no(NotIdempotent)},
		// "h2 client: REFUSED_STREAM only if nothing was sent": then it is sent again anyway, by all methods.
		{row: "reused, closed or reset, nothing sent",
			what: what{ends, Unsent, Unsent, []bool{true}}, first: reconnect0, second: reconnect0},
		{row: "h2 GOAWAY above | yes | yes",
			what: what{[]reason.Code{reason.GoAway}, Unsent, Sent, either}, first: next, second: next},
		{row: "REFUSED_STREAM | yes | yes",
			what: what{[]reason.Code{reason.Unserved}, Sent, Sent, either}, first: nextPaid, second: nextPaid},
		{row: "REFUSED_STREAM, GOAWAY or PROTOCOL_ERROR, nothing sent",
			what: what{[]reason.Code{reason.Unclear}, Unsent, Unsent, either}, first: next, second: next},
		{row: "REFUSED_STREAM, GOAWAY or PROTOCOL_ERROR | next server, budget | no",
			what: what{[]reason.Code{reason.Unclear}, Sent, Sent, either}, first: nextPaid, second: no(NotIdempotent)},
		{row: "new connection, closed without a byte | next server, budget | no",
			what: what{ends, Sent, Sent, []bool{false}}, first: nextPaid, second: no(NotIdempotent)},
		{row: "time of first byte over | no by default | no",
			what: what{[]reason.Code{reason.ResponseTimeout, reason.SendTimeout}, Sent, Sent, either}, first: no(TimeoutsOff), second: no(NotIdempotent)},
		{row: "time of first byte over, if permitted", p: timeoutsOn,
			what: what{[]reason.Code{reason.ResponseTimeout, reason.SendTimeout}, Sent, Sent, either}, first: nextPaid, second: no(NotIdempotent)},
		{row: "response begun | no | no",
			what: what{[]reason.Code{reason.Closed, reason.Reset, reason.Truncated, reason.ResponseTimeout, reason.StallTimeout, reason.GoAway, reason.Unserved,
				reason.Unclear, reason.Malformed, reason.HeadTooLarge, reason.BadFraming, reason.BadUpgrade, reason.ManyInterim}, Received, Passed, either},
			first: no(Begun), second: no(Begun)},
		{row: "502, 503, 504 of the upstream | retry_status, off by default | no",
			what: what{statuses, Received, Received, either}, first: no(StatusesOff), second: no(NotIdempotent)},
		{row: "502, 503, 504 of the upstream, if permitted", p: statusesOn,
			what: what{statuses, Received, Received, either}, first: nextPaid, second: no(NotIdempotent)},
		{row: "502, 503, 504 of the upstream, after an interim response", p: statusesOn,
			what: what{statuses, Passed, Passed, either}, first: no(Begun), second: no(Begun)},
		{row: "nothing that another server could do better",
			what: what{[]reason.Code{reason.NoSocket, reason.ClientGone, reason.Loop, reason.Internal, reason.NoServer, reason.QueueFull, reason.QueueTimeout,
				reason.NeedsLength, reason.None}, Unsent, Received, either},
			first: no(NotRetriable), second: no(NotRetriable)},
		{row: "a code that does not go with its progress",
			what: what{connects, Sent, Sent, either}, first: no(Begun), second: no(Begun)},
	} {
		for _, code := range tt.what.codes {
			for progress := tt.what.from; progress <= tt.what.to; progress++ {
				for _, reused := range tt.what.reused {
					a := Attempt{Reason: code, Progress: progress, Reused: reused}
					check := func(p Policy, r Request, want verdict) {
						t.Helper()
						want2 := Verdict{want.action, want.obstacle, code, want.charged, progress == Unsent}
						if got := Decide(&p, &r, &a); got != want2 {
							t.Errorf("%s: %+v of %+v with %+v: %v, want %v", tt.row, a, r, p, got, want2)
						}
					}
					check(tt.p, idempotent, tt.first)
					check(tt.p, post, tt.second)
					// "Idempotency-Key makes POST like PUT if retry_post = "key"".
					check(tt.p, postWithKey, tt.second)
					withKeys := tt.p
					withKeys.Keys = true
					check(withKeys, postWithKey, tt.first)
					check(withKeys, post, tt.second)
					// "PUT and DELETE only when the body is still held (64 KiB)."
					for _, r := range []Request{idempotent, post} {
						want := tt.first
						if !r.Idempotent {
							want = tt.second
						}
						r.Body = BodyHeld
						check(tt.p, r, want)
						if r.Body = BodyGone; want.action != Fail {
							want = no(Lost)
						}
						check(tt.p, r, want)
					}
				}
			}
		}
	}
}

// The promises that hold whatever the table says, over everything there is to ask.
func TestPromises(t *testing.T) {
	t.Parallel()
	n := 0
	each(func(p Policy, r Request, a Attempt) {
		n++
		promises(t, p, r, a)
	})
	if n != 2*2*2*2*2*3*int(reason.Codes+1)*4*2 {
		t.Errorf("%d cases", n)
	}
}

func each(f func(Policy, Request, Attempt)) {
	for bits := range 64 {
		on := func(i int) bool { return bits>>i&1 != 0 }
		p := Policy{Keys: on(0), Timeouts: on(1), Statuses: on(2)}
		for _, body := range []Body{NoBody, BodyHeld, BodyGone} {
			r := Request{Idempotent: on(3), Key: on(4), Body: body}
			for code := range reason.Codes + 1 {
				for progress := Unsent; progress <= Passed; progress++ {
					f(p, r, Attempt{Reason: code, Progress: progress, Reused: on(5)})
				}
			}
		}
	}
}

func promises(t *testing.T, p Policy, r Request, a Attempt) {
	t.Helper()
	v := Decide(&p, &r, &a)
	fault := func(text string) { t.Helper(); t.Errorf("%s: %+v, %+v, %+v: %+v", text, p, r, a, v) }
	again := v.Action != Fail
	twice := again && a.Progress >= Sent && a.Reason != reason.GoAway && a.Reason != reason.Unserved
	switch {
	case v.Reason != a.Reason:
		fault("another reason")
	case again != (v.Obstacle == Free):
		fault("a retry with an obstacle, or a failure without")
	case twice && !r.Idempotent && !(r.Key && p.Keys):
		fault("a request that is not idempotent may be acted on twice")
	case again && a.Progress == Passed:
		fault("two responses")
	case again && a.Progress == Received && !a.Reason.FromServer():
		fault("a response is thrown away")
	case again && r.Body == BodyGone:
		fault("sent again without its body")
	case twice && !v.Charged, v.Charged && !again, v.Charged && a.Progress == Unsent:
		fault("wrong charge")
	case v.Action == Reconnect && !a.Reused:
		fault("the server that has just failed, again")
	case a.Reason == reason.ClientGone && again:
		fault("for no client")
	case v.Unsent != (a.Progress == Unsent):
		fault("Unsent")
	}
}

// A connection that was idle says nothing about its server, nor does the end of one whose client is slow.
func TestBlames(t *testing.T) {
	t.Parallel()
	each(func(_ Policy, _ Request, a Attempt) {
		want := a.Reason.Blames()
		if a.Reused && a.Progress < Received && (a.Reason == reason.Closed || a.Reason == reason.Reset) {
			want = false
		}
		if a.Blames() != want {
			t.Errorf("%+v: %v", a, !want)
		}
		a.Awaited = true
		if a.Blames() != (want && a.Reason != reason.Closed && a.Reason != reason.Reset) {
			t.Errorf("%+v: %v", a, a.Blames())
		}
	})
}

func TestTexts(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for o := range obstacles + 1 {
		if s := o.String(); seen[s] || (s == "") != (o == Free) {
			t.Errorf("%d: %q", o, s)
		} else {
			seen[s] = true
		}
	}
	for a := Fail; a <= Next; a++ {
		if s := a.String(); seen[s] {
			t.Errorf("%d: %q", a, s)
		} else {
			seen[s] = true
		}
	}
	if v := (Verdict{Reason: reason.DialTimeout}); v.Status() != 504 {
		t.Errorf("status %d", v.Status())
	}
}

func FuzzDecide(f *testing.F) {
	f.Add(byte(0), byte(1), byte(reason.Closed), byte(Sent))
	f.Add(byte(255), byte(0), byte(255), byte(Unsent))
	f.Fuzz(func(t *testing.T, bits, body, code, progress byte) {
		on := func(i int) bool { return bits>>i&1 != 0 }
		promises(t, Policy{on(0), on(1), on(2)}, Request{on(3), on(4), Body(body % 3)}, Attempt{Reason: reason.Code(code), Progress: Progress(progress % 4), Reused: on(5)})
	})
}
