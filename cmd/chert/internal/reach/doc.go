// Package reach reads where commands find a server: a URL, an address, a port of this machine, or a unix socket.
package reach

// It imports std alone, and neither dials nor sends anything.
