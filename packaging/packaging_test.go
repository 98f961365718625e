package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// made are the products that tests have in common, by version.
var made = map[string]*product{}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, p := range made {
		p.close()
	}
	os.Exit(code)
}

// testProduct is that of Linux on this machine's processor, from the commit that is checked out. Tests that use it are
// not parallel.
func testProduct(t *testing.T, version string) *product {
	t.Helper()
	if p := made[version]; p != nil {
		return p
	}
	ctx := context.Background() // other tests use it too
	s, err := openSource(ctx, version)
	if err != nil {
		t.Fatal(err)
	}
	p, err := func() (*product, error) {
		var log strings.Builder
		all, err := compileAll(ctx, s, options{targets: []target{{"linux", host.arch}}, once: true}, &log)
		if err != nil {
			return nil, err
		}
		return newProduct(ctx, s, all)
	}()
	if err != nil {
		s.close()
		t.Fatal(err)
	}
	made[version] = p
	return p
}

func TestVersions(t *testing.T) {
	t.Parallel()
	for version, valid := range map[string]bool{
		"v0.1.0": true, "v10.20.30": true, "v0.2.0-rc.1": true, "v0.0.0-20261126120000.g0123456789ab": true,
		"0.1.0": false, "v1": false, "v1.2": false, "v01.2.3": false, "v1.2.3+meta": false, "v1.2.3-a-b": false, "v1.2.3-": false, "": false,
	} {
		if versionPattern.MatchString(version) != valid {
			t.Errorf("%q: want %v", version, valid)
		}
	}
	for number, want := range map[string]string{"0.1.0": "0.1.0", "0.2.0-rc.1": "0.2.0~rc.1"} {
		if got := (&product{number: number}).debVersion(); got != want {
			t.Errorf("%s: %s, want %s", number, got, want)
		}
	}
}

func TestScriptNames(t *testing.T) {
	t.Parallel()
	for shell, want := range map[string]string{"bash": "chert.bash", "powershell": "chert.ps1"} {
		if got := scriptName(shell); got != want {
			t.Errorf("%s: %s, want %s", shell, got, want)
		}
	}
}

func TestTargets(t *testing.T) {
	t.Parallel()
	if got, err := parseTargets("linux/arm64,windows/amd64"); err != nil ||
		fmt.Sprint(got) != "[linux/arm64 windows/amd64]" {
		t.Errorf("%v %v", got, err)
	}
	for _, s := range []string{"", "linux", "plan9/386", "linux/amd64,"} {
		if _, err := parseTargets(s); err == nil {
			t.Errorf("%q was accepted", s)
		}
	}
}

// A folder that no build has made is not removed.
func TestEmptyDist(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mine := filepath.Join(dir, "mine")
	if err := os.WriteFile(mine, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := emptyDist(dir, ""); err == nil {
		t.Error("a folder with a file was accepted")
	}
	if _, err := os.Stat(mine); err != nil {
		t.Error(err)
	}
	for range 2 { // made, then replaced
		dist, err := emptyDist("", dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dist, "old")); !errors.Is(err, os.ErrNotExist) {
			t.Error("a file of an earlier build is still there")
		}
		if err := os.WriteFile(filepath.Join(dist, "old"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Archives of the same files are the same, whenever they are written.
func TestArchivesAreReproducible(t *testing.T) {
	t.Parallel()
	files := []file{{"d/a", 0o755, []byte("x")}, {"d/b", 0o644, bytes.Repeat([]byte("y"), 1<<16)}}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, write := range map[string]func(*bytes.Buffer, time.Time) error{
		"tar": func(b *bytes.Buffer, at time.Time) error { return writeTar(b, files, at) },
		"zip": func(b *bytes.Buffer, at time.Time) error { return writeZip(b, files, at) },
	} {
		var first, second bytes.Buffer
		if err := errors.Join(write(&first, at), write(&second, at.In(time.FixedZone("", 3600)))); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Errorf("%s: two archives differ", name)
		}
	}
}

func TestIdentify(t *testing.T) {
	t.Parallel()
	const (
		mit = "Permission is hereby granted, free of charge, to any person... The above copyright notice\n  and this permission notice shall"
		bsd = "Redistributions of source code must retain the above. Redistributions in binary form must reproduce the above."
	)
	for text, want := range map[string]string{
		mit:                       "MIT",
		bsd:                       "BSD-2-Clause",
		bsd + " Neither the name": "BSD-3-Clause",
		mit + bsd:                 "BSD-2-Clause AND MIT",
		"Apache License\nVersion 2.0, January 2004": "Apache-2.0",
		"GNU GENERAL PUBLIC LICENSE Version 3":      "",
		"All rights reserved.":                      "",
	} {
		if got := identify(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// A module without a licence, or with an unknown one, fails a build.
func TestModuleWithoutLicence(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		why, name, text, want string
	}{
		{"no file", "README", "MIT", "has no licence"},
		{"an unknown one", "LICENSE.md", "Ask me first.", "is not known"},
		{"a notice alone", "NOTICE", "Thanks.", "has no licence"},
		{"a licence", "COPYING", "This is free and unencumbered software released into the public domain.", ""},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, tt.name), []byte(tt.text), 0o644); err != nil {
			t.Fatal(err)
		}
		m := &module{path: "example.com/m", dir: dir, packages: map[string]bool{dir: true}}
		if err := m.read(); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.why, err, tt.want)
		}
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]bool{
		`govulncheck: fetching vulnerabilities: Get "https://vuln.go.dev/index/modules.json.gz": dial tcp: no such host`: true,
		"Vulnerability #1: GO-2026-0001": false,
		"":                               false,
	} {
		if unreachable(said) != want {
			t.Errorf("%q: want %v", said, want)
		}
	}
}

func TestOwner(t *testing.T) {
	t.Parallel()
	w := weights{owners: map[string]string{"net/http": "std", "main": "chert", "gopkg.in/yaml.v3": "yaml", "a/b": "ab"}}
	for symbol, want := range map[string]string{
		"net/http.(*Server).Serve":       "std",
		"main.main":                      "chert",
		"main.main.func1":                "chert",
		"gopkg.in/yaml%2ev3.Unmarshal":   "yaml",
		"type:.eq.a/b.T":                 "ab",
		"a/b.F[go.shape.int,net/http.T]": "ab",
		"type:*":                         unowned,
		"go:func.*":                      unowned,
		"runtime.pclntab":                unowned,
	} {
		if got := w.owner(symbol); got != want {
			t.Errorf("%s: %s, want %s", symbol, got, want)
		}
	}
}
