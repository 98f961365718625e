// Package autobahn runs the fuzzing client of Autobahn|Testsuite, the conformance suite for WebSockets, against
// a server of a test. docs/suites.md says how to get it.
package autobahn
