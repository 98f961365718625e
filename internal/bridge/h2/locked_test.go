package h2

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// Functions whose names end in Locked hold the lock of their caller until they return. What they
// call later, in a function literal, may take it.
func TestLockedFunctions(t *testing.T) {
	t.Parallel()
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	set := token.NewFileSet()
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, f.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !strings.HasSuffix(fn.Name.Name, "Locked") {
				continue
			}
			found++
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				if sel, ok := n.(*ast.SelectorExpr); ok && (sel.Sel.Name == "Lock" || sel.Sel.Name == "Unlock" || sel.Sel.Name == "Wait") {
					t.Errorf("%v: %s calls %s", set.Position(n.Pos()), fn.Name.Name, sel.Sel.Name)
				}
				_, later := n.(*ast.FuncLit)
				return !later
			})
		}
	}
	if found < 50 {
		t.Errorf("%d functions", found)
	}
}
