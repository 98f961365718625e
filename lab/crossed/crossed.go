package crossed

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/chert-http/chert/lab/child"
	"github.com/chert-http/chert/lab/request"
)

const module = "github.com/chert-http/chert"

// Main is the command "crossed" of the lab.
func Main(ctx context.Context, args []string, out, log io.Writer) error {
	flags := flag.NewFlagSet("crossed", flag.ContinueOnError)
	flags.SetOutput(out)
	n := flags.Int("n", 100, "how many requests of each connection are counted")
	connections := flags.Int("connections", 64, "how many connections send a request at a time; with 1, what a loop does once for all that is ready is counted too")
	list := flags.Bool("list", false, "also list the functions, and how often a request calls each")
	flags.Usage = func() {
		fmt.Fprint(out, "usage: go run . crossed [flags] [PATH...]\n\npaths:\n")
		for _, p := range request.Paths() {
			fmt.Fprintf(out, "  %-10s %s\n", p.Name, p.About)
		}
		fmt.Fprintln(out, "\nflags:")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *n < 1 || *connections < 1 || *n**connections < 100 {
		return fmt.Errorf("%d requests are too few to tell what each of them does", *n**connections)
	}
	paths := request.Paths()
	if flags.NArg() > 0 {
		paths = nil
		for _, name := range flags.Args() {
			p, ok := request.Find(name)
			if !ok {
				return fmt.Errorf("no path %q", name)
			}
			paths = append(paths, p)
		}
	}
	counts, err := Count(ctx, paths, *connections, *n)
	if err != nil {
		return err
	}
	return write(out, counts, *list)
}

// A Crossing is what requests of one path cross.
type Crossing struct {
	Path      request.Path
	Functions []Function // by package, file and line
}

// A Function is one that every request crosses, or at least every other.
type Function struct {
	File  string // from the module's root
	Line  int
	Name  string  // with its receiver; that of a literal is its function's, and func
	Calls float64 // by each request
}

// Packages and Files return how many there are.
func (c Crossing) Packages() int {
	return c.distinct(func(f Function) string { return path.Dir(f.File) })
}
func (c Crossing) Files() int { return c.distinct(func(f Function) string { return f.File }) }

func (c Crossing) distinct(of func(Function) string) int {
	seen := map[string]bool{}
	for _, f := range c.Functions {
		seen[of(f)] = true
	}
	return len(seen)
}

// Calls returns how many calls of its functions a request makes.
func (c Crossing) Calls() (n float64) {
	for _, f := range c.Functions {
		n += f.Calls
	}
	return n
}

// Count has a server serve n requests over each connection, for each path, and counts what they cross.
func Count(ctx context.Context, paths []request.Path, connections, n int) (all []Crossing, err error) {
	lab, err := child.Lab(ctx)
	if err != nil {
		return nil, err
	}
	root := filepath.Dir(lab)
	dir, err := os.MkdirTemp("", "crossed")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "request")
	if err := child.BuildAt(ctx, binary, filepath.Join(lab, "cmd", "request"), "-cover", "-covermode=atomic", "-coverpkg="+module+"/..."); err != nil {
		return nil, err
	}
	for _, p := range paths {
		data := filepath.Join(dir, p.Name)
		if err := os.Mkdir(data, 0o700); err != nil {
			return nil, err
		}
		if _, err := child.Run(ctx, child.Command{Args: []string{binary, p.Name, strconv.Itoa(connections), strconv.Itoa(n), data}}); err != nil {
			return nil, err
		}
		text := filepath.Join(dir, p.Name+".txt")
		if _, err := child.Run(ctx, child.Command{Args: []string{"go", "tool", "covdata", "textfmt", "-i=" + data, "-o=" + text}}); err != nil {
			return nil, err
		}
		profile, err := os.ReadFile(text)
		if err != nil {
			return nil, err
		}
		f, err := functions(root, string(profile), connections*n)
		if err != nil {
			return nil, err
		}
		all = append(all, Crossing{Path: p, Functions: f})
	}
	return all, nil
}

func write(out io.Writer, all []Crossing, list bool) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "path\tfunctions\tcalls\tfiles\tpackages\t\n")
	for _, c := range all {
		fmt.Fprintf(w, "%s\t%d\t%.0f\t%d\t%d\t\n", c.Path.Name, len(c.Functions), c.Calls(), c.Files(), c.Packages())
	}
	w.Flush()
	fmt.Fprintln(out, "\nfunctions by package")
	packages := map[string]bool{}
	for _, c := range all {
		for _, f := range c.Functions {
			packages[path.Dir(f.File)] = true
		}
	}
	for _, c := range all {
		fmt.Fprintf(w, "%s\t", c.Path.Name)
	}
	fmt.Fprint(w, "\t\n")
	for _, p := range sorted(packages) {
		for _, c := range all {
			n := 0
			for _, f := range c.Functions {
				if path.Dir(f.File) == p {
					n++
				}
			}
			fmt.Fprintf(w, "%d\t", n)
		}
		fmt.Fprintf(w, "\t  %s\n", p)
	}
	w.Flush()
	if list {
		for _, c := range all {
			fmt.Fprintf(out, "\n%s\n", c.Path.Name)
			for _, f := range c.Functions {
				fmt.Fprintf(out, "%8.2f  %s:%d %s\n", f.Calls, f.File, f.Line, f.Name)
			}
		}
	}
	return nil
}

func sorted(set map[string]bool) (all []string) {
	for s := range set {
		all = append(all, s)
	}
	slices.SortFunc(all, strings.Compare)
	return all
}
