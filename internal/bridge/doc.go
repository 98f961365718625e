// Package bridge connects any version of HTTP to net/http's types: requests, response
// writers, bodies, contexts and hijacking. It also decides where a handler runs.
package bridge

// A version of HTTP (bridge/h1) makes an Exchange for each request and is its
// Message: it frames what the handler writes and reads. bridge must not call a
// codec, open sockets or know addresses to listen on. Only the packages below it
// and the root may import it.
//
// An Exchange is never reused: a handler may keep the request, its header and its
// context after it returns, as with net/http. The
// buffers of a response belong to the Message and are pooled, so a response that is
// used after its handler has returned reports errors and touches no buffer.
