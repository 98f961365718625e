package main

import (
	"context"
	"debug/elf"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

// weighMain prints what each module weighs in the binary for linux/amd64: its code and data, as the symbols of a binary
// that is not stripped have them. The tables of functions that stack traces need, and of types, are symbols of no
// module; they grow with the code, so that without a module about twice of what it has here is saved.
func weighMain(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("weigh", flag.ContinueOnError)
	flags.SetOutput(out)
	packages := flags.Bool("packages", false, "list packages instead of modules")
	if err := flags.Parse(args); err != nil {
		return err
	}
	root, err := filepath.Abs("..") // this module's folder is packaging
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "chert-weigh-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	whole, stripped := filepath.Join(temp, "whole"), filepath.Join(temp, "stripped")
	t := target{"linux", "amd64"}
	for path, ld := range map[string]string{whole: "-ldflags=", stripped: linkerFlags} {
		if _, err := output(goCommand(ctx, root, t, "build", "-trimpath", "-buildvcs=false", ld, "-o", path,
			"./cmd/chert")); err != nil {
			return err
		}
	}
	owners, err := packageOwners(ctx, root, t)
	if err != nil {
		return err
	}
	info, err := os.Stat(stripped)
	if err != nil {
		return err
	}
	w := weights{owners: owners, packages: *packages, bytes: map[string]int64{}}
	if err := w.read(whole); err != nil {
		return err
	}
	return w.print(out, info.Size())
}

// packageOwners returns the module of each package of the program, "std" for the standard library's.
func packageOwners(ctx context.Context, root string, t target) (map[string]string, error) {
	list, err := output(goCommand(ctx, root, t, "list", "-deps", "-f",
		"{{.ImportPath}} {{with .Module}}{{.Path}}{{else}}std{{end}}", "./cmd/chert"))
	if err != nil {
		return nil, err
	}
	owners := map[string]string{"main": "github.com/chert-http/chert"}
	for line := range strings.Lines(string(list)) {
		path, owner, _ := strings.Cut(strings.TrimSpace(line), " ")
		owners[path] = owner
	}
	return owners, nil
}

type weights struct {
	owners   map[string]string
	packages bool
	bytes    map[string]int64
}

// unowned are symbols of no package.
const unowned = "(tables of the linker and the runtime)"

// read adds up the symbols of a binary; not those of sections that only memory has.
func (w *weights) read(binary string) error {
	f, err := elf.Open(binary)
	if err != nil {
		return err
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		return err
	}
	for _, s := range symbols {
		if int(s.Section) < len(f.Sections) && f.Sections[s.Section].Type == elf.SHT_PROGBITS {
			w.bytes[w.owner(s.Name)] += int64(s.Size)
		}
	}
	return nil
}

// owner is the module, or the package, of a symbol: its import path ends at the first dot after the last slash. The
// linker writes a dot in the last element as %2e. Of an instance of a generic function the path is that of its
// declaration.
func (w *weights) owner(symbol string) string {
	for _, prefix := range []string{"type:.eq.", "type:.hash.", "type:", "go:itab.", "go:"} {
		symbol = strings.TrimPrefix(symbol, prefix)
	}
	symbol = strings.TrimLeft(symbol, "*[]")
	name, _, _ := strings.Cut(symbol, "[")
	name, _, _ = strings.Cut(name, "(")
	slash := strings.LastIndexByte(name, '/')
	dot := strings.IndexByte(name[slash+1:], '.')
	if dot < 0 {
		return unowned
	}
	path := strings.ReplaceAll(name[:slash+1+dot], "%2e", ".")
	owner, ok := w.owners[path]
	switch {
	case !ok:
		return unowned
	case w.packages:
		return path
	}
	return owner
}

func (w *weights) print(out io.Writer, file int64) error {
	var names []string
	var sum int64
	for name, n := range w.bytes {
		if name == unowned {
			continue
		}
		names = append(names, name)
		sum += n
	}
	slices.SortFunc(names, func(a, b string) int {
		if w.bytes[a] != w.bytes[b] {
			return int(w.bytes[b] - w.bytes[a])
		}
		return strings.Compare(a, b)
	})
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "KB\t%%\t  code and data of\n")
	row := func(name string, n int64) {
		fmt.Fprintf(t, "%.0f\t%.1f\t  %s\n", float64(n)/1e3, 100*float64(n)/float64(file), name)
	}
	for _, name := range names {
		row(name, w.bytes[name])
	}
	row("(tables of functions and types, and what is of no package)", file-sum)
	row("the binary", file)
	return t.Flush()
}
