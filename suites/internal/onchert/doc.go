// Package onchert replaces net/http and httptest in the rewritten sources of a
// suite. The environment selects the engine of their servers, so that one build
// serves all runs, and each test that makes a server is recorded in a file, so
// that a run that tests nothing on chert is detected.
package onchert

// It is copied into the suite's module and not imported by it, so it must not
// use anything beside std, the root package, chertest and, in through.go, proxy.
