package main

// This file has the suites of programs, and of libraries that many programs use. They take minutes
// to build and are not run by default.

// caddySuite is Caddy's tests that serve: its integration tests, which run the program with a
// configuration, and those of its HTTP server and reverse proxy.
var caddySuite = &module{
	path:     "github.com/caddyserver/caddy/v2",
	from:     "caddy",
	packages: []string{"./caddytest/...", "./modules/caddyhttp/..."},
	args:     []string{"-p", "1"}, // its tests use the same ports
	patches: []patch{
		// It is of a package that the quic-go that chert requires has moved.
		{file: "listeners.go", old: "\t\t\t\tTracer:            h3qlog.DefaultConnectionTracer,\n", new: "\n"},
		{file: "listeners.go", old: "\th3qlog \"github.com/quic-go/quic-go/http3/qlog\"\n", new: "\n"},
	},
	chertPatches: []patch{
		// Where x/net's package configures the fields of net/http's server for HTTP/2.
		{file: "modules/caddyhttp/app.go",
			old: "\t\t\thttp2.ConfigureServer(srv.server, new(http2.Server))\n",
			new: "\t\t\tsrv.server.Protocols.SetHTTP2(srv.protocol(\"h2\"))\n"},
		{file: "modules/caddyhttp/app.go", old: "\t\"golang.org/x/net/http2\"\n", new: "\n"},
	},
}

// distributionSuite is the registry of container images.
var distributionSuite = &module{
	path: "github.com/distribution/distribution/v3",
	from: "distribution",
	packages: []string{".", "./registry", "./registry/handlers", "./registry/proxy", "./registry/auth/...",
		"./notifications", "./health/...", "./internal/client/...", "./internal/requestutil"},
	patches: []patch{
		// The test sends a file, gets a refusal, and sends the same file again while the
		// transport still reads it for the first request.
		{file: "registry/handlers/api_test.go",
			old: "\treq, err := http.NewRequest(http.MethodPatch, uploadURL, body)\n",
			new: "\tif r, ok := body.(*bytes.Reader); ok { content, _ := io.ReadAll(r); body = bytes.NewReader(content) }; " +
				"req, err := http.NewRequest(http.MethodPatch, uploadURL, body)\n"},
	},
}

// natsSuite is the tests of nats-server's WebSockets, which are its own, on hijacked connections.
var natsSuite = &module{
	path:     "github.com/nats-io/nats-server/v2",
	from:     "nats",
	packages: []string{"./server"},
	args:     []string{"-run", "WS|Websocket|WebSocket"},
}

// apimachinerySuite is the proxy, upgrades and clients of Kubernetes' API.
var apimachinerySuite = &module{
	path:     "k8s.io/apimachinery",
	from:     "apimachinery",
	packages: []string{"./pkg/util/proxy/...", "./pkg/util/net/...", "./pkg/util/httpstream/..."},
}

// githubSuite is a client of which each test has a server.
var githubSuite = &module{
	path:      "github.com/google/go-github/v89",
	from:      "go-github",
	packages:  []string{"./github"},
	testsOnly: true,
}
