package wire

import (
	"iter"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/chert-http/chert/internal/view"
)

// A Request is what a server has read. Its slices are the server's buffers:
// they must not be changed, and are not valid after the handler has returned.
type Request struct {
	Method   string
	Target   []byte // as received (RFC 9112 section 3.2)
	Path     []byte // percent-decoded; "*" and "" as in net/http
	RawQuery []byte // without the question mark
	Host     []byte
	Body     []byte // whole, at most direct.MaxBody; but see Ahead
	// RemoteAddr is the address of the client, as in http.Request. PeerIP is the IP address
	// in it as package netip formats it; "" if there is none, or the server does not know it.
	RemoteAddr string
	PeerIP     string
	Local      Local // nil if the server does not tell
	TLS        bool  // the connection is encrypted
	Early      bool  // the TLS handshake has not ended; see Exchange.Early
	Major      uint8 // of the version of HTTP, if that is 2 or 3; otherwise it is HTTP/1.1
	Fields     Fields
	// Ahead: the body has not arrived, and has Length bytes, -1 if that is unknown. See Exchange.Ahead.
	Ahead  bool
	Length int64
	// Forwards: the server can forward the request to another one; see Exchange.Forward.
	Forwards bool
	// Time is when the server began to handle the request, by Clock; 0 if it is
	// not set. See Exchange.Now.
	Time time.Duration
}

// Local has the address that the client connected to. It is asked only if a handler asks.
type Local interface{ LocalAddr() net.Addr }

// Fields gives access to a request's header fields. The slices belong to the
// server.
type Fields interface {
	// Get returns the first value of the named field, nil if there is none.
	// Names are case-insensitive. Host is not among the fields.
	Get(name string) []byte
	// First returns what Get does, and the number of lines of the field.
	First(name string) (value []byte, n int)
	// All iterates over all fields, in no particular order. Names are as the
	// client wrote them or in canonical form.
	All() iter.Seq2[[]byte, []byte]
}

// A Field is one header field of a response; its name is in canonical form.
type Field struct{ Name, Value string }

// An Exchange is a direct.Exchange with everything that servers, routers and
// middleware need of it. One goroutine uses it, until the handler returns.
type Exchange struct {
	req     Request
	pattern string

	values []pathValue
	plain  *http.Request // the request on the ordinary path, else nil
	w      http.ResponseWriter
	status int
	fields []Field
	body   []byte
	ready  *Response
	file   File
	digits [20]byte // of Content-Length
	outer  outer    // added by middleware
	server remote   // the address before SetRemoteAddr
	moved  bool     // SetRemoteAddr was called
	// watcher is notified of the delivery; it may be nil.
	watcher Watcher
	limit   time.Duration // of LimitWrite
	plan    any           // of Forward
	edits   []func(x *Exchange)
	// elsewhere: the response is another server's.
	elsewhere bool
	missed    bool // Body was called, and the body had not arrived
}

// A pathValue is the value of one wildcard of the pattern.
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

// SetPath sets the path. For routers and middleware, which set it back when the handler has
// returned.
func (x *Exchange) SetPath(path []byte) { x.req.Path = path }

// RawQuery returns the query without the question mark.
func (x *Exchange) RawQuery() []byte { return x.req.RawQuery }

// SetRawQuery sets the query, as SetPath the path.
func (x *Exchange) SetRawQuery(query []byte) { x.req.RawQuery = query }

// Host returns the host that the request is for.
func (x *Exchange) Host() []byte { return x.req.Host }

// Body returns the request's body. If that has not arrived, the server serves the request on the ordinary path.
func (x *Exchange) Body() []byte {
	if x.req.Ahead {
		x.missed = true
	}
	return x.req.Body
}

// BodyLength returns the length of the request's body, in bytes, also of one that has not arrived; -1 if it is unknown.
func (x *Exchange) BodyLength() int64 {
	if x.req.Ahead {
		return x.req.Length
	}
	return int64(len(x.req.Body))
}

// Ahead reports whether the handler is called before the body has arrived: then it must not need the body, as one that
// calls Forward. Only handlers that Admits accepts may be called.
func (x *Exchange) Ahead() bool { return x.req.Ahead }

// Admits reports whether h may be called: it is a TakesAhead, or the body has arrived. For routers and middleware.
func (x *Exchange) Admits(h any) bool { return !x.req.Ahead || TakesAhead(h) }

// TakesAhead reports whether a handler may be called ahead of the request's body: whether it has a method TakesAhead
// that reports so. What passes requests on to other handlers may have one, if it calls only those that Admits accepts.
func TakesAhead(h any) bool {
	a, ok := h.(interface{ TakesAhead() bool })
	return ok && a.TakesAhead()
}

// Missed reports whether a handler has called Body before the body has arrived. For servers.
func (x *Exchange) Missed() bool { return x.missed }

// Fields returns the request's header fields.
func (x *Exchange) Fields() Fields { return x.req.Fields }

// Proto returns the version of HTTP, as Request.Proto of package net/http has it: "HTTP/1.1",
// "HTTP/2.0" or "HTTP/3.0".
func (x *Exchange) Proto() string {
	switch x.req.Major {
	case 2:
		return "HTTP/2.0"
	case 3:
		return "HTTP/3.0"
	}
	return "HTTP/1.1"
}

// RemoteAddr returns the address of the client.
func (x *Exchange) RemoteAddr() string { return x.req.RemoteAddr }

// PeerIP returns the IP address in RemoteAddr as package netip formats it, without
// a zone. It is "" unless the server has parsed RemoteAddr.
func (x *Exchange) PeerIP() string { return x.req.PeerIP }

// LocalAddr returns the address that the client connected to, as the value of
// http.LocalAddrContextKey does; nil if the server does not tell.
func (x *Exchange) LocalAddr() net.Addr {
	if x.plain != nil {
		local, _ := x.plain.Context().Value(http.LocalAddrContextKey).(net.Addr)
		return local
	}
	if x.req.Local == nil {
		return nil
	}
	return x.req.Local.LocalAddr()
}

// SetRemoteAddr sets the address of the client. For middleware.
func (x *Exchange) SetRemoteAddr(addr string) {
	if !x.moved {
		x.server, x.moved = remote{x.req.RemoteAddr, x.req.PeerIP}, true
	}
	x.req.RemoteAddr, x.req.PeerIP = addr, ""
}

// ResetRemoteAddr undoes SetRemoteAddr, for a request that is left to the ordinary
// path, where middleware decides again.
func (x *Exchange) ResetRemoteAddr() {
	if x.moved {
		x.req.RemoteAddr, x.req.PeerIP = x.server.addr, x.server.ip
		x.server, x.moved = remote{}, false
	}
}

// A remote is the client's address as the server has set it.
type remote struct {
	addr, ip string
}

// TLS reports whether the connection is encrypted, as http.Request's TLS does. A proxy in front may have ended
// the client's TLS.
func (x *Exchange) TLS() bool { return x.req.TLS }

// Early reports whether the request is handled before the TLS handshake of its connection has ended, so that it may be
// a replay of another one's (RFC 8470): TLS of an http.Request then has no HandshakeComplete.
func (x *Exchange) Early() bool { return x.req.Early }

// Forward leaves the response to another server, as plan says, and reports whether the server
// that handles the exchange can do that. If so, the handler returns true and has no other
// response. It is for package proxy, whose plan it is.
func (x *Exchange) Forward(plan any) bool {
	if !x.req.Forwards || x.missed {
		return false
	}
	x.plan = plan
	return true
}

// Forwards reports whether Forward can be used.
func (x *Exchange) Forwards() bool { return x.req.Forwards }

// KeepHere makes Forwards report false, for middleware that needs to see the response.
func (x *Exchange) KeepHere() { x.req.Forwards = false }

// Later has edit called with the response that another server sends, or with that which says
// why there is none, if the handler has called Forward. Until then the exchange has no
// response to edit. edit must not block; see Elsewhere. For middleware.
func (x *Exchange) Later(edit func(x *Exchange)) { x.edits = append(x.edits, edit) }

// TakeLater removes and returns what Later was called with, in that order. For servers.
func (x *Exchange) TakeLater() []func(x *Exchange) {
	e := x.edits
	x.edits = nil
	return e
}

// Elsewhere reports whether the response, which an edit of Later sees, is another server's: it
// has no body here, and keeps its status.
func (x *Exchange) Elsewhere() bool { return x.elsewhere }

// SetElsewhere makes Elsewhere report true. For servers.
func (x *Exchange) SetElsewhere() { x.elsewhere = true }

// Plan returns what Forward was given, nil if it has not been called. For servers.
func (x *Exchange) Plan() any { return x.plan }

// Time returns when the server began to handle the request, by Clock, or 0 if
// it is not set. See Now.
func (x *Exchange) Time() time.Duration { return x.req.Time }

// SetTime sets Time. For middleware that needs the time before a call of Now.
func (x *Exchange) SetTime(t time.Duration) { x.req.Time = t }

// Pattern returns the pattern of the route that a router has chosen, as in
// http.Request; "" without a router.
func (x *Exchange) Pattern() string { return x.pattern }

// SetPattern sets the pattern. For routers.
func (x *Exchange) SetPattern(pattern string) { x.pattern = pattern }

// PathValue does what direct.Exchange's does.
func (x *Exchange) PathValue(name string) []byte {
	for i := range x.values {
		if x.values[i].name == name {
			return x.values[i].value
		}
	}
	if x.plain != nil {
		if v := x.plain.PathValue(name); v != "" {
			return view.Bytes(v)
		}
	}
	return nil
}

// SetPathValue makes PathValue return value for name. For routers; x retains
// both until the exchange ends.
func (x *Exchange) SetPathValue(name string, value []byte) {
	for i := range x.values {
		if x.values[i].name == name {
			x.values[i].value = value
			return
		}
	}
	x.values = append(x.values, pathValue{name, value})
}

// A File is a part of a regular file that is to be sent. Responses may share a
// File and send it concurrently: its own offset is neither used nor moved.
type File struct {
	File        *os.File
	Offset, Len int64
	// Check, if not nil, is called before the server continues with File: on an
	// event loop after each time it had to wait for the client, elsewhere at
	// least once for each MiB. An error ends the connection, for a file that
	// has changed since the response began.
	Check func() error
	// Done, if not nil, is called once, when the server no longer needs File.
	// File must stay open until then. Done must not block.
	Done func()
}
