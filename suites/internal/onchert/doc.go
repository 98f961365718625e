// Package onchert stands in for net/http and httptest in the rewritten sources
// of a suite. The engine that their servers use comes from the environment, so
// that one build serves all runs, and each test that makes a server is noted
// in a file: a run that tests nothing on chert is to be seen.
//
// It is copied into the suite's module and not imported by it, so it must not
// use anything beside std, the root package and chertest.
package onchert
