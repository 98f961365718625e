package wire

import (
	"iter"
	"net/http"
	"os"
	"time"
	"unsafe"
)

// A Request is what a server has read. Its slices are the server's buffers: they
// must not be changed, and are not valid after the handler has returned.
type Request struct {
	Method   string
	Target   []byte // as received (RFC 9112 section 3.2)
	Path     []byte // percent-decoded; "*" and "" as net/http has them
	RawQuery []byte // without the question mark
	Host     []byte
	Body     []byte // whole, at most direct.MaxBody
	// RemoteAddr is the address of the client, as in http.Request. Peer is the same,
	// parsed; nil if the server does not parse it.
	RemoteAddr string
	Peer       *Peer
	Fields     Fields
	// Time is when the server turned to the request, by Clock; 0 if it does not
	// say. See Exchange.Now.
	Time time.Duration
}

// Fields are a request's header fields. The slices are the server's.
type Fields interface {
	// Get returns the first value of the named field, nil if there is none.
	// name is in any case. Host is not among the fields.
	Get(name string) []byte
	// First is Get, and how many lines there are of the field.
	First(name string) (value []byte, n int)
	// All goes through all fields, in no particular order. Names are as the
	// client wrote them or in canonical form.
	All() iter.Seq2[[]byte, []byte]
}

// A Field is one header field of an answer; its name is in canonical form.
type Field struct{ Name, Value string }

// An Exchange is a direct.Exchange with all that servers, routers and middleware
// need of it. It is used by one goroutine and ends with the handler's return.
type Exchange struct {
	req     Request
	pattern string

	values []pathValue
	plain  *http.Request // what x is made of on the plain way, else nil
	w      http.ResponseWriter
	status int
	fields []Field
	body   []byte
	ready  *Response
	file   File
	digits [20]byte // of Content-Length
	outer  outer    // what middleware has added
	server remote   // what it was before SetRemoteAddr
	moved  bool     // there was a SetRemoteAddr
	// watcher is told what becomes of the answer; nil for nobody.
	watcher Watcher
}

// A pathValue is what one wildcard of the pattern stands for.
type pathValue struct {
	name  string
	value []byte
}

// Method returns the request's method.
func (x *Exchange) Method() string { return x.req.Method }

// Target returns the request target as it was received.
func (x *Exchange) Target() []byte { return x.req.Target }

// Path returns the percent-decoded path, without the prefix of a router's mount.
func (x *Exchange) Path() []byte { return x.req.Path }

// SetPath sets the path. For routers.
func (x *Exchange) SetPath(path []byte) { x.req.Path = path }

// RawQuery returns the query without the question mark.
func (x *Exchange) RawQuery() []byte { return x.req.RawQuery }

// Host returns the host that the request is for.
func (x *Exchange) Host() []byte { return x.req.Host }

// Body returns the request's body.
func (x *Exchange) Body() []byte { return x.req.Body }

// Fields returns the request's header fields.
func (x *Exchange) Fields() Fields { return x.req.Fields }

// RemoteAddr returns the address of the client.
func (x *Exchange) RemoteAddr() string { return x.req.RemoteAddr }

// PeerIP returns the IP address in RemoteAddr as package netip formats it, without
// a zone. It is "" unless the server has parsed RemoteAddr.
func (x *Exchange) PeerIP() string {
	if x.req.Peer == nil {
		return ""
	}
	return x.req.Peer.IP
}

// SetRemoteAddr sets the address of the client. For middleware.
func (x *Exchange) SetRemoteAddr(addr string) {
	if !x.moved {
		x.server, x.moved = remote{x.req.RemoteAddr, x.req.Peer}, true
	}
	x.req.RemoteAddr, x.req.Peer = addr, nil
}

// ResetRemoteAddr undoes SetRemoteAddr: the request goes to the plain way, where
// middleware decides again.
func (x *Exchange) ResetRemoteAddr() {
	if x.moved {
		x.req.RemoteAddr, x.req.Peer = x.server.addr, x.server.peer
		x.server, x.moved = remote{}, false
	}
}

// A remote is what the server has said of the client.
type remote struct {
	addr string
	peer *Peer
}

// Time returns when the server turned to the request, by Clock, or 0 if it does
// not say. See Now.
func (x *Exchange) Time() time.Duration { return x.req.Time }

// SetTime sets Time, for what cannot wait for Now.
func (x *Exchange) SetTime(t time.Duration) { x.req.Time = t }

// Pattern returns the pattern of the route that a router has chosen, as in
// http.Request; "" without a router.
func (x *Exchange) Pattern() string { return x.pattern }

// SetPattern sets the pattern. For routers.
func (x *Exchange) SetPattern(pattern string) { x.pattern = pattern }

// PathValue is direct.Exchange's.
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

// bytesOf views s without a copy; what looks at it must not write.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
