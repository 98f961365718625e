package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// module is a suite that is a module's own tests.
type module struct {
	// path is the module's. from is the folder of testdata with the go.mod that has its
	// version; examples/go.mod has it if from is empty, and that of chert if it is a dot.
	path, from string
	// packages are the ones whose tests are run; all if empty.
	packages []string
	args     []string // of go test
	// skip has folders whose sources are not rewritten; testsOnly says that only the tests
	// of packages are.
	skip      []string
	testsOnly bool
	through   bool // a proxy
	// replace is in place of the rewriter, for what it does not know. It omits tests as that does.
	replace func(r rewriter, dir string) (places int, err error)
	// patches are made first, in both trees, chertPatches in that of chert.
	patches, chertPatches []patch
}

// patch changes a file where the tests as they are would not test a server.
type patch struct {
	file     string
	old, new string // the whole file if old is empty
	added    bool   // the file is a new one
	why      string // if it changes what chert is to do
}

// coderPipe connects the tests of coder through a server. They would use a
// fake transport and a recorder.
//
//go:embed testdata/coder/pipe.go
var coderPipe string

// ginListens waits for servers of gin's tests. They would sleep for 5 ms, and take a server's place
// for good if it listens after that.
//
//go:embed testdata/gin/listens_test.go
var ginListens string

// ginWaits waits where the test goes on with next.
func ginWaits(network, addr, next string) patch {
	return patch{file: "gin_integration_test.go", old: "\ttime.Sleep(5 * time.Millisecond)\n\n" + next,
		new: fmt.Sprintf("\twaitListens(t, %q, %s)\n\n", network, addr) + next}
}

var modules = map[string]*module{
	"chi": {path: "github.com/go-chi/chi/v5"},
	"gin": {path: "github.com/gin-gonic/gin", patches: []patch{
		{file: "listens_test.go", new: ginListens, added: true},
		ginWaits("tcp", `"localhost:8443"`, "\trequire.Error(t, router.RunTLS(\":8443\""),
		ginWaits("tcp", `"localhost:8449"`, "\trequire.Error(t, router.RunTLS(\":8449\""),
		ginWaits("unix", "unixTestSocket", "\tc, err := net.Dial(\"unix\""),
		ginWaits("udp", `"localhost:8443"`, "\trequire.Error(t, router.RunQUIC(\":8443\""),
	}},
	"gorilla": {path: "github.com/gorilla/websocket", skip: []string{"examples"}},
	"coder": {path: "github.com/coder/websocket", patches: []patch{
		{file: "internal/test/wstest/pipe.go", new: coderPipe},
		// A server's goroutines end a moment after it has closed.
		{file: "main_test.go", old: "\t\"testing\"\n", new: "\t\"testing\"; \"time\"\n"},
		{file: "main_test.go", old: "code := m.Run()\n", new: "code := m.Run(); " +
			"for i := 0; i < 500 && runtime.NumGoroutine() != 1; i++ { time.Sleep(10 * time.Millisecond) }\n"},
		// The address is that of a socket then.
		{file: "conn_test.go", old: `		assert.Equal(t, "remote addr", n1.RemoteAddr(), n1.LocalAddr())
		assert.Equal(t, "remote addr string", "pipe", n1.RemoteAddr().String())
		assert.Equal(t, "remote addr network", "pipe", n1.RemoteAddr().Network())
`, new: "\n\n\n"},
	}},
}

func (m *module) prepare(ctx context.Context, co *checkout, name, dir string) (*prepared, error) {
	from, env := filepath.Join(co.dir, "examples"), []string(nil)
	switch m.from {
	case "":
	case ".":
		from = co.dir
	default:
		from, env = filepath.Join(dir, "version"), []string{"GOWORK=off"}
		if err := writeModule(m.from, from); err != nil {
			return nil, err
		}
	}
	var got struct{ Version, Dir string }
	// Without a version it takes the build list's, and go.sum's checksums.
	if err := goJSON(ctx, &got, from, env, "mod", "download", "-json", m.path); err != nil {
		return nil, err
	}
	return m.lay(ctx, co, name, dir, got.Dir, got.Version)
}

//go:embed testdata/*/mod.txt testdata/*/sum.txt
var moduleFiles embed.FS

// writeModule writes the go.mod and the go.sum of a folder of testdata to dir.
// They have other names there, since a folder with a go.mod would not be embedded.
func writeModule(folder, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, file := range []string{"mod", "sum"} {
		text, err := moduleFiles.ReadFile("testdata/" + folder + "/" + file + ".txt")
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "go."+file), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// lay makes the trees of a module whose files are in source.
func (m *module) lay(ctx context.Context, co *checkout, name, dir, source, version string) (p *prepared, err error) {
	p = &prepared{version: version, patches: m.chertPatches}
	if p.plain, err = m.tree(ctx, co, filepath.Join(dir, "plain"), source, m.patches); err != nil {
		return nil, err
	}
	if p.chert, err = m.tree(ctx, co, filepath.Join(dir, "chert"), source, slices.Concat(m.patches, m.chertPatches)); err != nil {
		return nil, err
	}
	r := rewriter{chert: chertPath, onchert: m.path + "/internal/onchert", omit: omitted(name), through: m.through}
	switch {
	case m.replace != nil:
		p.places, err = m.replace(r, p.chert.dir)
	case !m.testsOnly:
		p.places, err = r.rewriteTree(p.chert.dir, m.skip...)
	}
	for _, pkg := range m.packages {
		if m.testsOnly && err == nil {
			var places int
			places, err = r.rewriteTests(filepath.Join(p.chert.dir, filepath.FromSlash(pkg)))
			p.places += places
		}
	}
	if err != nil {
		return nil, err
	}
	if p.places == 0 {
		return nil, errors.New("nothing was replaced")
	}
	return p, writeOnchert(filepath.Join(p.chert.dir, "internal", "onchert"), strings.NewReplacer(), m.through)
}

// tree makes a workspace of a copy of the module and the checkout. So the
// module keeps its go.mod and with it its version of the language, and both
// trees have the same dependencies.
func (m *module) tree(ctx context.Context, co *checkout, dir, source string, patches []patch) (t tree, err error) {
	t = tree{
		dir:      filepath.Join(dir, "module"),
		env:      []string{"GOWORK=" + filepath.Join(dir, "go.work")},
		args:     m.args,
		packages: m.packages,
	}
	if len(t.packages) == 0 {
		t.packages = []string{"./..."}
	}
	if err := copyTree(t.dir, source); err != nil {
		return t, err
	}
	for _, p := range patches {
		if err := p.apply(t.dir); err != nil {
			return t, err
		}
	}
	var mod struct{ Go string }
	if err := goJSON(ctx, &mod, t.dir, []string{"GOWORK=off"}, "mod", "edit", "-json"); err != nil {
		return t, err
	}
	// GODEBUG's defaults come from the workspace, but are to be the module's.
	work := fmt.Sprintf("go %s\n\ngodebug default=go%s\n\nuse (\n\t./module\n\t%q\n)\n", co.goVersion, mod.Go, co.dir)
	return t, os.WriteFile(filepath.Join(dir, "go.work"), []byte(work), 0o644)
}

// apply fails if the file has changed since the patch was written.
func (p patch) apply(dir string) error {
	file := filepath.Join(dir, filepath.FromSlash(p.file))
	if p.added {
		return os.WriteFile(file, []byte(p.new), 0o644)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("a patch: %w", err)
	}
	if p.old == "" {
		return os.WriteFile(file, []byte(p.new), 0o644)
	}
	if n := strings.Count(string(text), p.old); n != 1 {
		return fmt.Errorf("a patch: %s has %d times, not once:\n%s", p.file, n, p.old)
	}
	return os.WriteFile(file, []byte(strings.Replace(string(text), p.old, p.new, 1)), 0o644)
}
