// Package load generates requests: it runs wrk for throughput, paces requests of its own for latency, and holds idle
// connections.
package load

// It knows addresses, not servers, and measures nothing on the server's side.
