package experiment

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/chert-http/chert/lab/report"
)

// Record is what is kept of a run, as JSON: pages are made from it.
type Record struct {
	Name     string     `json:"name"`
	Title    string     `json:"title"`
	Time     time.Time  `json:"time"`
	Took     string     `json:"took"`
	Go       string     `json:"go"`
	Kernel   string     `json:"kernel"`
	Cores    int        `json:"cores"` // of the machine; a server has one unless the page says more
	Short    bool       `json:"short,omitempty"`
	Findings []Finding  `json:"claims"`
	Figures  []Measured `json:"figures"`
	Tables   []Table    `json:"tables"`
	Plots    []Pictured `json:"plots"`
	Notes    []string   `json:"notes,omitempty"`
	Faults   []string   `json:"faults,omitempty"`
	Values   Values     `json:"values"`
}

// Measured is a published figure beside the one found here.
type Measured struct {
	Server    string `json:"server"`
	What      string `json:"what"`
	Published string `json:"published"`
	Here      string `json:"here"`
}

// Pictured is a plot of a page.
type Pictured struct {
	File string `json:"file"` // without its ending, in the folder of the page
	Says string `json:"says"`
}

// record judges a result.
func (e Experiment) record(r Result, b *Bench, took time.Duration) Record {
	rec := Record{
		Name: e.Name, Title: e.Title, Time: time.Now().UTC().Truncate(time.Second), Took: took.Round(time.Second).String(),
		Go: runtime.Version(), Kernel: kernel(), Cores: runtime.NumCPU(), Short: b.Scale.Short,
		Tables: r.Tables, Notes: r.Notes, Faults: r.Faults, Values: maps.Clone(r.Values),
	}
	maps.DeleteFunc(rec.Values, func(_ string, x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }) // JSON has neither
	rec.judge(e)
	for _, p := range r.Plots {
		rec.Plots = append(rec.Plots, Pictured{"plots/" + e.Name + "-" + p.Name, p.Says})
	}
	return rec
}

// judge makes what follows from the values.
func (rec *Record) judge(e Experiment) {
	rec.Title, rec.Findings, rec.Figures = e.Title, nil, nil
	for _, c := range e.Claims {
		rec.Findings = append(rec.Findings, c.finding(rec.Values))
	}
	for _, f := range published() {
		if f.Experiment == e.Name {
			rec.Figures = append(rec.Figures, Measured{f.Server, f.What, f.Published, rec.Values.fill(f.Here)})
		}
	}
}

func kernel() string {
	text, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return runtime.GOOS
	}
	release, _, _ := strings.Cut(strings.TrimSpace(string(text)), "-")
	return "Linux " + release
}

// save writes the page, its plots and the JSON into a folder.
func (rec Record) save(dir string, plots []Plot) error {
	for i, p := range plots {
		file := rec.Plots[i].File
		if err := p.Draw.Save(filepath.Join(dir, filepath.Dir(file)), filepath.Base(file)); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return rec.write(dir)
}

// write writes the page and the JSON.
func (rec Record) write(dir string) error {
	text, err := json.MarshalIndent(rec, "", "\t")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, rec.Name+".json"), append(text, '\n'), 0o644); err != nil {
		return err
	}
	var page strings.Builder
	rec.page(&page)
	return os.WriteFile(filepath.Join(dir, rec.Name+".md"), []byte(page.String()), 0o644)
}

// text writes tables and verdicts for a terminal.
func (rec Record) text(w io.Writer) {
	fmt.Fprintf(w, "\n%s\n\n", rec.Title)
	for _, t := range rec.Tables {
		t.text(w)
	}
	for _, f := range rec.Findings {
		fmt.Fprintf(w, "%s: %s\n    rule: %s\n    here: %s\n", strings.ToUpper(string(f.Verdict)), f.Claim, f.Rule, f.Measured)
	}
	for _, note := range rec.Notes {
		fmt.Fprintln(w, "note:", note)
	}
	for _, fault := range rec.Faults {
		fmt.Fprintln(w, "ERRORS:", fault)
	}
}

// text writes a table in columns.
func (t Table) text(w io.Writer) {
	fmt.Fprintln(w, t.Title)
	report.Columns(w, append([][]string{t.Columns}, t.Rows...))
	fmt.Fprintln(w)
}
