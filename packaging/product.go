package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	homepage   = "https://github.com/chert-http/chert"
	maintainer = "The chert authors <chert-http@users.noreply.github.com>"
	summary    = "HTTP server for files and many sites, from one binary"
)

// A file is one of an archive, a package or the image.
type file struct {
	path string // with slashes and without one at the beginning
	mode fs.FileMode
	data []byte
}

// A product is what all results consist of.
type product struct {
	*source
	binaries  []*binary
	modules   []*module
	number    string // the version without its v
	copyright []byte // the licences of all that a binary contains
	manual    []file // chert.1 and the others
	shells    []file // completions, by the name of the shell
}

func newProduct(ctx context.Context, s *source, all []*binary) (*product, error) {
	p := &product{source: s, binaries: all, number: strings.TrimPrefix(s.version, "v")}
	var err error
	if p.modules, err = modules(ctx, s, all); err != nil {
		return nil, err
	}
	own, err := p.text("LICENSE")
	if err != nil {
		return nil, err
	}
	p.copyright = copyright(string(own), p.modules)
	program, err := hostBinary(ctx, s, all)
	if err != nil {
		return nil, err
	}
	return p, p.ask(ctx, program)
}

// ask has the program itself write its manual and completions.
func (p *product) ask(ctx context.Context, program string) error {
	said, err := output(exec.CommandContext(ctx, program, "version"))
	if err != nil {
		return err
	}
	if want := "chert " + p.version + " ("; !strings.HasPrefix(string(said), want) {
		return fmt.Errorf("%q does not begin with %q", said, want)
	}
	dir := filepath.Join(p.temp, "man")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if _, err := output(exec.CommandContext(ctx, program, "man", dir)); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir) // sorted
	if err != nil {
		return err
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		p.manual = append(p.manual, file{e.Name(), 0o644, data})
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		script, err := output(exec.CommandContext(ctx, program, "completion", shell))
		if err != nil {
			return err
		}
		p.shells = append(p.shells, file{shell, 0o644, script})
	}
	return nil
}

// text reads a file of the commit.
func (p *product) text(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(p.clones[0], filepath.FromSlash(name)))
}

// binary returns the program of a target as a file.
func (b *binary) file(path string) (file, error) {
	data, err := os.ReadFile(b.path)
	return file{path, 0o755, data}, err
}

// linux returns the binaries for Linux, which packages and the image are made of.
func (p *product) linux() []*binary {
	return slices.DeleteFunc(slices.Clone(p.binaries), func(b *binary) bool { return b.os != "linux" })
}

// compress is gzip -9n.
func compress(data []byte) []byte {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		panic(err) // the level is valid
	}
	w.Write(data) // to memory: it does not fail
	w.Close()
	return b.Bytes()
}

// debianChangelog has the entry that Debian's policy requires, and says where the changes are.
func (p *product) debianChangelog(version string) []byte {
	return fmt.Appendf(nil,
		"chert (%s) unstable; urgency=medium\n\n"+
			"  * Version %s; CHANGELOG.md.gz beside this file has the changes.\n\n -- %s  %s\n",
		version, p.version, maintainer, p.time.Format(time.RFC1123Z))
}
