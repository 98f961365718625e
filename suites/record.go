package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

// recordHead is how the page of the last results begins, but for its table.
const recordHead = "# Results of the suites\n\n" +
	"Written by `go run ./suites -all -record docs/suites-results.md`; [suites.md](suites.md#results) describes the columns.\n" +
	"A run of some suites replaces their rows.\n\n"

// record writes the rows of reports to the page. Those of other suites, from earlier runs,
// stay.
func record(ctx context.Context, co *checkout, file string, begun time.Time, reports []*report) error {
	old, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	rows := make(map[string]string) // by suite
	for line := range strings.Lines(string(old)) {
		if name, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " "); ok && name != "suite" {
			rows[name] = line
		}
	}
	run := []string{begun.Format(time.DateOnly), commit(ctx, co.dir),
		fmt.Sprintf("%s, %d", strings.TrimPrefix(runtime.Version(), "go"), runtime.NumCPU())}
	for _, r := range reports {
		rows[r.name] = markdown(slices.Concat(r.row(), run))
	}
	heads := slices.Concat(columns, []string{"date", "commit", "Go, processors"})
	page := recordHead + markdown(heads) + "|" + strings.Repeat(" --- |", len(heads)) + "\n"
	for _, name := range names(true) {
		page += rows[name]
	}
	return os.WriteFile(file, []byte(page), 0o644)
}

func markdown(cells []string) string { return "| " + strings.Join(cells, " | ") + " |\n" }

// commit names the checkout's, and says if files differ from it.
func commit(ctx context.Context, dir string) string {
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...).Output()
		return strings.TrimSpace(string(out)), err
	}
	name, err := git("rev-parse", "--short", "HEAD")
	if err != nil {
		return "unknown"
	}
	if changed, err := git("status", "--porcelain", "--untracked-files=no", "--", "*.go"); err != nil || changed != "" {
		name += ", changed"
	}
	return name
}
