package main

import _ "embed"

// httputilProxy makes ReverseProxy an adapter of package proxy.
//
//go:embed testdata/httputil/onchert.go
var httputilProxy string

// httputilSuite is the tests of ReverseProxy, of which each proxies by chert, on its servers.
var httputilSuite = &goTests{
	packages: []string{"net/http/httputil"},
	args:     []string{"-skip", "^TestDump|^TestChunk"}, // not of the proxy
	imports:  []string{"proxy"},
	chertPatches: []patch{
		{file: "net/http/httputil/onchert.go", new: httputilProxy, added: true},
		{file: "net/http/httputil/reverseproxy.go",
			old: "func (p *ReverseProxy) ServeHTTP(rw http.ResponseWriter, req *http.Request) {\n",
			new: "func (p *ReverseProxy) ServeHTTP(rw http.ResponseWriter, req *http.Request) { p.onChert(rw, req) }; " +
				"func (p *ReverseProxy) original(rw http.ResponseWriter, req *http.Request) {\n"},
		reverseProxyTest("\t\tw.Header().Set(fakeHopHeader, \"foo\")\n", "\n", ""), // a variable of ReverseProxy's
		reverseProxyTest("if c := r.Header.Get(\"Connection\"); c != \"\" {\n\t\t\tt.Errorf(\"handler got Connection",
			"if c := r.Header.Get(\"Connection\"); c != \"TE\" {\n\t\t\tt.Errorf(\"handler got Connection",
			"TestReverseProxy: TE is sent with Connection: TE, RFC 9110 10.1.4"),
		reverseProxyTest("rw.Header().Get(\"X-Modified\"), \"true\"", "rw.Header().Get(\"X-Modified\"), \"\"", modify101),
		reverseProxyTest("\tdefer rwc.Close()\n\n\tif got, want := res.Header.Get(\"X-Modified\"), \"true\"",
			"\tdefer rwc.Close()\n\n\tif got, want := res.Header.Get(\"X-Modified\"), \"\"", modify101),
		reverseProxyTest("\t}\n\n\tif got, want := res.Header.Get(\"X-Modified\"), \"true\"",
			"\t}\n\n\tif got, want := res.Header.Get(\"X-Modified\"), \"\"", modify101),
	},
}

// modify101 is a reason that several share.
const modify101 = "ModifyResponse is not called for 101: a program cannot change the protocol that was agreed on"

func reverseProxyTest(old, new, why string) patch {
	return patch{file: "net/http/httputil/reverseproxy_test.go", old: old, new: new, why: why}
}
