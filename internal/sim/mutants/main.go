package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

func main() {
	limit := flag.Duration("for", time.Minute, "how long the simulation may look for each")
	model := flag.String("model", "", "the model of clients, as test/sim has it; empty: all, which share the time")
	jobs := flag.Int("jobs", runtime.NumCPU(), "how many simulations run at a time, with seeds of their own")
	requests := flag.Int("requests", 1000, "requests or messages of each seed; more seeds find more than longer ones")
	check := flag.Bool("check", false, "only apply and compile")
	flag.Parse()
	if err := (finder{*limit, *check, *model, *jobs, *requests}).run(flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// A finder is what the flags ask for.
type finder struct {
	limit    time.Duration
	check    bool
	model    string
	jobs     int
	requests int
}

func (f finder) run(names []string) error {
	root, err := output(".", "go", "list", "-m", "-f", "{{.Dir}}", "github.com/chert-http/chert")
	if err != nil {
		return err
	}
	root = strings.TrimSpace(root)
	patches, err := filepath.Glob(filepath.Join(root, "internal/sim/mutants/*.patch"))
	if err != nil {
		return err
	}
	found, ran := 0, 0
	for _, p := range patches {
		name := strings.TrimSuffix(filepath.Base(p), ".patch")
		if len(names) > 0 && !matches(names, name) {
			continue
		}
		ran++
		said, err := f.try(root, p)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if said == "" {
			said = "not found"
		} else {
			found++
		}
		fmt.Printf("%-28s %s\n", name, said)
	}
	if f.check {
		fmt.Printf("%d mutants apply and compile\n", ran)
		return nil
	}
	fmt.Printf("%d of %d mutants found\n", found, ran)
	return nil
}

func matches(names []string, name string) bool {
	for _, n := range names {
		if strings.Contains(name, n) {
			return true
		}
	}
	return false
}

// try applies a patch to copies, builds the simulation with them and runs it. It returns
// how it was found, "" if not.
func (f finder) try(root, patch string) (string, error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	overlay, err := apply(root, patch, dir)
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "sim.test")
	if _, err := output(root, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary,
		"./test/sim"); err != nil {
		return "", err
	}
	if f.check {
		return "compiles", nil
	}
	return f.search(binary, filepath.Join(root, "test/sim"))
}

// search runs the simulation, several at a time with seeds of their own, until one of them finds something.
func (f finder) search(binary, dir string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), f.limit+30*time.Second)
	defer cancel()
	begun := time.Now()
	n, turns := f.jobs, models // each begins with another
	if f.model != "" {
		turns = []string{f.model}
	}
	all := make(chan string, n)
	var used atomic.Int64 // processor time
	for i := range n {
		go func() {
			said := ""
			for k := 0; k < len(turns) && said == "" && ctx.Err() == nil; k++ {
				model := turns[(k+i*len(turns)/n)%len(turns)]
				cmd := exec.CommandContext(ctx, binary, "-test.run", "TestSeeds", "-test.v",
					"-sim.seeds", "1000000", "-sim.seed", strconv.Itoa(1+i*1_000_000),
					"-sim.for", (f.limit / time.Duration(len(turns))).String(),
					"-sim.model", model, "-sim.requests", strconv.Itoa(f.requests))
				cmd.Dir = dir
				out, err := cmd.CombinedOutput()
				if p := cmd.ProcessState; p != nil {
					used.Add(int64(p.UserTime() + p.SystemTime()))
				}
				if err != nil && ctx.Err() != nil {
					said = "the simulation does not end"
				} else if err != nil {
					said = model + ": " + reason(out)
				}
			}
			all <- said
		}()
	}
	said, after := "", time.Duration(0)
	for range n {
		if s := <-all; s != "" && said == "" {
			said, after = s, time.Since(begun)
			cancel()
		}
	}
	if said != "" {
		said = fmt.Sprintf("found after %.1f s, %.1f s of processors: %s",
			after.Seconds(), time.Duration(used.Load()).Seconds(), said)
	}
	return said, nil
}

// models are those of test/sim, those first that do most in a second.
var models = []string{"h1", "hijack", "reload", "tls", "ws", "h2", "sse", "file", "proxy"}

var failed = regexp.MustCompile(`(?m)^.*(seed \d+ .*|panic: .*|fatal error: .*|WARNING: DATA RACE)$`)

func reason(out []byte) string {
	m := failed.FindSubmatch(out)
	if m == nil {
		return "it failed"
	}
	s := string(m[1])
	if i := strings.Index(s, "}): "); i >= 0 {
		s = s[:strings.IndexByte(s, '(')] + s[i+4:]
	}
	return s[:min(len(s), 120)]
}

// apply makes patched copies of the files that a patch names, and an overlay of them.
func apply(root, patch, dir string) (string, error) {
	text, err := os.ReadFile(patch)
	if err != nil {
		return "", err
	}
	replace := make(map[string]string)
	for line := range bytes.Lines(text) {
		name, ok := bytes.CutPrefix(line, []byte("+++ b/"))
		if !ok {
			continue
		}
		file := filepath.FromSlash(strings.TrimSpace(string(name)))
		old, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return "", err
		}
		copied := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(copied), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(copied, old, 0o644); err != nil {
			return "", err
		}
		replace[filepath.Join(root, file)] = copied
	}
	if len(replace) == 0 {
		return "", errors.New("the patch names no file")
	}
	if _, err := output(dir, "git", "apply", "--recount", patch); err != nil {
		return "", fmt.Errorf("it does not apply any more and must be renewed: %w", err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, overlay, 0o644)
}

// output runs a command and returns what it prints; an error has what it says.
func output(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s%s", name, err, out, stderr.Bytes())
	}
	return string(out), nil
}
