package sizes

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// A Package is what was counted of one folder, of files that are no tests and were not generated, for all systems.
type Package struct {
	Name        string // its folder from the module's root
	Files       int
	Lines, Code int // Code: with something else than a comment
	Functions   int // without literals
	Types       []Type
	Recovers    []string // file:line
	interfaces  map[string]*ast.InterfaceType
}

// A Type is a struct.
type Type struct {
	Name             string // with its package's folder
	Fields, Booleans int    // booleans: of type bool or atomic.Bool
}

// load reads the packages of the module at root. Modules below it are not a part of it.
func load(root string) (map[string]*Package, error) {
	all := map[string]*Package{}
	return all, filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			_, err := os.Stat(filepath.Join(file, "go.mod"))
			if file != root && (err == nil || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		return add(all, filepath.ToSlash(rel), source)
	})
}

// add counts a file.
func add(all map[string]*Package, file string, source []byte) error {
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(parsed) {
		return err
	}
	name := path.Dir(file)
	p := all[name]
	if p == nil {
		p = &Package{Name: name, interfaces: map[string]*ast.InterfaceType{}}
		all[name] = p
	}
	p.Files++
	p.Lines += strings.Count(string(source), "\n")
	p.Code += code(source)
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			p.Functions++
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "recover" && len(n.Args) == 0 {
				p.Recovers = append(p.Recovers, fmt.Sprintf("%s:%d", file, fset.Position(n.Pos()).Line))
			}
		case *ast.TypeSpec:
			switch t := n.Type.(type) {
			case *ast.InterfaceType:
				p.interfaces[n.Name.Name] = t
			case *ast.StructType:
				p.Types = append(p.Types, fields(name+"."+n.Name.Name, t))
			}
		}
		return true
	})
	return nil
}

// code returns how many lines have a token that is no comment.
func code(source []byte) int {
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, 0)
	lines := map[int]bool{}
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return len(lines)
		}
		if tok == token.SEMICOLON && lit == "\n" {
			continue
		}
		first := file.Line(pos)
		for i := range strings.Count(lit, "\n") + 1 { // a string over several lines
			lines[first+i] = true
		}
	}
}

// fields counts those of a struct; an embedded one is one.
func fields(name string, t *ast.StructType) Type {
	counted := Type{Name: name}
	for _, f := range t.Fields.List {
		n := max(len(f.Names), 1)
		counted.Fields += n
		switch of := f.Type.(type) {
		case *ast.Ident:
			if of.Name == "bool" {
				counted.Booleans += n
			}
		case *ast.SelectorExpr:
			if of.Sel.Name == "Bool" {
				counted.Booleans += n
			}
		}
	}
	return counted
}

// methods returns how many an interface has, with those of interfaces of its own package that it embeds.
func (p *Package) methods(name string) (n int, ok bool) {
	t := p.interfaces[name]
	if t == nil {
		return 0, false
	}
	for _, m := range t.Methods.List {
		if len(m.Names) > 0 {
			n += len(m.Names)
		} else if id, ok := m.Type.(*ast.Ident); ok {
			embedded, _ := p.methods(id.Name)
			n += embedded
		}
	}
	return n, true
}
