// Package http3client is quic-go's HTTP/3 client for tests of servers that go away while
// requests are made.
package http3client

// It depends on no other package of the module. Tests import it.
