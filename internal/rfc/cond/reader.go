package cond

import (
	"sync"

	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/rfc/field"
)

// A reader iterates over all fields of a request. It is pooled together with
// the function that wire.Fields.All calls, which a range loop would allocate
// each time.
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

// read iterates over the fields anew.
func (r *reader) read(f wire.Fields, name, etag string, equal comparison) {
	*r = reader{visit: r.visit, name: name, etag: etag, equal: equal}
	f.All()(r.visit)
}

// free returns r to the pool, without the server's buffers.
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
func lines(f wire.Fields, name, etag string, equal comparison) (present, matched bool) {
	r := readers.Get().(*reader)
	r.read(f, name, etag, equal)
	present, matched = r.present, r.matched
	r.free()
	return present, matched
}

// single returns the value of a field that is present once; ok is false otherwise.
func single(f wire.Fields, name string) (value []byte, ok bool) {
	r := readers.Get().(*reader)
	r.read(f, name, "", nil)
	value, ok = r.value, r.count == 1
	r.free()
	return value, ok
}
