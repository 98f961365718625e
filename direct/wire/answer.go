package wire

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/view"
)

// This file is the response as a server sees it.

// keepBody is the largest body buffer that is reused, in bytes.
const keepBody = 16 << 10

// Drop ends an exchange that gets no response. For servers.
func (x *Exchange) Drop() {
	if w := x.TakeWatcher(); w != nil {
		defer w.Sent(Delivery{}) // also if Done panics
	}
	x.release()
}

// Reset reuses x for the request r. For servers.
func (x *Exchange) Reset(r Request) {
	x.release()
	// Field by field: assigning a new Exchange that keeps the old slices would
	// build it elsewhere and copy it. Nothing of an earlier handler is kept
	// alive.
	x.req = r
	x.pattern, x.plain, x.w, x.status, x.ready = "", nil, nil, 0, nil
	empty(&x.values)
	empty(&x.fields)
	if x.body = x.body[:0]; cap(x.body) > keepBody {
		x.body = nil
	}
	empty(&x.outer.kept)
	empty(&x.outer.values)
	x.watcher, x.limit, x.plan, x.elsewhere, x.missed = nil, 0, nil, false, false
	empty(&x.edits)
	if x.moved {
		x.server, x.moved = remote{}, false
	}
}

// empty empties a slice, keeps its capacity, and clears its elements.
func empty[T any](s *[]T) {
	// There are few; clear, or a loop that is compiled to it, costs more for
	// them.
	var zero T
	for i := len(*s) - 1; i >= 0; i-- {
		(*s)[i] = zero
	}
	*s = (*s)[:0]
}

// An Answer is the response that a server has to send: the status, the fields
// in their order, and the body, which is Body or File.
type Answer struct {
	Status int
	Fields []Field
	// Ready has Status and Fields if the handler sent a Response, else it is
	// nil.
	Ready *Response
	Body  []byte // empty for HEAD
	File  File   // File.File is nil unless the body is a part of a file
	// HasDate: Fields has a Date; otherwise the server adds one.
	HasDate bool
	// Watcher, if not nil, must be notified of the delivery by the server.
	Watcher Watcher
	limit   time.Duration
}

// WriteLimit returns how long it may take to send the response, where a server has the
// limit d; 0 for no limit.
func (a *Answer) WriteLimit(d time.Duration) time.Duration { return limitOr(a.limit, d) }

// WriteLimit returns what Answer.WriteLimit does, for a response that comes later. For
// servers.
func (x *Exchange) WriteLimit(d time.Duration) time.Duration { return limitOr(x.limit, d) }

func limitOr(limit, d time.Duration) time.Duration {
	if limit > 0 {
		return limit
	}
	return max(d, 0)
}

// Length returns the length of the body, in bytes.
func (a *Answer) Length() int64 {
	if a.File.File != nil {
		return a.File.Len
	}
	return int64(len(a.Body))
}

// Finish completes the response. Servers call it once, after the handler has
// returned. The result is valid until the next Reset. A server that receives a
// File must call its Done. If Done of a file that is not sent panics, so does Finish,
// and the Watcher stays, for Drop.
func (x *Exchange) Finish() (a Answer) {
	head := x.req.Method == http.MethodHead
	if r := x.ready; r != nil {
		a = Answer{Status: r.status, Fields: r.fields, Ready: r, Body: r.body, HasDate: r.hasDate, limit: x.limit}
		x.addKept(&a)
		if head {
			a.Body = nil
		}
		if r.ofFile && !head && x.file.Len > 0 {
			a.File, x.file = x.file, File{} // it belongs to the server now
		}
		x.release()
		a.Watcher = x.TakeWatcher()
		return a
	}
	a = Answer{Status: x.Status(), Body: x.body, File: x.file, limit: x.limit}
	x.mergeKept()
	x.fields = complete(x.fields, a.Status, a.Body, &a.File, head, x.digits[:0])
	a.Fields = x.fields
	a.HasDate = slices.ContainsFunc(a.Fields, isDate)
	none := head || !bodyAllowed(a.Status)
	if none || a.File.File != nil { // in place of what was written, also if it is empty
		a.Body = nil
	}
	if none || a.File.Len == 0 {
		x.release()
		a.File = File{}
	}
	x.file = File{} // it belongs to the server now
	a.Watcher = x.TakeWatcher()
	return a
}

// release calls Done of a file that is not sent.
func (x *Exchange) release() {
	f := x.file
	x.file = File{} // first: Done may panic, and is called once
	if f.File != nil && f.Done != nil {
		f.Done()
	}
}

func isDate(f Field) bool { return f.Name == "Date" }

// complete adds Content-Length and Content-Type where they belong and sorts the
// fields, as net/http's servers do. Fields of the same name keep their order.
// The length may be a view of digits.
func complete(fields []Field, status int, body []byte, file *File, head bool, digits []byte) []Field {
	size := int64(len(body))
	if file.File != nil {
		size = file.Len
	}
	has := func(name string) bool {
		return slices.ContainsFunc(fields, func(f Field) bool { return f.Name == name })
	}
	switch {
	case status == http.StatusNotModified:
		// RFC 9110 section 15.4.5: metadata beyond what a cache needs to
		// choose is left out.
		fields = slices.DeleteFunc(fields, func(f Field) bool { return f.Name == "Content-Type" })
	case !bodyAllowed(status):
		// RFC 9110 section 8.6: no Content-Length with 204.
	default:
		if size > 0 && !has("Content-Type") && !coded(fields) {
			if file.File != nil {
				body = beginning(file)
			}
			fields = append(fields, Field{"Content-Type", http.DetectContentType(body)})
		}
		// That nothing was written for HEAD does not mean that GET would send
		// nothing.
		if size > 0 || !head {
			fields = append(fields, Field{"Content-Length", lengthText(size, digits)})
		}
	}
	sortFields(fields)
	return fields
}

// coded reports whether the body has a Content-Encoding. As with net/http an
// empty one does not count.
func coded(fields []Field) bool {
	i := slices.IndexFunc(fields, func(f Field) bool { return f.Name == "Content-Encoding" })
	return i >= 0 && fields[i].Value != ""
}

// beginning reads the part of a file from which its type is guessed.
func beginning(f *File) []byte {
	var b [512]byte
	n, _ := io.ReadFull(io.NewSectionReader(f.File, f.Offset, f.Len), b[:])
	return b[:n]
}

func bodyAllowed(status int) bool {
	return status != http.StatusNoContent && status != http.StatusNotModified
}

// lengthText returns the value of Content-Length. Those of small bodies are
// made once; others are views of digits.
func lengthText(n int64, digits []byte) string {
	if n < int64(len(lengths)) {
		return lengths[n]
	}
	digits = strconv.AppendInt(digits, n, 10)
	return view.String(digits)
}

var lengths = func() (t [2048]string) {
	for i := range t {
		t[i] = strconv.Itoa(i)
	}
	return t
}()

// A Response is a direct.Response: a response prepared in advance. It is
// immutable and safe for concurrent use.
type Response struct {
	status  int
	fields  []Field
	body    []byte
	hasDate bool
	ofFile  bool  // the body is a part of a file
	length  int64 // of that part
	head    atomic.Pointer[[]byte]
	derived derived
}

// NewResponse makes a Response. It copies header and body. It panics where
// SetStatus and SetHeader do, except that header may have a Content-Length,
// which is replaced.
func NewResponse(status int, header http.Header, body []byte) *Response {
	var x Exchange
	x.SetStatus(status)
	for name, values := range header {
		if http.CanonicalHeaderKey(name) == "Content-Length" {
			continue
		}
		for _, v := range values {
			x.AddHeader(name, v)
		}
	}
	x.Write(body)
	a := x.Finish()
	return &Response{status: a.Status, fields: a.Fields, body: a.Body, hasDate: a.HasDate}
}

// NewFileResponse makes a Response whose body is a part of a file, of length
// bytes, which each SendFileAs supplies. It copies header, which must have a
// Content-Type, and panics where NewResponse does.
func NewFileResponse(status int, header http.Header, length int64) *Response {
	r := NewResponse(status, header, nil)
	if length < 0 || !bodyAllowed(status) || !slices.ContainsFunc(r.fields,
		func(f Field) bool { return f.Name == "Content-Type" }) {
		panic("direct: NewFileResponse of a status without a body, without a type, or without a length")
	}
	r.ofFile, r.length = true, length
	for i := range r.fields {
		if r.fields[i].Name == "Content-Length" {
			r.fields[i].Value = lengthText(length, nil)
		}
	}
	return r
}

// Status returns the response's status.
func (r *Response) Status() int { return r.status }

// ServeHTTP implements http.Handler. It does not read the request's body.
func (r *Response) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mustBeWhole(req.Method)
	h := w.Header()
	for _, f := range r.fields {
		if !IsList(f.Name) {
			delete(h, f.Name) // as in addKept
		}
	}
	for _, f := range r.fields {
		h[f.Name] = append(h[f.Name], f.Value)
	}
	w.WriteHeader(r.status)
	if req.Method != http.MethodHead && len(r.body) > 0 {
		w.Write(r.body)
	}
}

// mustBeWhole panics if r would be sent without its file.
func (r *Response) mustBeWhole(method string) {
	if r.ofFile && method != http.MethodHead {
		panic("direct: a Response of NewFileResponse is sent without its file")
	}
}

// Head returns the status line and the fields as encode makes them, and caches
// the result: encode is called once, so all servers must encode alike. For
// servers.
func (r *Response) Head(encode func(status int, fields []Field) []byte) []byte {
	if b := r.head.Load(); b != nil {
		return *b
	}
	b := encode(r.status, r.fields)
	r.head.Store(&b)
	return b
}
