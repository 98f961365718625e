package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	modpath "golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"
)

const modulePath = "github.com/chert-http/chert"

// dependents are the programs that dependMain measures: what they import of chert.
var dependents = []struct {
	name    string
	imports []string
}{
	{"net/http alone", nil},
	{"chert", []string{""}},
	{"chert, router", []string{"", "/router"}},
	{"chert, router, websocket", []string{"", "/router", "/websocket"}},
	{"chert, static", []string{"", "/static"}},
	{"chert, proxy", []string{"", "/proxy"}},
	{"chert, http3", []string{"", "/http3"}},
	{"chert, metrics", []string{"", "/metrics"}},
	{"chert, ratelimit/redisstore", []string{"", "/ratelimit/redisstore"}},
}

// dependMain prints what programs get that depend on the commit as a module: what go mod tidy writes into their go.mod
// and go.sum, what has to be downloaded to build them, and how long that takes after the standard library is compiled.
func dependMain(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("depend", flag.ContinueOnError)
	flags.SetOutput(out)
	without := flags.String("without", "", "measure a module without this `folder`, as if it were a module of its own")
	if err := flags.Parse(args); err != nil {
		return err
	}
	s, err := openSource(ctx, "")
	if err != nil {
		return err
	}
	defer s.close()
	d := dependency{temp: s.temp, clone: s.clones[0], version: s.version}
	if *without != "" {
		if err := d.leaveOut(ctx, *without); err != nil {
			return err
		}
	}
	size, err := d.publish(s.time)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "the module: %.1f MB compressed\n", float64(size)/1e6)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "go.mod\tgo.sum\tdownloads\tMB\tbuild s\tbinary MB\t  a program that imports")
	for _, p := range dependents {
		if err := d.measure(ctx, t, p.name, p.imports); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return t.Flush()
}

// A dependency is the commit as a version of a module, which a folder of temp provides as a proxy does.
type dependency struct {
	temp, clone, version string
}

func (d *dependency) proxy() string { return filepath.Join(d.temp, "proxy") }

// leaveOut removes a folder from the clone, with the requirements that only it had.
func (d *dependency) leaveOut(ctx context.Context, folder string) error {
	if err := os.RemoveAll(filepath.Join(d.clone, folder)); err != nil {
		return err
	}
	cmd := goCommand(ctx, d.clone, target{"linux", "amd64"}, "mod", "tidy")
	cmd.Env = append(cmd.Env, "GOFLAGS=-mod=mod")
	_, err := output(cmd)
	return err
}

// publish writes the files that the go command asks a proxy for, and returns the size of the archive.
func (d *dependency) publish(when time.Time) (int64, error) {
	dir := filepath.Join(d.proxy(), modulePath, "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, err
	}
	var archive bytes.Buffer
	if err := modzip.CreateFromDir(&archive, modpath.Version{Path: modulePath, Version: d.version}, d.clone); err != nil {
		return 0, err
	}
	mod, err := os.ReadFile(filepath.Join(d.clone, "go.mod"))
	if err != nil {
		return 0, err
	}
	info := fmt.Sprintf(`{"Version":%q,"Time":%q}`, d.version, when.Format(time.RFC3339))
	for name, data := range map[string][]byte{"list": []byte(d.version + "\n"), d.version + ".info": []byte(info),
		d.version + ".mod": mod, d.version + ".zip": archive.Bytes()} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return 0, err
		}
	}
	return int64(archive.Len()), nil
}

// measure makes one program in an empty folder, with an empty cache of modules, and prints its row.
func (d *dependency) measure(ctx context.Context, out io.Writer, name string, imports []string) error {
	dir, err := os.MkdirTemp(d.temp, "program-")
	if err != nil {
		return err
	}
	modules := dir + "-modules" // not below it, where go mod tidy would look for packages
	// The first program is net/http's: the others find what it is made of compiled.
	cache := filepath.Join(d.temp, "cache")
	if imports != nil {
		standard := cache
		cache = dir + "-cache"
		defer os.RemoveAll(cache)
		if err := os.CopyFS(cache, os.DirFS(standard)); err != nil {
			return err
		}
	}
	const header = "module example.com/program\n\ngo 1.26.0\n"
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(header), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(programOf(imports)), 0o644); err != nil {
		return err
	}
	defer os.RemoveAll(modules)
	binary := filepath.Join(dir, "program")
	run := func(args ...string) (time.Duration, error) {
		cmd := goCommand(ctx, dir, target{"linux", "amd64"}, args...)
		cmd.Env = append(cmd.Env, "GOFLAGS=-mod=mod -modcacherw", "GOSUMDB=off", "GOMODCACHE="+modules, "GOCACHE="+cache,
			"GOPROXY=file://"+filepath.ToSlash(d.proxy())+","+goEnv(ctx, "GOPROXY"))
		begun := time.Now()
		_, err := output(cmd)
		return time.Since(begun), err
	}
	steps := [][]string{{"mod", "tidy"}, {"build", "-trimpath", linkerFlags, "-o", binary, "."}}
	if imports != nil {
		steps = append([][]string{{"get", modulePath + "@" + d.version}}, steps...)
	}
	var built time.Duration
	for _, args := range steps {
		if args[0] == "build" {
			// What go mod tidy looks at is more than what a build needs.
			if err := os.RemoveAll(modules); err != nil {
				return err
			}
			if _, err := run("list", "-deps", "."); err != nil {
				return err
			}
		}
		if built, err = run(args...); err != nil {
			return err
		}
	}
	downloads, bytes, err := archivesIn(filepath.Join(modules, "cache", "download"))
	if err != nil {
		return err
	}
	info, err := os.Stat(binary)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%d\t%d\t%d\t%.1f\t%.1f\t%.1f\t  %s\n", required(filepath.Join(dir, "go.mod")),
		linesOf(filepath.Join(dir, "go.sum")), downloads, float64(bytes)/1e6, built.Seconds(), float64(info.Size())/1e6, name)
	return err
}

// programOf is a server with net/http's handlers, and with imports of chert.
func programOf(imports []string) string {
	var b strings.Builder
	b.WriteString("package main\n\nimport (\n\t\"net/http\"\n")
	serve := "http.ListenAndServe"
	for _, path := range imports {
		blank := "_ "
		if path == "" {
			blank, serve = "", "chert.ListenAndServe"
		}
		fmt.Fprintf(&b, "\t%s%q\n", blank, modulePath+path)
	}
	fmt.Fprintf(&b, ")\n\nfunc main() { %s(\":8080\", http.NotFoundHandler()) }\n", serve)
	return b.String()
}

func goEnv(ctx context.Context, name string) string {
	out, err := exec.CommandContext(ctx, "go", "env", name).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// archivesIn counts the modules that were downloaded whole.
func archivesIn(dir string) (n int, bytes int64, err error) {
	if _, err := os.Stat(dir); err != nil {
		return 0, 0, nil // nothing was
	}
	err = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".zip" {
			return err
		}
		info, err := e.Info()
		if err == nil {
			n++
			bytes += info.Size()
		}
		return err
	})
	return n, bytes, err
}

// required counts the modules that a go.mod requires, and linesOf lines; neither file need exist.
func required(name string) (n int) {
	data, _ := os.ReadFile(name)
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(strings.TrimPrefix(line, "require ")); len(f) >= 2 && strings.HasPrefix(f[1], "v") {
			n++
		}
	}
	return n
}

func linesOf(name string) int {
	data, _ := os.ReadFile(name)
	return bytes.Count(data, []byte("\n"))
}
