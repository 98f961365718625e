// Package takeover is how a protocol takes an HTTP connection over from chert
// without knowing the server: a Session runs on a Link. A Stream is the rest of a single
// response, which a Source continues when its handler has returned.
package takeover

// It is the narrow side of internal/conn's contract, for packages that also run on
// net/http's server and so must not import the engines. internal/bridge implements
// Link and Writer; package websocket implements Session, and Link for net/http's
// connections. With Stream, Streamer and Source, bridge and package eventstream do the
// same. It imports nothing but std.
