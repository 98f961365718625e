// Package forward writes the heads that a gateway sends: of a request for an upstream,
// and of its response for the client.
//
// Both are made from parsed heads in one order: first everything is removed that is for
// one connection only or that the sender may not decide, then the gateway adds its own.
// So a client cannot remove what the gateway adds by naming it in Connection, and cannot
// set what an upstream believes only a gateway to set.
//
// The framing of a message is always made anew from what the parser understood; none of
// the received bytes about it is passed on. Method, target, field names and values are
// passed on as received, without decoding and encoding. What cannot be passed on is
// refused, with an *http1.Error.
//
// Functions append to a buffer of the caller and allocate nothing if it has room.
package forward

// No sockets, no clock, no net/http: heads in, heads out. It imports internal/http1 only.
