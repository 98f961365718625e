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
	body, ok := readBody(w, r)
	if !ok {
		return
	}
	x := exchanges.Get().(*Exchange)
	x.Reset(Request{
		Method: r.Method, Target: bytesOf(r.RequestURI), Path: bytesOf(r.URL.Path), RawQuery: bytesOf(r.URL.RawQuery),
		Host: bytesOf(r.Host), Body: body, RemoteAddr: r.RemoteAddr, Fields: headerFields(r.Header),
	})
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
	h := w.Header()
	for _, f := range a.Fields {
		h[f.Name] = append(h[f.Name], f.Value)
	}
	w.WriteHeader(a.Status)
	if len(a.Body) > 0 {
		w.Write(a.Body)
	}
	if f := a.File; f.File != nil {
		n, err := io.Copy(w, io.NewSectionReader(f.File, f.Offset, f.Len))
		if err != nil || n < f.Len {
			// The rest of what was announced will not come.
			panic(http.ErrAbortHandler)
		}
	}
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
			// The client is gone, is late or talks nonsense.
			status := http.StatusBadRequest
			if errors.Is(err, os.ErrDeadlineExceeded) {
				status = http.StatusRequestTimeout
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

// headerFields are the fields of an http.Request.
type headerFields http.Header

// Get implements Fields.
func (h headerFields) Get(name string) []byte {
	if v := h[http.CanonicalHeaderKey(name)]; len(v) > 0 {
		if v[0] == "" {
			return []byte{} // which is not nil
		}
		return bytesOf(v[0])
	}
	return nil
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
