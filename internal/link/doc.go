// Package link is the contract between a connection (a Link) and its protocol (a Session), as
// far as it is the same for all of them: connections of event loops and of goroutines, streams of
// HTTP/2 and HTTP/3, and connections of net/http's server.
package link

// It imports nothing but std, so that package eventstream, which also runs on net/http's server,
// does not import the engines. internal/conn adds what the engines' own
// sessions need, internal/takeover what a response is passed on with.
