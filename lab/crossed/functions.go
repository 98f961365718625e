package crossed

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// functions returns those that at least every other of n requests calls, of a profile as go tool covdata textfmt has it:
// after a line with the mode, one for each block of statements.
func functions(root, profile string, n int) (all []Function, err error) {
	blocks := map[string][]block{} // by file
	for line := range strings.Lines(profile) {
		if strings.HasPrefix(line, "mode:") {
			continue
		}
		file, at, ok := strings.Cut(strings.TrimPrefix(line, module+"/"), ":")
		var b block
		var toLine, toColumn, statements int
		if _, err := fmt.Sscanf(at, "%d.%d,%d.%d %d %d", &b.line, &b.column, &toLine, &toColumn, &statements, &b.count); !ok || err != nil {
			return nil, fmt.Errorf("a line of the profile: %q", line)
		}
		if b.count > 0 && !strings.HasPrefix(file, "lab/") {
			blocks[file] = append(blocks[file], b)
		}
	}
	for file, found := range blocks {
		f, err := crossedIn(root, file, found, n)
		if err != nil {
			return nil, err
		}
		all = append(all, f...)
	}
	slices.SortFunc(all, func(a, b Function) int {
		return cmp.Or(strings.Compare(path.Dir(a.File), path.Dir(b.File)), strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return all, nil
}

// A block is where a run of statements begins, and how often it has run.
type block struct{ line, column, count int }

// crossedIn returns the functions of a file that its blocks are in. One whose first statements have run as often as n/2
// is crossed; functions without statements have no blocks.
func crossedIn(root, file string, blocks []block, n int) (all []Function, err error) {
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, filepath.Join(root, filepath.FromSlash(file)), nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	type span struct {
		Function
		from, to token.Position
		first    block
	}
	var spans []span
	var enclosing string
	ast.Inspect(parsed, func(node ast.Node) bool {
		var name string
		var body *ast.BlockStmt
		switch f := node.(type) {
		case *ast.FuncDecl:
			name, body = nameOf(f), f.Body
			enclosing = name
		case *ast.FuncLit:
			name, body = enclosing+".func", f.Body
		}
		if body != nil {
			from := fset.Position(body.Pos())
			spans = append(spans, span{Function: Function{File: file, Line: from.Line, Name: name}, from: from, to: fset.Position(body.End())})
		}
		return true
	})
	for _, b := range blocks {
		// Literals come after what they are in: the last that has the block is the innermost.
		for i := len(spans) - 1; i >= 0; i-- {
			s := &spans[i]
			if before(s.to.Line, s.to.Column, b.line, b.column) || before(b.line, b.column, s.from.Line, s.from.Column) {
				continue
			}
			if s.first.count == 0 || before(b.line, b.column, s.first.line, s.first.column) {
				s.first = b
			}
			break
		}
	}
	for _, s := range spans {
		if 2*s.first.count >= n {
			s.Calls = float64(s.first.count) / float64(n)
			all = append(all, s.Function)
		}
	}
	return all, nil
}

func before(line, column, thanLine, thanColumn int) bool {
	return cmp.Or(cmp.Compare(line, thanLine), cmp.Compare(column, thanColumn)) < 0
}

// nameOf returns "F", "T.F" or "(*T).F".
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	of := f.Recv.List[0].Type
	star, pointer := of.(*ast.StarExpr)
	if pointer {
		of = star.X
	}
	switch g := of.(type) { // a generic type
	case *ast.IndexExpr:
		of = g.X
	case *ast.IndexListExpr:
		of = g.X
	}
	name := "?"
	if id, ok := of.(*ast.Ident); ok {
		name = id.Name
	}
	if pointer {
		name = "(*" + name + ")"
	}
	return name + "." + f.Name.Name
}
