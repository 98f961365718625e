// Package proxyproto parses the header that proxies put before a connection's bytes, in
// versions 1 and 2 of haproxy's PROXY protocol (proxy-protocol.txt).
package proxyproto

// It is a codec: bytes in, values out, without I/O and without buffers of its own. It
// does not know which peers are trusted, nor how long they may take. It imports no
// other package of the project.
