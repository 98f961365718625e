// Package demo implements what "chert demo" serves: a small service that shows
// the router, the middleware, limits, streams and files, and the curl commands
// to try it with.
//
// [New] makes the service, [Commands] the commands. Uploads are counted and
// discarded, and the tokens, which are new at each start, are shown on the start
// page: they provide no security.
package demo

// The package must not depend on flags, signals or listeners. Only cmd/chert may
// import it.
