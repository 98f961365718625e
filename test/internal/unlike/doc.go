// Package unlike is the table of the intended differences from net/http.
// test/netdiff has the bytes of each in its cases, test/fuzz recognises each in
// the exchanges that its grammar makes, and docs/differences.md explains them.
//
// It knows nothing of either. The suites alone import it.
package unlike
