package h2

import (
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/http2"
	"github.com/chert-http/chert/internal/pack"
	"github.com/chert-http/chert/internal/sys"
)

// This file is an answer as its handler makes it: a header block, and pieces of body
// that gather before they become DATA.

// wireSize is how much of a body is gathered before it is sent.
const wireSize = 4 << 10

// writing is an answer under way and its buffers. It is pooled.
type writing struct {
	progress
	blockBuf [512]byte
	bodyBuf  [wireSize]byte
	stageBuf [bridge.StageSize]byte
}

type progress struct {
	bridge.Progress
	block []byte // the header block, until it is sent
	body  []byte // gathered
	lost  int64  // of Held
	// What is known of the handler's fields: a length, a type or a date is set, or
	// not wanted; the body is coded; there may be trailers.
	noLength, hasType, hasDate, coded, trailers bool
	// keys are the names of all fields that the head was made of, and fields is how many
	// there are; -1 for more than fit. See mayTrail.
	fields int
	keys   [fewKeys]string
}

// fewKeys is up to how many fields looking up each of them is quicker than ranging over all.
const fewKeys = 4

var writings = sync.Pool{New: func() any { return new(writing) }}

// Begin implements bridge.Message.
func (st *stream) Begin() *bridge.Progress {
	w := writings.Get().(*writing)
	w.block, w.body, w.Staged = w.blockBuf[:0], w.bodyBuf[:0], w.stageBuf[:0]
	st.writing = w
	return &w.Progress
}

// End implements bridge.Message.
func (st *stream) End() {
	st.writing.progress = progress{}
	writings.Put(st.writing)
	st.writing = nil
}

// Interim implements bridge.Message.
func (st *stream) Interim(status int, h http.Header) error {
	st.spare(h)
	block := http2.AppendStatus(make([]byte, 0, 64), status)
	var few [8]string
	keys, _ := sortedKeys(few[:0], h)
	for _, k := range keys {
		switch k {
		case "Content-Length", "Connection", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding", "Upgrade":
		default:
			block = appendAll(block, k, h[k])
		}
	}
	err := st.whenRoom(func() {
		if status == http.StatusContinue {
			st.awaits = false
		}
		st.s.putBlockLocked(st, block, false)
	})
	if err == nil {
		st.s.flush()
	}
	return err
}

func appendAll(b []byte, k string, vv []string) []byte {
	for _, v := range vv {
		b = http2.AppendField(b, k, v)
	}
	return b
}

// Head implements bridge.Message. The block is made at once, which is the snapshot
// that WriteHeader promises.
func (st *stream) Head(status int, h http.Header) {
	w := st.writing
	if status == http.StatusSwitchingProtocols {
		// RFC 9113 section 8.6: there is no 101 in HTTP/2.
		st.s.Logf("http: a handler answers 101 (Switching Protocols) over HTTP/2")
		status = http.StatusInternalServerError
		w.Status = status
	}
	w.block = http2.AppendStatus(w.block, status)
	if len(h) == 0 {
		return
	}
	st.spare(h)
	var few [8]string
	keys, prefixed := sortedKeys(few[:0], h)
	for _, k := range keys {
		if vv := h[k]; st.note(status, k, vv) {
			w.block = appendAll(w.block, k, vv)
		}
	}
	w.trailers = w.trailers || prefixed
	if w.fields = -1; len(keys) == len(h) && len(keys) <= fewKeys {
		w.fields = copy(w.keys[:], keys)
	}
}

// note inspects a field of the handler's, and reports whether it is sent.
func (st *stream) note(status int, k string, vv []string) bool {
	w := st.writing
	switch k {
	case "Connection":
		// As net/http does it; RFC 9113 section 8.2.2 has no such fields.
		st.leave = st.leave || len(vv) > 0 && strings.EqualFold(vv[0], "close")
		return false
	case "Keep-Alive", "Proxy-Connection", "Transfer-Encoding", "Upgrade":
		return false
	case "Content-Length":
		if len(vv) == 0 || vv[0] == "" {
			w.noLength = true
			return false
		}
		v, err := strconv.ParseUint(vv[0], 10, 63) // digits alone
		if err != nil {
			st.s.Logf("http: invalid Content-Length of %q", vv[0])
			return false
		}
		n := int64(v)
		w.Length = n
		// RFC 9110 sections 8.6 and 15.4.5.
		if w.noLength = true; bridge.BodyAllowed(status) {
			w.block = http2.AppendInt(w.block, pack.IDContentLength, n)
		}
		return false
	case "Content-Type":
		w.hasType = true
		if status != http.StatusNotModified {
			for _, v := range vv {
				w.block = http2.AppendType(w.block, v)
			}
		}
		return false
	case "Content-Encoding":
		w.coded = len(vv) > 0 && vv[0] != ""
	case "Date":
		w.hasDate = true
	case "Trailer":
		w.trailers = true
		for _, v := range vv {
			for name := range strings.SplitSeq(v, ",") {
				if name = textproto.CanonicalMIMEHeaderKey(textproto.TrimString(name)); bridge.TrailerAllowed(name) {
					w.Trailers = append(w.Trailers, name)
				}
			}
		}
	}
	return true
}

// sortedKeys appends to keys those of h that are field names, and reports whether
// there are keys with http.TrailerPrefix, which are not.
func sortedKeys(keys []string, h http.Header) (_ []string, prefixed bool) {
	for k := range h {
		if pack.ValidName(k) {
			keys = append(keys, k)
		} else {
			prefixed = prefixed || strings.HasPrefix(k, http.TrailerPrefix)
		}
	}
	if len(keys) > 1 {
		slices.Sort(keys)
	}
	return keys, prefixed
}

// Complete implements bridge.Message.
func (st *stream) Complete(p []byte) error {
	w := st.writing
	allowed := bridge.BodyAllowed(w.Status)
	if st.Res.Done && !w.noLength && allowed && (len(p) > 0 || !st.IsHEAD) {
		w.Length = int64(len(p))
		w.block = http2.AppendInt(w.block, pack.IDContentLength, w.Length)
	}
	if !w.hasType && !w.coded && allowed && len(p) > 0 {
		w.block = http2.AppendType(w.block, bridge.ContentType(p))
	}
	if !w.hasDate {
		w.block = appendDate(w.block, st.now())
	}
	return nil
}

// dateBlock is a Date field as it is in header blocks.
type dateBlock struct {
	value string
	block []byte
}

var lastDate atomic.Pointer[dateBlock]

// now returns the time for the Date field: the loop's, if the handler still has the lease.
func (st *stream) now() int64 {
	if st.InTurn && st.place.Held() {
		return st.Time.Since
	}
	return sys.Nanotime()
}

// appendDate appends the Date field for now, of sys.Nanotime.
func appendDate(b []byte, now int64) []byte {
	value := bridge.DateValue(now)
	d := lastDate.Load()
	if d == nil || d.value != value {
		d = &dateBlock{value, http2.AppendKnown(nil, pack.IDDate, value)}
		lastDate.Store(d)
	}
	return append(b, d.block...)
}

// take is the header block if it is still to be sent.
func (w *writing) take() []byte {
	b := w.block
	w.block = nil
	return b
}

// Data implements bridge.Message.
func (st *stream) Data(p []byte) error {
	w := st.writing
	if len(w.body)+len(p) <= wireSize {
		w.body = append(w.body, p...)
		return nil
	}
	have := w.body
	w.body = w.body[:0]
	err := st.commit(w.take(), have, p, false, nil)
	if err != nil {
		w.lost += int64(len(p)) // or a part of it
		return err
	}
	s := st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.out != nil && !s.inData.Load() {
		s.settleSoonLocked() // the handler may go on for long
	}
	return nil
}

// Flush implements bridge.Message.
func (st *stream) Flush() error {
	w := st.writing
	have := w.body
	w.body = w.body[:0]
	if err := st.commit(w.take(), have, nil, false, nil); err != nil {
		return err
	}
	st.s.flush()
	return nil
}

// Finish implements bridge.Message.
func (st *stream) Finish(h http.Header) conn.Next {
	w := st.writing
	short := !st.IsHEAD && w.Length != -1 && bridge.BodyAllowed(w.Status) && w.Length != w.Written
	if w.Err != nil || short {
		// The client counts on Content-Length; a reset tells it that less came.
		if w.Err == nil {
			w.Err = st.Flush()
		}
		return conn.Close
	}
	have := w.body
	w.body = w.body[:0]
	var tail *buf.Buf
	if w.mayTrail(h) {
		tail = w.tail(h)
	}
	if w.Err = st.commit(w.take(), have, nil, true, tail); w.Err != nil {
		return conn.Close
	}
	return conn.More
}

// mayTrail reports whether there may be trailers in h. If the names are those that the
// head was made of, there are none.
func (w *writing) mayTrail(h http.Header) bool {
	same := len(h) == w.fields
	for i := 0; same && i < w.fields; i++ {
		_, same = h[w.keys[i]]
	}
	return w.trailers || len(w.Trailers) > 0 || !same && hasPrefixed(h)
}

func hasPrefixed(h http.Header) bool {
	for k := range h {
		if strings.HasPrefix(k, http.TrailerPrefix) {
			return true
		}
	}
	return false
}

// tail is the block of the trailers, nil if there are none.
func (w *writing) tail(h http.Header) *buf.Buf {
	var all http.Header
	add := func(name string, vv []string) {
		if all == nil {
			all = make(http.Header)
		}
		all[name] = append(all[name], vv...)
	}
	for k, vv := range h {
		name, ok := strings.CutPrefix(k, http.TrailerPrefix)
		if ok && bridge.TrailerAllowed(textproto.CanonicalMIMEHeaderKey(name)) {
			add(name, vv)
		}
	}
	for _, k := range w.Trailers {
		if vv, ok := h[k]; ok {
			add(k, vv)
		}
	}
	var block []byte
	keys, _ := sortedKeys(nil, all)
	for _, k := range keys {
		block = appendAll(block, k, all[k])
	}
	if len(block) == 0 {
		return nil
	}
	b := buf.Get(len(block))
	b.B = append(b.B, block...)
	return b
}

// Raw implements bridge.Message.
func (st *stream) Raw() bool { return false }

// Held implements bridge.Message.
func (st *stream) Held() int64 { return int64(len(st.writing.body)) + st.writing.lost }
