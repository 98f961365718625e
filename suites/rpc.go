package main

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
)

// connectSuite is connect's tests of its handlers and clients, with all its protocols. Its
// server is on pipes in memory, which have no buffer: what is not read blocks its sender.
var connectSuite = &module{
	path:     "connectrpc.com/connect",
	from:     "connect",
	packages: []string{".", "./internal/memhttp/..."},
	// Of the client's deadlines; it waits for half a minute.
	args:    []string{"-skip", "^TestClientDeadlineHandling$"},
	patches: memhttpPointer,
}

// connectTCPSuite is the same over sockets, which loops serve.
var connectTCPSuite = &module{
	path:     "connectrpc.com/connect",
	from:     "connect",
	packages: []string{".", "./internal/memhttp/..."},
	// The first two hang on net/http unless the connection is a pipe.
	args: []string{"-skip", "^TestClientDisconnect$/^http1$/^handler_reads$|^TestClientWithReadMaxBytesFullDuplex$|^TestClientDeadlineHandling$"},
	patches: slices.Concat(memhttpPointer, []patch{
		memhttp("\t\"errors\"\n", "\t\"errors\"; \"net\"\n"),
		memhttp("\tlistener       *memoryListener\n", "\tlistener       net.Listener\n"),
		memhttp("\tlistener := newMemoryListener(\"1.2.3.4\") // httptest.DefaultRemoteAddr\n",
			"\tlistener, err := net.Listen(\"tcp\", \"127.0.0.1:0\"); if err != nil { panic(err) }\n"),
		memhttp("s.listener.DialContext,",
			"func(ctx context.Context, _, _ string) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, \"tcp\", s.listener.Addr().String()) },"),
		// The addresses that tests compare with.
		memhttp("\"http://\" + listener.Addr().String()", "\"http://1.2.3.4\""),
		memhttp("\t\t\tHandler:           handler,\n",
			"\t\t\tHandler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { r.RemoteAddr = \"1.2.3.4\"; handler.ServeHTTP(w, r) }),\n"),
	}),
}

// connectProxySuite is connectTCPSuite with a proxy between, without the tests of its server,
// which are in bubbles of testing/synctest.
var connectProxySuite = func() *module {
	m := proxied(connectTCPSuite)
	m.packages = []string{"."}
	return m
}()

// proxied is a suite of which the server's handler is behind a proxy.
func proxied(m *module) *module {
	p := *m
	p.through = true
	return &p
}

// memhttpPointer makes connect's server a pointer: the rewriter cannot set the engine of a field.
var memhttpPointer = []patch{
	memhttp("\tserver         http.Server\n", "\tserver         *http.Server\n"),
	memhttp("\t\tserver: http.Server{\n", "\t\tserver: &http.Server{\n"),
}

func memhttp(old, new string) patch {
	return patch{file: "internal/memhttp/memhttp.go", old: old, new: new}
}

// grpcTests is grpc-go's tests of whole calls that serve with net/http: through its
// http.Handler, in the environment that has this name.
type grpcTests struct{ module }

var grpcSuite = &grpcTests{module{
	path:     "google.golang.org/grpc",
	packages: []string{"./test", "./status"},
	patches: []patch{
		{file: "test/end2end_test.go", old: "flag.String(\"only_env\", \"\", ", new: "flag.String(\"only_env\", \"handler-tls\", "},
	},
}}

// grpcProxySuite is the same with a proxy between.
var grpcProxySuite = &grpcTests{func() module {
	m := *proxied(&grpcSuite.module)
	// The servers behind the proxy, and its connections to them, stay until the program ends.
	m.chertPatches = []patch{{file: "internal/grpctest/grpctest.go", old: "\tleakcheck.CheckGoroutines(ctx, logger{t: t})\n", new: "\n"},
		{file: "test/end2end_test.go", old: "w.s.Handler.(*grpc.Server)", new: "onchert.Behind(w.s.Handler).(*grpc.Server)"}}
	return m
}()}

func (g *grpcTests) prepare(ctx context.Context, co *checkout, name, dir string) (*prepared, error) {
	p, err := g.module.prepare(ctx, co, name, dir)
	if err != nil {
		return nil, err
	}
	var serving []string // tests
	for _, pkg := range g.packages {
		list, err := servingTests(filepath.Join(p.plain.dir, pkg))
		if err != nil {
			return nil, err
		}
		serving = append(serving, list...)
	}
	if len(serving) == 0 {
		return nil, errors.New("no test serves with net/http")
	}
	args := []string{"-run", "^Test$/^(" + strings.Join(serving, "|") + ")$"}
	p.plain.args, p.chert.args = args, args
	return p, nil
}

// servingTests has the names of the methods in a package's tests that say that they serve
// with net/http, without the prefix Test.
func servingTests(dir string) (list []string, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	for _, f := range files {
		file, err := parser.ParseFile(token.NewFileSet(), f, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil {
				continue
			}
			name, found := strings.CutPrefix(f.Name.Name, "Test")
			if found && mentions(f.Body, "listTestEnv", "StartHandlerServer", "httptest") {
				list = append(list, name)
			}
		}
	}
	return list, err
}

// mentions reports whether there is one of the names in a function.
func mentions(body *ast.BlockStmt, names ...string) (found bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && slices.Contains(names, id.Name)
		return !found
	})
	return found
}
