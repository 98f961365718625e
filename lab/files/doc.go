// Package files makes folders for servers to serve, the same ones from the same seed, and the order in which they are
// asked for.
//
// It knows nothing of servers or HTTP, but that a file's name is its path in a URL.
package files
