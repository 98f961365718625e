package main

import "strings"

// difference is a test that passes on net/http, does not pass on chert, and
// need not.
type difference struct {
	suite string
	test  string // with its subtests
	why   string
	// omit leaves the test function out: it does not compile, or what it does
	// when it fails would disturb others.
	omit bool
}

// insideHTTP is a reason that several share.
const insideHTTP = "tests a part of net/http's server, not what it does"

var differences = []difference{
	{suite: "go", test: "TestAutomaticHTTP2_Serve_H2TLSConfig", why: insideHTTP},
	{suite: "go", test: "TestAutomaticHTTP2_Serve_NoTLSConfig", why: insideHTTP},
	{suite: "go", test: "TestAutomaticHTTP2_Serve_WithTLSConfig", why: insideHTTP},
	{suite: "go", test: "TestH12_HandlerWritesTooLittle", why: "a response that is shorter than its Content-Length ends with " +
		"RST_STREAM, so that a client that does not count notices too; net/http ends it as if it were whole"},
	{suite: "go", test: "TestLinuxSendfile", why: "its file has 1 KiB; chert sends files below 16 KiB together with the head"},
	{suite: "go", test: "TestUnsupportedTransferEncodingsReturn501/h1", why: "its bytes have no Date and no Content-Length; chert's refusals have both"},
	{suite: "go", test: "TestCloseWrite", why: insideHTTP, omit: true},
}

func (d difference) String() string { return d.test }

// omitted has the tests of a suite that are left out, and why.
func omitted(suite string) map[string]string {
	m := make(map[string]string)
	for _, d := range differences {
		if d.suite == suite && d.omit {
			m[d.test] = d.why
		}
	}
	return m
}

// explain returns the line of the table that a test falls under.
func explain(suite, test string) (difference, bool) {
	for _, d := range differences {
		if d.suite == suite && (test == d.test || strings.HasPrefix(test, d.test+"/")) {
			return d, true
		}
	}
	return difference{}, false
}
