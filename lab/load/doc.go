// Package load makes requests: it drives wrk for throughput, and holds idle connections itself.
//
// It knows addresses, not servers, and measures nothing of the server's.
package load
