package direct

import (
	"iter"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
	"unsafe"
)

// MaxBody is the largest request body, in bytes, that a direct handler is
// given.
const MaxBody = 64 << 10

// A Handler can answer in two ways, with the same result. Servers that know
// the direct way call ServeDirect; all others call ServeHTTP.
type Handler interface {
	http.Handler
	// ServeDirect answers x and reports true, or leaves x as it is and reports
	// false: then ServeHTTP is called. (A router leaves the Pattern and path
	// values it has found; servers may tell routes by the Pattern.) It must not
	// wait, nor keep x or anything that x gave it. Any number may run at the
	// same time.
	//
	// Middleware may leave what it has kept with KeepField and SetValue: it
	// does the same again in ServeHTTP.
	ServeDirect(x *Exchange) bool
}

// A HandlerFunc is a Handler that answers all requests in one way. A request
// whose body is longer than MaxBody is answered 413 without it.
type HandlerFunc func(x *Exchange)

// ServeDirect implements Handler.
func (f HandlerFunc) ServeDirect(x *Exchange) bool { f(x); return true }

// ServeHTTP implements http.Handler.
func (f HandlerFunc) ServeHTTP(w http.ResponseWriter, r *http.Request) { ServeHTTP(w, r, f) }

// A Request is what a server has read. Its slices are the server's buffers:
// they must not be changed, and are not valid after the handler has returned.
type Request struct {
	Method     string
	Target     []byte // as it came (RFC 9112 section 3.2)
	Path       []byte // percent-decoded; "*" and "" as net/http has them
	RawQuery   []byte // without the question mark
	Host       []byte
	Body       []byte // whole, at most MaxBody
	RemoteAddr string
	// Peer is RemoteAddr, looked at beforehand; nil if the server does not.
	Peer   *Peer
	Fields Fields
	// Time is when the server has turned to the request, by Clock; 0 if it does
	// not say. See Exchange.Now.
	Time time.Duration
}

// Fields are a request's header fields. The slices are the server's.
type Fields interface {
	// Get returns the first value of the named field, nil if there is none.
	// name is in any case. Host is not among the fields.
	Get(name string) []byte
	// All goes through all fields, in no particular order. Names are as the
	// client wrote them or in canonical form.
	All() iter.Seq2[[]byte, []byte]
}

// A Field is one header field of an answer; its name is in canonical form.
type Field struct{ Name, Value string }

// An Exchange is one request and the answer that a handler makes of it. It is
// used by one goroutine and ends with the handler's return.
//
// The answer is status 200 without a body until the handler says otherwise. It
// is sent whole when the handler has returned, with a Content-Length, a Date
// and, if it has a body and no Content-Type, one guessed as net/http does.
type Exchange struct {
	Request
	// Pattern is that of the route a router has chosen, as in http.Request; ""
	// without a router.
	Pattern string

	values []pathValue
	plain  *http.Request // what x is made of on other servers, else nil
	status int
	fields []Field
	body   []byte
	ready  *Response
	file   File
	digits [20]byte // of Content-Length
	outer  outer    // what middleware has added
	// watcher is told what becomes of the answer; nil for nobody.
	watcher Watcher
}

// A pathValue is what one wildcard of the pattern stands for.
type pathValue struct {
	name  string
	value []byte
}

// PathValue returns what the named wildcard of the pattern stands for, percent-
// decoded, as http.Request's method of that name does; nil if there is none.
// The slice is the server's, like those of Request.
func (x *Exchange) PathValue(name string) []byte {
	for i := range x.values {
		if x.values[i].name == name {
			return x.values[i].value
		}
	}
	if x.plain != nil {
		if v := x.plain.PathValue(name); v != "" {
			return bytesOf(v)
		}
	}
	return nil
}

// SetPathValue makes PathValue return value for name. For routers; x keeps both
// until the exchange ends.
func (x *Exchange) SetPathValue(name string, value []byte) {
	for i := range x.values {
		if x.values[i].name == name {
			x.values[i].value = value
			return
		}
	}
	x.values = append(x.values, pathValue{name, value})
}

// A File is a part of a regular file that is to be sent. Any number of answers
// may send the same File at the same time: its own offset is neither used nor
// moved.
type File struct {
	File        *os.File
	Offset, Len int64
	// Check, if not nil, is called before the server goes on with File: on an
	// event loop each time it has had to wait for the client, elsewhere after a
	// MiB at the latest. An error ends the connection: the rest would not be of
	// what was begun.
	Check func() error
	// Done, if not nil, is called once, when the server is through with File.
	// File must stay open until then. Done must not wait.
	Done func()
}

// A FileSender is a response writer that can send a File, as io.ReaderFrom is
// one that can read from a reader. chert's are.
type FileSender interface {
	// SendFile sends f behind what was written. It does not call Done.
	SendFile(f File) error
}

// SetStatus sets the answer's status, from 200 to 999. It panics for others,
// also for 1xx, which are not answers.
func (x *Exchange) SetStatus(status int) {
	if status < 200 || status > 999 {
		panic("direct: SetStatus of " + strconv.Itoa(status))
	}
	x.status = status
}

// Status is what was set, or that of the Response given to Send.
func (x *Exchange) Status() int {
	if x.ready != nil {
		return x.ready.status
	}
	if x.status == 0 {
		return http.StatusOK
	}
	return x.status
}

// Size is the length of the answer's body, in bytes, as it is now.
func (x *Exchange) Size() int64 {
	switch {
	case x.ready != nil && x.ready.ofFile:
		return x.ready.length
	case x.ready != nil:
		return int64(len(x.ready.body))
	case x.file.File != nil:
		return x.file.Len
	}
	return int64(len(x.body))
}

// SetField sets a field of the answer, instead of those of that name that were
// there. It panics if name is no field name, or is one of those that frame the
// message, which are the server's: Connection, Content-Length, Keep-Alive,
// Trailer, Transfer-Encoding, Upgrade. Control characters in the value become
// spaces.
func (x *Exchange) SetField(name, value string) {
	name = fieldName(name)
	x.remove(name)
	x.fields = append(x.fields, Field{name, value})
}

// AddField is SetField, but keeps those of that name that were there.
func (x *Exchange) AddField(name, value string) {
	x.fields = append(x.fields, Field{fieldName(name), value})
}

// GetField returns the first value of a field of the answer as it is now, ""
// if there is none.
func (x *Exchange) GetField(name string) string {
	name = http.CanonicalHeaderKey(name)
	for _, fields := range x.sources() {
		for i := range fields {
			if fields[i].Name == name {
				return fields[i].Value
			}
		}
	}
	return ""
}

// Write adds a copy of p to the body. Its error is nil.
func (x *Exchange) Write(p []byte) (int, error) {
	x.body = append(x.body, p...)
	return len(p), nil
}

// WriteString adds s to the body. Its error is nil.
func (x *Exchange) WriteString(s string) (int, error) {
	x.body = append(x.body, s...)
	return len(s), nil
}

// Send makes r the answer, instead of all that was set but what KeepField has.
// HEAD is answered without r's body. It panics if r is of NewFileResponse and
// the request is not HEAD.
func (x *Exchange) Send(r *Response) {
	r.mustBeWhole(x.Method)
	x.ready = r
}

// SendFileAs makes r, of NewFileResponse, the answer and f its body, instead of
// all that was set but what KeepField has. It panics if f is not as long as r says.
func (x *Exchange) SendFileAs(r *Response, f File) {
	if !r.ofFile || r.length != f.Len {
		panic("direct: SendFileAs of a Response that is not of such a file")
	}
	x.release()
	x.ready, x.file = r, f
}

// SendFile makes a part of a file the body, instead of what was written. The
// file must have that part when it is read, else the connection ends early.
func (x *Exchange) SendFile(f File) {
	x.release()
	x.file = f
}

// fieldName is the canonical form of a name that may be set.
func fieldName(name string) string {
	if !canonical(name) {
		if name = http.CanonicalHeaderKey(name); !validName(name) {
			panic("direct: " + strconv.Quote(name) + " is no field name")
		}
	}
	switch name {
	case "Connection", "Content-Length", "Keep-Alive", "Trailer", "Transfer-Encoding", "Upgrade":
		panic("direct: the field " + name + " is the server's")
	}
	return name
}

// What a byte of a name may be.
const (
	tokenByte = 1 << iota // RFC 9110 section 5.6.2
	isFirst               // at the beginning of a canonical name, and behind a "-"
	isLater               // elsewhere in one
)

var nameByte = func() (t [256]uint8) {
	for c := range t {
		lower, upper := 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z'
		if !lower && !upper && !('0' <= c && c <= '9') && strings.IndexByte("!#$%&'*+-.^_`|~", byte(c)) < 0 {
			continue
		}
		t[c] = tokenByte
		if !lower {
			t[c] |= isFirst
		}
		if !upper {
			t[c] |= isLater
		}
	}
	return t
}()

// canonical reports whether name is a token and is as http.CanonicalHeaderKey
// makes it.
func canonical(name string) bool {
	want := uint8(isFirst)
	for i := 0; i < len(name); i++ {
		c := name[i]
		if nameByte[c]&want == 0 {
			return false
		}
		if want = isLater; c == '-' {
			want = isFirst
		}
	}
	return name != ""
}

// validName reports whether name is a token (RFC 9110 section 5.6.2).
func validName(name string) bool {
	for i := 0; i < len(name); i++ {
		if nameByte[name[i]] == 0 {
			return false
		}
	}
	return name != ""
}

// bytesOf views s without a copy; what looks at it must not write.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
