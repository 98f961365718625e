package main

import (
	"embed"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// onquic is a package in place of quic-go's http3.Server.
//
//go:embed testdata/quic/server.go testdata/quic/pair.go
var onquic embed.FS

const quicPath = "github.com/quic-go/quic-go"

// onquicPair makes connections to such a server for tests that serve one end of a connection whose other
// end they are.
//
//go:embed testdata/quic/pair_test.go
var onquicPair string

const quicTests = "http3/server_test.go"

// quicSuite is the tests of quic-go's http3.Server, of the version that chert has: those with sockets of
// their own, and those in package http3 that serve a connection. The others there are of internals.
var quicSuite = &module{
	path:     quicPath,
	from:     ".",
	packages: []string{"./integrationtests/self", "./http3"},
	args: []string{
		"-run", "^Test(HTTP|Graceful|ContentLength|Server)",
		"-skip", "^TestServer(AcceptQueueOverflow|TransportClose|RequestPriority)$", // of the transport; of a function
	},
	replace: replaceHTTP3,
	chertPatches: []patch{
		// A closed socket does not end chert's server, which has another by then.
		{file: "integrationtests/self/http_test.go", old: "\tt.Cleanup(func() {\n\t\tconn.Close()\n\t\tselect {",
			new: "\tt.Cleanup(func() {\n\t\tserver.Close()\n\t\tselect {"},
		{file: "integrationtests/self/http_0rtt_test.go", old: "MaxIdleTimeout: 10 * time.Second}", new: "MaxIdleTimeout: 10 * time.Second, " +
			"TokenStore: quic.NewLRUTokenStore(1, 1)}", why: "TestHTTP0RTT: early data is for clients that have shown their address"},
		{file: "http3/chert_pair_test.go", new: onquicPair, added: true},
		// There is no qlog, and a request's context has what net/http's has.
		{file: quicTests, old: "\t\trequire.Empty(t, body)\n\n\t\trequire.Len(t, eventRecorder", new: "\t\trequire.Empty(t, body)\n\t\treturn\n\t\trequire.Len(t, eventRecorder"},
		{file: quicTests, old: "\t\t\t0,\n\t\t\t&eventRecorder,\n\t\t)\n", new: "\t\t\t0,\n\t\t\t&eventRecorder,\n\t\t); return\n"},
		{file: quicTests, old: "\t\t\t20,\n\t\t\t&eventRecorder,\n\t\t)\n", new: "\t\t\t20,\n\t\t\t&eventRecorder,\n\t\t); return\n"},
		{file: quicTests, old: "\trequire.Equal(t, s, requestContext.Value(ServerContextKey))\n" +
			"\trequire.Equal(t, serverConn.LocalAddr(), requestContext.Value(http.LocalAddrContextKey))\n" +
			"\trequire.Equal(t, serverConn.RemoteAddr(), requestContext.Value(RemoteAddrContextKey))\n", new: "\n\n\n"},
		{file: quicTests, old: `logOutput, "http3: panic serving")` + "\n\t\trequire.Contains", new: `logOutput, "panic serving")` + "\n\t\trequire.Contains"},
		// A server of chert has its limits before it has connections.
		{file: quicTests, old: "\ts.init()\n\n\tclientConn, serverConn := newConnPair(t, withServerRecorder(rec))\n",
			new: "\n\n\tclientConn, serverConn := newPairOf(t, s)\n"},
		// It does not wait for the rest of what it refuses.
		{file: quicTests, old: "\trequire.NoError(t, err)\n\n\tgo s.ServeQUICConn(serverConn)\n\n\thfs := decodeHeader(t, str)\n\trequire.Equal(t, []string{\"431\"}",
			new: "\n\n\tgo s.ServeQUICConn(serverConn)\n\n\thfs := decodeHeader(t, str)\n\trequire.Equal(t, []string{\"431\"}"},
		{file: quicTests, old: "expectStreamWriteReset(t, str, quic.StreamErrorCode(ErrCodeExcessiveLoad))",
			new: "expectStreamWriteReset(t, str, quic.StreamErrorCode(ErrCodeNoError))",
			why: "TestServerRequestHeaderTooLarge: a client is asked with H3_NO_ERROR to send no more of a request that has its whole response, RFC 9114 4.1"},
	},
}

// replaceHTTP3 puts onquic in place of http3.Server in the tests of a tree.
func replaceHTTP3(r rewriter, dir string) (places int, err error) {
	r.omit["testServerSettings"] = "the function that runs it is left out"
	folder := filepath.Join(dir, "internal", "onquic")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return 0, err
	}
	for _, name := range []string{"server.go", "pair.go"} {
		text, err := onquic.ReadFile("testdata/quic/" + name)
		if err != nil {
			return 0, err
		}
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o644); err != nil {
			return 0, err
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "integrationtests", "self", "http*_test.go"))
	if err != nil {
		return 0, err
	}
	for _, file := range append(files, filepath.Join(dir, filepath.FromSlash(quicTests))) {
		n, err := r.replaceHTTP3(file)
		if places += n; err != nil {
			return places, err
		}
	}
	return places, nil
}

// replaceHTTP3 does so in a file.
func (r rewriter) replaceHTTP3(file string) (places int, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, text, parser.ParseComments)
	if err != nil {
		return 0, err
	}
	s := &source{rewriter: r, fset: fset, text: text, file: parsed, keep: make(map[ast.Node]bool)}
	s.omitTests()
	ast.Inspect(parsed, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok || s.keep[n] || sel.Sel.Name != "Server" {
			return true
		}
		if pkg, ok := sel.X.(*ast.Ident); ok && pkg.Name == "http3" {
			s.replace(pkg.Pos(), pkg.End(), "onquic")
			s.places++
		}
		return true
	})
	for _, id := range parsed.Unresolved {
		switch inside := parsed.Name.Name == "http3" && !s.keep[id]; {
		case inside && id.Name == "Server":
			s.replace(id.Pos(), id.Pos(), "onquic.")
			s.places++
		case inside && id.Name == "newConnPair":
			s.replace(id.Pos(), id.End(), "newPair")
		}
	}
	if len(s.edits) == 0 {
		return 0, errors.Join(s.errs...)
	}
	if s.places > 0 {
		s.replace(parsed.Name.End(), parsed.Name.End(), fmt.Sprintf("; import %q", quicPath+"/internal/onquic"))
	}
	// Imports may be left without use.
	out := apply(text, s.edits)
	now, err := parser.ParseFile(token.NewFileSet(), file, out, 0)
	if err != nil {
		return 0, errors.Join(append(s.errs, err)...)
	}
	s.edits = nil
	for _, im := range now.Imports {
		name := strings.TrimSuffix(importName(im), "-go") // quic-go's is quic
		if uses(parsed, name, "") && !uses(now, name, "") {
			s.edits = append(s.edits, edit{int(im.Pos()) - 1, int(im.Path.Pos()) - 1, "_ "})
		}
	}
	return s.places, errors.Join(append(s.errs, os.WriteFile(file, apply(out, s.edits), 0o644))...)
}
