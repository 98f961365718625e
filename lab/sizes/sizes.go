package sizes

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/chert-http/chert/lab/child"
)

// engine are the packages that drive connections and speak protocols; those that do not exist are left out.
var engine = []string{
	"internal/link", "internal/outbox", "internal/exec", "internal/conn", "internal/stream", "internal/takeover", "internal/bridge",
	"internal/bridge/h1", "internal/bridge/h2", "internal/tlsio", "websocket", "eventstream",
}

// others are listed and not part of the sum.
var others = []string{".", "internal/loop", "internal/conn/conntest"}

// contracts are interfaces by the name of their package and their own.
var contracts = []string{
	"internal/link.Link", "internal/link.Session", "internal/conn.Link", "internal/conn.Lent", "internal/conn.Layer",
	"internal/takeover.Link", "internal/takeover.Session", "internal/bridge.Message", "internal/poll.Poller",
}

// Main is the command "sizes" of the lab.
func Main(ctx context.Context, args []string, out, log io.Writer) error {
	flags := flag.NewFlagSet("sizes", flag.ContinueOnError)
	flags.SetOutput(out)
	fields := flags.Int("fields", 20, "list types of as many fields or more")
	sites := flags.Bool("sites", false, "list the places that call recover")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("sizes takes no argument %q", flags.Arg(0))
	}
	lab, err := child.Lab(ctx)
	if err != nil {
		return err
	}
	root := filepath.Dir(lab)
	product, err := load(root)
	if err != nil {
		return err
	}
	godoc, err := child.Run(ctx, child.Command{Args: []string{"go", "doc", "-C", root, "-all", "."}})
	if err != nil {
		return err
	}
	report := report{tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight), product}
	report.lines()
	report.contracts()
	report.types(*fields)
	report.recovers(*sites)
	fmt.Fprintf(report.w, "\n%d lines of godoc of the root\n", strings.Count(godoc.Stdout, "\n"))
	return report.w.Flush()
}

type report struct {
	w        *tabwriter.Writer
	packages map[string]*Package
}

func (r report) lines() {
	fmt.Fprint(r.w, "lines\tof code\tfiles\tfunctions\t\n")
	var sum Package
	row := func(p *Package, name string) {
		fmt.Fprintf(r.w, "%d\t%d\t%d\t%d\t  %s\n", p.Lines, p.Code, p.Files, p.Functions, name)
	}
	for _, name := range engine {
		if p := r.packages[name]; p != nil {
			row(p, name)
			sum.Lines, sum.Code, sum.Files, sum.Functions = sum.Lines+p.Lines, sum.Code+p.Code, sum.Files+p.Files, sum.Functions+p.Functions
		}
	}
	row(&sum, "all of these")
	for _, name := range others {
		if p := r.packages[name]; p != nil {
			row(p, name)
		}
	}
}

func (r report) contracts() {
	fmt.Fprint(r.w, "\nmethods\t\n")
	for _, full := range contracts {
		i := strings.LastIndexByte(full, '.')
		if p := r.packages[full[:i]]; p != nil {
			if n, ok := p.methods(full[i+1:]); ok {
				fmt.Fprintf(r.w, "%d\t  %s\n", n, full)
			}
		}
	}
}

func (r report) types(least int) {
	var all []Type
	for _, p := range r.packages {
		if slices.Contains(engine, p.Name) || slices.Contains(others, p.Name) {
			all = append(all, p.Types...)
		}
	}
	slices.SortFunc(all, func(a, b Type) int {
		return cmp.Or(cmp.Compare(b.Fields, a.Fields), strings.Compare(a.Name, b.Name))
	})
	fmt.Fprint(r.w, "\nfields\tbooleans\t\n")
	for _, t := range all {
		if t.Fields >= least {
			fmt.Fprintf(r.w, "%d\t%d\t  %s\n", t.Fields, t.Booleans, t.Name)
		}
	}
}

func (r report) recovers(list bool) {
	var sites []string
	for _, p := range r.packages {
		if slices.Contains(engine, p.Name) || slices.Contains(others, p.Name) {
			sites = append(sites, p.Recovers...)
		}
	}
	slices.Sort(sites)
	fmt.Fprintf(r.w, "\n%d calls of recover in these packages\n", len(sites))
	if list {
		for _, s := range sites {
			fmt.Fprintf(r.w, "  %s\n", s)
		}
	}
}
