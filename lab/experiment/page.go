package experiment

import (
	"fmt"
	"io"
	"strings"
)

// page writes the page of an experiment in Markdown.
func (rec Record) page(w io.Writer) {
	e, _ := Find(rec.Name)
	fmt.Fprintf(w, "# %s\n\n%s\n\n", rec.Title, e.Asks)
	fmt.Fprintf(w, "This page is made by\n\n    go run -C lab . experiment %s\n\n", rec.Name)
	fmt.Fprintf(w, "on %s with %s on %s, %s; it took %s. [All figures](%s.json). Do not edit it.\n\n",
		rec.Time.Format("2 January 2006"), rec.Go, rec.Kernel, plural(rec.Cores, "core"), rec.Took, rec.Name)
	if rec.Short {
		fmt.Fprint(w, "**The short form, made to see that it works: the figures say nothing.**\n\n")
	}
	if len(rec.Faults) > 0 {
		fmt.Fprint(w, "**Requests failed. The figures are not for use.**\n\n")
		for _, fault := range rec.Faults {
			fmt.Fprintf(w, "- %s\n", fault)
		}
		fmt.Fprintln(w)
	}
	if len(rec.Findings) > 0 {
		fmt.Fprint(w, "## Claims\n\n| claim | rule | here | verdict |\n| --- | --- | --- | --- |\n")
		for _, f := range rec.Findings {
			row(w, f.Claim, f.Rule, f.Measured, "**"+string(f.Verdict)+"**")
		}
		fmt.Fprintln(w)
	}
	for _, p := range rec.Plots {
		p.markdown(w)
	}
	if len(rec.Figures) > 0 {
		fmt.Fprint(w, "## Published and measured\n\nOther machines, other years: compare the shapes, not the figures.\n\n| whose | what | published | here |\n| --- | --- | --- | --- |\n")
		for _, f := range rec.Figures {
			row(w, f.Server, f.What, f.Published, f.Here)
		}
		fmt.Fprintln(w)
	}
	for _, t := range rec.Tables {
		fmt.Fprintf(w, "## %s\n\n", t.Title)
		row(w, t.Columns...)
		fmt.Fprintln(w, "|"+strings.Repeat(" --- |", len(t.Columns)))
		for _, cells := range t.Rows {
			row(w, cells...)
		}
		fmt.Fprintln(w)
	}
	if len(rec.Notes) > 0 {
		fmt.Fprint(w, "## Notes\n\n")
		for _, note := range rec.Notes {
			fmt.Fprintf(w, "- %s\n", note)
		}
	}
}

// row writes a row of a table.
func row(w io.Writer, cells ...string) {
	for _, cell := range cells {
		fmt.Fprintf(w, "| %s ", strings.ReplaceAll(cell, "|", "\\|"))
	}
	fmt.Fprintln(w, "|")
}

// markdown shows a plot, on a dark ground to readers who have one.
func (p Pictured) markdown(w io.Writer) {
	says := strings.NewReplacer("&", "&amp;", `"`, "&quot;", "<", "&lt;").Replace(p.Says)
	fmt.Fprintf(w, "<picture>\n<source media=\"(prefers-color-scheme: dark)\" srcset=\"%[1]s-dark.svg\">\n<img src=\"%[1]s.svg\" alt=\"%[2]s\">\n</picture>\n\n%[3]s\n\n", p.File, says, p.Says)
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
