package h2

import (
	"net/http"
	"sync"
	"unsafe"

	"github.com/chert-http/chert/internal/bridge"
)

// This file reuses the memory of streams.

var pooled = sync.Pool{New: func() any { return new(stream) }}

// newStream returns a stream that is empty but for its parts.
func newStream() *stream {
	st := pooled.Get().(*stream)
	if st.exchange == nil {
		st.exchange = new(exchange)
	}
	return st
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

// reusable reports whether nothing uses st any more. What the handler may keep, the
// exchange and the body, does not use it after the handler has returned. A stream is not
// reused if some goroutine waited for it or it has been killed: that goroutine, or the
// one that kills it, may be late. mu is held.
func (st *stream) reusable() bool {
	s := st.s
	return s.over == nil && st.err == nil && !st.waited && st.slot == slotNone && st.lasting == nil
}

// recycle returns st to the pool, and with it its exchange if a handler cannot have kept
// that: the request of a direct handler belongs to the server, any other to the handler
// unless ReuseRequests says otherwise. Bodies are not reused. mu is held.
func (st *stream) recycle() {
	x, p := st.exchange, st.parts
	switch {
	case !st.made:
		x.Time, x.Way, x.client, x.link = bridge.Timing{}, 0, bridge.Client{}, link{} // nothing else was used
	case !st.s.ReuseRequests:
		x, p = nil, nil
	case st.Watched() || st.Body != nil || cap(p.bytes) > keepBytes || len(p.header) > keepNames || len(p.resHeader) > keepNames:
		x, p = nil, nil
	default:
		*x = exchange{}
		clear(p.header)
		clear(p.resHeader)
		clear(p.values)
	}
	*st = stream{exchange: x, parts: p}
	pooled.Put(st)
}

// text returns b, which is reused, as a string.
func (p *parts) text(b []byte) string {
	p.bytes = append(p.bytes[:0], b...)
	return unsafe.String(unsafe.SliceData(p.bytes), len(p.bytes))
}
