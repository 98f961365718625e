// Package proxy forwards requests to upstream servers: a reverse proxy with load
// balancing, as an http.Handler that runs on any server.
//
//	pool := proxy.NewPool(nil)
//	defer pool.Close()
//	app, err := pool.Upstream(&proxy.UpstreamOptions{
//		Name:    "app",
//		Servers: []proxy.Server{{Addr: "10.0.0.1:8080"}, {Addr: "10.0.0.2:8080"}},
//	})
//	...
//	h, err := proxy.New(&proxy.Options{Upstream: app})
//
// A [Pool] has what is known about servers, an [Upstream] is a list of servers that are
// alike, and a [Handler] forwards to one or several Upstreams.
//
// # What is forwarded
//
// Method, target, names and values of fields are passed on as received, bytes unchanged.
// What belongs to one connection is removed, with all that Connection lists; a request
// that lists Host, Content-Length, Cookie, Authorization or X-Forwarded-* there is refused
// with 400. The framing of a message is always made anew. Of a response, a truncated body
// is truncated for the client too, by http.ErrAbortHandler: it never ends as if it were
// whole. A malformed or ambiguous response is 502.
//
// # Retries
//
// A request is sent again only if no server can have acted on it, or if it is idempotent
// and no byte of a response has come: at most two more times, and within a budget of 20 %
// of the requests and 3 a second. It goes to another server, or to the same one if an idle
// connection to that was closed. [Retry] permits more.
//
// # Health
//
// A server that fails five times in sequence, or half of at least 20 requests, gets no
// requests for 5 s, for longer each time up to a minute, and then one at a time until three
// have succeeded. If less than half of the weight of an Upstream is up, that is ignored: a
// few servers would otherwise get more than they can serve. A [Check] asks servers
// actively; one whose checks fail gets nothing, whatever the others do.
//
// # Errors
//
// Responses of the proxy itself, but for 501, have a field Proxy-Status (RFC 9209) that names
// the kind of the error, without addresses. The log has one line for each failure, which says
// what was sent and why the request was not tried again.
package proxy

// HTTP/1 upstreams are spoken to by internal/origin, with the parser and the encoder that
// the event loops use; HTTP/2 upstreams by http.Transport. The rules are in packages that
// know neither: internal/forward (heads), internal/balance, internal/health and
// internal/retry. docs/adr/0055-the-proxys-own-client.md has the reasons.
