package proxy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/forward"
	"github.com/chert-http/chert/internal/http1"
	"github.com/chert-http/chert/internal/origin"
	"github.com/chert-http/chert/internal/reason"
	"github.com/chert-http/chert/internal/refusal"
	"github.com/chert-http/chert/internal/retry"
)

// replaced are fields of which a response has one, so that the upstream's takes the place of
// one that is set already. Others are added.
var replaced = map[string]bool{
	"Accept-Ranges": true, "Age": true, "Content-Disposition": true, "Content-Encoding": true, "Content-Length": true,
	"Content-Location": true, "Content-Range": true, "Content-Type": true, "Date": true, "Etag": true, "Expires": true,
	"Last-Modified": true, "Location": true, "Server": true,
}

func copyFields(to, from http.Header) {
	for name, values := range from {
		if replaced[name] {
			to[name] = values
		} else {
			to[name] = append(to[name], values...)
		}
	}
}

// interim1 passes on an interim response of HTTP/1.
func (f *forwarding) interim1(head []byte, r *http1.Response) error {
	h := http.Header{}
	err := (&forward.Response{Minor: 1}).Fields(head, r, http1.FramingNone, func(field *http1.Field, value []byte) {
		key := http1.CanonicalName(field.Name.Bytes(head), field.ID)
		h[key] = append(h[key], string(value))
	})
	if err != nil {
		return nil // it is not needed
	}
	f.interim(r.Status, h)
	return nil
}

// interim passes on an interim response, which has none of the fields that are set for the
// final one. RFC 9110 section 15.2: HTTP/1.0 has none.
func (f *forwarding) interim(status int, h http.Header) {
	if !f.r.ProtoAtLeast(1, 1) {
		return
	}
	own := f.w.Header()
	set := own.Clone()
	clear(own)
	for name, values := range h {
		if passedBack(name) {
			own[name] = values
		}
	}
	f.w.WriteHeader(status)
	clear(own)
	for name, values := range set {
		own[name] = values
	}
}

// copySize is how much of a body is read at once. A buffer has room for one byte more.
const copySize = 32 << 10

var copyBuffers = sync.Pool{New: func() any { return new([copySize + 1]byte) }}

// deliver forwards a response.
func (f *forwarding) deliver(p *pick, res *http.Response) {
	defer p.release()
	defer func() { res.Body.Close() }() // as ModifyResponse leaves it
	if modify := f.h.o.ModifyResponse; modify != nil {
		if err := modify(res); err != nil {
			e := f.error(p, reason.Internal, err)
			e.Status, e.Reason, e.Sent = http.StatusBadGateway, "response not accepted", true
			f.respondError(e)
			return
		}
	}
	h := f.w.Header()
	copyFields(h, res.Header)
	f.setCookie(h)
	if _, ok := h["Content-Type"]; !ok {
		h["Content-Type"] = nil // not one that the server finds by looking at the body
	}
	announced := len(h["Trailer"]) > 0
	f.w.WriteHeader(res.StatusCode)
	if err := f.copy(res); err != nil {
		f.cut(p, err)
	}
	if len(res.Trailer) > 0 {
		// They need chunks. The head may not have been sent if the body is empty, and would be with
		// Content-Length: 0.
		f.control.Flush()
	}
	for name, values := range res.Trailer {
		if !forward.IsTrailer([]byte(name)) { // those of HTTP/2 are as they came
			continue
		}
		if !announced || !announces(h, name) {
			name = http.TrailerPrefix + name
		}
		h[name] = values
	}
}

func announces(h http.Header, name string) bool {
	for _, list := range h["Trailer"] {
		if http1.HasToken([]byte(list), name) {
			return true
		}
	}
	return false
}

// writeError is an error of the client's connection.
type writeError struct{ error }

// copy forwards the body; each read is written at once.
func (f *forwarding) copy(res *http.Response) error {
	buffer := copyBuffers.Get().(*[copySize + 1]byte)
	defer copyBuffers.Put(buffer)
	left := int64(-1)
	if n, err := strconv.ParseInt(res.Header.Get("Content-Length"), 10, 64); err == nil {
		left = n
	}
	none := f.r.Method == http.MethodHead || res.StatusCode == http.StatusNoContent ||
		res.StatusCode == http.StatusNotModified || left == 0
	if x, ok := res.Body.(*body1); !none && (!ok || !x.Ready()) {
		f.control.Flush() // the body may come much later
	}
	for {
		n, err := res.Body.Read(buffer[:copySize])
		left -= int64(n)
		if n > 0 && !none && left == 0 && err == nil {
			// RFC 9113 section 8.1.1: with the last bytes a response looks whole, which it is only if no more come.
			var more int
			if more, err = res.Body.Read(buffer[n:]); err != nil && err != io.EOF {
				return err
			}
			n += more // too many, which Write finds
		}
		if n > 0 && !none {
			begin := now()
			if _, err := f.w.Write(buffer[:n]); err != nil {
				return writeError{err}
			}
			// With the last bytes the handler returns, which sends them.
			if left != 0 {
				f.control.Flush()
			}
			f.waited += now() - begin
		}
		switch {
		case err == io.EOF, err != nil && none:
			// RFC 9110 section 8.6: a 304 may have the length of a body that it has not, which the
			// Transport misses.
			return nil
		case err != nil:
			return err
		}
	}
}

// cut ends a response whose body has ended early, for the client too. It does not return.
func (f *forwarding) cut(p *pick, err error) {
	var e *Error
	var fail *origin.Failure
	var write writeError
	switch {
	case errors.As(err, &write):
		e = f.error(p, reason.ClientGone, write.error)
	case errors.As(err, &fail):
		code := origin.CutReason(fail.Reason, f.waited)
		e = f.error(p, code, fail.Err)
		if code.Blames() {
			p.entry.done(p.ticket, code)
		}
	default:
		e = f.error(p, reason.Truncated, err)
	}
	e.Sent, e.Truncated, e.Reused = true, true, f.report.Reused
	if fail != nil {
		e.NotRetried = retry.Begun.String()
	}
	f.log(e)
	f.control.Flush() // the head may not have been sent: a client without any would take the request for one not served
	if f.r.ProtoMajor == 1 && f.r.ProtoMinor == 0 && f.w.Header().Get("Content-Length") == "" {
		f.reset()
	}
	panic(http.ErrAbortHandler)
}

// reset ends the connection of a client for which its end is that of the body: an orderly
// one would make the body look whole.
func (f *forwarding) reset() {
	nc, _, err := f.control.Hijack()
	if err != nil {
		return
	}
	if t, ok := nc.(interface{ SetLinger(int) error }); ok {
		t.SetLinger(0)
	}
	nc.Close()
}

func (f *forwarding) setCookie(h http.Header) {
	if f.cookie != "" {
		h.Add("Set-Cookie", sessionCookie(f.u.o.Balance.Cookie, f.cookie, f.r.TLS != nil).String())
	}
}

// outer returns how a client that has asked for host names what servers name themselves, nil if they do
// that alike.
func (o *Options) outer(host string) *forward.Outer {
	if o.StripPrefix == "" {
		return nil
	}
	return &forward.Outer{Prefix: o.StripPrefix, Host: host}
}

// unstrip does for a response of HTTP/2 what forward.Response does for others.
func (f *forwarding) unstrip(h http.Header) {
	o := f.h.o.outer(f.r.Host)
	if o == nil {
		return
	}
	for _, name := range []string{"Location", "Content-Location"} {
		if v := h[name]; len(v) == 1 {
			v[0] = o.URI(v[0])
		}
	}
	for i, c := range h["Set-Cookie"] {
		h["Set-Cookie"][i] = o.Cookie(c)
	}
}

// error returns what is known of a failure.
func (f *forwarding) error(p *pick, code reason.Code, err error) *Error {
	return f.course.error(f.u, p, code, err, f.r.Method)
}

func (f *forwarding) fail(p *pick, code reason.Code, err error) {
	f.respondError(f.error(p, code, err))
}

// respondError logs a failure, and responds with it.
func (f *forwarding) respondError(e *Error) {
	f.log(e)
	f.result = e
	if e.Status == reason.StatusClientGone {
		// Not a clean end, which an HTTP/2 client would take for an empty 200.
		panic(http.ErrAbortHandler)
	}
	if f.h.o.ErrorHandler != nil {
		f.h.o.ErrorHandler(f.w, f.r, e)
		return
	}
	refusal.Plain(f.w, f.r, f.h.o.response(e))
}

// response returns the response that says that a request was not answered.
func (o *Options) response(e *Error) *direct.Response {
	h := http.Header{"Content-Type": {"text/plain; charset=utf-8"}, "X-Content-Type-Options": {"nosniff"},
		"Cache-Control": {"no-store"}}
	kind := e.kind
	if kind == "" && e.Status/100 == 4 {
		kind = "http_request_error" // RFC 9209 section 2.3.15
	}
	if kind != "" {
		h["Proxy-Status"] = []string{o.status + "; error=" + kind}
	}
	if e.unavailable {
		h["Retry-After"] = []string{"1"}
	}
	return direct.NewResponse(e.Status, h, []byte(http.StatusText(e.Status)+"\n"))
}

// refuse responds to a request that cannot be forwarded. Nothing failed, so it is not logged
// but for loops: those are mistakes of a configuration.
func (f *forwarding) refuse(e *http1.Error) {
	if e.Status == reason.Loop.Status() {
		f.fail(nil, reason.Loop, nil)
		return
	}
	f.result = f.error(nil, reason.None, e)
	f.result.Reason, f.result.Status = e.Reason, e.Status
	if f.h.o.ErrorHandler != nil {
		f.h.o.ErrorHandler(f.w, f.r, f.result)
		return
	}
	refusal.Plain(f.w, f.r, f.h.o.response(f.result))
}

// log writes the line of a failure.
func (f *forwarding) log(e *Error) {
	f.result = e
	f.h.o.log(context.WithoutCancel(f.r.Context()), e)
}

func (o *Options) log(ctx context.Context, e *Error) {
	level := slog.LevelWarn
	if e.Status == reason.StatusClientGone {
		level = slog.LevelDebug
	}
	o.write(ctx, level, e, "")
}

// logRetry writes the line of a failure after which the request is tried again.
func (f *forwarding) logRetry(p *pick, a *attempt) {
	e := f.error(p, a.Reason, a.err)
	e.tried(&a.Attempt, a.idle)
	f.h.o.logRetry(context.WithoutCancel(f.r.Context()), e, a.Blames())
}

func (o *Options) logRetry(ctx context.Context, e *Error, blames bool) {
	level := slog.LevelInfo
	if !blames {
		level = slog.LevelDebug // a connection that was idle for too long, which is usual
	}
	o.write(ctx, level, e, ", tried again")
}

func (o *Options) write(ctx context.Context, level slog.Level, e *Error, more string) {
	l := o.Logger
	if !l.Enabled(ctx, level) {
		return
	}
	l.LogAttrs(ctx, level, "proxy: "+e.Error()+more,
		slog.String("upstream", e.Upstream), slog.String("server", e.Server),
		slog.String("reason", e.Reason), slog.Int("status", e.Status), slog.Bool("sent", e.Sent),
		slog.Bool("reused", e.Reused), slog.Int("retried", e.Retried), slog.String("not_retried", e.NotRetried),
		slog.String("method", e.Method))
}
