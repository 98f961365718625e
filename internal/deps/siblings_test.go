package deps

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// Packages that do the same for different protocols have the same API where they can, since a user of one expects it of
// the other: what both declare is the same, and some things both must declare.

// sibling is a package beside another one, with the names that its types have there.
type sibling struct {
	pkg, of string
	names   map[string]string
	must    []string          // what both declare
	unlike  map[string]string // what differs, and why
}

var siblings = []sibling{{
	pkg: "eventstream", of: "websocket",
	names: map[string]string{"Stream": "Conn", "Topic": "Room"},
	must: []string{"New", "Handler.Len", "Handler.Close", "ErrSlow", "Slow", "Options.Slow", "Options.MaxUnsent", "Options.Logger",
		"Conn.Send", "Conn.Close", "Conn.Congested", "Conn.SetValue", "Conn.Value", "Conn.RemoteAddr", "Room.Join", "Room.Leave", "Room.Len"},
	unlike: map[string]string{
		"Conn.Send":           "what is sent; the result is the same",
		"Conn.Close":          "a Close frame has a code and a reason",
		"Options.OnClose":     "as Conn.Close",
		"Options.Compression": "permessage-deflate has parameters",
		"Room.Join":           "only a topic has a history, and reports whether that is complete",
	},
}}

func TestSiblings(t *testing.T) {
	tree, files := load(t)
	for _, s := range siblings {
		faults, err := checkSibling(tree, files, s)
		if err != nil {
			t.Fatal(err)
		}
		report(t, faults)
	}
}

func TestCheckSibling(t *testing.T) {
	s := sibling{pkg: "b", of: "a", names: map[string]string{"Stream": "Conn"}, must: []string{"Conn.Send", "Kind"},
		unlike: map[string]string{"Conn.Close": "different"}}
	const a = "package a\n\ntype Conn struct{}\n\nfunc (c *Conn) Send(p []byte) error\nfunc (c *Conn) Close(int)\n\n" +
		"type Kind int\n\nconst (\n\tKindX Kind = iota\n\tKindY\n)\n\nvar own *Conn\n"
	for _, tt := range []struct{ why, b, want string }{
		{"the same, and more", "type Stream struct{}\n\nfunc (s *Stream) Send(b []byte) error\nfunc (s *Stream) Close()\nfunc (s *Stream) More()\n\n" +
			"type Kind int\n\nconst (\n\tKindX Kind = iota\n\tKindY\n)\n", ""},
		{"another result", "type Stream struct{}\n\nfunc (s *Stream) Send(b []byte) bool\n\ntype Kind int\n\nconst (\n\tKindX Kind = iota\n\tKindY\n)\n",
			"b: Conn.Send is func([]byte) bool, in a func([]byte) error"},
		{"another order", "type Stream struct{}\n\nfunc (s *Stream) Send(b []byte) error\n\ntype Kind int\n\nconst (\n\tKindY Kind = iota\n\tKindX\n)\n",
			"b: Kind is int KindY KindX, in a int KindX KindY"},
		{"missing", "type Kind int\n\nconst (\n\tKindX Kind = iota\n\tKindY\n)\n", "b has no Conn.Send, which a must have too"},
	} {
		tree := fstest.MapFS{"a/a.go": file(a), "b/b.go": file("package b\n\n" + tt.b)}
		faults, err := checkSibling(tree, []string{"a/a.go", "b/b.go"}, s)
		if err != nil {
			t.Fatal(err)
		}
		wantFault(t, tt.why, faults, tt.want)
	}
}

func checkSibling(tree fs.FS, files []string, s sibling) (faults []string, err error) {
	ours, err := declared(tree, files, s.pkg, s.names)
	if err != nil {
		return nil, err
	}
	theirs, err := declared(tree, files, s.of, nil)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(ours)) {
		if t, both := theirs[name]; both && t != ours[name] && s.unlike[name] == "" {
			faults = append(faults, fmt.Sprintf("%s: %s is %s, in %s %s", s.pkg, name, ours[name], s.of, t))
		}
	}
	for _, name := range s.must {
		if ours[name] == "" || theirs[name] == "" {
			faults = append(faults, fmt.Sprintf("%s has no %s, which %s must have too", s.pkg, name, s.of))
		}
	}
	return faults, nil
}

// declared returns what a package exports, by name, with names for those of its types: functions, methods as "T.M", fields
// as "T.F", variables, and types with their constants in order. Parameters have no names.
func declared(tree fs.FS, files []string, pkg string, names map[string]string) (map[string]string, error) {
	d := declarations{names: names, all: map[string]string{}}
	for _, f := range files {
		if path.Dir(f) != pkg || isTest(f) {
			continue
		}
		_, parsed, err := parse(tree, f, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, decl := range parsed.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				d.function(decl)
			case *ast.GenDecl:
				d.general(decl)
			}
		}
	}
	return d.all, nil
}

type declarations struct {
	names, all map[string]string
}

// add adds to what is known of a name, which is not always declared in one piece.
func (d *declarations) add(name, what string) {
	d.all[name] = strings.TrimSpace(d.all[name] + " " + what)
}

func (d *declarations) renamed(name string) string {
	if n := d.names[name]; n != "" {
		return n
	}
	return name
}

// text returns a type's source, with the names for types and without those of parameters.
func (d *declarations) text(e ast.Expr) string {
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			n.Name = d.renamed(n.Name)
		case *ast.Field:
			for i := range n.Names {
				n.Names[i] = ast.NewIdent("_")
			}
		}
		return true
	})
	return strings.ReplaceAll(types.ExprString(e), "_ ", "")
}

func (d *declarations) function(f *ast.FuncDecl) {
	if !f.Name.IsExported() {
		return
	}
	name := f.Name.Name
	if f.Recv != nil {
		of := strings.TrimPrefix(typeName(f.Recv.List[0].Type), "*")
		if !ast.IsExported(of) {
			return
		}
		name = d.renamed(of) + "." + name
	}
	d.add(name, d.text(f.Type))
}

func (d *declarations) general(decl *ast.GenDecl) {
	of := ""
	for _, spec := range decl.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			d.typ(spec)
		case *ast.ValueSpec:
			if spec.Type != nil {
				of = d.renamed(typeName(spec.Type))
			} else if len(spec.Values) > 0 {
				of = ""
			}
			for _, name := range spec.Names {
				switch {
				case !name.IsExported():
				case decl.Tok == token.VAR:
					d.add(name.Name, "variable")
				case of != "":
					d.add(of, name.Name)
				}
			}
		}
	}
}

func (d *declarations) typ(spec *ast.TypeSpec) {
	name := d.renamed(spec.Name.Name)
	if !spec.Name.IsExported() {
		return
	}
	s, ok := spec.Type.(*ast.StructType)
	if !ok {
		// The constants may have come before.
		d.all[name] = strings.TrimSpace(d.text(spec.Type) + " " + d.all[name])
		return
	}
	for _, f := range s.Fields.List {
		for _, field := range f.Names {
			if field.IsExported() {
				d.add(name+"."+field.Name, d.text(f.Type))
			}
		}
	}
}
