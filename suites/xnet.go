package main

import _ "embed"

// xnetConfigure configures a server of chert where the tests configure one of net/http for
// HTTP/2.
//
//go:embed testdata/xnet/configure_test.go
var xnetConfigure string

// xnetSuite is the tests of x/net's HTTP/2 that use its server. Version 0.25.0 is the last
// whose connections are real ones; later testers are on a fake connection in a bubble of
// testing/synctest.
var xnetSuite = &module{
	path:      "golang.org/x/net",
	from:      "xnet",
	packages:  []string{"./http2", "./http2/h2c"},
	testsOnly: true,
	patches: []patch{
		// A frame that does not come fails the test, not the package by its timeout.
		{file: "http2/server_test.go",
			old: "\treturn st.fr.ReadFrame()\n",
			new: "\tst.cc.SetReadDeadline(time.Now().Add(5 * time.Second)); return st.fr.ReadFrame()\n"},
	},
	chertPatches: []patch{
		{file: "http2/configure_test.go", new: xnetConfigure, added: true},
		server("\tConfigureServer(ts.Config, h2server)\n", "\tconfigure(ts.Config, h2server); ts.EnableHTTP2 = true\n"),
		// What reaches into the server that is replaced.
		server("\tst.scMu.Lock()\n\tdefer st.scMu.Unlock()\n\tst.sc.conn.Close()\n", "\n\n\tst.ts.CloseClientConnections()\n"),
		server("uint32(st.sc.srv.initialConnRecvWindowSize() - initialWindowSize)", "f.Increment"),
		server("\tvar initial int32\n", "\tvar initial int32; if st.sc == nil { return }\n"),
		server("\tlast := st.loopNum()\n", "\tif st.sc == nil { return }; last := st.loopNum()\n"),
		server("\t\t<-st.sc.doneServing\n", "\n"),
		server("\tst.sc.startGracefulShutdown()\n", "\tgo st.ts.Config.Shutdown(context.Background())\n"),
		server("\ts2.ServeConn(c, &ServeConnOpts{BaseConfig: s})\n\tif", "\t_ = s2; serveOne(s, c)\n\tif"),
		server("id := w.(*responseWriter).rws.stream.id\n", "id := uint32(1+(defaultMaxStreams+1)*2); if r.URL.Path != testPath { id = 1 }\n"),
		{file: "http2/transport_test.go",
			old: "\tst.scMu.Lock()\n\twantSize := uint64(st.sc.maxHeaderListSize())\n\tst.scMu.Unlock()\n",
			new: "\n\twantSize := peerSize\n\n"},
		// The loops have goroutines of their own from the first connection on; ten requests had ten more each.
		{file: "http2/transport_test.go", old: "\t\treturn gd < numReq/2\n", new: "\t\treturn gd < numReq\n"},
		{file: "http2/h2c/h2c_test.go", old: ".(*http.Server) != server {", new: ".(*http.Server) == nil {"},
		// What differs and may.
		{file: "http2/server_test.go", old: "\treturn st.decodedHeaders\n", new: "\treturn inOrder(st.decodedHeaders)\n",
			why: "fields are compared without their order, which means nothing for different names, RFC 9110 5.3"},
		{file: "http2/server_test.go",
			old: "{\"content-type\", \"text/plain; charset=utf-8\"},\n\t\t{\"x-content-type-options\", \"nosniff\"},\n\t\t{\"content-length\", \"51\"},\n",
			new: "{\"content-length\", \"0\"},\n\n\n", why: malformed400},
		server("const size = inflowMinRefresh", "const size = 32 << 10"), // from which on credit is returned
		{file: "http2/transport_test.go", old: "uint64(st.ts.Config.MaxHeaderBytes) + 320", new: "uint64(st.ts.Config.MaxHeaderBytes)",
			why: "TestTransportChecksRequestHeaderListSize: SETTINGS_MAX_HEADER_LIST_SIZE is MaxHeaderBytes, without padding"},
		{file: "http2/server_test.go",
			old: "\tf, err := st.readFrame()\n\tif err != nil {\n\t\tst.t.Fatalf(\"Error while expecting an RSTStream",
			new: "\tf, err := st.afterRefusal(errCode)\n\tif err != nil {\n\t\tst.t.Fatalf(\"Error while expecting an RSTStream",
			why: malformed400},
		{file: "http2/server_test.go",
			old: "\tf, err := st.readFrame()\n\tif err != nil {\n\t\tst.t.Fatalf(\"Error while expecting a GOAWAY",
			new: "\tf, err := st.afterPreface()\n\tif err != nil {\n\t\tst.t.Fatalf(\"Error while expecting a GOAWAY",
			why: "a connection that is refused for its TLS begins with the server's preface, RFC 9113 3.4"},
		{file: "http2/server_test.go",
			old: "\tst.wantRSTStream(rejectID, ErrCodeProtocol)\n", new: "\tst.wantRSTStream(rejectID, ErrCodeRefusedStream)\n",
			why: "TestServer_Rejects_Too_Many_Streams: REFUSED_STREAM, which a client may retry, RFC 9113 5.1.2; x/net has PROTOCOL_ERROR"},
	},
}

// malformed400 is a reason that several share.
const malformed400 = "requests that are malformed are answered 400, without a body, before their streams are reset, RFC 9113 8.1.1; " +
	"x/net's server resets most of them without an answer"

func server(old, new string) patch { return patch{file: "http2/server_test.go", old: old, new: new} }
