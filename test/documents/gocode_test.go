package documents

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/chert-http/chert"

// importable are the packages that blocks use without importing them, by the name
// that is used.
var importable = map[string]string{
	"atomic": "sync/atomic", "bytes": "bytes", "context": "context", "embed": "embed", "errors": "errors", "fmt": "fmt",
	"http": "net/http", "io": "io", "json": "encoding/json", "log": "log", "net": "net", "os": "os", "signal": "os/signal", "slog": "log/slog",
	"strings": "strings", "sync": "sync", "time": "time", "tls": "crypto/tls",
	"chert": module, "admin": module + "/admin", "basicauth": module + "/middleware/basicauth", "chertest": module + "/chertest",
	"direct": module + "/direct", "eventstream": module + "/eventstream", "filter": module + "/filter",
	"forwardauth": module + "/middleware/forwardauth", "http3": module + "/http3", "jwt": module + "/middleware/jwt", "metrics": module + "/metrics",
	"middleware": module + "/middleware", "park": module + "/park", "proxy": module + "/proxy", "ratelimit": module + "/ratelimit",
	"redisroom": module + "/websocket/redisroom", "redisstore": module + "/ratelimit/redisstore", "redistopic": module + "/eventstream/redistopic", "router": module + "/router", "static": module + "/static", "websocket": module + "/websocket",
	"prometheus": "github.com/prometheus/client_golang/prometheus", "redis": "github.com/redis/go-redis/v9",
	"tracing":       module + "/middleware/tracing",
	"otlptracehttp": "go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp",
	"sdktrace":      "go.opentelemetry.io/otel/sdk/trace",
}

// vet compiles the blocks in a module that is made like go.mod in the folder dir of
// the checkout, and returns what go vet says.
func vet(t *testing.T, dir string, blocks []block) {
	t.Helper()
	root, err := filepath.Abs(checkout)
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(root, dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile(filepath.Join(root, dir, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	// What chert requires, and chert itself in the checkout.
	text := regexp.MustCompile(`(?m)^(module|replace|tool) .*$|^\t`+regexp.QuoteMeta(module)+` .*$`).ReplaceAllString(string(mod), "")
	text = "module documents.example\n" + text + "\nrequire " + module + " v0.0.0\nreplace " + module + " => " + root + "\n"
	if dir != "." {
		text += "require " + module + "/" + dir + " v0.0.0\nreplace " + module + "/" + dir + " => " + filepath.Join(root, dir) + "\n"
	}
	tmp := t.TempDir()
	write(t, filepath.Join(tmp, "go.mod"), text)
	write(t, filepath.Join(tmp, "go.sum"), string(sum))
	for i, b := range blocks {
		src, err := complete(b)
		if err != nil {
			t.Errorf("%s:%d: %v", b.page, b.line, err)
			continue
		}
		write(t, filepath.Join(tmp, fmt.Sprintf("block%d", i), "block.go"), src)
	}
	cmd := exec.CommandContext(t.Context(), "go", "vet", "./...")
	cmd.Dir = tmp
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "GOSUMDB=off", "PWD="+tmp)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go vet: %v\n%s", err, strings.ReplaceAll(string(out), tmp, ""))
	}
}

// complete makes a Go file of a block: a file, declarations, statements or an expression.
func complete(b block) (string, error) {
	if strings.HasPrefix(b.text, "package ") {
		return fmt.Sprintf("//line %s:%d\n%s", b.page, b.line, b.text), nil
	}
	given := b.markers["given"] + "\n"
	at := fmt.Sprintf("//line %s:%d\n", b.page, b.line)
	var first error
	for _, around := range [][2]string{{"", ""}, {"func _() {\n", "\n}\n"}, {"var _ =\n", ""}} {
		body := given + around[0] + at + b.text + around[1]
		src := "package block\n" + body
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, "block.go", src, 0)
		if err != nil {
			if first == nil || around[0] != "var _ =\n" {
				first = err
			}
			continue
		}
		if around[0] != "" && literal(file) {
			continue
		}
		return "package block\n" + imports(file) + used(fset, file, body, len("package block\n")), nil
	}
	return "", first
}

// literal reports whether the function of a block is nothing but a composite literal,
// which is an expression and no statement.
func literal(file *ast.File) bool {
	f, ok := file.Decls[len(file.Decls)-1].(*ast.FuncDecl)
	if !ok || len(f.Body.List) != 1 {
		return false
	}
	s, ok := f.Body.List[0].(*ast.ExprStmt)
	if !ok {
		return false
	}
	_, ok = s.X.(*ast.CompositeLit)
	return ok
}

// imports returns a declaration for the packages that a file uses and does not declare.
func imports(file *ast.File) string {
	paths := map[string]string{}
	unresolved := map[*ast.Ident]bool{}
	for _, id := range file.Unresolved {
		unresolved[id] = true
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := s.X.(*ast.Ident); ok && unresolved[id] && importable[id.Name] != "" {
				paths[id.Name] = importable[id.Name]
			}
		}
		return true
	})
	text := ""
	for _, name := range slices.Sorted(maps.Keys(paths)) {
		text += fmt.Sprintf("import %s %q\n", name, paths[name])
	}
	return text
}

// used adds "_ = &x" after each statement of a block's function that defines x: a
// part of a program does not use all that it defines.
func used(fset *token.FileSet, file *ast.File, body string, skip int) string {
	type insertion struct {
		at   int
		text string
	}
	var all []insertion
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != "_" || f.Body == nil {
			continue
		}
		for _, s := range f.Body.List {
			var names []string
			switch s := s.(type) {
			case *ast.AssignStmt:
				for _, e := range s.Lhs {
					if id, ok := e.(*ast.Ident); ok && s.Tok == token.DEFINE && id.Name != "_" {
						names = append(names, id.Name)
					}
				}
			case *ast.DeclStmt:
				if g, ok := s.Decl.(*ast.GenDecl); ok && g.Tok == token.VAR {
					for _, spec := range g.Specs {
						for _, id := range spec.(*ast.ValueSpec).Names {
							names = append(names, id.Name)
						}
					}
				}
			}
			for _, name := range names {
				all = append(all, insertion{fset.PositionFor(s.End(), false).Offset - skip, "; _ = &" + name})
			}
		}
	}
	for _, in := range slices.Backward(all) {
		body = body[:in.at] + in.text + body[in.at:]
	}
	return body
}

// The Go of all pages compiles.
func TestGo(t *testing.T) {
	t.Parallel()
	modules := map[string][]block{}
	for _, page := range pages(t) {
		for _, b := range blocksOf(t, page) {
			if _, skipped := b.markers["skip"]; skipped || b.language != "go" || b.markers["file"] != "" {
				continue // files are compiled by their session
			}
			dir := "."
			if strings.Contains(b.text, "tracing.") {
				dir = "middleware/tracing"
			}
			modules[dir] = append(modules[dir], b)
		}
	}
	for dir, blocks := range modules {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			vet(t, dir, blocks)
		})
	}
}
