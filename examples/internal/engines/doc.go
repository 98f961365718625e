// Package engines runs the examples' tests on each server that they must work
// on: chert with event loops, chert with goroutines, and net/http, which shows
// that a test expects of chert only what net/http does.
//
//	engines.Each(t, func(t *testing.T, e engines.Engine) {
//		s := e.Start(t, handler())
//		...
//	})
//
// It must not know any example. Only tests import it.
package engines
