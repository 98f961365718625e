// Package stats describes what a server has counted: a Snapshot of connections,
// requests, system calls, placement and latencies. Server.Stats returns one; package
// metrics exports it, package admin and "chert top" display it.
//
// Counters only grow, so the difference of two snapshots is what happened between
// them: Histogram.Sub and plain subtraction.
package stats

// It imports std only, so that metrics, tracing and admin need not import the server.
