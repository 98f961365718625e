package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The pages are of every command that the help lists, with its flags, and have no request that man(7) does not know.
func TestMan(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if code, stdout, stderr := inProcess(t, "man", dir); code != exitOK || stdout+stderr != "" {
		t.Fatalf("%d %q %q", code, stdout, stderr)
	}
	known := regexp.MustCompile(`^\.(TH|SH|TP|PP|B|I|nf|fi)\b`)
	pages := map[string]string{}
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pages[filepath.Base(file)] = string(text)
		for line := range strings.Lines(string(text)) {
			if (line[0] == '.' && !known.MatchString(line)) || line[0] == '\'' {
				t.Errorf("%s: %s", file, line)
			}
		}
		if strings.Count(string(text), ".nf\n") != strings.Count(string(text), ".fi\n") {
			t.Errorf("%s: .nf and .fi do not match", file)
		}
	}
	_, help, _ := inProcess(t, "--help")
	_, help, _ = strings.Cut(help, "Available Commands:\n")
	for line := range strings.Lines(help) {
		if line == "\n" {
			break
		}
		name := strings.Fields(line)[0]
		if name == "help" || name == "man" {
			continue
		}
		page := pages["chert-"+name+".1"]
		_, help, _ := inProcess(t, name, "--help")
		for _, flag := range regexp.MustCompile(`(?m)^ +(?:-\w, )?--([\w-]+)`).FindAllStringSubmatch(help, -1) {
			if want := `\fB\-\-` + strings.ReplaceAll(flag[1], "-", `\-`) + `\fR`; !strings.Contains(page, want) {
				t.Errorf("chert-%s.1 does not have --%s", name, flag[1])
			}
		}
	}
	if page := pages["chert.1"]; !strings.HasPrefix(page, ".TH CHERT 1") || !strings.Contains(page, `\fBchert\-serve\fR(1)`) {
		t.Errorf("chert.1: %s", page)
	}
	if _, ok := pages["chert-man.1"]; ok {
		t.Error("a hidden command has a page")
	}
	if code, _, stderr := inProcess(t, "man", filepath.Join(dir, "none")); code != exitFailure || !strings.Contains(stderr, "none") {
		t.Errorf("%d %q", code, stderr)
	}
}
