package middleware

import (
	"bytes"
	"errors"
	"fmt"
	htmltemplate "html/template"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	texttemplate "text/template"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/listing"
	"github.com/chert-http/chert/middleware/internal/wrap"
)

// ErrorPagesOptions are the options of ErrorPages.
type ErrorPagesOptions struct {
	// Pages are the bodies of errors by status. A key is a status from 400 to 599, 4 or 5
	// for all others of that class, or 0 for all others. A nil page leaves the body as it
	// is, also if another ErrorPages outside has a page.
	Pages map[int]*ErrorPage
}

// An ErrorPage is the body of error responses.
type ErrorPage struct {
	// Type is the media type. Default "text/html; charset=utf-8".
	Type string
	// Body is the page. It must not be changed afterwards.
	Body []byte
	// Template makes Body a template: of html/template, which escapes what it inserts, if
	// Type is text/html or application/xhtml+xml, otherwise of text/template. It has
	// {{.Status}}, {{.Text}}, as http.StatusText returns it, and {{.RequestID}}, which is
	// what the response has in X-Request-Id, or RequestIDOf returns; "" if there is none.
	Template bool
}

// MaxErrorPage is the largest body of an ErrorPage, in bytes, and the largest that a
// template may make.
const MaxErrorPage = 1 << 20

// ErrorPages replaces the bodies of error responses by pages: those with a status from 400
// to 599, of the handler and of middleware inside. The most specific page is used. The
// status and the fields stay, such as Allow, Retry-After and WWW-Authenticate, except for
// those about the body that is replaced, such as Content-Type, Content-Encoding and ETag.
// Conditional and range requests do not apply to a page. A 5xx without Cache-Control gets
// "no-store", and so does every page with the id of a request.
//
// A handler whose errors have a body that clients need, such as an API, belongs inside of
// OwnErrors, or outside of ErrorPages. Of two ErrorPages the inner has precedence.
//
// Nothing is buffered: responses below 400 are passed on as they are, and what a handler
// writes after the head of a response that is replaced is discarded. Pages without the id
// of a request keep the fast path free of allocations if the handler sends a
// direct.Response.
//
// It is an error if a key is no such status, if a page is too large, has no valid type, or
// is a template that cannot be executed.
func ErrorPages(o *ErrorPagesOptions) (func(http.Handler) http.Handler, error) {
	e := &errorPages{key: "error page " + strconv.FormatUint(errorPagesMade.Add(1), 10)}
	for key, page := range options(o).Pages {
		p, err := newErrorPage(page)
		if err != nil {
			return nil, fmt.Errorf("middleware: ErrorPages: Pages[%d]: %w", key, err)
		}
		if !e.add(key, p) {
			return nil, fmt.Errorf("middleware: ErrorPages: Pages[%d]: the key is neither a status from 400 to 599, "+
				"a class, 4 or 5, nor 0", key)
		}
	}
	// The specific ones last, whatever the order of the map.
	for status := minError; status <= maxError; status++ {
		for _, p := range []*errorPage{e.exact[status-minError], e.class[status/100-4], e.all} {
			if p != nil {
				e.pages[status-minError].errorPage = p
				break
			}
		}
		if p := e.pages[status-minError].errorPage; p != nil && p.execute != nil {
			if _, err := e.pages[status-minError].body(status, "id"); err != nil {
				return nil, fmt.Errorf("middleware: ErrorPages: the template for %d: %w", status, err)
			}
		}
	}
	if len(options(o).Pages) == 0 {
		return func(next http.Handler) http.Handler { return next }, nil
	}
	return e.wrap, nil
}

// CheckErrorPage returns an error if ErrorPages would not accept the page.
func CheckErrorPage(p *ErrorPage) error {
	_, err := ErrorPages(&ErrorPagesOptions{Pages: map[int]*ErrorPage{0: p}})
	if err != nil {
		err = errors.Unwrap(err)
	}
	return err
}

// The statuses that are errors.
const (
	minError = 400
	maxError = 599
)

// errorPagesMade numbers the keys of Derive.
var errorPagesMade atomic.Uint64

// errorPages is immutable, except for what statusPage caches.
type errorPages struct {
	key   string
	all   *errorPage
	class [2]*errorPage
	exact [maxError - minError + 1]*errorPage
	pages [maxError - minError + 1]statusPage
}

// add adds a page under a key of ErrorPagesOptions, and reports whether it is one.
func (e *errorPages) add(key int, p *errorPage) bool {
	switch {
	case key == 0:
		e.all = p
	case key == 4 || key == 5:
		e.class[key-4] = p
	case minError <= key && key <= maxError:
		e.exact[key-minError] = p
	default:
		return false
	}
	return true
}

// An errorPage is an ErrorPage that has been checked. Immutable.
type errorPage struct {
	asIs    bool
	typ     string
	fixed   []byte
	execute func(w io.Writer, data any) error // nil if it is no template
}

func newErrorPage(page *ErrorPage) (*errorPage, error) {
	if page == nil {
		return &errorPage{asIs: true}, nil
	}
	p := &errorPage{typ: page.Type, fixed: page.Body}
	if p.typ == "" {
		p.typ = "text/html; charset=utf-8"
	}
	media, _, err := mime.ParseMediaType(p.typ)
	switch {
	case err != nil || !strings.Contains(media, "/") || wire.CheckField("Content-Type", p.typ) != nil:
		return nil, fmt.Errorf("%q is no media type", p.typ)
	case len(page.Body) > MaxErrorPage:
		return nil, errors.New("the page is longer than 1 MiB")
	case !page.Template:
		return p, nil
	case media == "text/html" || media == "application/xhtml+xml":
		t, err := htmltemplate.New("page").Option("missingkey=error").Parse(string(page.Body))
		if err != nil {
			return nil, err
		}
		p.execute = t.Execute
	default:
		t, err := texttemplate.New("page").Option("missingkey=error").Parse(string(page.Body))
		if err != nil {
			return nil, err
		}
		p.execute = t.Execute
	}
	return p, nil
}

// A statusPage is a page for one status.
type statusPage struct {
	*errorPage
	made atomic.Pointer[[]byte] // by a template that has not used the id
}

// errorData is what a template has.
type errorData struct {
	Status int
	Text   string
	id     string
	usesID bool
}

// RequestID is called by templates.
func (d *errorData) RequestID() string {
	d.usesID = true
	return d.id
}

// same reports whether the page is the same for all requests with the status.
func (p *statusPage) same() []byte {
	switch {
	case p.execute == nil:
		return p.fixed
	case p.made.Load() != nil:
		return *p.made.Load()
	}
	return nil
}

// body returns the page for a request with an id. ErrorPages calls it once for every
// status, so templates that do not use the id are executed only then.
func (p *statusPage) body(status int, id string) ([]byte, error) {
	d := &errorData{Status: status, Text: http.StatusText(status), id: id}
	b := &boundedBuffer{}
	if err := p.execute(b, d); err != nil {
		return nil, err
	}
	body := b.Bytes()
	if !d.usesID {
		p.made.Store(&body)
	}
	return body, nil
}

// boundedBuffer rejects pages longer than MaxErrorPage.
type boundedBuffer struct{ bytes.Buffer }

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > MaxErrorPage {
		return 0, errors.New("the page is longer than 1 MiB")
	}
	return b.Buffer.Write(p)
}

// of returns the page for a status, nil if there is none.
func (e *errorPages) of(status int) *statusPage {
	if status < minError || maxError < status || e.pages[status-minError].errorPage == nil {
		return nil
	}
	return &e.pages[status-minError]
}

func (e *errorPages) wrap(next http.Handler) http.Handler {
	return wrap.Handler(next,
		func(w http.ResponseWriter, r *http.Request) {
			s := &paging{errorPages: e, r: r}
			returned := false
			defer func() { s.Writer.End(returned) }()
			next.ServeHTTP(s.Init(w, s), r)
			returned = true
		},
		func(x *direct.Exchange, next direct.Handler) bool {
			if !next.ServeDirect(x) {
				return false
			}
			e.direct(x.Wire())
			return true
		})
}

// ofBody reports whether a field describes the body that is replaced. A 416 without
// Content-Range could not be acted on.
func ofBody(name, value string, status int) bool {
	switch name {
	case "Etag", "Last-Modified", "Accept-Ranges", "Digest", "Repr-Digest", "Trailer", "Transfer-Encoding":
		return true
	case "Content-Range":
		return status != http.StatusRequestedRangeNotSatisfiable
	case "Content-Security-Policy":
		return value == listing.ContentSecurityPolicy // of static's own page
	case "Content-Security-Policy-Report-Only":
		return false
	}
	return strings.HasPrefix(name, "Content-")
}

// describe changes the fields of a response to those of a page. id is whether the page has
// the id of the request.
func (p *statusPage) describe(h http.Header, status int, id bool) {
	for name, values := range h {
		if len(values) > 0 && ofBody(name, values[0], status) {
			delete(h, name)
		}
	}
	h["Content-Type"] = []string{p.typ}
	if id || status >= 500 && len(h["Cache-Control"]) == 0 {
		h["Cache-Control"] = []string{"no-store"}
	}
}

// direct replaces the body of a response that is not sent yet.
func (e *errorPages) direct(x *wire.Exchange) {
	status := x.Status()
	p := e.of(status)
	if p == nil || x.Value(ownErrorsKey{}) != nil {
		return
	}
	x.SetValue(ownErrorsKey{}, true) // for an outer one
	if p.asIs {
		return
	}
	body := p.same()
	id := body == nil
	if id {
		requestID := x.GetHeader(requestIDField)
		if requestID == "" {
			requestID = RequestIDOf(x)
		}
		var err error
		if body, err = p.body(status, requestID); err != nil {
			return // the response stays as it is
		}
	}
	kept := x.HasKept()
	if kept {
		for _, name := range namesOfBody {
			x.DelKept(name)
		}
	}
	ready := x.Ready()
	switch {
	case ready == nil:
		p.rewrite(x, status, id, body)
	case id || x.HasFile() || kept && status >= 500: // whose Cache-Control may be a kept one
		h := ready.Header()
		x.Discard()
		x.SetStatus(status)
		for name, values := range h {
			for i, v := range values {
				switch {
				case !wire.MaySet(name):
				case i == 0 && !listed(name):
					x.SetHeader(name, v)
				default:
					x.AddHeader(name, v)
				}
			}
		}
		p.rewrite(x, status, id, body)
	default:
		x.Send(ready.Derive(e.key, func(r *wire.Response) *wire.Response {
			h := r.Header()
			p.describe(h, status, false)
			return wire.NewResponse(status, h, body)
		}))
	}
}

// namesOfBody are fields that middleware outside might set, and that describe the body.
var namesOfBody = []wire.Name{
	wire.NewName("Content-Type"), wire.NewName("Content-Encoding"), wire.NewName("Content-Language"),
	wire.NewName("Content-Disposition"), wire.NewName("Content-Location"), wire.NewName("Etag"),
	wire.NewName("Last-Modified"), wire.NewName("Accept-Ranges"),
}

// rewrite does what describe does to a response that was written, and sets its body.
func (p *statusPage) rewrite(x *wire.Exchange, status int, id bool, body []byte) {
	var drop []string
	for f := range x.ResponseFields {
		if ofBody(f.Name, f.Value, status) {
			drop = append(drop, f.Name)
		}
	}
	for _, name := range drop {
		x.DelHeader(name)
	}
	x.SetHeader("Content-Type", p.typ)
	if id || status >= 500 && x.GetHeader("Cache-Control") == "" {
		x.SetHeader("Cache-Control", "no-store")
	}
	x.SetResponseBody(body)
}

// paging is a response on the ordinary path.
type paging struct {
	wrap.Writer
	*errorPages
	r        *http.Request
	own      bool // the handler's errors are left as they are
	replaced bool
}

// WriteHeader implements wrap.Hook.
func (s *paging) WriteHeader(status int) {
	p := s.of(status)
	if p == nil || s.own {
		s.Next().WriteHeader(status)
		return
	}
	leaveErrors(s.Next())
	body, id := []byte(nil), false
	if !p.asIs {
		body = p.same()
		if id = body == nil; id {
			body = s.make(p, status)
		}
	}
	if body == nil {
		s.Next().WriteHeader(status)
		return
	}
	s.replaced = true
	h := s.Header()
	p.describe(h, status, id)
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	s.Next().WriteHeader(status)
	if s.r.Method != http.MethodHead {
		s.Next().Write(body)
	}
}

// make executes the page's template; nil if that fails.
func (s *paging) make(p *statusPage, status int) []byte {
	id := plainHeader(s.Header()).Get(requestIDField)
	if id == "" {
		id = RequestIDOf(s.r.Context())
	}
	body, err := p.body(status, id)
	if err != nil {
		return nil
	}
	return body
}

// Write implements wrap.Hook.
func (s *paging) Write(p []byte) (int, error) {
	if s.replaced {
		return len(p), nil
	}
	return s.Next().Write(p)
}

// Flush implements wrap.Hook.
func (s *paging) Flush() error { return nil }

// ReadFrom implements wrap.Hook.
func (s *paging) ReadFrom(int64) bool { return !s.replaced }

// End implements wrap.Hook.
func (s *paging) End(bool) {}
