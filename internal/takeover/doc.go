// Package takeover is how a protocol takes an HTTP connection over from chert
// without knowing the server: a Session runs on a Link. A Stream is the rest of a single
// response, which a Source continues when its handler has returned.
package takeover

// It adds to package link what concerns HTTP: how such a response is found below an
// http.ResponseWriter, and what the server keeps of it. It is not part of internal/conn, since
// package eventstream also runs on net/http's server and does not import the engines.
// internal/bridge implements Link and Writer; package websocket implements Session, and
// Link for net/http's connections. With Stream, Streamer and Source, bridge and package
// eventstream do the same.
