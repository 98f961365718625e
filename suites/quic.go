package main

import (
	_ "embed"
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
//go:embed testdata/quic/server.go
var onquic string

const quicPath = "github.com/quic-go/quic-go"

// quicSuite is the tests of quic-go's http3.Server with real sockets, of the version that chert has.
// Its other tests of that, in package http3, are of internals: they serve one end of a connection
// whose other end is the test.
var quicSuite = &module{
	path:     quicPath,
	from:     ".",
	packages: []string{"./integrationtests/self"},
	args:     []string{"-run", "^Test(HTTP|Graceful|ContentLength)"},
	replace:  replaceHTTP3,
	chertPatches: []patch{
		// A closed socket does not end chert's server, which has another by then.
		{file: "integrationtests/self/http_test.go", old: "\tt.Cleanup(func() {\n\t\tconn.Close()\n\t\tselect {",
			new: "\tt.Cleanup(func() {\n\t\tserver.Close()\n\t\tselect {"},
	},
}

// replaceHTTP3 puts onquic in place of http3.Server in the tests of a tree.
func replaceHTTP3(r rewriter, dir string) (places int, err error) {
	folder := filepath.Join(dir, "internal", "onquic")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return 0, err
	}
	if err := os.WriteFile(filepath.Join(folder, "server.go"), []byte(onquic), 0o644); err != nil {
		return 0, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "integrationtests", "self", "http*_test.go"))
	if err != nil {
		return 0, err
	}
	for _, file := range files {
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
