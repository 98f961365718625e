// Package interval compares two snapshots of a server: rates, latencies of the time
// between them, and what stands out in it. The live page of package admin and "chert
// top" display the same Report.
package interval

// It imports std and package stats only.
