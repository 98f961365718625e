package section

import (
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/pack"
)

// This file is an answer as its handler makes it: a field section, and pieces of body
// that gather before they become DATA.

// An Encoder appends fields to a field section, as a version of HTTP encodes them. A name or a
// value that must not be in a message is left out.
type Encoder interface {
	Status(b []byte, status int) []byte
	Field(b []byte, name, value string) []byte
	Int(b []byte, id pack.NameID, n int64) []byte
	Type(b []byte, value string) []byte
	// Date appends the Date field for now, of sys.Nanotime.
	Date(b []byte, now int64) []byte
}

// A DateField appends the Date field to field sections, and encodes it once for each value. Safe for concurrent use.
type DateField struct {
	Encode func(b []byte, id pack.NameID, value string) []byte
	last   atomic.Pointer[dateBlock]
}

type dateBlock struct {
	value string
	block []byte
}

// Append appends the field with the time now, which is of sys.Nanotime.
func (f *DateField) Append(b []byte, now int64) []byte {
	value := bridge.DateValue(now)
	d := f.last.Load()
	if d == nil || d.value != value {
		d = &dateBlock{value, f.Encode(nil, pack.IDDate, value)}
		f.last.Store(d)
	}
	return append(b, d.block...)
}

// wireSize is how much of a body is gathered before it is sent.
const wireSize = 4 << 10

// Writing is an answer under way and its buffers. It is pooled.
type Writing struct {
	progress
	blockBuf [512]byte
	bodyBuf  [wireSize]byte
	stageBuf [bridge.StageSize]byte
}

type progress struct {
	bridge.Progress
	enc   Encoder
	block []byte // the field section, until it is sent
	body  []byte // gathered
	// What is known of the handler's fields: a length, a type or a date is set, or
	// not wanted; the body is coded; there may be trailers; the connection is to be left.
	noLength, hasType, hasDate, coded, trailers, leave bool
	// keys are the names of all fields that the head was made of, and fields is how many
	// there are; -1 for more than fit. See mayTrail.
	fields int
	keys   [fewKeys]string
}

// fewKeys is up to how many fields looking up each of them is quicker than ranging over all.
const fewKeys = 4

var writings = sync.Pool{New: func() any { return new(Writing) }}

// Begin returns an empty Writing.
func Begin(enc Encoder) *Writing {
	w := writings.Get().(*Writing)
	w.enc, w.block, w.body, w.Staged = enc, w.blockBuf[:0], w.bodyBuf[:0], w.stageBuf[:0]
	return w
}

// End gives w back.
func (w *Writing) End() (held int64) {
	held = int64(len(w.body))
	w.progress = progress{}
	writings.Put(w)
	return held
}

// Interim appends the section of a response with a 1xx status.
func Interim(enc Encoder, block []byte, status int, h http.Header) []byte {
	block = enc.Status(block, status)
	var few [8]string
	keys, _ := sortedKeys(few[:0], h)
	for _, k := range keys {
		switch k {
		case "Content-Length", "Connection", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding", "Upgrade":
		default:
			block = appendAll(enc, block, k, h[k])
		}
	}
	return block
}

func appendAll(enc Encoder, b []byte, k string, vv []string) []byte {
	for _, v := range vv {
		b = enc.Field(b, k, v)
	}
	return b
}

// Head makes the section of a status and the handler's fields, as they are now. leave reports
// that the handler wants the connection to be left.
func (w *Writing) Head(status int, h http.Header, logf func(string, ...any)) (leave bool) {
	if status == http.StatusSwitchingProtocols {
		// RFC 9113 section 8.6, RFC 9114 section 4.5: there is no 101.
		logf("http: a handler answers 101 (Switching Protocols) over HTTP/2 or 3")
		status = http.StatusInternalServerError
		w.Status = status
	}
	w.block = w.enc.Status(w.block, status)
	if len(h) == 0 {
		return false
	}
	var few [8]string
	keys, prefixed := sortedKeys(few[:0], h)
	for _, k := range keys {
		if vv := h[k]; w.note(status, k, vv, logf) {
			w.block = appendAll(w.enc, w.block, k, vv)
		}
	}
	w.trailers = w.trailers || prefixed
	if w.fields = -1; len(keys) == len(h) && len(keys) <= fewKeys {
		w.fields = copy(w.keys[:], keys)
	}
	return w.leave
}

// note inspects a field of the handler's, and reports whether it is sent.
func (w *Writing) note(status int, k string, vv []string, logf func(string, ...any)) bool {
	switch k {
	case "Connection":
		// As net/http does it; RFC 9113 section 8.2.2 and RFC 9114 section 4.2 have no such fields.
		w.leave = w.leave || len(vv) > 0 && strings.EqualFold(vv[0], "close")
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
			logf("http: invalid Content-Length of %q", vv[0])
			return false
		}
		n := int64(v)
		w.Length = n
		// RFC 9110 sections 8.6 and 15.4.5.
		if w.noLength = true; bridge.BodyAllowed(status) {
			w.block = w.enc.Int(w.block, pack.IDContentLength, n)
		}
		return false
	case "Content-Type":
		w.hasType = true
		if status != http.StatusNotModified {
			for _, v := range vv {
				w.block = w.enc.Type(w.block, v)
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
				if name = textproto.CanonicalMIMEHeaderKey(textproto.TrimString(name)); trailerAllowed(name) {
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

// Complete completes the section. p is the first part of the body, and all of it if the handler
// has returned; now gives the time, and more is fields that are added, encoded.
func (w *Writing) Complete(res *bridge.Response, isHEAD bool, p []byte, now func() int64, more []byte) {
	allowed := bridge.BodyAllowed(w.Status)
	if res.Done && !w.noLength && allowed && (len(p) > 0 || !isHEAD) {
		w.Length = int64(len(p))
		w.block = w.enc.Int(w.block, pack.IDContentLength, w.Length)
	}
	if !w.hasType && !w.coded && allowed && len(p) > 0 {
		w.block = w.enc.Type(w.block, bridge.ContentType(p))
	}
	if !w.hasDate {
		w.block = w.enc.Date(w.block, now())
	}
	w.block = append(w.block, more...)
}

// Take returns the section if it is still to be sent, and nil afterwards.
func (w *Writing) Take() []byte {
	b := w.block
	w.block = nil
	return b
}

// Gather keeps p for later, or reports false if that would be much together with what was kept.
func (w *Writing) Gather(p []byte) bool {
	if len(w.body)+len(p) > wireSize {
		return false
	}
	w.body = append(w.body, p...)
	return true
}

// Gathered returns what was kept, which is to be sent before anything is gathered again.
func (w *Writing) Gathered() []byte {
	have := w.body
	w.body = w.body[:0]
	return have
}

// Tail returns the section of the trailers among the handler's fields, empty if there are none: as
// with net/http, an answer to HEAD has none.
func (w *Writing) Tail(h http.Header, isHEAD bool) []byte {
	if isHEAD || !w.mayTrail(h) {
		return nil
	}
	all := w.TrailersOf(h, func(name string) bool {
		return trailerAllowed(textproto.CanonicalMIMEHeaderKey(name))
	})
	var block []byte
	keys, _ := sortedKeys(nil, all)
	for _, k := range keys {
		block = appendAll(w.enc, block, k, all[k])
	}
	return block
}

// trailerAllowed is bridge.TrailerAllowed without Upgrade: as with net/http that may be one over HTTP/1, and here
// makes the message malformed (RFC 9113 section 8.2.2, RFC 9114 section 4.2).
func trailerAllowed(name string) bool { return name != "Upgrade" && bridge.TrailerAllowed(name) }

// mayTrail reports whether there may be trailers in h. If the names are those that the
// head was made of, there are none.
func (w *Writing) mayTrail(h http.Header) bool {
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
