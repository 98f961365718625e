package direct

import (
	"errors"
	"io"
	"iter"
	"net/http"
	"os"
	"strings"
	"sync"
)

var exchanges = sync.Pool{New: func() any { return new(Exchange) }}

// ServeHTTP answers a request of any net/http server with a function made for
// the direct way. A request whose body is longer than MaxBody is answered 413
// without it.
func ServeHTTP(w http.ResponseWriter, r *http.Request, serve func(x *Exchange)) {
	if body, ok := readBody(w, r); ok {
		respond(w, r, body, serve)
	}
}

// Respond is ServeHTTP for functions that look at no body: it is left unread.
func Respond(w http.ResponseWriter, r *http.Request, serve func(x *Exchange)) {
	respond(w, r, nil, serve)
}

func respond(w http.ResponseWriter, r *http.Request, body []byte, serve func(x *Exchange)) {
	x := exchanges.Get().(*Exchange)
	x.Reset(Request{
		Method: r.Method, Target: bytesOf(r.RequestURI), Path: bytesOf(r.URL.Path), RawQuery: bytesOf(r.URL.RawQuery),
		Host: bytesOf(r.Host), Body: body, RemoteAddr: r.RemoteAddr, Fields: headerFields(r.Header),
	})
	x.Pattern, x.plain = r.Pattern, r
	x.takeOver(w.Header(), r.Context())
	returned := false
	defer func() {
		if !returned {
			x.Drop()
		}
	}()
	serve(x)
	returned = true
	x.write(w)
	// Not deferred: an exchange whose handler panicked may still be in use.
	x.Reset(Request{})
	exchanges.Put(x)
}

// write sends the answer.
func (x *Exchange) write(w http.ResponseWriter) {
	a := x.Finish()
	if done := a.File.Done; done != nil {
		defer done()
	}
	d := Delivery{Status: a.Status}
	if watcher := a.Watcher; watcher != nil {
		watcher.Keep() // x is used for others before the answer is sent
		if !Watch(w, kept(watcher)) {
			defer func() { watcher.Sent(d) }()
		}
	}
	h := w.Header()
	x.giveBack(h)
	for _, f := range a.Fields {
		if f.Name == "Content-Length" {
			f.Value = strings.Clone(f.Value) // it is x's, and the header may be kept
		}
		h[f.Name] = append(h[f.Name], f.Value)
	}
	w.WriteHeader(a.Status)
	if len(a.Body) > 0 {
		w.Write(a.Body)
	}
	if a.File.File != nil && SendFile(w, a.File) != nil {
		// The rest of what was announced will not come.
		panic(http.ErrAbortHandler)
	}
	d.Body, d.Complete = a.Length(), true
}

// SendFile sends f as a part of the body, by w's own way if it is a
// FileSender. It does not call f.Done. A file that ends before f does is
// io.ErrUnexpectedEOF; after any error the handler should panic with
// http.ErrAbortHandler, so that the client can tell.
func SendFile(w http.ResponseWriter, f File) error {
	if s, ok := w.(FileSender); ok {
		return s.SendFile(f)
	}
	return f.CopyTo(w)
}

// CopyTo writes f to w through user space. It does not call Done.
func (f File) CopyTo(w io.Writer) error {
	var r io.Reader = io.NewSectionReader(f.File, f.Offset, f.Len)
	if f.Check != nil {
		r = &checked{r: r, check: f.Check}
	}
	n, err := io.Copy(writerOnly{w}, r)
	if err == nil && n < f.Len {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// writerOnly hides ReadFrom, which would look for an *os.File in vain.
type writerOnly struct{ io.Writer }

// checked checks before it goes on.
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

// readBody reads a body of at most MaxBody bytes whole. If it reports false,
// the request is answered, or its client is to be.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return nil, true
	}
	var body []byte
	if r.ContentLength <= MaxBody {
		var err error
		body, err = io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
		if err != nil {
			// The client is gone, is late, talks nonsense, or talks too much for a
			// limit that middleware has set.
			status := http.StatusBadRequest
			var limit *http.MaxBytesError
			switch {
			case errors.Is(err, os.ErrDeadlineExceeded):
				status = http.StatusRequestTimeout
			case errors.As(err, &limit):
				status = http.StatusRequestEntityTooLarge
			}
			w.Header().Set("Connection", "close")
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

// FieldsOf are the fields of an http.Request, as Fields. It does not allocate.
func FieldsOf(h http.Header) Fields { return headerFields(h) }

// headerFields are the fields of an http.Request.
type headerFields http.Header

// Get implements Fields.
func (h headerFields) Get(name string) []byte {
	return firstOf(h.values(name))
}

func (h headerFields) values(name string) []string {
	if v, ok := h[name]; ok { // as it is written mostly
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
	return bytesOf(values[0])
}

// All implements Fields.
func (h headerFields) All() iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		for name, values := range h {
			for _, v := range values {
				if !yield(bytesOf(name), bytesOf(v)) {
					return
				}
			}
		}
	}
}

// Health answers GET and HEAD with 200 while check, which may be nil, returns
// nil, and with 503 otherwise. What is wrong is not told: anyone may ask. check
// must not wait; it may be called by any number of goroutines at the same time.
func Health(check func() error) Handler {
	plain := http.Header{"Content-Type": {"text/plain; charset=utf-8"}, "Cache-Control": {"no-store"}}
	well := NewResponse(http.StatusOK, plain, []byte("ok\n"))
	ill := NewResponse(http.StatusServiceUnavailable, plain, []byte("unavailable\n"))
	plain.Set("Allow", "GET, HEAD")
	other := NewResponse(http.StatusMethodNotAllowed, plain, []byte(strings.ToLower(http.StatusText(http.StatusMethodNotAllowed))+"\n"))
	return HandlerFunc(func(x *Exchange) {
		switch {
		case x.Method != http.MethodGet && x.Method != http.MethodHead:
			x.Send(other)
		case check != nil && check() != nil:
			x.Send(ill)
		default:
			x.Send(well)
		}
	})
}
