package h2

import (
	"net/http"
	"sync"
	"unsafe"
)

// This file reuses the memory of streams.

var pooled = sync.Pool{New: func() any { return new(stream) }}

// newStream returns a stream that is reused, if that is likely: those of handlers that
// may keep their requests never come back, and would only make the pool look for them.
func (s *Session) newStream(direct bool) *stream {
	if direct || s.ReuseRequests {
		return pooled.Get().(*stream)
	}
	return new(stream)
}

// parts is the other memory of a request that is kept with ReuseRequests.
type parts struct {
	bytes     []byte // what the request's strings are parts of
	header    http.Header
	resHeader http.Header
	values    []string
}

// keepBytes and keepNames bound what is kept.
const (
	keepBytes = 8 << 10
	keepNames = 64
)

// reusable reports whether nothing refers to st any more. The request of a direct
// handler belongs to the server, any other to the handler unless ReuseRequests says
// otherwise. Bodies are not reused, nor is a stream that some goroutine waited for
// or that has been killed: that goroutine, or the one that kills it, may be late. mu
// is held.
func (st *stream) reusable() bool {
	s := st.s
	if s.over != nil || st.err != nil || st.waited || st.Body != nil || st.slot != slotNone || st.lasting != nil {
		return false
	}
	if !st.made {
		return true
	}
	p := st.parts
	return s.ReuseRequests && !st.Watched() && cap(p.bytes) <= keepBytes && len(p.header) <= keepNames && len(p.resHeader) <= keepNames
}

// recycle returns st to the pool. mu is held.
func (st *stream) recycle() {
	p := st.parts
	if p != nil {
		clear(p.header)
		clear(p.resHeader)
		clear(p.values)
	}
	*st = stream{parts: p}
	pooled.Put(st)
}

// text returns b, which is reused, as a string.
func (p *parts) text(b []byte) string {
	p.bytes = append(p.bytes[:0], b...)
	return unsafe.String(unsafe.SliceData(p.bytes), len(p.bytes))
}
