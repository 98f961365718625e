// Package unlike is the table of the differences from net/http that are meant.
// test/netdiff has the bytes of each in its cases, test/fuzz what recognises each in
// the exchanges that its grammar makes, and docs/differences.md explains them.
//
// It knows nothing of either. The suites alone import it.
package unlike
