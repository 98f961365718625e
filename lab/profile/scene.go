package profile

import (
	"strconv"
	"strings"

	"github.com/chert-http/chert/lab/exchange"
	"github.com/chert-http/chert/lab/rival"
	"github.com/chert-http/chert/lab/work"
)

// scene is a comparison of servers under one load.
type scene struct {
	name, about string
	title       string // of a table; %d is the number of connections
	request     exchange.Request
	want        exchange.Answer
	connections string // numbers of them; a table for each
	rivals      string
	server      string // what is compared with them; empty for chert, or chertfiles
	needs       rival.Trade
	held        int     // how many idle connections half of the servers hold; 0: no server does
	tls         bool    // all of it
	streams     int     // on each connection, over HTTP/2 or HTTP/3; 0 for HTTP/1
	h3          bool    // over HTTP/3, and over HTTP/2 those that have no HTTP/3
	burst       int     // messages in each write over WebSockets; 0: requests
	folder      *folder // what is served; nil: not files but answers, and one request and what is wanted
}

// uploadSize is below work.MaxBody.
const uploadSize = 8 << 20

func scenes() []scene {
	hello := exchange.OK("text/plain", work.Hello)
	form := exchange.Request{Method: "POST", Path: "/form?id=7", Type: "application/x-www-form-urlencoded",
		Body: "name=Ada+Lovelace&city=London&note=The+Analytical+Engine+weaves+algebraic+patterns+as+looms+do+silk."}
	upload := exchange.Request{Method: "POST", Path: "/upload", Type: "application/octet-stream", Body: strings.Repeat("chert...", uploadSize/8)}
	items, err := work.ItemsJSON()
	if err != nil {
		panic(err) // a constant that cannot be encoded
	}
	closing, pipelined := exchange.Get("/"), exchange.Get("/")
	closing.Close = true
	pipelined.Pipeline = 16

	var all []scene
	add := func(s scene) {
		if s.rivals == "" {
			s.rivals = everyone
		}
		if s.needs == 0 {
			s.needs = rival.Answers
		}
		all = append(all, s)
	}
	plain := scene{title: "%d keep-alive connections", request: exchange.Get("/"), want: hello}
	for _, n := range []string{"1", "64", "512", "4096"} {
		s := plain
		s.name, s.about, s.connections = "plain"+n, "\"Hello, World!\", connections kept alive: "+n, n
		add(s)
	}
	plain.name, plain.about, plain.connections = "plain", "plain1, plain64, plain512 and plain4096; with --plot, lines over connections", "1,64,512,4096"
	add(plain)
	plain.name, plain.about, plain.connections, plain.rivals = "hello", "plain64 and plain512, with net/http and nginx", "64,512", "nethttp,nginx"
	add(plain)
	add(scene{name: "routed64", about: "a path with two variables, by each server's router", title: "%d connections, GET /users/123/posts/456",
		request: exchange.Get("/users/123/posts/456"), want: exchange.OK("text/plain", work.Post("123", "456")), connections: "64"})
	add(scene{name: "post64", about: "a form of 100 bytes and a query, both decoded", title: "%d connections, POST of a small form",
		request: form, want: exchange.OK("text/plain", work.Form("7", "Ada Lovelace", "London")), connections: "64", needs: rival.Code})
	add(scene{name: "json64", about: "ten items, encoded by encoding/json", title: "%d connections, ten items as JSON",
		request: exchange.Get("/items"), want: exchange.OK("application/json", string(items)), connections: "64", needs: rival.Code})
	add(scene{name: "pipelined16", about: "16 requests in each write, 64 connections", title: "%d connections, 16 requests in each write",
		request: pipelined, want: hello, connections: "64"})
	add(scene{name: "close64", about: "a connection for each request, 64 at a time", title: "%d connections at a time, each for one request",
		request: closing, want: hello, connections: "64"})
	add(scene{name: "sleep256", about: "a handler that sleeps 20 ms, 256 connections", title: "%d connections, a handler that sleeps " + work.Pause.String(),
		request: exchange.Get("/sleep"), want: hello, connections: "256", needs: rival.Code})
	add(scene{name: "upload", about: "bodies of 8 MiB, 8 connections", title: "%d connections, POST of 8 MiB",
		request: upload, want: exchange.OK("text/plain", strconv.Itoa(uploadSize)), connections: "8", needs: rival.Code})
	add(scene{name: "busyidle", about: "64 busy connections, without and with 10,000 idle ones", title: "%d busy connections",
		request: exchange.Get("/"), want: hello, connections: "64", held: 10000})
	all = append(all, fileScenes()...)
	all = append(all, tlsScenes(closing)...)
	all = append(all, socketScenes()...)
	all = append(all, proxyScenes(upload)...)
	all = append(all, h3Scenes()...)
	return append(all, h2Scenes(form, upload, string(items))...)
}
