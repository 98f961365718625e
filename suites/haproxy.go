package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// haproxyCommit is the version of HAProxy's tests that the table is for.
const haproxyCommit = "50872daa6a857e82afc40b1c5161924aef4172d7"

// haproxyTests is HAProxy's own tests of what a proxy does, run by varnishtest, with chert in
// HAProxy's place. Where they use HAProxy as a server it stays.
type haproxyTests struct{}

func (haproxyTests) prepare(ctx context.Context, co *checkout, _, dir string) (*prepared, error) {
	for _, name := range []string{"varnishtest", "haproxy"} {
		if _, err := exec.LookPath(name); err != nil {
			return nil, fmt.Errorf("%w: install Debian's varnish and haproxy", err)
		}
	}
	from, version, err := foreign(ctx, dir, co.options.haproxy, "https://github.com/haproxy/haproxy", haproxyCommit, "reg-tests")
	if err != nil {
		return nil, err
	}
	pattern, err := regexp.Compile(co.options.run)
	if err != nil {
		return nil, err
	}
	v := &vtcRun{dir: filepath.Join(from, "reg-tests"), programs: dir, run: pattern}
	if _, err := goOutput(ctx, co.dir, nil, "build", "-o", dir+"/", "./cmd/chert", "./suites"); err != nil {
		return nil, err
	}
	return &prepared{version: version, cases: v, places: len(vtcCases), patches: vtcReasons()}, nil
}

// vtcReasons are why something is not as in HAProxy's tests.
func vtcReasons() (list []patch) {
	for i := range vtcCases {
		c := &vtcCases[i]
		if c.why != "" {
			list = append(list, patch{file: c.file + ", not run", why: c.why})
		}
		for client, why := range c.drop {
			list = append(list, patch{file: c.file + ", without " + client, why: why})
		}
		for _, e := range c.edits {
			list = append(list, patch{file: c.file, why: e.why})
		}
	}
	return list
}

// foreign returns a folder with files of a repository: a checkout that a flag names, or one
// that is fetched.
func foreign(ctx context.Context, dir, local, url, commit, folder string) (string, string, error) {
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "git", args...).CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("git %s: %w\n%s", strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(string(out)), nil
	}
	if local != "" {
		if _, err := os.Stat(filepath.Join(local, folder)); err != nil {
			return "", "", fmt.Errorf("no checkout of %s: %w", url, err)
		}
		version, err := git("-C", local, "rev-parse", "--short=9", "HEAD")
		if err != nil {
			version = "a copy"
		}
		return local, version, nil
	}
	to := filepath.Join(dir, "source")
	for _, args := range [][]string{{"init", "-q", to}, {"-C", to, "fetch", "-q", "--depth=1", url, commit},
		{"-C", to, "checkout", "-q", "FETCH_HEAD", "--", folder}} {
		if _, err := git(args...); err != nil {
			return "", "", err
		}
	}
	return to, commit[:9], nil
}

// vtcRun runs the cases of the table.
type vtcRun struct {
	dir, programs string
	run           *regexp.Regexp
}

func (v *vtcRun) expected() *results {
	r := &results{tests: map[id]*result{}}
	for i := range vtcCases {
		c := &vtcCases[i]
		if !v.run.MatchString(c.file) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(v.dir, c.file))
		if err != nil {
			r.tests[id{"reg-tests", c.file}] = &result{state: "fail", output: err.Error()}
			continue
		}
		for _, client := range vtcClients(string(text)) {
			state := "pass"
			if c.why != "" || c.drop[client] != "" {
				state = "skip"
			}
			r.tests[id{"reg-tests", c.file + "/" + client}] = &result{state: state}
		}
	}
	return r
}

func (v *vtcRun) test(ctx context.Context, engine, dir string, log io.Writer) (*results, error) {
	begun := time.Now()
	r := &results{tests: map[id]*result{}, onChert: map[id]bool{}}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	for i := range vtcCases {
		c := &vtcCases[i]
		if c.why != "" || !v.run.MatchString(c.file) {
			continue
		}
		if err := v.all(ctx, c, engine, dir, r, log); err != nil {
			return nil, err
		}
	}
	r.took = time.Since(begun)
	return r, nil
}

// vtcEnded is the line for a client that ended well.
var vtcEnded = regexp.MustCompile(`(?m)^\*+\s+(\S+)\s+Ending\r?$`)

func (v *vtcRun) all(ctx context.Context, c *vtcCase, engine, dir string, r *results, log io.Writer) error {
	text, err := os.ReadFile(filepath.Join(v.dir, c.file))
	if err != nil || !c.each {
		return errors.Join(err, v.one(ctx, c, string(text), engine, dir, r, log))
	}
	clients := vtcClients(string(text))
	for _, client := range clients {
		if c.drop[client] != "" {
			continue
		}
		single := *c
		single.drop = map[string]string{}
		for _, other := range clients {
			if other != client {
				single.drop[other] = "not this time"
			}
		}
		if err := v.one(ctx, &single, string(text), engine, dir, r, log); err != nil {
			return err
		}
	}
	return nil
}

func (v *vtcRun) one(ctx context.Context, c *vtcCase, text, engine, dir string, r *results, log io.Writer) error {
	out, err := c.translate(text, func(f *vtcFront) (string, error) {
		port, err := freePort()
		f.port = port
		r.servers++
		return f.command(c, v.programs, engine), err
	})
	if err != nil {
		return err
	}
	clients := vtcClients(out)
	file := filepath.Join(dir, strings.ReplaceAll(c.file, "/", "-"))
	if c.each {
		file = strings.TrimSuffix(file, ".vtc") + "-" + clients[0] + ".vtc"
	}
	if err := os.WriteFile(file, []byte(out), 0o644); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "varnishtest", "-v", "-t", "60", file)
	cmd.Env = append(os.Environ(), "HAPROXY_PROGRAM=haproxy")
	output, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return err
	}
	if err != nil {
		fmt.Fprintf(log, "%s %v: %v\n%s", c.file, clients, err, output)
	}
	var ended []string
	for _, m := range vtcEnded.FindAllStringSubmatch(string(output), -1) {
		ended = append(ended, m[1])
	}
	for i, client := range clients {
		at := id{"reg-tests", c.file + "/" + client}
		r.onChert[at] = true
		// varnishtest ends with the first that fails.
		if err == nil || i+1 < len(clients) && slices.Contains(ended, client) && slices.Contains(ended, clients[i+1]) {
			r.tests[at] = &result{state: "pass"}
		} else {
			r.tests[at] = &result{state: "fail", output: string(output)}
		}
	}
	return nil
}
