package main

import (
	"context"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// suite is a set of tests of another project, written for net/http's server.
type suite interface {
	// prepare lays out the tests below dir, an empty folder: once as they are
	// and once rewritten for the chert of the checkout.
	prepare(ctx context.Context, co *checkout, name, dir string) (*prepared, error)
}

// suites is in the order of the table, and of running: that which takes long
// comes first.
var suites = []struct {
	name string
	suite
	long bool // it is run by -all, or by name
}{
	{"go", goSuite, false},
	{"httputil", httputilSuite, false},
	{"chi", modules["chi"], false},
	{"gin", modules["gin"], false},
	{"gorilla", modules["gorilla"], false},
	{"coder", modules["coder"], false},
	{"h2spec", h2specTests{}, false},
	{"xnet", xnetSuite, false},
	{"connect", connectSuite, false},
	{"grpc", grpcSuite, false},
	{"quic", quicSuite, true}, // has limits of 50 ms, and has hung by itself on a busy machine
	{"haproxy", haproxyTests{}, true},
	{"h2spec-proxy", h2specTests{through: true}, true},
	{"connect-proxy", connectProxySuite, true},
	{"grpc-proxy", grpcProxySuite, true},
	{"connect-tcp", connectTCPSuite, true},
	{"caddy", caddySuite, true},
	{"distribution", distributionSuite, true},
	{"nats", natsSuite, true},
	{"apimachinery", apimachinerySuite, true},
	{"go-github", githubSuite, true},
}

// names are those of all suites, or without the long ones.
func names(all bool) (list []string) {
	for _, s := range suites {
		if all || !s.long {
			list = append(list, s.name)
		}
	}
	return list
}

// prepared is a suite that is ready to run.
type prepared struct {
	version string
	places  int     // that now use chert
	patches []patch // that were made for chert only
	plain   tree
	chert   tree
	cases   cases // in place of trees
}

// cases are tests of a program that are no Go tests. They were written for another program, so
// all are expected to pass but those that the table of differences has.
type cases interface {
	expected() *results
	test(ctx context.Context, engine, dir string, log io.Writer) (*results, error)
}

// tree is where and how to run go test.
type tree struct {
	dir      string
	env      []string // added to the environment
	args     []string // of go test
	packages []string
}

// checkout is the chert that is tested.
type checkout struct {
	dir       string
	goVersion string // of its go.mod
	options   *options
}

const chertPath = "github.com/chert-http/chert"

func findCheckout(ctx context.Context) (*checkout, error) {
	var m struct{ Dir, GoVersion string }
	if err := goJSON(ctx, &m, ".", nil, "list", "-m", "-json", chertPath); err != nil {
		return nil, fmt.Errorf("not inside chert's checkout: %w", err)
	}
	return &checkout{m.Dir, m.GoVersion, nil}, nil
}

// shim has the sources of what stands in for net/http and httptest.
//
//go:embed internal/onchert/doc.go internal/onchert/onchert.go internal/onchert/through.go
var shim embed.FS

// writeOnchert writes the package to dir, with its import paths changed. With through the
// handlers of its servers are behind a proxy.
func writeOnchert(dir string, paths *strings.Replacer, through bool) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	files, err := fs.Glob(shim, "internal/onchert/*.go")
	if err != nil {
		return err
	}
	for _, f := range files {
		if filepath.Base(f) == "through.go" && !through {
			continue
		}
		text, err := shim.ReadFile(f)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(f)), []byte(paths.Replace(string(text))), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// rewriteTree rewrites the Go files below dir except for the folders of skip,
// and returns the number of places where they now use chert.
func (r rewriter) rewriteTree(dir string, skip ...string) (places int, err error) {
	skipped := make(map[string]bool)
	for _, s := range skip {
		skipped[filepath.Join(dir, s)] = true
	}
	err = filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (skipped[file] || d.Name() == "testdata" || strings.HasPrefix(d.Name(), "_")):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(file, ".go"):
			return nil
		}
		n, err := r.rewriteFile(file)
		places += n
		return err
	})
	return places, err
}

func (r rewriter) rewriteFile(file string) (places int, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	out, places, err := r.rewrite(file, text)
	if err != nil || string(out) == string(text) {
		return 0, err
	}
	return places, os.WriteFile(file, out, 0o644)
}

// copyTree copies the files below from, which may be read-only, to folders and
// files that are not.
func copyTree(to, from string) error {
	return filepath.WalkDir(from, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if d.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		return os.WriteFile(target, text, 0o644)
	})
}
