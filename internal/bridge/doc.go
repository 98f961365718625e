// Package bridge joins any version of HTTP to net/http's types: requests, response
// writers, bodies, contexts and hijacking, and it decides where a handler runs.
package bridge

// A version of HTTP (bridge/h1) makes an Exchange of each request and is its
// Message: it frames what the handler writes and reads. bridge must not call a
// codec, open sockets or know addresses to listen on. Only the packages below it
// and the root may import it.
//
// An Exchange is not reused, but with Server.ReuseRequests: a handler may keep the
// request, its header and its context after it returns, as with net/http. The
// buffers under a response are the Message's and pooled, so a response that is
// used after its handler has returned gives errors and touches no buffer.
