package main

// connectSuite is connect's tests of its handlers and clients, with all its protocols.
var connectSuite = &module{
	path:     "connectrpc.com/connect",
	own:      true,
	packages: []string{".", "./internal/memhttp/..."},
	// net/http does not cancel the context of a request whose body ends with the socket.
	args: []string{"-skip", "^TestClientDisconnect$/^http1$/^handler_reads$"},
	patches: []patch{
		// Its server has sockets, where it would have pipes, which only goroutines can serve.
		memhttp("\t\"errors\"\n", "\t\"errors\"; \"net\"\n"),
		memhttp("\tlistener       *memoryListener\n", "\tlistener       net.Listener\n"),
		memhttp("\tlistener := newMemoryListener(\"1.2.3.4\") // httptest.DefaultRemoteAddr\n",
			"\tlistener, err := net.Listen(\"tcp\", \"127.0.0.1:0\"); if err != nil { panic(err) }\n"),
		memhttp("s.listener.DialContext,",
			"func(ctx context.Context, _, _ string) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, \"tcp\", s.listener.Addr().String()) },"),
		memhttp("\tserver         http.Server\n", "\tserver         *http.Server\n"),
		memhttp("\t\tserver: http.Server{\n", "\t\tserver: &http.Server{\n"),
		// The addresses that tests compare with.
		memhttp("\"http://\" + listener.Addr().String()", "\"http://1.2.3.4\""),
		memhttp("\t\t\tHandler:           handler,\n",
			"\t\t\tHandler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { r.RemoteAddr = \"1.2.3.4\"; handler.ServeHTTP(w, r) }),\n"),
	},
}

func memhttp(old, new string) patch {
	return patch{file: "internal/memhttp/memhttp.go", old: old, new: new}
}

// grpcSuite is grpc-go's tests of its transports and whole calls. Those that use its
// http.Handler, on net/http's server with HTTP/2, are on chert.
var grpcSuite = &module{
	path:     "google.golang.org/grpc",
	packages: []string{"./internal/transport", "./test"},
}
