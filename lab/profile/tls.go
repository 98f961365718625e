package profile

import (
	"github.com/chert-http/chert/lab/exchange"
	"github.com/chert-http/chert/lab/files"
	"github.com/chert-http/chert/lab/rival"
	"github.com/chert-http/chert/lab/work"
)

// tlsScenes are profiles of HTTP/1 over TLS, with wrk, which speaks TLS 1.3 and resumes no session. The servers are those
// that also speak HTTP/2, which wrk does not ask for.
func tlsScenes(closing exchange.Request) []scene {
	hello := exchange.OK("text/plain", work.Hello)
	all := []scene{
		{name: "tlshello", about: "TLS: \"Hello, World!\"", title: "%d keep-alive connections, TLS", request: exchange.Get("/"), want: hello,
			needs: rival.Answers},
		{name: "tlsdirect", about: "TLS: the same by a direct handler", title: "%d keep-alive connections, TLS", server: "chertdirect",
			request: exchange.Get("/"), want: hello, needs: rival.Answers},
		{name: "tlsclose", about: "TLS: a connection and a full handshake for each request", title: "%d connections at a time, each for a handshake and a request",
			request: closing, want: hello, needs: rival.Answers},
		{name: "tlsfile100k", about: "TLS: a file of 100 KiB", title: "%d connections, TLS, a file of 100 KiB",
			needs: rival.Files, folder: &folder{files: []files.File{{Name: "/file100k.js", Size: 100 << 10}}}},
	}
	for i := range all {
		s := &all[i]
		s.connections, s.rivals, s.tls = "64", everyone, true
		s.needs |= rival.H2
	}
	return all
}
