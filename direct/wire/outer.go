package wire

import (
	"cmp"
	"net/http"
	"slices"
	"sync"
)

// This file is for middleware: fields and values that belong to an exchange
// whatever its handler responds, and a response that can be changed when the
// handler has returned.

// outer is what middleware has added to an exchange.
type outer struct {
	kept   []Field
	values []value
}

type value struct{ key, value any }

// Keep adds a field to any response, also to a Response given to Send, like a
// field set in http.ResponseWriter's Header before the handler runs. A field of
// that name that the handler sets, or that the Response has, replaces it; Vary and
// Set-Cookie of a Response are added. For middleware.
func (x *Exchange) Keep(name Name, value string) {
	x.outer.kept = append(x.outer.kept, Field{name.canonical, value})
}

// HasKept reports whether Keep has added fields.
func (x *Exchange) HasKept() bool { return len(x.outer.kept) > 0 }

// TakeKept removes and returns the fields that Keep has added. For servers.
func (x *Exchange) TakeKept() []Field {
	k := x.outer.kept
	x.outer.kept = nil
	return k
}

// A Name is a field name that may be set, in canonical form.
type Name struct{ canonical string }

// NewName makes a Name. It panics where SetHeader does.
func NewName(name string) Name { return Name{fieldName(name)} }

// String returns the name.
func (n Name) String() string { return n.canonical }

// DelKept removes the fields that Keep has added under a name.
func (x *Exchange) DelKept(name Name) {
	if len(x.outer.kept) > 0 {
		x.outer.kept = slices.DeleteFunc(x.outer.kept, func(f Field) bool { return f.Name == name.canonical })
	}
}

// SetValue makes Value return value for key, which must be comparable and
// should be of a type of its own, as with context.WithValue.
func (x *Exchange) SetValue(key, val any) {
	x.outer.values = append(x.outer.values, value{key, val})
}

// Value returns what was last set for key. On servers without the fast path it
// falls back to the request's context. It is nil if there is none.
func (x *Exchange) Value(key any) any {
	for i := len(x.outer.values) - 1; i >= 0; i-- {
		if x.outer.values[i].key == key {
			return x.outer.values[i].value
		}
	}
	if x.plain != nil {
		return x.plain.Context().Value(key)
	}
	return nil
}

// DelHeader removes a field from the response. It is no error if there is none.
// It does not change a Response given to Send; see Ready.
func (x *Exchange) DelHeader(name string) { x.remove(http.CanonicalHeaderKey(name)) }

func (x *Exchange) remove(name string) {
	is := func(f Field) bool { return f.Name == name }
	x.fields = slices.DeleteFunc(x.fields, is)
	if len(x.outer.kept) > 0 {
		x.outer.kept = slices.DeleteFunc(x.outer.kept, is)
	}
}

// Ready returns the Response that was given to Send, nil if none was.
func (x *Exchange) Ready() *Response { return x.ready }

// ResponseBody returns the response's body as it is now, nil if that is a file.
// It must not be changed, and is valid until the next write.
func (x *Exchange) ResponseBody() []byte {
	switch {
	case x.ready != nil:
		return x.ready.body
	case x.file.File != nil:
		return nil
	}
	return x.body
}

// HasFile reports whether the body is a part of a file.
func (x *Exchange) HasFile() bool {
	if x.ready != nil {
		return x.ready.ofFile
	}
	return x.file.File != nil
}

// Discard discards the response, so that ServeDirect can still report false.
// Kept fields and values stay, and Watchers but for Forgetters.
func (x *Exchange) Discard() {
	x.Forget()
	clear(x.fields)
	x.status, x.fields, x.body, x.ready = 0, x.fields[:0], x.body[:0], nil
	x.release() // last: Done may panic
}

// SetResponseBody sets the body to a copy of p, instead of what it was.
func (x *Exchange) SetResponseBody(p []byte) {
	x.release()
	x.body = append(x.body[:0], p...)
}

// sources returns the fields of the response, the handler's before those kept
// by middleware.
func (x *Exchange) sources() [2][]Field {
	if x.ready != nil {
		return [2][]Field{x.ready.fields, x.outer.kept}
	}
	return [2][]Field{x.fields, x.outer.kept}
}

// ResponseFields iterates over the fields of the response as they are now.
func (x *Exchange) ResponseFields(yield func(f Field) bool) {
	for _, fields := range x.sources() {
		for _, f := range fields {
			if !yield(f) {
				return
			}
		}
	}
}

// IsList reports whether a field of a Response is added to a kept one instead
// of replacing it. For servers.
func IsList(name string) bool { return name == "Vary" || name == "Set-Cookie" }

// addKept adds the kept fields to those of a Response.
func (x *Exchange) addKept(a *Answer) {
	if len(x.outer.kept) == 0 {
		return
	}
	clear(x.fields)
	x.fields = x.fields[:0]
	for _, f := range x.outer.kept {
		has := func(g Field) bool { return g.Name == f.Name }
		if a.Status == http.StatusNotModified && f.Name == "Content-Type" {
			continue // as complete has it
		}
		if IsList(f.Name) || !slices.ContainsFunc(a.Fields, has) {
			x.fields = append(x.fields, f)
			a.HasDate = a.HasDate || isDate(f)
		}
	}
	x.fields = append(x.fields, a.Fields...)
	sortFields(x.fields)
	a.Fields, a.Ready = x.fields, nil
}

// mergeKept inserts the kept fields before the handler's.
func (x *Exchange) mergeKept() {
	n := len(x.outer.kept)
	if n == 0 {
		return
	}
	x.fields = append(x.fields, x.outer.kept...)
	copy(x.fields[n:], x.fields[:len(x.fields)-n])
	copy(x.fields, x.outer.kept)
}

func sortFields(fields []Field) {
	slices.SortStableFunc(fields, func(a, b Field) int { return cmp.Compare(a.Name, b.Name) })
}

// takeOver turns the fields that a plain response already has into kept ones,
// so that a handler replaces and adds to them as on the fast path.
func (x *Exchange) takeOver(h http.Header) {
	for name, values := range h {
		if !settable(name) {
			continue
		}
		for _, v := range values {
			x.outer.kept = append(x.outer.kept, Field{name, v})
		}
	}
}

// giveBack deletes the fields from h that takeOver has taken.
func (x *Exchange) giveBack(h http.Header) {
	for name, values := range h {
		// A name without values is kept: net/http then leaves the field out.
		if len(values) > 0 && settable(name) {
			delete(h, name)
		}
	}
}

// settable reports whether name, as it is spelled, may be given to SetHeader.
func settable(name string) bool {
	switch name {
	case "Connection", "Content-Length", "Keep-Alive", "Trailer", "Transfer-Encoding", "Upgrade":
		return false
	}
	return canonical(name)
}

// derived are the Responses derived from one, by key.
type derived struct {
	mu sync.RWMutex
	m  map[string]*Response
}

// maxDerived bounds the cache of one Response: a program may make its
// middleware again with each reload, while the Responses of packages stay.
const maxDerived = 256

// Derive returns the result of make for r and key, such as r compressed or r
// with another field. Results, also nil, are cached as long as r is in use,
// unless there are very many. make may be called concurrently; the first result
// is kept.
func (r *Response) Derive(key string, make func(r *Response) *Response) *Response {
	r.derived.mu.RLock()
	d, ok := r.derived.m[key]
	r.derived.mu.RUnlock()
	if ok {
		return d
	}
	made := make(r)
	r.derived.mu.Lock()
	defer r.derived.mu.Unlock()
	if d, ok := r.derived.m[key]; ok {
		return d
	}
	if r.derived.m == nil || len(r.derived.m) >= maxDerived {
		r.derived.m = map[string]*Response{}
	}
	r.derived.m[key] = made
	return made
}

// Header returns a copy of r's fields.
func (r *Response) Header() http.Header {
	h := http.Header{}
	for _, f := range r.fields {
		h[f.Name] = append(h[f.Name], f.Value)
	}
	return h
}

// Body returns r's body, which must not be changed.
func (r *Response) Body() []byte { return r.body }

// With returns a copy of r with the fields that change leaves in its header. Those that
// frame the message stay as they are, and the body is shared. It panics where SetHeader
// does. For middleware, which makes it in Derive and responds with SendInstead.
func (r *Response) With(change func(h http.Header)) *Response {
	h := r.Header()
	change(h)
	made := &Response{status: r.status, body: r.body, ofFile: r.ofFile, length: r.length}
	for name, values := range h {
		if framing(name) || r.status == http.StatusNotModified && name == "Content-Type" {
			continue // as in complete
		}
		name = fieldName(name)
		for _, v := range values {
			made.fields = append(made.fields, Field{name, v})
		}
	}
	for _, f := range r.fields {
		if framing(f.Name) {
			made.fields = append(made.fields, f)
		}
	}
	sortFields(made.fields)
	made.hasDate = slices.ContainsFunc(made.fields, isDate)
	return made
}

// SendInstead replaces the Response that was given to Send or SendFileAs by one that
// With has made of it, and keeps its file.
func (x *Exchange) SendInstead(r *Response) {
	if x.ready == nil || x.ready.ofFile != r.ofFile || x.ready.length != r.length {
		panic("direct: SendInstead of a Response that With has not made of the one before")
	}
	x.ready = r
}
