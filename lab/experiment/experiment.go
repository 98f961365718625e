package experiment

import (
	"context"
	"slices"

	"github.com/chert-http/chert/lab/chart"
)

// Experiment repeats something that was published.
type Experiment struct {
	Name  string // on the command line, and of its files
	Title string
	Asks  string // a paragraph for its page: what was published, and how it is repeated here
	// Needs are the programs that must be installed; Helps are those without which something is left out.
	Needs, Helps []string
	Claims       []Claim
	// Run measures. What it has found so far stays in the result if it fails.
	Run func(ctx context.Context, b *Bench, r *Result) error
}

// All lists the experiments, in the order in which the story is told.
func All() []Experiment {
	return []Experiment{
		stages(), keepalive(), pools(), workers(), flint(), goroutines(), static(), iouring(), profiles(), scaling(),
	}
}

// Find finds an experiment by its name.
func Find(name string) (Experiment, bool) {
	all := All()
	i := slices.IndexFunc(all, func(e Experiment) bool { return e.Name == name })
	if i < 0 {
		return Experiment{}, false
	}
	return all[i], true
}

// Names lists the names of all experiments.
func Names() []string {
	var names []string
	for _, e := range All() {
		names = append(names, e.Name)
	}
	return names
}

// Result is what an experiment has found.
type Result struct {
	Values Values
	Tables []Table
	Plots  []Plot
	Notes  []string // what was left out or must be kept in mind, a sentence each
	Faults []string // requests that failed: with any, the figures are not for use
}

// Table is a table of the page.
type Table struct {
	Title   string     `json:"title"`
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
}

// Plot is a diagram of the page.
type Plot struct {
	Name string // of its files, after that of the experiment
	Says string // what a reader should see in it: the text beside it, and instead of it
	Draw chart.Drawing
}

func (r *Result) note(text string) { r.Notes = append(r.Notes, text) }

func (r *Result) plot(name, says string, d chart.Drawing) {
	r.Plots = append(r.Plots, Plot{name, says, d})
}
