package profile

import (
	"github.com/chert-http/chert/lab/exchange"
	"github.com/chert-http/chert/lab/files"
	"github.com/chert-http/chert/lab/rival"
	"github.com/chert-http/chert/lab/work"
)

// h3Rivals are measured over HTTP/3 if they have it, else over HTTP/2.
const h3Rivals = "chert3direct,quicgo,nethttp,chert"

// h3Scenes are profiles over HTTP/3, with load.Gets. Servers without HTTP/3 take part over TLS and HTTP/2, with as many
// streams: what HTTP/3 costs more is in the same rounds.
func h3Scenes() []scene {
	hello := exchange.OK("text/plain", work.Hello)
	all := []scene{
		{name: "h3hello1", about: "HTTP/3: \"Hello, World!\", 64 connections with one stream at a time", title: "%d connections of 1 stream",
			connections: "64", streams: 1, request: exchange.Get("/"), want: hello, needs: rival.Answers},
		{name: "h3hello16", about: "HTTP/3: the same, 8 connections of 16 streams", title: "%d connections of 16 streams",
			connections: "8", streams: 16, request: exchange.Get("/"), want: hello, needs: rival.Answers},
		{name: "h3file1k", about: "HTTP/3: a file of 1 KiB", title: "%d connections of 16 streams, a file of 1 KiB",
			connections: "8", streams: 16, rivals: "chert3direct,quicgo,nethttpfiles,chertfiles",
			needs: rival.Files, folder: &folder{files: []files.File{{Name: "/file1k.css", Size: 1 << 10}}}},
	}
	for i := range all {
		s := &all[i]
		s.server, s.tls, s.h3 = "chert3", true, true
		s.needs |= rival.H2
		s.title += ", HTTP/3 (chert3, quicgo) or HTTP/2"
		if s.rivals == "" {
			s.rivals = h3Rivals
		}
	}
	return all
}
