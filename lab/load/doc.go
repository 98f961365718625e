// Package load makes requests: it drives wrk for throughput, paces requests of its own for latency, and holds idle
// connections.
//
// It knows addresses, not servers, and measures nothing of the server's.
package load
