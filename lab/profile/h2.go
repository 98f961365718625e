package profile

import (
	"strconv"

	"github.com/chert-http/chert/lab/exchange"
	"github.com/chert-http/chert/lab/files"
	"github.com/chert-http/chert/lab/rival"
	"github.com/chert-http/chert/lab/work"
)

// The load of the profiles of HTTP/2.
const (
	h2Connections = "16"
	h2Streams     = 32
)

// h2Scenes are profiles over TLS and HTTP/2, with h2load.
func h2Scenes(form, upload exchange.Request, items string) []scene {
	hello := exchange.OK("text/plain", work.Hello)
	all := []scene{
		{name: "h2hello", about: "HTTP/2: \"Hello, World!\"", title: "%d connections of 32 streams, TLS", request: exchange.Get("/"), want: hello,
			needs: rival.Answers},
		{name: "h2direct", about: "HTTP/2: the same by a direct handler", title: "%d connections of 32 streams, TLS", server: "chertdirect",
			request: exchange.Get("/"), want: hello, needs: rival.Answers},
		{name: "h2file1k", about: "HTTP/2: a file of 1 KiB", title: "%d connections of 32 streams, TLS, a file of 1 KiB",
			needs: rival.Files, folder: &folder{files: []files.File{{Name: "/file1k.css", Size: 1 << 10}}}},
		{name: "h2json", about: "HTTP/2: ten items, encoded by encoding/json", title: "%d connections of 32 streams, TLS, ten items as JSON",
			request: exchange.Get("/items"), want: exchange.OK("application/json", items), needs: rival.Code},
		{name: "h2post", about: "HTTP/2: a form of 100 bytes and a query, both decoded", title: "%d connections of 32 streams, TLS, POST of a small form",
			request: form, want: exchange.OK("text/plain", work.Form("7", "Ada Lovelace", "London")), needs: rival.Code},
		{name: "h2upload", about: "HTTP/2: bodies of 8 MiB, one stream on each of 8 connections", title: "%d connections, TLS, POST of 8 MiB",
			request: upload, want: exchange.OK("text/plain", strconv.Itoa(uploadSize)), needs: rival.Code,
			connections: "8", streams: 1},
	}
	for i := range all {
		s := &all[i]
		s.rivals = everyone
		s.needs |= rival.H2
		s.tls = true
		if s.streams == 0 {
			s.connections, s.streams = h2Connections, h2Streams
		}
	}
	return all
}
