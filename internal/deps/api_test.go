package deps

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
)

// The convention of the public packages, as far as the source shows it. CONTRIBUTING.md
// has all of it, under "Public API".

// notPublic are the folders whose packages are no API.
var notPublic = []string{"cmd", "suites", "test"}

// otherwise are exported names that the convention does not hold for, and why.
var otherwise = map[string]string{
	".: Server.ErrorLog": "a field of http.Server",
	"filter: Pass":       "decisions; the zero Outcome is a mistake, not a default",
	"filter: OnPlain":    "as Pass",
	"filter: Responded":  "as Pass",
	"stats: Inline":      "words of the documentation, which need no prefix in this package",
	"stats: Pooled":      "as Inline",
	"stats: Direct":      "as Inline",
	"stats: Goroutine":   "as Inline",

	"middleware: OpenLog":      "a LineWriter, to a file",
	"eventstream: NewMirror":   "a Topic, of events that others keep",
	"middleware: RefusalPages": "the pages of ErrorPages, for the server",
	"direct/wire: CheckField":  "for middleware that takes fields from its users",
}

func TestPublicAPI(t *testing.T) {
	tree, files := load(t)
	faults, err := checkAPI(tree, files)
	if err != nil {
		t.Fatal(err)
	}
	report(t, faults)
}

// checkAPI returns the faults of all public packages.
func checkAPI(tree fs.FS, files []string) (faults []string, err error) {
	for _, file := range files {
		pkg := path.Dir(file)
		if strings.HasSuffix(file, "_test.go") || within("internal", pkg) || strings.Contains(pkg, "/internal") ||
			slices.ContainsFunc(notPublic, func(f string) bool { return within(f, pkg) }) {
			continue
		}
		src, err := fs.ReadFile(tree, file)
		if err != nil {
			return nil, err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, file, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		a := api{pkg: pkg, fset: fset}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				a.function(d)
			case *ast.GenDecl:
				a.general(d)
			}
		}
		faults = append(faults, a.faults...)
	}
	return faults, nil
}

type api struct {
	pkg    string
	fset   *token.FileSet
	faults []string
}

func (a *api) fault(n ast.Node, name, format string, args ...any) {
	if otherwise[a.pkg+": "+name] == "" {
		a.faults = append(a.faults, fmt.Sprintf("%s: %s %s", a.fset.Position(n.Pos()), name, fmt.Sprintf(format, args...)))
	}
}

// typeName returns T of T, p.T and, with its package, of another: "log.Logger".
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return typeName(e.X) + "." + e.Sel.Name
	case *ast.StarExpr:
		return "*" + typeName(e.X)
	}
	return ""
}

func isOptions(name string) bool { return strings.HasSuffix(name, "Options") }

// function checks that options come by pointer and last and are named after what takes
// them, that constructors return errors instead of panicking, and have no other function
// that checks for them, and that what finds values is named after them.
func (a *api) function(d *ast.FuncDecl) {
	if !d.Name.IsExported() || d.Recv != nil {
		return
	}
	name := d.Name.Name
	if strings.HasPrefix(name, "Check") {
		a.fault(d, name, "checks options; the constructor returns that error")
	}
	takesOptions := false
	params := d.Type.Params.List
	for i, p := range params {
		t := typeName(p.Type)
		switch {
		case isOptions(t) && !strings.HasPrefix(t, "*"):
			a.fault(d, name, "takes %s by value; take a pointer, nil is the default", t)
		case isOptions(t) && i != len(params)-1:
			a.fault(d, name, "has %s before its last parameter", t)
		case isOptions(t):
			takesOptions = true
			of := strings.TrimSuffix(strings.TrimPrefix(t, "*"), "Options")
			if of != "" && !strings.Contains(of, ".") && strings.TrimPrefix(name, "New") != of {
				a.fault(d, name, "takes %s; name them alike", t)
			}
		case t == "Values" || t == "filter.Values":
			if !strings.HasSuffix(name, "Of") {
				a.fault(d, name, "reads Values; name it after what it returns, as UserOf")
			}
		}
	}
	if !takesOptions && !strings.HasPrefix(name, "New") || a.pkg == "direct" || a.pkg == "direct/wire" || a.pkg == "chertest" {
		return // responses panic as http.ResponseWriter does, chertest as httptest
	}
	ast.Inspect(d, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && typeName(call.Fun) == "panic" {
			a.fault(call, name, "panics; return an error")
		}
		return true
	})
}

func (a *api) general(d *ast.GenDecl) {
	if d.Tok == token.CONST {
		a.constants(d)
	}
	for _, s := range d.Specs {
		t, ok := s.(*ast.TypeSpec)
		if !ok || !t.Name.IsExported() {
			continue
		}
		st, ok := t.Type.(*ast.StructType)
		if !ok {
			continue
		}
		doc := d.Doc.Text() + t.Doc.Text()
		for _, f := range st.Fields.List {
			for _, name := range f.Names {
				if name.IsExported() {
					a.field(t.Name.Name, doc, f, name)
				}
			}
		}
	}
}

// field checks how loggers are named, and that the comment of a number says what zero
// and negative mean. A type may say in general what negative does.
func (a *api) field(of, doc string, f *ast.Field, name *ast.Ident) {
	full, t := of+"."+name.Name, typeName(f.Type)
	switch {
	case t == "*log.Logger":
		a.fault(f, full, "is a *log.Logger; use *slog.Logger")
	case t == "*slog.Logger" && name.Name != "Logger":
		a.fault(f, full, "is a *slog.Logger; name it Logger")
	}
	if !isOptions(of) && full != "Server."+name.Name {
		return
	}
	comment := strings.ToLower(f.Doc.Text() + f.Comment.Text())
	switch t {
	case "int", "int64", "time.Duration":
		if !strings.Contains(comment+strings.ToLower(doc), "negative") {
			a.fault(f, full, "does not say what a negative value means")
		}
		fallthrough
	case "uint", "uint16", "uint64":
		if !strings.Contains(comment, "default") {
			a.fault(f, full, "does not say what its default is")
		}
	}
}

// constants checks that those of an enumeration begin with a word of its type.
func (a *api) constants(d *ast.GenDecl) {
	of := ""
	for _, s := range d.Specs {
		v := s.(*ast.ValueSpec)
		if v.Type != nil {
			of = typeName(v.Type)
		} else if len(v.Values) > 0 {
			of = ""
		}
		if of == "" || !ast.IsExported(of) {
			continue
		}
		for _, name := range v.Names {
			if name.IsExported() && !strings.HasPrefix(name.Name, firstWord(of)) {
				a.fault(v, name.Name, "is a constant of type %s; begin its name with that", of)
			}
		}
	}
}

// firstWord returns "Log" of "LogFormat".
func firstWord(name string) string {
	i := strings.IndexFunc(name[1:], func(r rune) bool { return 'A' <= r && r <= 'Z' })
	if i < 0 {
		return name
	}
	return name[:i+1]
}
