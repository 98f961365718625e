package wire

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/chert-http/chert/internal/view"
)

var exchanges = sync.Pool{New: func() any { return new(Exchange) }}

// MaxBody is direct.MaxBody.
const MaxBody = 64 << 10

// ServeHTTP does what direct.ServeHTTP does.
func ServeHTTP(w http.ResponseWriter, r *http.Request, serve func(x *Exchange)) {
	if body, ok := readBody(w, r); ok {
		respond(w, r, body, serve)
	}
}

// Respond does what direct.Respond does.
func Respond(w http.ResponseWriter, r *http.Request, serve func(x *Exchange)) {
	respond(w, r, nil, serve)
}

// View makes x, which must be new or Reset, a view of a request on the ordinary path,
// without its body. It lets middleware decide for both paths with the same code;
// what x sets as a response is not sent to w. Values that x.SetValue sets are in
// the context of the request that Plain returns.
func (x *Exchange) View(w http.ResponseWriter, r *http.Request) {
	q := &x.req
	q.Method, q.Target, q.Host = r.Method, view.Bytes(r.RequestURI), view.Bytes(r.Host)
	q.RemoteAddr, q.TLS, q.Fields = r.RemoteAddr, r.TLS != nil, headerFields(r.Header)
	q.Early = q.TLS && !r.TLS.HandshakeComplete
	if u := r.URL; u != nil {
		q.Path, q.RawQuery = view.Bytes(u.Path), view.Bytes(u.RawQuery)
	}
	x.pattern, x.plain, x.w = r.Pattern, r, w
}

// Plain returns the writer and the request that View or SetPlain was given; nil
// and nil on the fast path.
func (x *Exchange) Plain() (http.ResponseWriter, *http.Request) {
	if values := x.outer.values; x.w != nil && len(values) > 0 {
		ctx := x.plain.Context()
		for _, v := range values {
			ctx = context.WithValue(ctx, v.key, v.value)
		}
		x.plain = x.plain.WithContext(ctx)
		empty(&x.outer.values)
	}
	return x.Viewed()
}

// SetPlain replaces the results of Plain.
func (x *Exchange) SetPlain(w http.ResponseWriter, r *http.Request) { x.View(w, r) }

// Viewed returns what Plain does, but the request may lack values.
func (x *Exchange) Viewed() (http.ResponseWriter, *http.Request) {
	if x.w == nil {
		return nil, nil
	}
	return x.w, x.plain
}

func respond(w http.ResponseWriter, r *http.Request, body []byte, serve func(x *Exchange)) {
	x := exchanges.Get().(*Exchange)
	x.View(nil, r)
	x.req.Body = body
	x.takeOver(w.Header())
	returned := false
	defer func() {
		if !returned {
			x.Drop()
		}
	}()
	serve(x)
	a := x.Finish()
	returned = true
	x.write(w, a)
	// Not deferred: an exchange whose handler panicked may still be in use.
	x.Reset(Request{})
	exchanges.Put(x)
}

// write sends the response.
func (x *Exchange) write(w http.ResponseWriter, a Answer) {
	if done := a.File.Done; done != nil {
		defer done()
	}
	if d := a.WriteLimit(0); d > 0 {
		http.NewResponseController(w).SetWriteDeadline(time.Now().Add(d))
	}
	d := Delivery{Status: a.Status}
	if watcher := a.Watcher; watcher != nil {
		keep(watcher) // x is reused before the response is sent
		if !Watch(w, kept(watcher)) {
			defer func() { watcher.Sent(d) }()
		}
	}
	h := w.Header()
	x.giveBack(h)
	for _, f := range a.Fields {
		if f.Name == "Content-Length" {
			delete(h, f.Name)                // there may be one of another response, which was not sent
			f.Value = strings.Clone(f.Value) // it is a view of x, and the header may be retained
		}
		h[f.Name] = append(h[f.Name], f.Value)
	}
	w.WriteHeader(a.Status)
	if len(a.Body) > 0 {
		w.Write(a.Body)
	}
	if a.File.File != nil && SendFile(w, a.File) != nil {
		// The rest of what the head announced will not come.
		panic(http.ErrAbortHandler)
	}
	d.Body, d.Complete = a.Length(), true
}

// SendFile sends f as a part of the body, with w's own method if w is a
// FileSender. It does not call f.Done. The error for a file that ends before f
// does is io.ErrUnexpectedEOF. After any error the handler should panic with
// http.ErrAbortHandler, so that the client notices.
func SendFile(w http.ResponseWriter, f File) error {
	if s, ok := w.(FileSender); ok {
		return s.SendFile(f)
	}
	return f.CopyTo(w)
}

// CopyTo writes f to w through user space. It does not call f.Done.
func (f File) CopyTo(w io.Writer) error {
	var r io.Reader = io.NewSectionReader(f.File, f.Offset, f.Len)
	if f.Check != nil {
		r = &checked{r: r, check: f.Check}
	}
	// Not io.Copy, which reads on after the last byte, to find the end: a change since is none of
	// what was sent.
	_, err := io.CopyN(writerOnly{w}, r, f.Len)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// writerOnly hides ReadFrom, which would look for an *os.File in vain.
type writerOnly struct{ io.Writer }

// checked is a reader that calls check before it continues.
type checked struct {
	r     io.Reader
	check func() error
	begun bool
}

func (c *checked) Read(p []byte) (int, error) {
	if c.begun {
		if err := c.check(); err != nil {
			return 0, err
		}
	}
	c.begun = true
	return c.r.Read(p)
}

// readBody reads a body of at most MaxBody bytes. If it reports false, the
// response has been sent, or the connection is to be aborted.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return nil, true
	}
	var body []byte
	if r.ContentLength <= MaxBody {
		var err error
		body, err = io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
		if err != nil {
			// The client is gone, too slow, sends malformed chunks, or exceeds
			// a limit that middleware has set.
			status := http.StatusBadRequest
			var limit *http.MaxBytesError
			switch {
			case errors.Is(err, os.ErrDeadlineExceeded):
				status = http.StatusRequestTimeout
			case errors.As(err, &limit):
				status = http.StatusRequestEntityTooLarge
			}
			if r.ProtoMajor < 2 {
				w.Header().Set("Connection", "close")
			}
			http.Error(w, http.StatusText(status), status)
			return nil, false
		}
	}
	if r.ContentLength > MaxBody || len(body) > MaxBody {
		http.Error(w, http.StatusText(http.StatusRequestEntityTooLarge), http.StatusRequestEntityTooLarge)
		return nil, false
	}
	return body, true
}

// FieldsOf returns the fields of an http.Request as Fields. It does not
// allocate.
func FieldsOf(h http.Header) Fields { return headerFields(h) }

// headerFields are the fields of an http.Request.
type headerFields http.Header

// Get implements Fields.
func (h headerFields) Get(name string) []byte {
	return firstOf(h.values(name))
}

func (h headerFields) values(name string) []string {
	if v, ok := h[name]; ok { // the usual spelling
		return v
	}
	return h[http.CanonicalHeaderKey(name)]
}

func firstOf(values []string) []byte {
	switch {
	case len(values) == 0:
		return nil
	case values[0] == "":
		return []byte{} // which is not nil
	}
	return view.Bytes(values[0])
}

// First implements Fields.
func (h headerFields) First(name string) ([]byte, int) {
	v := h.values(name)
	return firstOf(v), len(v)
}

// All implements Fields.
func (h headerFields) All() iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		for name, values := range h {
			for _, v := range values {
				if !yield(view.Bytes(name), view.Bytes(v)) {
					return
				}
			}
		}
	}
}

// PassBack sets in r what inner handlers have set in inner, a copy of it that they were given: the
// pattern and the address, which an access log outside shows, and the form, whose files the server
// removes. Call it also after a panic.
func PassBack(r, inner *http.Request) {
	r.Pattern, r.RemoteAddr = inner.Pattern, inner.RemoteAddr
	if r.MultipartForm == nil {
		r.MultipartForm = inner.MultipartForm
	}
}
