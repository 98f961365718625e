// Package origin is the client's side of HTTP/1 for a gateway, on goroutines: it connects
// to a server, sends a request whose head is written already, and reads the response.
//
// It is as strict as internal/http1: what another reader could understand differently is a
// failure, and a connection is only kept if both messages have ended where they should,
// with nothing after them. Each Failure has what retry.Decide asks: how far the exchange
// came, and whether the server can have seen a byte. Nothing is sent twice by itself.
package origin

// It knows no net/http and no rules of balance and health, and no clock but deadlines of
// sockets. Package proxy imports it. An Exchange belongs to one goroutine, the sender of a
// body to another; what they share is under Conn.mu or atomic.
