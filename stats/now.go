package stats

import "time"

// A Source is a server that counts: *chert.Server. Its methods are safe for concurrent
// use and may be called at any time, also before the server serves and after it has
// shut down. They ask every loop, and wait for one that is busy for 100 ms at most.
type Source interface {
	// Stats returns what has been counted. It is cheap enough to be called once a
	// second.
	Stats() Snapshot
	// RunningRequests returns requests that are in progress, at most max of each loop,
	// the longest first. Those that a loop runs at the moment it is asked cannot be
	// seen: they end, or move to a goroutine, within two milliseconds. Nor can, over
	// HTTP/1 and HTTP/2, those that a direct handler has answered, as package static
	// does, while the client accepts the response: their connections are active.
	RunningRequests(max int) []Request
	// OpenConnections returns open connections, at most max of each loop.
	OpenConnections(max int) []Connection
}

// A Request is one that is in progress.
type Request struct {
	// ID distinguishes the requests of a server while they run.
	ID       uint64
	Method   string
	Target   string // as the client has sent it, with a query that may contain secrets; at most 2 KiB
	Route    string // the router's pattern, if it was known before the handler ran
	Protocol string // "HTTP/1.1"
	Peer     string // as Request.RemoteAddr
	Began    time.Time
	Way      Way
	// Stage is "waiting" for a slot or a goroutine, "handler", or "write" for a client
	// that has not accepted the whole response.
	Stage string
	// Loop is the index of the loop that the connection belongs to, -1 for none.
	Loop int
}

// A Connection is an open one.
type Connection struct {
	Peer, Local string
	// Protocol is "HTTP/1", "HTTP/2", "HTTP/3", "WebSocket", "event stream", "TLS handshake", or
	// "PROXY header of" and the proxy's address while that header is awaited; "" if it is not
	// known. TLS is the version, "" without TLS.
	Protocol, TLS string
	// State is net/http's name for it ("new", "active", "idle"), and Since when that
	// state or the latest wait for the peer began, to about a millisecond; it may be
	// zero.
	State string
	Since time.Time
	// Unsent is how many bytes wait for the peer.
	Unsent int64
	// Loop is the index of its loop, -1 for a connection on a goroutine.
	Loop int
}
