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
	},
}
