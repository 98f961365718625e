package proxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/chert-http/chert/internal/forward"
	"github.com/chert-http/chert/internal/http1"
	"github.com/chert-http/chert/internal/origin"
	"github.com/chert-http/chert/internal/reason"
	"github.com/chert-http/chert/internal/retry"
)

// try sends the request to a server and forwards the response. It returns nil if that has
// happened, or has begun.
func (f *forwarding) try(p *pick, fresh bool) *attempt {
	if f.u.o.Protocol == ProtocolHTTP2 {
		return f.try2(p)
	}
	return f.try1(p, fresh)
}

// try1 is try for HTTP/1.
func (f *forwarding) try1(p *pick, fresh bool) *attempt {
	if a := f.tooOld(p); a != nil {
		return a
	}
	var c *origin.Conn
	var age int64
	if !fresh {
		c, age = p.link.take(f.again())
	}
	f.report.Reused, f.report.Connect = c != nil, 0
	if c == nil {
		begin := time.Now()
		var fail *origin.Failure
		c, fail = p.link.dial(f.r.Context())
		f.report.Connect = time.Since(begin)
		if fail != nil {
			return &attempt{Attempt: retry.Attempt{Reason: fail.Reason}, err: fail.Err}
		}
	}
	q, sent, e := f.request1(p)
	if e != nil {
		c.Close()
		f.result = f.error(p, reason.Internal, e)
		p.abandon()
		f.refuse(e)
		return nil
	}
	begin := now()
	x, fail := c.Do(f.r.Context(), q, func(c *origin.Conn) { p.link.put(c, f.u.o.MaxIdle) })
	if fail != nil {
		return &attempt{Attempt: retry.Attempt{Reason: fail.Reason, Progress: fail.Progress, Reused: c.Reused(),
			Awaited: fail.Awaited}, err: fail.Err, idle: time.Duration(age)}
	}
	p.entry.bal.Observe(now()-begin, now())
	f.report.FirstByte = time.Duration(now() - begin)
	p.link.old.Store(x.Response.Minor == 0)
	if s := x.Response.IdleSeconds; s >= 0 {
		p.link.limit.Announced(time.Duration(s) * time.Second)
	}
	switch {
	case x.Response.Framing == http1.FramingTunnel:
		p.entry.done(p.ticket, reason.None)
		f.tunnel(p, x)
		return nil
	case f.extended != "" && x.Response.Status/100 == 2:
		// RFC 8441 section 5: to the client it would be a tunnel. The server is not to blame: any
		// client can ask for an upgrade where there is none.
		p.entry.done(p.ticket, reason.None)
		f.noTunnel(p, x, fmt.Errorf("it has answered an upgrade with %d", x.Response.Status))
		p.release()
		return nil
	}
	res, err := f.response1(x, sent)
	if err != nil {
		x.Close()
		return &attempt{Attempt: retry.Attempt{Reason: reason.Malformed, Progress: retry.Received}, err: err}
	}
	return f.received(p, res, c.Reused())
}

// tooOld fails for a server of HTTP/1.0 if the length of the body is not known and cannot be
// found out: the server would not understand chunks.
func (f *forwarding) tooOld(p *pick) *attempt {
	if f.upload == nil || !p.link.old.Load() {
		return nil
	}
	if f.frame(); !f.client.r.Chunked {
		return nil
	}
	if f.tries.Len() == 1 {
		if _, err := f.upload.Fill(); err != nil {
			return &attempt{Attempt: retry.Attempt{Reason: reason.ClientGone}, err: err}
		}
		if b, whole := f.upload.Whole(); whole {
			f.client.r.ContentLength, f.client.r.Chunked = int64(len(b)), false // trailers cannot be sent
			return nil
		}
	}
	return &attempt{Attempt: retry.Attempt{Reason: reason.NeedsLength}}
}

// response1 returns the response of an exchange.
func (f *forwarding) response1(x *origin.Exchange, sent forward.Sent) (*http.Response, error) {
	r, h := &x.Response, http.Header{}
	streams := f.r.ProtoMajor >= 2
	o := forward.Response{
		Minor: 1, Trailers: sent.Trailers || streams, NoUpgrade: streams, Outer: f.h.o.outer(f.r.Host),
	}
	err := o.Fields(x.Head, r, http1.FramingChunked, func(field *http1.Field, value []byte) {
		key := http1.CanonicalName(field.Name.Bytes(x.Head), field.ID)
		h[key] = append(h[key], string(value))
	})
	if err != nil {
		return nil, err
	}
	if h["Upgrade"] != nil { // RFC 9110 section 7.8
		h.Set("Connection", "Upgrade")
	}
	h.Add("Via", "1."+string('0'+rune(r.Minor))+" "+f.h.o.Via)
	res := &http.Response{
		Status:     strconv.Itoa(r.Status) + " " + string(r.Reason.Bytes(x.Head)),
		StatusCode: r.Status, Proto: "HTTP/1." + strconv.Itoa(int(r.Minor)), ProtoMajor: 1, ProtoMinor: int(r.Minor),
		Header: h, ContentLength: -1, Request: f.outRequest(),
	}
	switch {
	case r.Status == http.StatusNoContent:
		res.ContentLength = 0
	case r.ContentLength >= 0:
		// Also with HEAD and 304: it is that of a body which is not sent.
		h.Set("Content-Length", strconv.FormatInt(r.ContentLength, 10))
		res.ContentLength = r.ContentLength
	}
	body := &body1{Exchange: x, res: res}
	if o.Trailers && r.Framing == http1.FramingChunked {
		res.Trailer = http.Header{}
	}
	res.Body = body
	return res, nil
}

// body1 is the body of a response, which sets the trailers at its end.
type body1 struct {
	*origin.Exchange
	res *http.Response
}

func (b *body1) Read(p []byte) (int, error) {
	n, err := b.Exchange.Read(p)
	if err == io.EOF && b.res.Trailer != nil {
		head, fields := b.Trailers()
		for i := range fields {
			if name := fields[i].Name.Bytes(head); forward.IsTrailer(name) {
				key := http1.CanonicalName(name, fields[i].ID)
				b.res.Trailer[key] = append(b.res.Trailer[key], string(fields[i].Value.Bytes(head)))
			}
		}
	}
	return n, err
}

func (f *forwarding) outRequest() *http.Request {
	if f.out != nil {
		return f.out.request
	}
	return f.r
}

// received forwards a response, or gives it back if another server may do better.
func (f *forwarding) received(p *pick, res *http.Response, reused bool) *attempt {
	code := reason.Of(res.StatusCode)
	if code == reason.None || !f.u.policy.Statuses {
		p.entry.done(p.ticket, code)
		f.deliver(p, res)
		return nil
	}
	a := &attempt{Attempt: retry.Attempt{Reason: code, Progress: retry.Received, Reused: reused}}
	a.response = func() { f.deliver(p, res) }
	a.drop = func() { res.Body.Close() }
	return a
}

// try2 is try for HTTP/2.
func (f *forwarding) try2(p *pick) *attempt {
	ctx, cancel := context.WithCancelCause(f.r.Context())
	t := &h2try{ctx: ctx, cancel: cancel, again: f.again(), body: f.upload != nil}
	end := func() {
		t.end()
		cancel(nil)
	}
	out := f.request2(ctx, p, t)
	request, _ := out.Body.(*trailing)
	begin := now()
	res, err := p.link.h2.transport.RoundTrip(out)
	f.report.Reused = t.reused.Load()
	if err != nil && strings.HasSuffix(err.Error(), headTooLong) {
		end()
		f.closeBody(out)
		p.abandon()
		f.refuse(errTooLong)
		return nil
	}
	if err != nil {
		fail := f.failure2(ctx, err, t.sent.Load(), false)
		end()
		if t.interims > 0 { // as with HTTP/1: the client may have it
			fail.Progress = retry.Received
		}
		f.closeBody(out)
		return &attempt{Attempt: retry.Attempt{Reason: fail.Reason, Progress: fail.Progress,
			Awaited: request != nil && request.awaited.Load()}, err: fail.Err}
	}
	t.end()
	if t.reused.Load() {
		p.entry.reused.Add(1)
	}
	p.entry.bal.Observe(now()-begin, now())
	f.report.FirstByte = time.Duration(now() - begin)
	if err := malformed2(res); err != nil {
		end()
		res.Body.Close()
		f.closeBody(out)
		return &attempt{Attempt: retry.Attempt{Reason: reason.Malformed, Progress: retry.Received}, err: err}
	}
	for name := range res.Header {
		if !passedBack(name) {
			delete(res.Header, name)
		}
	}
	f.unstrip(res.Header)
	res.Header.Add("Via", "2 "+f.h.o.Via)
	failure := func(err error) error { return f.failure2(ctx, err, true, true) }
	body := &body2{ReadCloser: content2(res), request: request, failure: failure, cancel: cancel, end: func() {
		end()
		f.closeBody(out)
	}}
	body.limit(f.u.o.StallTimeout)
	res.Body = body
	return f.received(p, res, false)
}

// malformed2 is what the Transport lets through: the rules are those for servers of HTTP/1.
func malformed2(res *http.Response) error {
	// RFC 9110 section 15: values outside the range 100..599 are invalid. 1xx are passed on elsewhere.
	// Section 15: three digits, which the Transport reads as any number.
	if code, _, _ := strings.Cut(res.Status, " "); len(code) != 3 || res.StatusCode < 200 || res.StatusCode > 599 {
		return fmt.Errorf("status %q", code)
	}
	n := 0
	for _, values := range res.Header {
		n += len(values)
	}
	if n > http1.DefaultLimits.Fields {
		return fmt.Errorf("%d fields", n)
	}
	// RFC 9113 section 8.1.1, RFC 9110 section 8.6: one, of digits.
	length := res.Header["Content-Length"]
	for _, v := range length {
		if _, err := strconv.ParseUint(v, 10, 63); err != nil || len(length) > 1 {
			return fmt.Errorf("Content-Length %q", length)
		}
	}
	return nil
}

// failure2 is h2Failure, unless the client's body has failed: the Transport returns its error as if it were one
// of the server.
func (f *forwarding) failure2(ctx context.Context, err error, sent, received bool) *origin.Failure {
	fail := h2Failure(ctx, err, sent, received)
	if f.upload != nil {
		if err := f.upload.Failure(); err != nil {
			fail.Reason, fail.Err = reason.ClientGone, err
		}
	}
	return fail
}

func (f *forwarding) closeBody(out *http.Request) {
	if out.Body != nil {
		out.Body.Close()
	}
}

// request2 returns the request for a server of HTTP/2.
func (f *forwarding) request2(ctx context.Context, p *pick, t *h2try) *http.Request {
	from := f.out.request
	host := f.host(p)
	trace := t.trace()
	trace.Got1xxResponse = func(code int, h textproto.MIMEHeader) error { return t.interim(f, code, h) }
	if limit := f.u.o.ResponseTimeout + f.u.o.StallTimeout; from.Method == http.MethodHead &&
		f.u.o.ResponseTimeout > 0 && f.u.o.StallTimeout > 0 { // the first byte may be an interim response's
		trace.GotFirstResponseByte = func() { t.endWithin(limit) }
	}
	out := from.WithContext(httptrace.WithClientTrace(ctx, trace))
	out.Host = host
	// Opaque keeps the bytes of the target: RequestURI would encode them anew. Connections
	// are kept by URL.Host, whatever the request's.
	out.URL = &url.URL{Scheme: f.u.scheme(), Host: "server", Opaque: "//" + host + f.out.path()}
	out.Header = make(http.Header, len(from.Header)+1)
	for name, values := range from.Header {
		if passedBack(name) {
			out.Header[name] = values
		}
	}
	if f.trailersAccepted() {
		out.Header["Te"] = []string{"trailers"}
	}
	if _, ok := out.Header["User-Agent"]; !ok {
		out.Header["User-Agent"] = []string{""} // none of net/http's own
	}
	out.Body, out.ContentLength = nil, 0
	if f.upload != nil {
		trailer := make(http.Header)
		for name := range f.r.Trailer {
			// A client may announce any name. The Transport refuses the request for one that is none.
			if http1.ValidFieldName(name) && forward.IsTrailer([]byte(name)) {
				trailer[name] = nil
			}
		}
		body := &trailing{Cursor: f.upload.Cursor(), from: f.r.Trailer, to: trailer}
		trace.WroteRequest = func(httptrace.WroteRequestInfo) { body.written() }
		body.limit(f.u.o.StallTimeout, t.unread)
		out.Body, out.ContentLength, out.Trailer = body, -1, trailer
		if f.client.r.ContentLength >= 0 {
			out.ContentLength = f.client.r.ContentLength
		}
	}
	return out
}

// trailersAccepted reports whether the client accepts trailers.
func (f *forwarding) trailersAccepted() bool {
	for _, v := range f.r.Header["Te"] {
		if http1.HasToken([]byte(v), "trailers") {
			return true
		}
	}
	return false
}
