package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// report is what came out of a suite.
type report struct {
	name string
	*prepared
	partial bool // only some tests were run
	plain   *results
	chert   []*results // one for each of engines
}

// differing lists the differences of an engine.
func (r *report) differing(engine int) (listed, unexplained []differing) {
	for _, d := range compare(r.name, r.plain, r.chert[engine]) {
		if d.why != "" {
			listed = append(listed, d)
		} else {
			unexplained = append(unexplained, d)
		}
	}
	return listed, unexplained
}

// summary prints all reports. Its error says that chert failed somewhere, or
// that a suite did not test it.
func summary(w io.Writer, reports []*report) error {
	table(w, reports)
	bad := 0
	for _, r := range reports {
		bad += details(w, r)
	}
	if bad > 0 {
		return fmt.Errorf("%d differences are not explained", bad)
	}
	for _, r := range reports {
		for i, res := range r.chert {
			if res.servers == 0 && !r.partial {
				return fmt.Errorf("%s, engine %s: no server was chert's: its tests have tested another server, or none", r.name, engines[i])
			}
		}
	}
	return nil
}

// columns are the heads of a report's row.
var columns = []string{"suite", "version", "replaced", "servers", "tests", "on chert", "net/http", "chert", "goroutines",
	"listed", "unexplained", "seconds"}

// row is the report as a line of the table.
func (r *report) row() []string {
	listed, unexplained := make(map[id]bool), make(map[id]bool)
	for i := range r.chert {
		l, u := r.differing(i)
		mark(listed, l)
		mark(unexplained, u)
	}
	row := []string{r.name, r.version}
	for _, n := range []int{r.places, r.servers(), r.plain.count(""), r.chert[0].served(), r.plain.count("pass"),
		r.chert[0].count("pass"), r.chert[1].count("pass"), len(listed), len(unexplained), int(r.took().Seconds())} {
		row = append(row, strconv.Itoa(n))
	}
	return row
}

func table(w io.Writer, reports []*report) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, strings.Join(columns, "\t")+"\t")
	for _, r := range reports {
		fmt.Fprintln(tw, strings.Join(r.row(), "\t")+"\t")
	}
	tw.Flush()
	fmt.Fprintln(w, "\nreplaced: places in the sources. servers: of chert that were made, on the engine that had fewer.\n"+
		"tests: tests and subtests; on chert: those whose function made a server of chert, as far as known.\n"+
		"net/http, chert, goroutines: passed on net/http, on chert's default engine and on its other one.\n"+
		"seconds: of all three runs, building included, beside other suites.")
}

// took is the time of all runs, building included.
func (r *report) took() time.Duration {
	d := r.plain.took
	for _, res := range r.chert {
		d += res.took
	}
	return d
}

// servers returns how many servers were chert's, on the engine that had the fewest.
func (r *report) servers() int {
	n := r.chert[0].servers
	for _, res := range r.chert {
		n = min(n, res.servers)
	}
	return n
}

func mark(m map[id]bool, list []differing) {
	for _, d := range list {
		m[d.id] = true
	}
}

// details prints what did not pass, and returns how much of it nothing
// explains.
func details(w io.Writer, r *report) (bad int) {
	section(w, r.name+": fails on net/http too", strs(r.plain.failed()))
	if !r.partial {
		section(w, r.name+": listed, but passes or is not there", strs(stale(r.name, r.plain, r.chert)))
	}
	byReason := make(map[string][]string)
	for _, p := range r.patches {
		if p.why != "" {
			byReason[p.why] = append(byReason[p.why], "patched "+p.file)
		}
	}
	for i := range r.chert {
		listed, unexplained := r.differing(i)
		for _, d := range listed {
			byReason[d.why] = append(byReason[d.why], d.state+" "+d.id.String())
		}
		bad += len(unexplained)
		complain(w, r.name+", engine "+engines[i]+": not explained", unexplained)
	}
	for _, why := range slices.Sorted(maps.Keys(byReason)) {
		slices.Sort(byReason[why])
		section(w, r.name+": differs: "+why, slices.Compact(byReason[why])) // engines agree as a rule
	}
	return bad
}

func section(w io.Writer, title string, lines []string) {
	if len(lines) > 0 {
		fmt.Fprintf(w, "\n%s\n    %s\n", title, strings.Join(lines, "\n    "))
	}
}

func strs[T fmt.Stringer](list []T) (lines []string) {
	for _, x := range list {
		lines = append(lines, x.String())
	}
	return lines
}

// complain prints unexplained differences with the output of the tests. Tests
// that were not run follow from one that ended its package, which is there.
func complain(w io.Writer, title string, list []differing) {
	const most = 5
	notRun := 0
	for _, d := range list {
		if d.state == "not run" {
			if notRun++; notRun > most {
				continue
			}
		}
		fmt.Fprintf(w, "\n%s\n    %s %v\n%s", title, d.state, d.id, indent(d.output))
	}
	if notRun > most {
		fmt.Fprintf(w, "\n%s\n    not run: %d more\n", title, notRun-most)
	}
}

// indent keeps the end of an output, where the reason is.
func indent(output string) string {
	const most = 60 // lines
	if output == "" {
		return ""
	}
	lines := strings.Split(strings.TrimRight(output, "\n"), "\n")
	if len(lines) > most {
		lines = append([]string{fmt.Sprintf("(%d lines left out)", len(lines)-most)}, lines[len(lines)-most:]...)
	}
	return "    " + strings.Join(lines, "\n    ") + "\n"
}
