package main

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestBrowserCommands(t *testing.T) {
	t.Parallel()
	sep := string(filepath.ListSeparator)
	for env, want := range map[string]string{
		"":                              strings.Join(append(systemBrowser(), "URL"), " "),
		"firefox":                       "firefox URL",
		"firefox --new-tab":             "firefox --new-tab URL",
		"w --url=%s -x" + sep + " b ":   "w --url=URL -x,b URL",
		sep + sep + "a" + sep:           "a URL",
		" ":                             "",
		"a --profile p%s" + sep + "%sb": "a --profile pURL,URLb",
	} {
		var got []string
		for _, args := range browserCommands(env, "URL") {
			got = append(got, strings.Join(args, " "))
		}
		if s := strings.Join(got, ","); s != want {
			t.Errorf("%q: %q, want %q", env, s, want)
		}
	}
}

// script makes a command that runs lines.
func script(t *testing.T, lines string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no shell here")
	}
	path := filepath.Join(shortDir(t), "browser")
	writeProgram(t, path, []byte("#!/bin/sh\n"+lines))
	return path
}

// startOpen starts chert with --open and such a $BROWSER.
func startOpen(t *testing.T, browser string, args ...string) *proc {
	t.Helper()
	p := &proc{t: t, cmd: command(t, append([]string{"serve", t.TempDir(), "--open"}, args...)...)}
	p.cmd.Env = append(slices.Clone(os.Environ()), "BROWSER="+browser)
	p.begin()
	return p
}

func TestOpen(t *testing.T) {
	t.Parallel()
	browser := script(t, `echo "$1" > "$0.tmp"; mv "$0.tmp" "$0.out"`)
	p := startOpen(t, "/nowhere/browser:"+browser, "-l", "unix:"+filepath.Join(shortDir(t), "s"), "-l", "127.0.0.1:0")
	var got []byte
	until(t, func() (ok bool) {
		var err error
		got, err = os.ReadFile(browser + ".out")
		return err == nil
	})
	if string(got) != p.urls[1]+"\n" { // the first that a browser can go to
		t.Errorf("the browser was given %q, want %q", got, p.urls[1])
	}
}

// If no browser can be opened, chert says so and serves.
func TestOpenFails(t *testing.T) {
	needSignals(t)
	t.Parallel()
	failing := script(t, "exit 3")
	for browser, want := range map[string]string{
		"/nowhere/browser": "chert: note: cannot open the browser: fork/exec /nowhere/browser: no such file or directory\n",
		failing:            "chert: note: cannot open the browser: " + failing + ": exit status 3\n",
	} {
		p := startOpen(t, browser, "-l", "127.0.0.1:0")
		until(t, func() bool { return len(p.stderr.String()) > 0 })
		if got := p.stderr.String(); got != want {
			t.Errorf("stderr %q, want %q", got, want)
		}
		if status, _ := get(t, newClient(t, ""), p.urls[0]); status != 200 {
			t.Errorf("status %d", status)
		}
		p.signal(syscall.SIGTERM)
		p.waitFor(exitOK)
	}
}
