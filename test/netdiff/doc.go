// Package netdiff sends the same bytes to net/http's server and to chert on
// each engine, and inline on loops, at once and byte by byte, and compares
// everything that can be observed. The tables are by topic; intended
// differences are in them, with a row of docs/differences.md. It contains tests
// only.
package netdiff
