package direct

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/chert-http/chert/direct/wire"
)

// An Exchange is one request and the response that a handler makes to it. One
// goroutine uses it, until the handler returns: neither the Exchange nor a
// slice that it has returned may be retained or changed.
//
// The response has status 200 and no body until the handler sets them. It is
// sent whole when the handler has returned, with a Content-Length, a Date and,
// if it has a body and no Content-Type, one guessed as net/http does.
type Exchange wire.Exchange

// Wire returns the exchange as servers, routers and middleware need it.
func (x *Exchange) Wire() *wire.Exchange { return (*wire.Exchange)(x) }

// Method returns the request's method.
func (x *Exchange) Method() string { return x.Wire().Method() }

// Path returns the percent-decoded path.
func (x *Exchange) Path() []byte { return x.Wire().Path() }

// RawQuery returns the query as the client wrote it, without the question mark.
func (x *Exchange) RawQuery() []byte { return x.Wire().RawQuery() }

// Host returns the host that the request is for, with the port if there is one. It
// is not among the header fields.
func (x *Exchange) Host() []byte { return x.Wire().Host() }

// Body returns the request's body, at most MaxBody bytes.
func (x *Exchange) Body() []byte { return x.Wire().Body() }

// RemoteAddr returns the address of the client, as http.Request's field.
func (x *Exchange) RemoteAddr() string { return x.Wire().RemoteAddr() }

// RequestHeader returns the first value of a header field of the request, nil
// if there is none. Names are case-insensitive.
func (x *Exchange) RequestHeader(name string) []byte { return x.Wire().Fields().Get(name) }

// PathValue returns the percent-decoded value of the named wildcard of the
// pattern, as http.Request's method does; nil if there is none.
func (x *Exchange) PathValue(name string) []byte { return x.Wire().PathValue(name) }

// QueryValue returns the first value of a parameter of the query, decoded as
// url.ParseQuery does; nil if there is none. It allocates only to decode.
func (x *Exchange) QueryValue(name string) []byte {
	query := x.RawQuery()
	for len(query) > 0 {
		var pair []byte
		pair, query, _ = bytes.Cut(query, []byte{'&'})
		if bytes.IndexByte(pair, ';') >= 0 { // which ParseQuery rejects
			continue
		}
		key, value, ok := bytes.Cut(pair, []byte{'='})
		if len(pair) == 0 {
			continue
		}
		if !ok {
			value = pair[len(pair):] // not nil
		}
		if key, ok := unescape(key); ok && string(key) == name {
			if value, ok := unescape(value); ok {
				return value
			}
		}
	}
	return nil
}

// unescape decodes a part of a query. A part without escapes is returned as it
// is.
func unescape(b []byte) ([]byte, bool) {
	if bytes.IndexByte(b, '%') < 0 && bytes.IndexByte(b, '+') < 0 {
		return b, true
	}
	s, err := url.QueryUnescape(string(b))
	return []byte(s), err == nil
}

// Value returns what middleware has set for key, as a request's context does;
// nil if there is nothing.
func (x *Exchange) Value(key any) any { return x.Wire().Value(key) }

// SetStatus sets the response's status, from 200 to 999. It panics for others,
// including 1xx, which are not final responses.
func (x *Exchange) SetStatus(status int) { x.Wire().SetStatus(status) }

// SetHeader sets a header field of the response and replaces those of that
// name. It panics if name is no field name, or is one of the fields that frame
// the message, which belong to the server: Connection, Content-Length,
// Keep-Alive, Trailer, Transfer-Encoding, Upgrade. CR and LF in the
// value become spaces.
func (x *Exchange) SetHeader(name, value string) { x.Wire().SetHeader(name, value) }

// AddHeader is SetHeader, but keeps the fields of that name that are set
// already.
func (x *Exchange) AddHeader(name, value string) { x.Wire().AddHeader(name, value) }

// Write appends a copy of p to the body. Its error is nil.
func (x *Exchange) Write(p []byte) (int, error) { return x.Wire().Write(p) }

// WriteString appends s to the body. Its error is nil.
func (x *Exchange) WriteString(s string) (int, error) { return x.Wire().WriteString(s) }

// JSON sets the body to v, as encoding/json encodes it with a newline at the
// end, and Content-Type. If v cannot be encoded the response is unchanged.
func (x *Exchange) JSON(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	x.SetHeader("Content-Type", "application/json")
	x.Wire().SetResponseBody(append(b, '\n'))
	return nil
}

// Send responds with r instead of everything that the handler has set. The
// response to HEAD has no body. Anything
// that the handler sets or writes afterwards is ignored.
func (x *Exchange) Send(r *Response) { x.Wire().Send(r.Wire()) }

// SendFile sets the body to a part of a file, instead of what was written. The
// file must still have that part when it is read, or the connection ends early.
func (x *Exchange) SendFile(f File) { x.Wire().SendFile(f) }

// A File is a part of a regular file, for SendFile, given by the fields File,
// Offset and Len. Done, if not nil, is called once, when the server no longer
// needs the file. Check may end a response early.
type File = wire.File

// A Response is a response prepared in advance, and a Handler that sends it to
// every request. It is immutable and safe for concurrent use.
type Response wire.Response

// NewResponse makes a Response. It copies header and body. It panics where
// SetStatus and SetHeader do, except that header may have a Content-Length,
// which is replaced.
func NewResponse(status int, header http.Header, body []byte) *Response {
	return (*Response)(wire.NewResponse(status, header, body))
}

// Wire returns the response as servers and middleware need it.
func (r *Response) Wire() *wire.Response { return (*wire.Response)(r) }

// ServeDirect implements Handler.
func (r *Response) ServeDirect(x *Exchange) bool {
	x.Send(r)
	return true
}

// ServeHTTP implements http.Handler. It does not read the request's body.
func (r *Response) ServeHTTP(w http.ResponseWriter, req *http.Request) { r.Wire().ServeHTTP(w, req) }
