package middleware

import (
	"errors"
	"fmt"
	"html"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

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
	// Body is the page, of 1 MiB at most. It must not be changed afterwards.
	Body []byte
	// Template replaces {status}, {text}, as http.StatusText returns it, and {request_id} in
	// Body: what the response has in X-Request-Id, or RequestIDOf returns; nothing if that is
	// longer than 128 bytes or has others than letters, digits and "-._~+/=:@". All else stays
	// as it is. What is inserted is escaped if Type is HTML.
	Template bool
}

// maxErrorPage is the largest body of an ErrorPage, in bytes.
const maxErrorPage = 1 << 20

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
// It is an error if a key is no such status, and if a page is too large or has no valid
// type.
func ErrorPages(o *ErrorPagesOptions) (func(http.Handler) http.Handler, error) {
	e, err := newErrorPages(o)
	if err != nil {
		return nil, fmt.Errorf("middleware: ErrorPages: %w", err)
	}
	if len(options(o).Pages) == 0 {
		return func(next http.Handler) http.Handler { return next }, nil
	}
	return e.wrap, nil
}

// RefusalPages returns a function for chert.Server.RefusalPage: pages as those of ErrorPages,
// for what the server answers itself, which has no id. Each is made once.
//
// The errors are those of ErrorPages.
func RefusalPages(o *ErrorPagesOptions) (func(status int) (mediaType string, body []byte), error) {
	e, err := newErrorPages(o)
	if err != nil {
		return nil, fmt.Errorf("middleware: RefusalPages: %w", err)
	}
	return func(status int) (mediaType string, body []byte) {
		p := e.of(status)
		if p == nil || p.asIs {
			return "", nil
		}
		return p.typ, p.once(status)
	}, nil
}

func newErrorPages(o *ErrorPagesOptions) (*errorPages, error) {
	e := &errorPages{key: "error page " + strconv.FormatUint(errorPagesMade.Add(1), 10)}
	e.later = e.direct
	for key, page := range options(o).Pages {
		p, err := newErrorPage(page)
		if err != nil {
			return nil, fmt.Errorf("option Pages[%d]: %w", key, err)
		}
		if !e.add(key, p) {
			return nil, fmt.Errorf("option Pages[%d]: the key is neither a status from 400 to 599, a class, 4 or 5, "+
				"nor 0", key)
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
	}
	return e, nil
}

// The statuses that are errors.
const (
	minError = 400
	maxError = 599
)

// errorPagesMade numbers the keys of Derive.
var errorPagesMade atomic.Uint64

// errorPages is immutable, except for what its statusPages cache.
type errorPages struct {
	later func(x *wire.Exchange) // direct, as a value allocated once
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
	asIs  bool
	typ   string
	html  bool
	parts []string // texts and placeholders; one text if it is no template
	ids   bool     // {request_id} is one of them
}

const (
	statusMark = "{status}"
	textMark   = "{text}"
	idMark     = "{request_id}"
)

func newErrorPage(page *ErrorPage) (*errorPage, error) {
	if page == nil {
		return &errorPage{asIs: true}, nil
	}
	p := &errorPage{typ: page.Type}
	if p.typ == "" {
		p.typ = "text/html; charset=utf-8"
	}
	media, _, err := mime.ParseMediaType(p.typ)
	switch {
	case err != nil || !strings.Contains(media, "/") || wire.CheckField("Content-Type", p.typ) != nil:
		return nil, fmt.Errorf("%q is no media type", p.typ)
	case len(page.Body) > maxErrorPage:
		return nil, errors.New("the page is longer than 1 MiB")
	}
	p.html = media == "text/html" || media == "application/xhtml+xml"
	body := string(page.Body)
	for page.Template {
		at, mark := len(body), ""
		for _, m := range []string{statusMark, textMark, idMark} {
			if i := strings.Index(body[:at], m); i >= 0 {
				at, mark = i, m
			}
		}
		if mark == "" {
			break
		}
		p.parts = append(p.parts, body[:at], mark)
		p.ids = p.ids || mark == idMark
		body = body[at+len(mark):]
	}
	p.parts = append(p.parts, body)
	return p, nil
}

// A statusPage is a page for one status.
type statusPage struct {
	*errorPage
	made atomic.Pointer[[]byte] // what same returns
}

// same returns the page if it is the same for all requests with the status, else nil.
func (p *statusPage) same(status int) []byte {
	if p.ids {
		return nil
	}
	return p.once(status)
}

// once returns the page without the id of a request, and makes it once.
func (p *statusPage) once(status int) []byte {
	made := p.made.Load()
	if made == nil {
		body := p.body(status, "")
		made = &body
		p.made.Store(made)
	}
	return *made
}

// body returns the page for a request with an id; it is not nil.
func (p *statusPage) body(status int, id string) []byte {
	if !safeID(id) {
		id = ""
	}
	text := http.StatusText(status)
	if p.html {
		text, id = html.EscapeString(text), html.EscapeString(id)
	}
	b := []byte{}
	for i, part := range p.parts {
		switch {
		case i%2 == 0:
			b = append(b, part...)
		case part == statusMark:
			b = strconv.AppendInt(b, int64(status), 10)
		case part == textMark:
			b = append(b, text...)
		default:
			b = append(b, id...)
		}
	}
	return b
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
			s.Serve(next, w, r, s)
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

// describe changes the fields of a response to those of the page.
func (p *statusPage) describe(h http.Header, status int) {
	for name, values := range h {
		if len(values) > 0 && ofBody(name, values[0], status) {
			delete(h, name)
		}
	}
	h["Content-Type"] = []string{p.typ}
	if p.ids || status >= 500 && len(h["Cache-Control"]) == 0 {
		h["Cache-Control"] = []string{"no-store"}
	}
}

// direct replaces the body of a response that is not sent yet.
func (e *errorPages) direct(x *wire.Exchange) {
	if x.Plan() != nil {
		x.Later(e.later)
		return
	}
	if x.Elsewhere() {
		return // another server's response has a body of its own
	}
	status := x.Status()
	p := e.of(status)
	if p == nil || x.Value(ownErrorsKey{}) != nil {
		return
	}
	x.SetValue(ownErrorsKey{}, true) // for an outer one
	if p.asIs {
		return
	}
	body := p.same(status)
	if p.ids {
		requestID := x.GetHeader(requestIDField)
		if requestID == "" {
			requestID = RequestIDOf(x)
		}
		body = p.body(status, requestID)
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
		p.rewrite(x, status, body)
	case p.ids || x.HasFile() || kept && status >= 500: // whose Cache-Control may be a kept one
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
		p.rewrite(x, status, body)
	default:
		x.Send(ready.Derive(e.key, func(r *wire.Response) *wire.Response {
			h := r.Header()
			p.describe(h, status)
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
func (p *statusPage) rewrite(x *wire.Exchange, status int, body []byte) {
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
	if p.ids || status >= 500 && x.GetHeader("Cache-Control") == "" {
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

// LeaveErrors is called by wrap.LeaveErrors.
func (s *paging) LeaveErrors() { s.own = true }

// WriteHeader implements wrap.Hook.
func (s *paging) WriteHeader(status int) {
	p := s.of(status)
	if p == nil || s.own {
		s.PassHead(status)
		return
	}
	wrap.LeaveErrors(s.Next())
	if p.asIs {
		s.PassHead(status)
		return
	}
	body := p.same(status)
	if p.ids {
		id := plainHeader(s.Header()).Get(requestIDField)
		if id == "" {
			id = RequestIDOf(s.r.Context())
		}
		body = p.body(status, id)
	}
	s.replaced = true
	h := s.Header()
	p.describe(h, status)
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	s.PassHead(status)
	if s.r.Method != http.MethodHead {
		s.Next().Write(body)
	}
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
