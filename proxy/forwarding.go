package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/chert-http/chert/internal/balance"
	"github.com/chert-http/chert/internal/forward"
	"github.com/chert-http/chert/internal/http1"
	"github.com/chert-http/chert/internal/lastproxy"
	"github.com/chert-http/chert/internal/origin"
	"github.com/chert-http/chert/internal/reason"
	"github.com/chert-http/chert/internal/retry"
)

// forwarding is one request on its way. It belongs to the goroutine of ServeHTTP.
type forwarding struct {
	h       *Handler
	w       http.ResponseWriter
	r       *http.Request
	u       *Upstream
	begin   time.Time
	report  *Report
	control *http.ResponseController

	client  clientHead
	options forward.Request
	out     *outgoing // if Rewrite or HTTP/2 needs it
	upload  *origin.Upload
	// extended is the protocol of an extended CONNECT (RFC 8441), which becomes an upgrade.
	extended string
	// accept is the Sec-WebSocket-Accept that the server must answer such an upgrade with. The
	// client cannot check it: over HTTP/2 there is none.
	accept string

	course
	cookie string // to set, of PolicySticky
	result *Error
	waited int64 // how long the client was waited for, to take the response
}

// ServeHTTP forwards r.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f := &forwarding{h: h, w: w, r: r, begin: time.Now(), control: http.NewResponseController(w)}
	if f.report = reportOf(r.Context()); f.report == nil {
		f.report = &Report{}
	}
	defer func() { f.report.Total, f.report.Err = time.Since(f.begin), f.result }()
	if f.u = h.upstream(r); f.u == nil {
		f.fail(nil, reason.NoServer, nil)
		return
	}
	f.report.Upstream = f.u.o.Name
	if e := f.prepare(); e != nil {
		f.refuse(e)
		return
	}
	if err := f.readBody(); err != nil {
		f.clientFailed(nil, err)
		return
	}
	if f.upload != nil {
		defer f.upload.Stop(func() error { return f.control.SetReadDeadline(time.Unix(1, 0)) })
	}
	f.u.budget.Request(now())
	f.run()
}

// prepare reads the client's head, and refuses what cannot be forwarded.
func (f *forwarding) prepare() *http1.Error {
	r, o := f.r, &f.h.o
	body := r.Body != nil && r.Body != http.NoBody && r.ContentLength != 0
	if f.extended = extendedConnect(r); f.extended != "" {
		body = false // it is the tunnel's
	}
	if e := f.client.read(r, body); e != nil {
		return e
	}
	if f.extended != "" {
		f.accept = f.client.upgradeTo(f.extended)
	}
	peer, trusted := o.peer(r.RemoteAddr)
	client := ""
	if last, ok := lastproxy.Of(r.Context()); ok {
		client, peer, trusted = peer, addressOf(last), true
	}
	f.options = forward.Request{
		Peer: []byte(peer), Client: []byte(client), Proto: "http",
		Trusted: trusted, XForwarded: !o.NoXForwarded, RealIP: !o.NoXForwarded,
		Forwarded: o.Forwarded, Via: o.Via, Prefix: []byte(o.StripPrefix),
		Upgrade: f.u.o.Protocol == ProtocolHTTP1, Expect: true,
	}
	if r.TLS != nil {
		f.options.Proto, f.options.Early = "https", !r.TLS.HandshakeComplete
	}
	// RFC 8470 section 6.1: a gateway must know that the server understands Early-Data.
	if f.options.Early && !o.EarlyData {
		return errEarly
	}
	if r.ProtoMajor >= 2 {
		f.options.Version = strconv.Itoa(r.ProtoMajor)
	}
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		if _, port, err := net.SplitHostPort(local.String()); err == nil {
			f.options.Port = []byte(port)
		}
	}
	if o.StripPrefix != "" {
		target, e := strip(string(f.client.r.Target.Bytes(f.client.b)), o.StripPrefix)
		if e != nil {
			return e
		}
		f.options.Target = []byte(target)
	}
	if h := o.Host; h != "" && h != hostUpstream {
		f.options.Host = []byte(h)
	}
	if body {
		f.upload = origin.NewUpload(r.Body, f.client.r.ContentLength, o.BufferRequest)
	}
	// Before a body is read, so that a request that is refused need not be.
	var e *http1.Error
	_, sent, err := forward.AppendRequest(nil, f.client.b, &f.client.r, &f.options)
	switch {
	case errors.As(err, &e):
		return e
	case f.extended != "" && (sent.Expected.Upgrade == nil || !http1.ValidFieldName(f.extended)):
		// RFC 8441 section 4: a protocol by its token. Without an upgrade it would be a GET, past what
		// is required of one here, whose 2xx the client took for a tunnel. RFC 9220 section 3: 501.
		return errProtocol
	}
	return nil
}

// extendedConnect returns the protocol of an extended CONNECT (RFC 8441), or "".
func extendedConnect(r *http.Request) string {
	if p := r.Header[":protocol"]; r.Method == http.MethodConnect && r.ProtoMajor >= 2 && len(p) == 1 {
		return p[0]
	}
	return ""
}

// readBody reads what of the body can be held, so that a client that sends slowly keeps no
// connection to a server waiting. A body of unknown length may be one half of a
// conversation, and one that the server has to ask for is not read before.
func (f *forwarding) readBody() error {
	if f.upload == nil {
		return nil
	}
	whole := false
	if f.client.r.ContentLength >= 0 && !f.client.r.ExpectContinue && f.h.o.BufferRequest > 0 {
		var err error
		if whole, err = f.upload.Fill(); err != nil {
			return err
		}
	}
	if !whole && f.r.ProtoMajor == 1 {
		// The response may begin while the body is sent. Without it net/http reads what is
		// left of the body first.
		f.control.EnableFullDuplex()
	}
	return nil
}

// run tries servers until a response is forwarded or a failure stands.
func (f *forwarding) run() {
	if e := f.rewrite(); e != nil {
		f.refuse(e)
		return
	}
	f.keys()
	p, code, err := f.u.choose(f.r.Context(), &f.choice)
	if p == nil {
		f.fail(nil, code, err)
		return
	}
	// Also if user code panics.
	defer func() {
		if p != nil {
			p.release()
		}
	}()
	fresh := false
	for {
		if !f.tries.Begin(p.entry.ref.ID()) && !fresh {
			p.abandon()
			f.fail(nil, reason.Internal, nil)
			return
		}
		f.report.Server, f.report.Tries = p.addr, f.tries.Len()
		p.entry.requests.Add(1)
		a := f.try(p, fresh)
		if a == nil {
			return // forwarded, or failed while it was
		}
		var next *pick
		if next, fresh = f.after(p, a); next == nil {
			return
		}
		p = next
	}
}

// attempt is how a try ended that has not forwarded a response.
type attempt struct {
	retry.Attempt
	err  error
	idle time.Duration
	// response is one that the client gets if no other server is tried: of 502, 503 and 504.
	response func()
	drop     func()
}

// after decides about a try that failed. It returns the server of the next one, which may be
// the same on a fresh connection, or nil if the failure stands.
func (f *forwarding) after(p *pick, a *attempt) (next *pick, fresh bool) {
	next, fresh, obstacle := f.course.after(f.u, p, &a.Attempt, f.retriable())
	if next != nil {
		f.logRetry(p, a)
		if a.drop != nil {
			a.drop()
		}
		return next, fresh
	}
	defer p.release()
	if a.response != nil {
		a.response()
	} else {
		f.stand(p, a, obstacle)
	}
	return nil, false
}

// retriable returns what decides whether the request may be sent again.
func (f *forwarding) retriable() retry.Request {
	q := retry.Request{Idempotent: retry.Idempotent(f.r.Method), Key: f.r.Header.Get("Idempotency-Key") != ""}
	if f.extended != "" {
		q.Idempotent = true // the handshake is a GET
	}
	switch {
	case f.upload == nil:
	case f.upload.Gone():
		q.Body = retry.BodyGone
	default:
		q.Body = retry.BodyHeld
	}
	return q
}

// again reports whether the request could be sent a second time if a connection that was
// idle turns out to be closed.
func (f *forwarding) again() bool {
	q := f.retriable()
	return f.u.repeats(&q, q.Body != retry.BodyGone && f.holds())
}

// holds reports whether the whole body is held, or will be when it has come.
func (f *forwarding) holds() bool {
	if f.upload == nil {
		return true
	}
	_, whole := f.upload.Whole()
	n := f.client.r.ContentLength
	return whole || n >= 0 && n <= int64(f.h.o.BufferRequest)
}

// stand responds with the failure of the latest try.
func (f *forwarding) stand(p *pick, a *attempt, obstacle string) {
	if a.Reason == reason.ClientGone {
		err := a.err
		if f.r.Context().Err() != nil {
			err = f.late()
		}
		if err != nil {
			f.clientFailed(p, err)
			return
		}
	}
	e := f.error(p, a.Reason, a.err)
	e.tried(&a.Attempt, a.idle)
	if a.Reason != reason.ClientGone {
		e.NotRetried = obstacle
	}
	f.respondError(e)
}

// late returns the error of a body that has not come in time, which has ended the context of the request
// although the client is still there; otherwise nil.
func (f *forwarding) late() error {
	if f.upload == nil {
		return nil
	}
	if err := f.upload.LateFailure(); errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return nil
}

// clientFailed is for a body that the client has not sent as announced.
func (f *forwarding) clientFailed(p *pick, err error) {
	e := f.error(p, reason.ClientGone, err)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded): // of the body alone, although it ends the context
		e.Status, e.Reason = http.StatusRequestTimeout, "request body not received in time"
	case f.r.Context().Err() != nil, errors.Is(err, net.ErrClosed):
	case errors.As(err, &tooLarge):
		e.Status, e.Reason = http.StatusRequestEntityTooLarge, "request body too large"
	case !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, context.Canceled):
		e.Status, e.Reason = http.StatusBadRequest, "request body malformed"
	}
	f.respondError(e)
}

// keys sets what the server is chosen by.
func (f *forwarding) keys() {
	b := &f.u.o.Balance
	switch b.Policy {
	case PolicyHash:
		f.choice.key = b.Key.of(f.r)
	case PolicySticky:
		f.sticky(b.Cookie)
	}
}

// maxFresh is how many keys are made for a new session until one is at home at a server that
// is up.
const maxFresh = 16

// sticky takes the key of the client's cookie, or makes one.
func (f *forwarding) sticky(name string) {
	if c, err := f.r.Cookie(name); err == nil && validSession(c.Value) {
		f.choice.key = balance.KeyOf(c.Value)
		return
	}
	f.cookie = f.choice.newSession(f.u)
}

// newSession makes a key, and returns it as the value of a cookie.
func (c *choice) newSession(u *Upstream) (cookie string) {
	set := u.current.Load().set
	for range maxFresh {
		cookie = newSession()
		c.key, c.fresh = balance.KeyOf(cookie), true
		if set.Settled(c.key, now()) {
			break
		}
	}
	return cookie
}
