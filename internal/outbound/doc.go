// Package outbound is the client side of HTTP/1 on event loops: connections to other servers,
// the requests that are sent on them, and how the responses come back.
package outbound

// It knows connections and the codec; it must not know upstreams, balance or health, which a
// Route stands for, nor how the client's side frames a response, for which a Client does.
// bridge/h1, bridge/h2 and proxy import it.
//
// A request that is forwarded is an Exchange. Its client's connection and that to the server
// are on one loop, whose driver makes all calls:
//
//	            Begin                    Send
//	client -------------> Exchange --------------> Conn ----> server
//	       <-------------          <--------------
//	        Response, Body           Data of the
//	        End, Fail                session
//
// A TLS handshake has a goroutine (tlsio.Connect), which owns the Conn's out meanwhile; the Conn itself
// stays the loop's.
//
// No user code that may wait runs in between: what middleware changes of a response must not block,
// as wire.Exchange.Later says. So nothing here is locked, but for what a Server counts. A
// request that waits for its response costs an Exchange, a Conn, and what may have to be sent
// again; no goroutine and no buffer.
//
// An Exchange has at most one Conn. Which of the two lets go of the other first sets both
// pointers to nil, and only then calls what may call back.
