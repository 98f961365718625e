// Package files creates folders for servers to serve, the same from the same seed, and the order in which their files
// are requested.
package files

// It knows nothing of servers or HTTP, except that a file's name is its path in a URL.
