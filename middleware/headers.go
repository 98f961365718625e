package middleware

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/middleware/internal/wrap"
)

// HeadersOptions are the options of Headers.
type HeadersOptions struct {
	// Set are the fields that every response gets, by name, instead of those that the
	// handler sets under the name. Vary and Set-Cookie are added to the handler's: without
	// its Vary, a cache could give a client what was made for another. "" removes the
	// field.
	Set map[string]string
}

// Headers sets header fields of every response, also of errors and redirects, and of the
// refusals of middleware inside of it. The handler cannot override them; SecurityHeaders
// sets fields that it can. A 304 gets no Content-Type.
//
// It is an error if a name is no field name or one of those that the server sets, if a
// value has control characters, and if Content-Type would be removed.
func Headers(o *HeadersOptions) (func(http.Handler) http.Handler, error) {
	h := &headers{key: "headers " + strconv.FormatUint(headersMade.Add(1), 10)}
	for name, value := range options(o).Set {
		if err := wire.CheckField(name, value); err != nil {
			return nil, fmt.Errorf("middleware: Headers: Set: the field %q %w", name, err)
		}
		h.fields = append(h.fields, wire.Field{Name: http.CanonicalHeaderKey(name), Value: value})
	}
	slices.SortFunc(h.fields, func(a, b wire.Field) int { return cmp.Compare(a.Name, b.Name) })
	return h.wrap, nil
}

// headersMade numbers the keys of Derive.
var headersMade atomic.Uint64

// headers is immutable.
type headers struct {
	fields []wire.Field // with canonical names
	key    string
}

func (h *headers) wrap(next http.Handler) http.Handler {
	if len(h.fields) == 0 {
		return next
	}
	return wrap.Handler(next,
		func(w http.ResponseWriter, r *http.Request) {
			s := &setting{headers: h}
			returned := false
			defer func() { s.Writer.End(returned) }()
			next.ServeHTTP(s.Init(w, s), r)
			returned = true
		},
		func(x *direct.Exchange, next direct.Handler) bool {
			if !next.ServeDirect(x) {
				return false
			}
			h.direct(x.Wire())
			return true
		})
}

// direct sets the fields of a response that is not sent yet.
func (h *headers) direct(x *wire.Exchange) {
	ready := x.Ready()
	if ready != nil {
		x.SendInstead(ready.Derive(h.key, func(r *wire.Response) *wire.Response {
			return r.With(func(head http.Header) { h.apply(head, r.Status()) })
		}))
	}
	for _, f := range h.fields {
		switch {
		case ready == nil && f.Value != "" && listed(f.Name):
			x.AddHeader(f.Name, f.Value)
		case ready == nil && f.Value != "":
			x.SetHeader(f.Name, f.Value)
		case f.Value == "":
			x.DelHeader(f.Name) // of outer middleware too
		}
	}
}

// apply sets the fields in the header of a response on the ordinary path, or of one that
// was prepared.
func (h *headers) apply(head http.Header, status int) {
	for _, f := range h.fields {
		switch {
		case f.Value == "":
			delete(head, f.Name)
		case status == http.StatusNotModified && f.Name == "Content-Type":
		case listed(f.Name):
			head[f.Name] = append(slices.Clip(head[f.Name]), f.Value)
		default:
			head[f.Name] = []string{f.Value}
		}
	}
}

// listed reports whether a field is added to those of its name.
func listed(name string) bool { return name == "Vary" || name == "Set-Cookie" }

// setting is a response on the ordinary path.
type setting struct {
	wrap.Writer
	*headers
	began bool
}

// WriteHeader implements wrap.Hook.
func (s *setting) WriteHeader(status int) {
	s.began = true
	s.apply(s.Header(), status)
	s.Next().WriteHeader(status)
}

// Write implements wrap.Hook.
func (s *setting) Write(p []byte) (int, error) { return s.Next().Write(p) }

// Flush implements wrap.Hook.
func (s *setting) Flush() error { return nil }

// ReadFrom implements wrap.Hook.
func (s *setting) ReadFrom(int64) bool { return true }

// End implements wrap.Hook. A handler that has written nothing responds with 200.
func (s *setting) End(returned bool) {
	if returned && !s.began && !s.Hijacked() {
		s.apply(s.Header(), http.StatusOK)
	}
}
