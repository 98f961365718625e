// Package priority is how urgent a client says a response is (RFC 9218), in HTTP/2 and
// HTTP/3: the value of the field and of the frame.
//
// # What it must not know
//
// Frames, streams and what comes of a priority: it parses a value. It imports no other
// package of this module.
package priority
