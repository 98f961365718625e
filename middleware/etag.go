package middleware

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/refusal"
	"github.com/chert-http/chert/internal/rfc/cond"
	"github.com/chert-http/chert/middleware/internal/wrap"
)

// ETagOptions are the options of ETag.
type ETagOptions struct {
	// MaxSize is the largest response that is looked at, in bytes, all of which is
	// held until the handler returns. Default 64 KiB; negative: no limit.
	MaxSize int
}

// ETag gives small responses to GET an entity tag made from their content, and
// evaluates conditional requests for it: clients that have the content get 304
// (RFC 9110 section 13). That saves sending, not making: the handler runs. A
// 412 has those of the handler's fields that do not describe its response,
// including Set-Cookie.
//
// Only responses with status 200, without an ETag or a Content-Range and
// without "Cache-Control: no-store", get a tag. Responses that are flushed or
// are larger are not changed. HEAD gets one if the handler writes the body to the
// http.ResponseWriter, which a direct.Handler does not do on either path.
// A handler that evaluates If-Match itself, as http.ServeContent does, knows no
// tag of ETag's and refuses it.
// ETag belongs inside of Compress.
func ETag(o *ETagOptions) func(http.Handler) http.Handler {
	limit := cmp.Or(options(o).MaxSize, 64<<10)
	if limit < 0 {
		limit = math.MaxInt
	}
	return func(next http.Handler) http.Handler {
		return wrap.Handler(next,
			func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodGet && r.Method != http.MethodHead {
					next.ServeHTTP(w, r)
					return
				}
				a := &tagging{limit: limit, r: r}
				a.Serve(next, w, r, a)
			},
			func(x *direct.Exchange, next direct.Handler) bool {
				tags := x.Method() == http.MethodGet // on the ordinary path there is no body for HEAD
				if tags {
					x.Wire().KeepHere() // it needs the body
				}
				if !next.ServeDirect(x) {
					return false
				}
				if tags {
					tagDirect(x.Wire(), limit)
				}
				return true
			})
	}
}

// tagOf returns the entity tag of a body: strong, since it covers all bytes.
func tagOf(body []byte) string {
	sum := sha256.Sum256(body)
	b := make([]byte, 0, 24)
	b = append(b, '"')
	b = base64.RawURLEncoding.AppendEncode(b, sum[:16])
	return string(append(b, '"'))
}

// taggable reports whether a response may get a tag.
func taggable(status int, h header) bool {
	return status == http.StatusOK && h.Get("Etag") == "" && h.Get("Content-Range") == "" && !directs(h, "no-store")
}

// modified returns the response's Last-Modified.
func modified(h header) time.Time {
	if v := h.Get("Last-Modified"); v != "" {
		if t, err := http.ParseTime(v); err == nil {
			return t
		}
	}
	return time.Time{}
}

var preconditionFailed = wrap.Refusal(http.StatusPreconditionFailed)

// tagging is a response on the ordinary path, buffered until it is complete.
type tagging struct {
	wrap.Writer
	limit  int
	r      *http.Request
	status int
	held   []byte
	passed bool // too late for a tag
}

// WriteHeader implements wrap.Hook.
func (a *tagging) WriteHeader(status int) {
	a.status = status
	h := plainHeader(a.Header())
	length, err := strconv.ParseInt(h.Get("Content-Length"), 10, 64)
	if !taggable(status, h) || err == nil && length > int64(a.limit) {
		a.pass()
	}
}

func (a *tagging) pass() error {
	if a.passed {
		return nil
	}
	a.passed = true
	a.Recall()
	a.PassHead(a.status)
	held := a.held
	a.held = nil
	if len(held) == 0 {
		return nil
	}
	_, err := a.Next().Write(held)
	return err
}

// Write implements wrap.Hook.
func (a *tagging) Write(p []byte) (int, error) {
	if !a.passed {
		if len(a.held)+len(p) <= a.limit {
			a.held = append(a.held, p...)
			return len(p), nil
		}
		if err := a.pass(); err != nil {
			return 0, err
		}
	}
	return a.Next().Write(p)
}

// Flush implements wrap.Hook.
func (a *tagging) Flush() error { return a.pass() }

// ReadFrom implements wrap.Hook.
func (a *tagging) ReadFrom(n int64) bool {
	if n > int64(a.limit) && a.pass() != nil {
		return false
	}
	return a.passed
}

// End implements wrap.Hook.
func (a *tagging) End(returned bool) {
	if !returned || a.passed || a.Hijacked() || a.status == 0 {
		return
	}
	a.Recall()
	h := plainHeader(a.Header())
	announced := h.Get("Content-Length")
	if len(a.held) == 0 && a.r.Method == http.MethodHead || announced != "" && announced != strconv.Itoa(len(a.held)) {
		a.pass() // the body is not complete, so its tag is not known
		return
	}
	tag := tagOf(a.held)
	h.Set("Etag", tag)
	switch cond.Check(a.r.Method, wire.FieldsOf(a.r.Header), tag, modified(h)) {
	case cond.NotModified:
		h.Del("Content-Type")
		h.Del("Content-Length")
		h.Del("Content-Encoding")
		a.PassHead(http.StatusNotModified)
	case cond.Failed:
		forget(h)
		refusal.Plain(a.Next(), a.r, preconditionFailed)
	default:
		a.pass()
	}
}

// tagDirect is End for the fast path.
func tagDirect(x *wire.Exchange, limit int) {
	h := exchangeHeader{x}
	if !taggable(x.Status(), h) || x.HasFile() || x.Size() > int64(limit) {
		return
	}
	if r := x.Ready(); r != nil {
		x.Send(r.Derive("etag", func(r *wire.Response) *wire.Response {
			h := r.Header()
			h.Set("Etag", tagOf(r.Body()))
			return wire.NewResponse(r.Status(), h, r.Body())
		}))
	} else {
		x.SetHeader("Etag", tagOf(x.ResponseBody()))
	}
	switch cond.Check(x.Method(), x.Fields(), x.GetHeader("Etag"), modified(h)) {
	case cond.NotModified:
		x.DelHeader("Content-Encoding")
		if r := x.Ready(); r != nil {
			x.Send(r.Derive("etag 304", func(r *wire.Response) *wire.Response {
				h := r.Header()
				h.Del("Content-Type")
				h.Del("Content-Encoding")
				return wire.NewResponse(http.StatusNotModified, h, nil)
			}))
			return
		}
		x.SetStatus(http.StatusNotModified)
		x.SetResponseBody(nil)
	case cond.Failed:
		instead(x, refusal.For((*direct.Exchange)(x), preconditionFailed).Wire())
	}
}
