package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/chert-http/chert/suites/internal/onchert"
)

// engines are the runs on chert, by what onchert reads.
var engines = []string{"default", "goroutines"}

// runAll runs the chosen suites. The first error ends all.
func runAll(ctx context.Context, co *checkout, dir string, o *options, log io.Writer) ([]*report, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	log = &lockedWriter{w: log}
	reports := make([]*report, len(suites))
	places := make(chan struct{}, o.parallel)
	var wg sync.WaitGroup
	for i, s := range suites {
		if !slices.Contains(o.suites, s.name) {
			continue
		}
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			r, err := runSuite(ctx, co, s.suite, s.name, filepath.Join(dir, s.name), o, log)
			if err != nil {
				cancel(fmt.Errorf("%s: %w", s.name, err))
			}
			reports[i] = r
		})
	}
	wg.Wait()
	return slices.DeleteFunc(reports, func(r *report) bool { return r == nil }), context.Cause(ctx)
}

// lockedWriter keeps the output of several suites apart, by lines at least.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// runSuite prepares a suite and runs it on net/http and on each engine, one
// after the other: some tests want a port of their own.
func runSuite(ctx context.Context, co *checkout, s suite, name, dir string, o *options, log io.Writer) (*report, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	p, err := s.prepare(ctx, co, name, dir)
	if err != nil {
		return nil, err
	}
	if p.cases != nil {
		return runCases(ctx, p, name, dir, o, log)
	}
	args := []string{"-timeout", o.timeout.String()}
	if o.race {
		args = append(args, "-race")
	}
	if o.run != "" {
		args = append(args, "-run", o.run)
	}
	verbose := io.Discard
	if o.verbose {
		verbose = log
	}
	rep := &report{name: name, prepared: p, partial: o.run != ""}
	if rep.plain, err = p.measure(ctx, name, args, verbose, log); err != nil {
		return nil, err
	}
	fmt.Fprintf(log, "%s on net/http: %d passed, %.0f s\n", name, rep.plain.count("pass"), rep.plain.took.Seconds())
	for _, engine := range engines {
		notes := filepath.Join(dir, "notes-"+engine)
		env := []string{onchert.EngineVar + "=" + engine, onchert.NotesVar + "=" + notes}
		res, err := p.chert.test(ctx, env, args, verbose)
		if err != nil {
			return nil, fmt.Errorf("on chert, engine %s: %w", engine, err)
		}
		if res.onChert, res.servers, err = readNotes(notes); err != nil {
			return nil, err
		}
		fmt.Fprintf(log, "%s on chert, engine %s: %d passed, %.0f s\n", name, engine, res.count("pass"), res.took.Seconds())
		rep.chert = append(rep.chert, res)
	}
	return rep, nil
}

// measure runs a suite on net/http. A test that ends its package there, as some do by themselves on a busy
// machine, says nothing about chert: then the suite is run once more.
func (p *prepared) measure(ctx context.Context, name string, args []string, verbose, log io.Writer) (*results, error) {
	for again := false; ; again = true {
		r, err := p.plain.test(ctx, nil, args, verbose)
		if err != nil {
			return nil, fmt.Errorf("on net/http: %w", err)
		}
		output, cut := r.cut()
		switch {
		case !cut:
			return r, nil
		case again:
			return nil, fmt.Errorf("on net/http, which is the measure, not all tests were run, twice:\n%s", indent(output))
		}
		fmt.Fprintf(log, "%s on net/http: not all tests were run; once more\n%s", name, indent(output))
	}
}

// runCases runs what is no Go test, on each engine.
func runCases(ctx context.Context, p *prepared, name, dir string, o *options, log io.Writer) (*report, error) {
	verbose := io.Discard
	if o.verbose {
		verbose = log
	}
	rep := &report{name: name, prepared: p, partial: o.run != "", plain: p.cases.expected()}
	for _, engine := range engines {
		res, err := p.cases.test(ctx, engine, filepath.Join(dir, engine), verbose)
		if err != nil {
			return nil, fmt.Errorf("on chert, engine %s: %w", engine, err)
		}
		fmt.Fprintf(log, "%s on chert, engine %s: %d passed, %.0f s\n", name, engine, res.count("pass"), res.took.Seconds())
		rep.chert = append(rep.chert, res)
	}
	return rep, nil
}

// cut reports whether a package ended before its tests, by a panic or because
// it took too long, and returns its output.
func (r *results) cut() (output string, ok bool) {
	for at, res := range r.tests {
		panicked := res.state == "fail" && strings.Contains("\n"+res.output, "\npanic: ")
		if at.test != "" && (res.state == "" || panicked) {
			return r.tests[id{at.pkg, ""}].output + res.output, true
		}
	}
	return "", false
}

// readNotes reads what onchert has written; nothing if no server was made. A server that no
// test is known for counts too.
func readNotes(file string) (tests map[id]bool, servers int, err error) {
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, 0, err
	}
	tests = make(map[id]bool)
	for line := range strings.Lines(string(text)) {
		servers++
		if pkg, test, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			tests[id{pkg, test}] = true
		}
	}
	return tests, servers, nil
}
