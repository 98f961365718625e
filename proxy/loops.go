package proxy

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/balance"
	"github.com/chert-http/chert/internal/forward"
	"github.com/chert-http/chert/internal/http1"
	"github.com/chert-http/chert/internal/lastproxy"
	"github.com/chert-http/chert/internal/outbound"
	"github.com/chert-http/chert/internal/reason"
	"github.com/chert-http/chert/internal/refusal"
	"github.com/chert-http/chert/internal/retry"
	"github.com/chert-http/chert/internal/view"
)

// This file forwards requests on chert's event loops, without a goroutine. ServeHTTP forwards
// what this leaves to it.

// onLoops reports whether requests may be forwarded on loops: nothing of the program's has to
// see the request or the response.
func (o *Options) onLoops() bool {
	return o.Choose == nil && o.Rewrite == nil && o.ModifyResponse == nil && o.ErrorHandler == nil
}

// onLoops is Options.onLoops for what concerns the servers.
func (u *Upstream) onLoops() bool {
	return u.o.Protocol == ProtocolHTTP1 && (u.o.TLS == nil || outbound.Quick(u.o.TLS))
}

// offLoops reports whether there can be no connections to m on loops.
func (m *member) offLoops() bool { return m.link.out == nil }

// trip is a request that is forwarded on a loop: its outbound.Route. Only one goroutine at a
// time uses it. It is pooled.
type trip struct {
	course
	h      *Handler
	u      *Upstream
	pick   *pick // nil while no server was chosen
	turn   *turn // nil unless it waits for one
	method string
	q      retry.Request
	hook   *refusal.Hook
	report *Report // nil if the request has none
	cookie string  // to set, of PolicySticky
	later  bool    // the server is chosen when a part of the body has come
	chunks bool    // the body has no length
	secure bool
	begin  int64 // of the request, as now has it
	sent   int64 // of the latest try
	first  int64 // what the report's FirstByte is
	served bool  // a server has answered
	result *Error
	port   [5]byte
}

var trips = sync.Pool{New: func() any { return new(trip) }}

func (t *trip) free() {
	tried := t.choice.tried
	clear(tried)
	*t = trip{}
	t.choice.tried = tried[:0]
	trips.Put(t)
}

// TakesAhead is what wire.TakesAhead asks: bodies are passed on as they arrive.
func (h *Handler) TakesAhead() bool { return h.loops }

// ServeDirect forwards a request on the event loop that has it, if it may. Otherwise ServeHTTP
// does.
func (h *Handler) ServeDirect(dx *direct.Exchange) bool {
	x := dx.Wire()
	if !h.loops || !x.Forwards() || !h.o.Upstream.onLoops() || !unchanged(x) {
		return false
	}
	t := trips.Get().(*trip)
	t.h, t.u = h, h.o.Upstream
	p := t.start(dx)
	if p == nil {
		t.free()
		return false
	}
	return x.Forward(p)
}

// unchanged reports whether the path and the query are still the client's: a middleware may
// have changed them.
func unchanged(x *wire.Exchange) bool {
	path, query, _ := strings.Cut(view.String(x.Target()), "?")
	if query != view.String(x.RawQuery()) {
		return false
	}
	if strings.IndexByte(path, '%') < 0 {
		return path == view.String(x.Path())
	}
	decoded, err := url.PathUnescape(path)
	return err == nil && decoded == view.String(x.Path())
}

// start chooses a server, unless the request has to wait for one. It returns nil if there is none, and notes nothing:
// the request may be refused when its head is made.
func (t *trip) start(dx *direct.Exchange) *outbound.Plan {
	x := dx.Wire()
	t.begin = now()
	t.method, t.secure = x.Method(), x.TLS()
	t.q = retry.Request{Idempotent: retry.Idempotent(t.method), Key: x.Fields().Get("Idempotency-Key") != nil}
	n := x.BodyLength()
	if n != 0 {
		t.q.Body = retry.BodyHeld
	}
	t.chunks = n < 0
	// What can be held is read first, so that a client that sends slowly keeps no connection to a server
	// waiting. See forwarding.readBody.
	t.later = x.Ahead() && n > 0 && t.h.o.BufferRequest > 0 && x.Fields().Get("Expect") == nil
	u, g := t.u, t.u.current.Load()
	if len(g.members) == 0 || !t.keys(x) {
		return nil
	}
	if t.h.o.Host == hostUpstream && len(g.members) > 1 {
		return nil // the head would differ for each
	}
	target, e := strip(view.String(x.Target()), t.h.o.StripPrefix)
	if e != nil {
		return nil // ServeHTTP refuses it
	}
	full := true
	if u.waiting.len() == 0 && !t.later { // otherwise those come first
		t.pick, full = u.attempt(g, &t.choice)
	}
	switch {
	case t.pick == nil && (!full || slices.ContainsFunc(g.members, (*member).offLoops)):
		return nil
	case t.pick != nil && !t.can(t.pick):
		t.pick.abandon()
		return nil
	}
	t.hook = refusal.In(dx)
	if t.report = reportOf(dx); t.report != nil {
		t.report.Upstream = u.o.Name
	}
	p := outbound.NewPlan()
	p.Route, p.Terms, p.Via = t, u.terms, t.h.o.Via
	p.Again = u.repeats(&t.q, !x.Ahead() || n >= 0 && n <= int64(t.h.o.BufferRequest))
	p.Request.Expect = true
	if x.Ahead() {
		p.Keep = t.h.o.BufferRequest
	}
	if t.later {
		p.Gather = int(min(n, int64(p.Keep)))
	}
	if t.h.o.StripPrefix != "" {
		p.Request.Target = view.Bytes(target)
		p.Outer = t.h.o.outer(string(x.Host()))
	}
	t.request(x, g.members[0].name, &p.Request)
	return p
}

// can reports whether a server can get the request on a loop: one of HTTP/1.0 would not understand chunks.
func (t *trip) can(p *pick) bool { return !p.offLoops() && !(t.chunks && p.link.old.Load()) }

// request says how the head is changed. It is written before the exchange ends, whose memory
// it refers to. name is that of the one server, if Host depends on it.
func (t *trip) request(x *wire.Exchange, name string, r *forward.Request) {
	o := &t.h.o
	r.Proto, r.Via = "http", o.Via
	if t.secure {
		r.Proto = "https"
	}
	r.Prefix = view.Bytes(o.StripPrefix)
	r.XForwarded, r.RealIP, r.Forwarded = !o.NoXForwarded, !o.NoXForwarded, o.Forwarded
	peer, trusted := x.PeerIP(), false
	if peer == "" || len(o.trusted) > 0 {
		peer, trusted = o.peer(x.RemoteAddr())
	}
	if last, ok := lastproxy.Of(x); ok {
		r.Client = view.Bytes(peer)
		peer, trusted = addressOf(last), true
	}
	r.Peer, r.Trusted = view.Bytes(peer), trusted
	if a, ok := x.LocalAddr().(*net.TCPAddr); ok {
		r.Port = strconv.AppendInt(t.port[:0], int64(a.Port), 10)
	}
	switch o.Host {
	case "":
	case hostUpstream:
		r.Host = view.Bytes(hostField(name, t.u.o.TLS != nil))
	default:
		r.Host = view.Bytes(o.Host)
	}
}

// try notes that a try begins.
func (t *trip) try() {
	t.tries.Begin(t.pick.entry.ref.ID()) // false for a Reconnect, which is noted already
	t.pick.entry.requests.Add(1)
	t.sent = now()
	if t.report != nil {
		t.report.Server, t.report.Tries = t.pick.addr, t.tries.Len()
	}
}

// keys sets what the server is chosen by. It reports false for what only ServeHTTP knows.
func (t *trip) keys(x *wire.Exchange) bool {
	b := &t.u.o.Balance
	switch b.Policy {
	case PolicyHash:
		return b.Key.ofExchange(x, &t.choice.key)
	case PolicySticky:
		t.sticky(x, b.Cookie)
	}
	return true
}

// ofExchange is of for an exchange. It reports false for what needs an http.Request.
func (k *Key) ofExchange(x *wire.Exchange, key *uint64) bool {
	switch k.by {
	case byAddress:
		if a, err := netip.ParseAddrPort(x.RemoteAddr()); err == nil {
			*key = keyOfClient(a.Addr())
			return true
		}
	case byURI:
		*key = balance.KeyOfBytes(x.Target())
		return true
	case byPath:
		path, _, _ := strings.Cut(view.String(x.Target()), "?")
		*key = balance.KeyOf(path)
		return true
	case byHeader:
		if v := x.Fields().Get(k.name); v != nil && !strings.EqualFold(k.name, "Host") {
			*key = balance.KeyOfBytes(v)
			return true
		}
	}
	return false
}

// sticky is forwarding.sticky.
func (t *trip) sticky(x *wire.Exchange, name string) {
	if v := cookieOf(x, name); validSession(v) {
		t.choice.key = balance.KeyOf(v)
		return
	}
	t.cookie = t.choice.newSession(t.u)
}

// cookieOf returns the value of the first cookie of a name, "" if there is none.
func cookieOf(x *wire.Exchange, name string) string {
	for field, value := range x.Fields().All() {
		if !http1.FoldEqual(field, "Cookie") {
			continue
		}
		for part := range strings.SplitSeq(view.String(value), ";") {
			if n, v, ok := strings.Cut(strings.TrimSpace(part), "="); ok && n == name {
				return v
			}
		}
	}
	return ""
}

// Failed implements outbound.Route.
func (t *trip) Failed(a *retry.Attempt, idle int64, err error) (next *outbound.Server, fresh bool) {
	p := t.pick
	next, fresh, e := t.again(a, idle, err)
	if next != nil {
		return next, fresh
	}
	p.release()
	t.result = e
	t.h.o.log(context.Background(), e)
	return nil, false
}

// again begins another try after a, or returns why there is none.
func (t *trip) again(
	a *retry.Attempt, idle int64, err error,
) (next *outbound.Server, fresh bool, e *Error) {
	p := t.pick
	pick, fresh, obstacle := t.after(t.u, p, a, t.q)
	e = t.error(t.u, p, a.Reason, err, t.method)
	e.tried(a, time.Duration(idle))
	if pick != nil && !t.can(pick) { // an upstream's servers are alike, so there is none
		pick.abandon()
		pick, obstacle = nil, retry.NoOther.String()
	}
	if pick == nil {
		e.NotRetried = obstacle
		return nil, false, e
	}
	t.h.o.logRetry(context.Background(), e, a.Blames())
	t.pick = pick
	t.try()
	return pick.link.out, fresh, nil
}

// Answered implements outbound.Route.
func (t *trip) Answered(status int, minor uint8, reused bool) (add []byte, next *outbound.Server) {
	p := t.pick
	if old := minor == 0; p.link.old.Load() != old {
		p.link.old.Store(old)
	}
	at, code := now(), reason.Of(status)
	p.entry.bal.Observe(at-t.sent, at)
	t.first = at - t.sent
	if code == reason.None || !t.u.policy.Statuses {
		p.entry.done(p.ticket, code)
	} else {
		a := &retry.Attempt{Reason: code, Progress: retry.Received, Reused: reused}
		if next, _, _ = t.again(a, 0, nil); next != nil {
			return nil, next
		}
	}
	t.served = true
	if t.cookie != "" {
		add = http1.AppendField(nil, "Set-Cookie", sessionCookie(t.u.o.Balance.Cookie, t.cookie, t.secure).String())
	}
	return add, nil
}

// Gone implements outbound.Route.
func (t *trip) Gone() { t.q.Body = retry.BodyGone }

// Spoilt implements outbound.Route. It is what forwarding.clientFailed is.
func (t *trip) Spoilt(status int, why string) {
	p := t.pick
	e := t.error(t.u, p, reason.ClientGone, nil, t.method)
	e.Status, e.Reason = status, why
	t.result = e
	t.h.o.log(context.Background(), e)
	if p != nil {
		p.entry.ref.Abandon(p.ticket)
		p.release()
	}
	if t.turn != nil {
		t.turn.end()
	}
}

// Done implements outbound.Route.
func (t *trip) Done(why reason.Code) {
	p := t.pick
	switch {
	case p == nil:
	case !t.served:
		p.entry.ref.Abandon(p.ticket)
	case why.Blames():
		p.entry.done(p.ticket, why)
	}
	if why != reason.None {
		e := t.error(t.u, p, why, nil, t.method)
		e.Sent, e.Truncated = t.tries.Len() > 0, t.served
		if why != reason.ClientGone {
			e.NotRetried = retry.Begun.String()
		}
		t.result = e
		t.h.o.log(context.Background(), e)
	}
	if p != nil {
		p.release()
	}
	if t.turn != nil {
		t.turn.end()
	}
	t.finish()
}

// Instead implements outbound.Route.
func (t *trip) Instead() *direct.Response {
	r := t.h.o.response(t.result)
	if t.hook != nil {
		r = t.hook.Of(r)
	}
	t.finish()
	return r
}

// finish ends the request.
func (t *trip) finish() {
	if r := t.report; r != nil {
		r.FirstByte, r.Total, r.Err = time.Duration(t.first), time.Duration(now()-t.begin), t.result
	}
	t.free()
}
