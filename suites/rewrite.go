package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

// This file turns a source that serves with net/http into one that serves with
// chert:
//
//	httptest.NewServer(h)            onchert.NewServer(h)
//	http.Serve(l, h)                 onchert.Serve(l, h)
//	&http.Server{Handler: h}         &chert.Server{Engine: onchert.Engine(), Handler: h}
//	new(http.Server)                 (&chert.Server{Engine: onchert.Engine()})
//	var s http.Server                var s = chert.Server{Engine: onchert.Engine()}
//	func f(s *http.Server)           func f(s *chert.Server)
//
// The syntax tree says where, and only those bytes are replaced, in place:
// comments stay and so do the numbers of lines, which failures name.
//
// A *http.Server that a type is asserted to stays: it comes from
// http.ServerContextKey, where chert puts one. So does the one in the type of
// TLSNextProto's functions.

// rewriter says what the names of the new sources are imported from.
type rewriter struct {
	chert, onchert string            // import paths
	omit           map[string]string // test functions to skip, and why
	through        bool              // Handler of a server is put behind a proxy
}

// What is replaced.
var (
	testNames = []string{"Server", "NewServer", "NewTLSServer", "NewUnstartedServer"}
	funcNames = []string{"Serve", "ServeTLS", "ListenAndServe", "ListenAndServeTLS"}
)

// source is a file while it is rewritten.
type source struct {
	rewriter
	fset     *token.FileSet
	text     []byte
	file     *ast.File
	http     []string // what net/http is imported as; "." without a name
	httptest []string
	keep     map[ast.Node]bool // names that stay, and those that are dealt with
	edits    []edit
	places   int
	need     map[string]bool // packages to import, by name
	errs     []error
}

// edit replaces text[from:to].
type edit struct {
	from, to int
	text     string
}

// rewrite returns the new text of a source and the number of places where it
// now uses chert; text itself if there are none and nothing is omitted.
func (r rewriter) rewrite(name string, text []byte) (out []byte, places int, err error) {
	s, err := r.find(name, text)
	if err != nil || len(s.edits) == 0 {
		return text, 0, err
	}
	if out, err = s.result(); err != nil {
		return nil, 0, err
	}
	// The result must not serve with net/http any more.
	again, err := r.find(name, out)
	if err == nil && again.places > 0 {
		err = fmt.Errorf("%s: %d places were not replaced", name, again.places)
	}
	return out, s.places, err
}

// find finds the places.
func (r rewriter) find(name string, text []byte) (*source, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	s := &source{rewriter: r, fset: fset, text: text, file: file, keep: make(map[ast.Node]bool), need: make(map[string]bool)}
	for _, im := range file.Imports {
		switch im.Path.Value {
		case `"net/http"`:
			s.http = append(s.http, importName(im))
		case `"net/http/httptest"`:
			s.httptest = append(s.httptest, importName(im))
		}
	}
	s.omitTests()
	ast.Inspect(file, s.exceptions)
	ast.Inspect(file, s.literals)
	ast.Inspect(file, s.references)
	return s, errors.Join(s.errs...)
}

// importName is the name that an import declares; that it is the last element
// of the path holds for all that is looked for here.
func importName(im *ast.ImportSpec) string {
	if im.Name != nil {
		return im.Name.Name
	}
	p, _ := strconv.Unquote(im.Path.Value)
	return path.Base(p)
}

// uses reports whether a file has the selector pkg.name; any name if empty.
func uses(file *ast.File, pkg, name string) (found bool) {
	ast.Inspect(file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			id, ok := sel.X.(*ast.Ident)
			found = found || ok && id.Obj == nil && id.Name == pkg && (name == "" || sel.Sel.Name == name)
		}
		return !found
	})
	return found
}

func (s *source) offset(p token.Pos) int { return s.fset.Position(p).Offset }

func (s *source) replace(from, to token.Pos, text string) {
	s.edits = append(s.edits, edit{s.offset(from), s.offset(to), text})
}

func (s *source) fail(n ast.Node, format string, args ...any) {
	s.errs = append(s.errs, fmt.Errorf("%s: %s", s.fset.Position(n.Pos()), fmt.Sprintf(format, args...)))
}

// omitTests empties the tests that are to be left out, so that what they need
// and chert lacks need not compile.
func (s *source) omitTests() {
	for _, d := range s.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv != nil || f.Body == nil {
			continue
		}
		why, ok := s.omit[f.Name.Name]
		if !ok {
			continue
		}
		params := f.Type.Params.List
		if len(params) == 0 || len(params[0].Names) == 0 {
			s.fail(f, "%s cannot be left out: it has no parameter to call Skip on", f.Name.Name)
			continue
		}
		lines := s.fset.Position(f.Body.Rbrace).Line - s.fset.Position(f.Body.Lbrace).Line
		s.replace(f.Body.Lbrace, f.Body.Rbrace, fmt.Sprintf("{ %s.Skip(%q)%s", params[0].Names[0].Name, why, strings.Repeat("\n", lines)))
		s.forget(f.Body)
	}
}

// forget marks all below a node as dealt with.
func (s *source) forget(n ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		if n != nil {
			s.keep[n] = true
		}
		return true
	})
}

// is reports whether e is net/http's name.
func (s *source) is(e ast.Expr, name string) bool {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		id, ok := e.X.(*ast.Ident)
		return ok && id.Obj == nil && slices.Contains(s.http, id.Name) && e.Sel.Name == name && !s.keep[e]
	case *ast.Ident:
		return slices.Contains(s.http, ".") && e.Obj == nil && e.Name == name && !s.keep[e]
	}
	return false
}

// star strips a pointer type.
func star(e ast.Expr) ast.Expr {
	if p, ok := e.(*ast.StarExpr); ok {
		return p.X
	}
	return e
}

// exceptions marks what looks like one of the names and stays.
func (s *source) exceptions(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.TypeAssertExpr:
		s.stay(n.Type)
	case *ast.TypeSwitchStmt:
		for _, c := range n.Body.List {
			for _, e := range c.(*ast.CaseClause).List {
				s.stay(e)
			}
		}
	case *ast.FuncType: // func(*http.Server, *tls.Conn, http.Handler)
		if l := n.Params.List; len(l) == 3 {
			if sel, ok := star(l[1].Type).(*ast.SelectorExpr); ok && sel.Sel.Name == "Conn" {
				s.stay(l[0].Type)
			}
		}
	case *ast.SelectorExpr:
		s.keep[n.Sel] = true
	case *ast.KeyValueExpr:
		if id, ok := n.Key.(*ast.Ident); ok {
			s.keep[id] = true
		}
	case *ast.Field:
		for _, id := range n.Names {
			s.keep[id] = true
		}
	case *ast.FuncDecl:
		s.keep[n.Name] = true
	}
	return true
}

func (s *source) stay(t ast.Expr) {
	if t = star(t); s.is(t, "Server") {
		s.keep[t] = true
	}
}

// literals finds where a http.Server comes into being, which is where its
// engine is to be set.
func (s *source) literals(n ast.Node) bool {
	if n == nil || s.keep[n] {
		return false
	}
	switch n := n.(type) {
	case *ast.CompositeLit:
		if s.is(n.Type, "Server") {
			s.setEngine(n)
		}
		if s.is(star(elem(n.Type)), "Server") {
			for _, e := range n.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok {
					e = kv.Value
				}
				if lit, ok := e.(*ast.CompositeLit); ok && lit.Type == nil {
					s.setEngine(lit)
				}
			}
		}
	case *ast.CallExpr:
		if id, ok := n.Fun.(*ast.Ident); ok && id.Name == "new" && len(n.Args) == 1 && s.is(n.Args[0], "Server") {
			s.forget(n.Args[0])
			s.replace(n.Pos(), n.End(), "(&"+s.made()+")")
		}
	case *ast.ValueSpec:
		if !s.is(n.Type, "Server") || len(n.Values) > 0 {
			break
		}
		if len(n.Names) > 1 {
			s.fail(n, "several variables of type http.Server in one declaration: their engine cannot be set")
		}
		s.forget(n.Type)
		s.replace(n.Type.Pos(), n.Type.End(), "= "+s.made())
	case *ast.StructType:
		for _, f := range n.Fields.List {
			if s.is(f.Type, "Server") {
				s.fail(f, "a field of type http.Server: its engine cannot be set")
			}
		}
	}
	return true
}

// elem is the type of the elements of an array, a slice or a map.
func elem(t ast.Expr) ast.Expr {
	switch t := t.(type) {
	case *ast.ArrayType:
		return t.Elt
	case *ast.MapType:
		return t.Value
	}
	return nil
}

// made is a new server.
func (s *source) made() string {
	s.places++
	s.need["chert"], s.need["onchert"] = true, true
	return "chert.Server{Engine: onchert.Engine()}"
}

func (s *source) setEngine(lit *ast.CompositeLit) {
	s.need["onchert"] = true
	text := "Engine: onchert.Engine()"
	if len(lit.Elts) > 0 {
		text += ", "
	}
	for _, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok && s.through && fmt.Sprint(kv.Key) == "Handler" {
			s.replace(kv.Value.Pos(), kv.Value.Pos(), "onchert.Through(")
			s.replace(kv.Value.End(), kv.Value.End(), ")")
		}
	}
	s.replace(lit.Lbrace+1, lit.Lbrace+1, text)
}

// references replaces the names.
func (s *source) references(n ast.Node) bool {
	if n == nil || s.keep[n] {
		return false
	}
	e, ok := n.(ast.Expr)
	if !ok {
		return true
	}
	pkg := ""
	if s.is(e, "Server") {
		pkg = "chert"
	}
	for _, name := range funcNames {
		if s.is(e, name) {
			pkg = "onchert"
		}
	}
	sel, ok := e.(*ast.SelectorExpr)
	if ok && slices.Contains(testNames, sel.Sel.Name) {
		if id, ok := sel.X.(*ast.Ident); ok && id.Obj == nil && slices.Contains(s.httptest, id.Name) {
			pkg = "onchert"
		}
	}
	if pkg == "" {
		return true
	}
	s.places++
	s.need[pkg] = true
	if sel != nil {
		s.replace(sel.X.Pos(), sel.X.End(), pkg)
	} else {
		s.replace(e.Pos(), e.Pos(), pkg+".")
	}
	return false
}

// result applies the edits and mends the imports: it adds what is needed and
// makes those blank that nothing uses any more.
func (s *source) result() ([]byte, error) {
	out := apply(s.text, s.edits)
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, s.fset.File(s.file.Pos()).Name(), out, parser.ParseComments)
	if err != nil {
		return nil, fmt.Errorf("the rewritten source does not parse: %w", err)
	}
	var edits []edit
	for _, im := range file.Imports {
		name := importName(im)
		if name == "." || name == "_" || !uses(s.file, name, "") || uses(file, name, "") {
			continue
		}
		from, to := fset.Position(im.Pos()).Offset, fset.Position(im.Path.Pos()).Offset
		edits = append(edits, edit{from, to, "_ "})
	}
	// On the line of the package clause, so that no line moves.
	var add strings.Builder
	for _, p := range []struct{ name, path string }{{"chert", s.chert}, {"onchert", s.onchert}} {
		if s.need[p.name] {
			fmt.Fprintf(&add, "; import %q", p.path)
		}
	}
	end := fset.Position(file.Name.End()).Offset
	return apply(out, append(edits, edit{end, end, add.String()})), nil
}

// apply makes edits, which must not overlap.
func apply(text []byte, edits []edit) []byte {
	slices.SortStableFunc(edits, func(a, b edit) int { return a.from - b.from })
	var out bytes.Buffer
	at := 0
	for _, e := range edits {
		if e.from < at {
			panic(fmt.Sprintf("edits overlap at offset %d", e.from))
		}
		out.Write(text[at:e.from])
		out.WriteString(e.text)
		at = e.to
	}
	out.Write(text[at:])
	return out.Bytes()
}
