package profile

import (
	"github.com/chert-http/chert/lab/exchange"
	"github.com/chert-http/chert/lab/files"
	"github.com/chert-http/chert/lab/rival"
	"github.com/chert-http/chert/lab/work"
)

// proxyServer is what profiles of reverse proxies compare with its rivals by default.
const proxyServer = "chertproxy"

// proxyScenes are profiles of reverse proxies: the processor time is the proxy's alone. The server behind it runs beside
// the load.
func proxyScenes(upload exchange.Request) []scene {
	hello := exchange.OK("text/plain", work.Hello)
	all := []scene{
		{name: "proxy64", about: "a reverse proxy: \"Hello, World!\"", title: "%d connections to a proxy", connections: "64",
			request: exchange.Get("/"), want: hello},
		{name: "proxy512", about: "a reverse proxy: the same, 512 connections", title: "%d connections to a proxy", connections: "512",
			request: exchange.Get("/"), want: hello},
		{name: "proxy100k", about: "a reverse proxy: a file of 100 KiB", title: "%d connections to a proxy, a file of 100 KiB", connections: "64",
			folder: &folder{files: []files.File{{Name: "/file100k.js", Size: 100 << 10}}}},
		{name: "proxytls", about: "a reverse proxy with TLS: \"Hello, World!\"", title: "%d connections to a proxy, TLS", connections: "64",
			request: exchange.Get("/"), want: hello, tls: true},
		{name: "proxyh2", about: "a reverse proxy with HTTP/2: \"Hello, World!\"", title: "%d connections of 32 streams to a proxy, TLS",
			request: exchange.Get("/"), want: hello, tls: true, connections: h2Connections, streams: h2Streams},
		{name: "proxyupload", about: "a reverse proxy: bodies of 8 MiB, 8 connections", title: "%d connections to a proxy, POST of 8 MiB",
			request: exchange.Request{Method: "POST", Path: "/upload", Type: upload.Type, Body: upload.Body}, want: hello, connections: "8"},
	}
	for i := range all {
		all[i].server, all[i].rivals, all[i].needs = proxyServer, everyone, rival.Proxy
	}
	return all
}
