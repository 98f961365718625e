package wire

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// This file is the response as a handler makes it.

// A FileSender is a response writer that can send a File, as an io.ReaderFrom
// can read from a reader. chert's response writers are.
type FileSender interface {
	// SendFile sends f after what was written. It does not call f.Done.
	SendFile(f File) error
}

// SetStatus sets the response's status, from 200 to 999. It panics for others,
// including 1xx, which are not final responses.
func (x *Exchange) SetStatus(status int) {
	if status < 200 || status > 999 {
		panic("direct: SetStatus of " + strconv.Itoa(status))
	}
	x.status = status
}

// Status returns the status that was set, or that of the Response given to
// Send.
func (x *Exchange) Status() int {
	if x.ready != nil {
		return x.ready.status
	}
	if x.status == 0 {
		return http.StatusOK
	}
	return x.status
}

// LimitWrite bounds how long it may take to send the response, from its beginning on, in
// place of the server's own limit. Zero is that of the server, and only a positive limit
// is one. A client that is slower loses the connection, over HTTP/2 the stream. For
// middleware.
func (x *Exchange) LimitWrite(d time.Duration) { x.limit = d }

// Size returns the length of the response's body, in bytes, as it is now.
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

// SetHeader sets a header field of the response and replaces those of that
// name. It panics if name is no field name, or is one of the fields that frame
// the message, which belong to the server: Connection, Content-Length,
// Keep-Alive, Trailer, Transfer-Encoding, Upgrade. CR and LF in the
// value become spaces.
func (x *Exchange) SetHeader(name, value string) {
	name = fieldName(name)
	x.remove(name)
	x.fields = append(x.fields, Field{name, oneLine(value)})
}

// oneLine makes spaces of CR and LF, as HTTP/1 does. HTTP/2 and HTTP/3 would drop the field.
func oneLine(value string) string {
	if strings.IndexByte(value, '\r') < 0 && strings.IndexByte(value, '\n') < 0 {
		return value
	}
	return strings.NewReplacer("\r", " ", "\n", " ").Replace(value)
}

// AddHeader is SetHeader, but keeps the fields of that name that are set
// already.
func (x *Exchange) AddHeader(name, value string) {
	x.fields = append(x.fields, Field{fieldName(name), oneLine(value)})
}

// GetHeader returns the first value of a field of the response as it is now, ""
// if there is none.
func (x *Exchange) GetHeader(name string) string {
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

// Send responds with r instead of everything that was set, except for kept
// fields. The response to HEAD has no body. Send panics if r was made by
// NewFileResponse and the request is not HEAD.
func (x *Exchange) Send(r *Response) {
	r.mustBeWhole(x.req.Method)
	x.ready = r
}

// SendFileAs responds with r, made by NewFileResponse, and f as its body,
// instead of everything that was set, except for kept fields. It panics if the
// length of f is not r's.
func (x *Exchange) SendFileAs(r *Response, f File) {
	if !r.ofFile || r.length != f.Len {
		panic("direct: SendFileAs with a Response that is not for a file of this length")
	}
	x.release()
	x.ready, x.file = r, f
}

// SendFile sets the body to a part of a file, instead of what was written. The
// file must still have that part when it is read, or the connection ends early.
func (x *Exchange) SendFile(f File) {
	x.release()
	x.file = f
}

// fieldName returns the canonical form of a name, and panics if it may not be
// set.
func fieldName(name string) string {
	if !canonical(name) {
		if name = http.CanonicalHeaderKey(name); !validName(name) {
			panic("direct: " + strconv.Quote(name) + " is no field name")
		}
	}
	if framing(name) {
		panic("direct: the field " + name + " is set by the server")
	}
	return name
}

// framing reports whether a field, by its canonical name, frames the message.
func framing(name string) bool {
	switch name {
	case "Connection", "Content-Length", "Keep-Alive", "Trailer", "Transfer-Encoding", "Upgrade":
		return true
	}
	return false
}

// MaySet reports whether SetHeader and AddHeader accept a name: otherwise they panic.
func MaySet(name string) bool {
	name = http.CanonicalHeaderKey(name)
	return validName(name) && !framing(name)
}

// CheckField returns an error, in words that follow the name, if a field with a value cannot be
// one that all responses get, whatever their handler has set; "" removes the handler's.
func CheckField(name, value string) error {
	switch canonical := http.CanonicalHeaderKey(name); {
	case !MaySet(name) || canonical == "Content-Range":
		return errors.New("cannot be set")
	case canonical == "Content-Type" && value == "":
		return errors.New("cannot be removed")
	case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
		return errors.New("has a control character in its value")
	}
	return nil
}

// Classes of the bytes of a name.
const (
	tokenByte = 1 << iota // RFC 9110 section 5.6.2
	isFirst               // at the beginning of a canonical name, and after a "-"
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

// canonical reports whether name is a token in the form of
// http.CanonicalHeaderKey.
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
