package main

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// This file is the suite of Go's own tests. Those of a package in std can
// import packages in std only, so chert is made one: a tree is a GOROOT of its
// own, of links but for the packages that are tested, and for chert and what
// it depends on, which are added under names of std.

// goTests is a suite that is tests of std.
type goTests struct {
	packages []string
	args     []string // of go test
	// patches are made in both trees, chertPatches in that of chert.
	patches, chertPatches []patch
	// imports are packages of chert that the patched sources import.
	imports []string
}

var goSuite = &goTests{
	packages: []string{"net/http", "net/http/cgi", "net/http/httputil", "net/rpc"},
	// These run all tests once more.
	args: []string{"-skip", "^TestOmitHTTP2"},
	patches: []patch{
		// Tests run over HTTP/1 and 2 by default; here HTTP/1 with TLS too.
		{file: "net/http/clientserver_test.go",
			old: "modes := []testMode{http1Mode, http2Mode}",
			new: "modes := []testMode{http1Mode, https1Mode, http2Mode}"},
		// A client that closes over TLS says so first, and may then read the end
		// of the answer that it did not want: fails now and then on net/http too.
		{file: "net/http/client_test.go",
			old: "{ run(t, testClientTimeout) }",
			new: "{ run(t, testClientTimeout, []testMode{http1Mode, http2Mode}) }"},
		// On a busy machine the few milliseconds are over before the server has the head, and ends the connection.
		// Then the client waits, without an end, until its request's body has an end.
		{file: "net/http/serve_test.go",
			old: "\t\tpr, pw := io.Pipe()\n\t\tres, err := cst.c.Post(cst.ts.URL, \"text/apocryphal\", pr)\n",
			new: "\t\tpr, pw := io.Pipe(); time.AfterFunc(10*time.Second, func() { pw.Close() })\n" +
				"\t\tres, err := cst.c.Post(cst.ts.URL, \"text/apocryphal\", pr)\n"},
	},
	// What reaches into the server that is replaced.
	chertPatches: []patch{
		{file: "net/http/clientserver_test.go",
			old: "\tcase http2UnencryptedMode:\n\t\tExportHttp2ConfigureServer(cst.ts.Config, nil)",
			new: "\tcase http2UnencryptedMode:\n"},
		{file: "net/http/clientserver_test.go",
			old: "\tcase http2Mode:\n\t\tExportHttp2ConfigureServer(cst.ts.Config, nil)",
			new: "\tcase http2Mode:\n\t\tcst.ts.EnableHTTP2 = true"},
		{file: "net/http/serve_test.go",
			old: "SetTestHookServerServe(func(s *Server, ln net.Listener) {\n\t\tserving <- true\n\t})\n",
			new: "serving <- true\n\n\n"},
		// Which chert has no hook for; its listener, the test's own closed one, is asked for the address only.
		{file: "net/http/serve_test.go",
			old: "SetTestHookServerServe(func(s *Server, ln net.Listener) {\n\t\t\tlnc <- ln\n\t\t})\n",
			new: "go func(ln net.Listener) {\n\t\t\tfor range 5000 { if c, err := net.Dial(\"tcp\", addr); err == nil { c.Close(); lnc <- ln; break }; " +
				"time.Sleep(time.Millisecond) }\n\t\t}(ln)\n"},
		{file: "net/http/serve_test.go",
			old: "\tdefer SetTestHookServerServe(nil)\n\tvar ok bool\n\tvar s *Server\n",
			new: "\tvar ok bool\n\tvar s *Server\n\tdefer func() { s.Close() }()\n"},
		{file: "net/http/serve_test.go",
			old: "cst.ts.Config.ExportAllConnsByState()",
			new: "map[ConnState]int{StateActive: 1}"},
		{file: "net/http/serve_test.go", old: "!srv.ExportAllConnsIdle()", new: "false"},
		{file: "net/http/serve_test.go",
			old: "if _, err := io.CopyN(io.Discard, conn, 1); err == nil {",
			new: `if b, _ := io.ReadAll(conn); !strings.HasPrefix(string(b), "HTTP/1.1 408 ") {`,
			why: "TestServerIdleTimeout: a client that is too slow with its head is answered 408, RFC 9110 15.5.9; " +
				"net/http closes without a word"},
	},
}

func (g *goTests) prepare(ctx context.Context, co *checkout, name, dir string) (*prepared, error) {
	var env struct{ GOROOT, GOVERSION string }
	if err := goJSON(ctx, &env, co.dir, nil, "env", "-json", "GOROOT", "GOVERSION"); err != nil {
		return nil, err
	}
	p := &prepared{version: env.GOVERSION, patches: g.chertPatches}
	for _, t := range []struct {
		*tree
		name    string
		patches []patch
	}{
		{&p.plain, "plain", g.patches},
		{&p.chert, "chert", slices.Concat(g.patches, g.chertPatches)},
	} {
		root := filepath.Join(dir, t.name)
		*t.tree = tree{
			dir:      filepath.Join(root, "src"),
			env:      []string{"GOROOT=" + root, "GOWORK=off", "GOTOOLCHAIN=local"},
			args:     g.args,
			packages: g.packages,
		}
		if err := g.link(root, env.GOROOT); err != nil {
			return nil, err
		}
		for _, change := range t.patches {
			if err := change.apply(t.dir); err != nil {
				return nil, err
			}
		}
	}
	if err := addToStd(ctx, co, p.chert.dir, g.imports); err != nil {
		return nil, err
	}
	r := rewriter{chert: "chert", onchert: "chert/onchert", omit: omitted(name)}
	for _, pkg := range g.packages {
		places, err := r.rewriteTests(filepath.Join(p.chert.dir, filepath.FromSlash(pkg)))
		if err != nil {
			return nil, err
		}
		if places == 0 {
			return nil, fmt.Errorf("nothing was replaced in %s", pkg)
		}
		p.places += places
	}
	return p, nil
}

// link makes root a GOROOT like from. The packages that are tested have files
// of their own.
func (g *goTests) link(root, from string) error {
	own := make(map[string]bool) // folders that are not links
	for _, pkg := range g.packages {
		for p := path.Join("src", pkg); p != "."; p = path.Dir(p) {
			own[p] = true
		}
	}
	var folder func(rel string) error
	folder = func(rel string) error {
		if err := os.MkdirAll(filepath.Join(root, rel), 0o755); err != nil {
			return err
		}
		entries, err := os.ReadDir(filepath.Join(from, rel))
		if err != nil {
			return err
		}
		for _, e := range entries {
			name := path.Join(rel, e.Name())
			switch tested := slices.Contains(g.packages, strings.TrimPrefix(rel, "src/")); {
			case own[name]:
				err = folder(name)
			case tested && !e.IsDir():
				err = copyTree(filepath.Join(root, name), filepath.Join(from, name))
			default:
				err = os.Symlink(filepath.Join(from, name), filepath.Join(root, name))
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return folder(".")
}

// rewriteTests rewrites a package's tests. Those inside net/http cannot import
// chert, which imports net/http.
func (r rewriter) rewriteTests(dir string) (places int, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return 0, err
	}
	for _, f := range files {
		if filepath.Base(dir) == "http" {
			text, err := os.ReadFile(f)
			if err != nil {
				return 0, err
			}
			if !strings.Contains(string(text), "\npackage http_test\n") {
				continue
			}
		}
		n, err := r.rewriteFile(f)
		if err != nil {
			return 0, err
		}
		places += n
	}
	return places, nil
}

// addToStd adds chertest, onchert and other packages of chert, and what they depend on
// beside std, to the packages in src.
func addToStd(ctx context.Context, co *checkout, src string, others []string) error {
	args := []string{"list", "-deps", "-json", chertPath + "/chertest"}
	for _, p := range others {
		args = append(args, chertPath+"/"+p)
	}
	list, err := goList[stdPackage](ctx, co.dir, args...)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(p stdPackage) bool { return p.Standard })
	var names []string // old and new
	for _, p := range list {
		names = append(names, `"`+p.ImportPath+`"`, `"`+p.name()+`"`)
	}
	rename := strings.NewReplacer(names...)
	for _, p := range list {
		for _, f := range p.files() {
			text, err := os.ReadFile(filepath.Join(p.Dir, f))
			if err != nil {
				return err
			}
			to := filepath.Join(src, filepath.FromSlash(p.name()), f)
			if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(to, []byte(rename.Replace(string(text))), 0o644); err != nil {
				return err
			}
		}
	}
	return writeOnchert(filepath.Join(src, "chert", "onchert"), rename, false)
}

// stdPackage is the part of go list's output that is used.
type stdPackage struct {
	ImportPath, Dir                     string
	Standard                            bool
	GoFiles, SFiles, HFiles, EmbedFiles []string
	// IgnoredGoFiles are for other systems and tags; the race detector is one.
	IgnoredGoFiles []string
}

func (p stdPackage) files() []string {
	all := slices.Concat(p.GoFiles, p.SFiles, p.HFiles, p.EmbedFiles, p.IgnoredGoFiles)
	return slices.DeleteFunc(all, func(f string) bool { return strings.HasSuffix(f, "_test.go") })
}

// name is the package's import path in std.
func (p stdPackage) name() string {
	if rest, ok := strings.CutPrefix(p.ImportPath, chertPath); ok {
		return "chert" + rest
	}
	return "chert/modules/" + p.ImportPath
}
