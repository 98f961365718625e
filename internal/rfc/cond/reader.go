package cond

import (
	"sync"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/rfc/field"
)

// A reader goes through all fields of a request. It is pooled together with the
// function that direct.Fields.All calls, which a loop would allocate anew.
type reader struct {
	visit func(name, value []byte) bool // r.see, bound once

	name  string
	etag  string
	equal comparison // nil if lines are only counted

	count            int
	value            []byte // the last line, not kept after use
	present, matched bool
}

var readers = sync.Pool{New: func() any {
	r := new(reader)
	r.visit = r.see
	return r
}}

// read lets r see the fields, in place of what it has seen before.
func (r *reader) read(f direct.Fields, name, etag string, equal comparison) {
	*r = reader{visit: r.visit, name: name, etag: etag, equal: equal}
	f.All()(r.visit)
}

// free puts r back, without the server's buffers.
func (r *reader) free() {
	*r = reader{visit: r.visit}
	readers.Put(r)
}

func (r *reader) see(name, value []byte) (more bool) {
	if !field.EqualFold(name, r.name) {
		return true
	}
	r.count++
	r.value = value
	if r.equal == nil {
		return r.count < 2
	}
	r.present = r.present || len(value) > 0
	r.matched = list(value, r.etag, r.equal)
	return !r.matched
}

// lines is list over all lines of the named field.
func lines(f direct.Fields, name, etag string, equal comparison) (present, matched bool) {
	r := readers.Get().(*reader)
	r.read(f, name, etag, equal)
	present, matched = r.present, r.matched
	r.free()
	return present, matched
}

// single is the value of a field that is there once; ok is false otherwise.
func single(f direct.Fields, name string) (value []byte, ok bool) {
	r := readers.Get().(*reader)
	r.read(f, name, "", nil)
	value, ok = r.value, r.count == 1
	r.free()
	return value, ok
}
