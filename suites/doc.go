// Suites runs the test suites of other projects on chert: of web frameworks and
// websocket libraries, and of Go's own net/http. All were written for net/http's
// server; they are rewritten to start chert's, run on each of its engines, and
// compared test by test with the unmodified originals on net/http.
//
//	go run ./suites [-race] [-v] [-keep] [-run pattern] [suite...]
//	go run ./suites -all -record docs/suites-results.md
//
// HAProxy's own tests, run by varnishtest, are no Go tests: chert takes HAProxy's place in them.
//
//	go run ./suites -haproxy ~/src/haproxy haproxy
//
// It must run inside the checkout, whose chert is tested. It needs only the go
// command; modules come from the module cache or, once, from the module proxy.
// docs/suites.md has the results.
package main

// It must not know chert's internals: a suite uses what every program can use. To
// add one, add a line to modules in module.go, or a type that implements suite.
