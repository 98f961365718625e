// Package components has benchmarks of the parts of a server, chert's beside those of the standard library, as one
// published them of its own: go test -bench . ./components
package components
