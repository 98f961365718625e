package forwardauth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/filter"
	"github.com/chert-http/chert/internal/rfc/field"
	"github.com/chert-http/chert/middleware/internal/wrap"
)

// Forward asks a server about requests. Its methods are safe for concurrent use.
type Forward struct {
	o         Options
	transport *http.Transport
	logged    atomic.Int64 // when it last logged, in nanoseconds since the epoch

	hopByHop, failed, late *direct.Response
}

// New makes a Forward. It is an error if an option cannot be used. The server need not
// run yet.
func New(opt *Options) (*Forward, error) {
	var o Options
	if opt != nil {
		o = *opt
	}
	if err := o.complete(); err != nil {
		return nil, fmt.Errorf("forwardauth: %w", err)
	}
	return &Forward{
		o: o, transport: o.transport(),
		hopByHop: wrap.Refusal(http.StatusBadRequest),
		failed:   wrap.Refusal(http.StatusBadGateway),
		late:     wrap.Refusal(http.StatusGatewayTimeout),
	}, nil
}

// Close closes the connections to the server that are idle. Requests that come later are
// still asked about.
func (f *Forward) Close() error {
	f.transport.CloseIdleConnections()
	return nil
}

// Wrap passes requests that the server admits to next. The server gets a GET without a
// body, with the fields of the request, cookies and credentials included, and with
// X-Forwarded-Method, -Proto, -Host, -Uri and -For in place of all that the client has
// sent under such names. X-Forwarded-Uri is what the client asks for, so also in a Mount of
// a Router, http.StripPrefix or middleware.Rewrite, which change the path for next.
//
// An answer with a status of 2xx that HTTP defines admits. 401, 403, 301, 302, 303, 307, 308
// are the response to the client, with the body, and with all fields but those of the
// connection; X-Request-Id and Strict-Transport-Security that are set already stay.
// middleware.ErrorPages around it has pages for answers without a body only. Any other
// answer, and none, are 502, or 504 after Options.Timeout: nothing is admitted that the
// server has not admitted. A client that leaves ends its subrequest. A request whose
// Connection names one of Options.Headers, so that a proxy further in would remove it, is
// answered 400.
//
// Nothing is remembered: every request is asked about. All take the ordinary path, where
// handlers may block.
func (f *Forward) Wrap(next http.Handler) http.Handler { return filter.New(f.admit)(next) }

func (f *Forward) admit(c *filter.Call) filter.Outcome {
	if c.Direct() {
		return filter.OnPlain
	}
	w, r := c.Plain()
	if f.removes(r.Header["Connection"]) {
		return c.Refuse(f.hopByHop)
	}
	a, err := f.ask(r)
	if err != nil {
		f.log(r.Context(), err)
		if errors.Is(err, context.DeadlineExceeded) {
			return c.Refuse(f.late)
		}
		return c.Refuse(f.failed)
	}
	if a.status/100 != 2 {
		a.send(w)
		return filter.Responded
	}
	for _, name := range f.o.ResponseHeaders {
		for _, v := range a.header[name] {
			c.AddHeader(name, v)
		}
	}
	c.SetPlain(w, f.forwarded(r, a.header))
	if v := a.header[f.o.User]; f.o.User != "" && len(v) == 1 && v[0] != "" {
		c.SetUser(&v[0])
	}
	return filter.Pass
}

// removes reports whether a client asks for one of Headers to be removed.
func (f *Forward) removes(connection []string) bool {
	for _, v := range connection {
		for name := range strings.SplitSeq(v, ",") {
			if f.owns(strings.TrimSpace(name)) {
				return true
			}
		}
	}
	return false
}

// owns reports whether a field of a request is one of Headers, or one that programs could take for one.
func (f *Forward) owns(name string) bool {
	return slices.ContainsFunc(f.o.Headers, func(h string) bool { return field.SameVariable(h, name) })
}

// forwarded returns r with the fields of an answer.
func (f *Forward) forwarded(r *http.Request, answer http.Header) *http.Request {
	if len(f.o.Headers) == 0 {
		return r
	}
	inner := *r
	inner.Header = make(http.Header, len(r.Header)+len(f.o.Headers))
	for name, values := range r.Header {
		if !f.owns(name) {
			inner.Header[name] = values
		}
	}
	for _, name := range f.o.Headers {
		if values := answer[name]; len(values) > 0 {
			inner.Header[name] = values
		}
	}
	return &inner
}

// answer is that of the server.
type answer struct {
	status int
	header http.Header
	body   []byte
}

var errBody = errors.New("the body of the answer is longer than MaxBody")

// ask makes the subrequest.
func (f *Forward) ask(r *http.Request) (*answer, error) {
	ctx, cancel := r.Context(), context.CancelFunc(func() {})
	if f.o.Timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, f.o.Timeout)
	}
	defer cancel()
	sub, err := http.NewRequestWithContext(ctx, http.MethodGet, f.o.URL, nil)
	if err != nil {
		return nil, err
	}
	f.describe(sub.Header, r)
	// Not a Client: that would follow redirects.
	res, err := f.transport.RoundTrip(sub)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	a := &answer{status: res.StatusCode, header: res.Header}
	switch res.StatusCode {
	case 200, 201, 202, 203, 204, 205, 206, 207, 208, 226:
		// Read, so that the connection can be used again; closed if it is long. One that is cut
		// off is none (RFC 9112 section 8).
		if _, err := io.CopyN(io.Discard, res.Body, 4<<10); err != nil && err != io.EOF {
			return nil, err
		}
		return a, nil
	case 301, 302, 303, 307, 308, 401, 403:
	default:
		return nil, fmt.Errorf("the answer has the status %d", res.StatusCode)
	}
	if f.o.MaxBody == 0 {
		return a, nil
	}
	a.body, err = io.ReadAll(io.LimitReader(res.Body, f.o.MaxBody+1))
	if err == nil && int64(len(a.body)) > f.o.MaxBody {
		err = errBody
	}
	return a, err
}

// describe makes the fields of the subrequest.
func (f *Forward) describe(h http.Header, r *http.Request) {
	for name, values := range r.Header {
		if !notAsked(name) && !f.owns(name) {
			h[name] = values
		}
	}
	for _, v := range r.Header["Connection"] {
		for name := range strings.SplitSeq(v, ",") {
			// Credentials are always the server's to see.
			if name = http.CanonicalHeaderKey(strings.TrimSpace(name)); name != "Cookie" && name != "Authorization" {
				delete(h, name)
			}
		}
	}
	if h["User-Agent"] == nil {
		h["User-Agent"] = nil // not that of net/http
	}
	scheme := f.o.Scheme
	if scheme == "" {
		if scheme = "http"; r.TLS != nil {
			scheme = "https"
		}
	}
	h["X-Forwarded-Method"] = []string{r.Method}
	h["X-Forwarded-Proto"] = []string{scheme}
	h["X-Forwarded-Host"] = []string{r.Host}
	h["X-Forwarded-Uri"] = []string{target(r)}
	if ip := hostOf(r.RemoteAddr); ip != "" {
		h["X-Forwarded-For"] = []string{ip}
	}
}

// target returns the path and query that the client asks for, whatever a router or Rewrite
// outside has made of them.
func target(r *http.Request) string {
	if u, err := url.ParseRequestURI(r.RequestURI); err == nil && strings.HasPrefix(u.Path, "/") {
		return u.RequestURI()
	}
	return r.URL.RequestURI()
}

// log logs an error, unless it has logged in the last second or the client has left.
func (f *Forward) log(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	now := time.Now().UnixNano()
	last := f.logged.Load()
	if now-last < int64(time.Second) || !f.logged.CompareAndSwap(last, now) {
		return
	}
	f.o.Logger.ErrorContext(ctx, "forward_auth: a request was refused, since the server that decides gave no answer",
		"url", f.o.URL, "error", err)
}
