// Package netdiff sends the same bytes to net/http's server and to chert on each
// engine, at once and byte by byte, and compares all that can be seen. The tables
// are by topic; what is meant to differ stands in them, under a heading of
// docs/differences.md. It is tests only.
package netdiff
