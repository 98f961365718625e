package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// besides are the flags that go with --config: they override the file or do not concern it. Those that the file has
// keys for by site cannot.
var besides = map[string]bool{
	"control": true,
	"listen":  true, "config": true, "open": true, "log": true, "quiet": true, "shutdown-timeout": true, "rate-limit": true,
	"rate-store": true, "rate-failure": true, "rate-timeout": true, "rate-instances": true, "trusted-proxy": true, "max-conns": true, "admin": true, "max-conns-per-addr": true,
}

// flagNames reads all flags of a command from its help.
func flagNames(cmd *cobra.Command) (names []string) {
	for _, m := range regexp.MustCompile(`(?m)^ +(?:-\w, )?--([a-z0-9-]+)`).FindAllStringSubmatch(cmd.Flags().FlagUsages(), -1) {
		names = append(names, m[1])
	}
	return names
}

// A flag that a configuration file would make chert ignore is refused beside one.
func TestBesideConfig(t *testing.T) {
	t.Parallel()
	cmd := newServeCmd()
	for _, name := range flagNames(cmd) {
		f := cmd.Flags().Lookup(name)
		if besides[name] {
			continue
		}
		arg := "--" + f.Name
		if f.NoOptDefVal == "" {
			arg += "=" + map[string]string{"rule": "X-A: 1", "size": "1", "number": "1", "folder": "x", "name": "a.example", "URL": "https://x", "version": "1.3", "duration": "1h"}[f.Value.Type()]
			if f.Value.Type() == "file" {
				arg += "x"
			}
			switch f.Name {
			case "http-redirect":
				arg += ":80"
			case "tls-email":
				arg += "a@b.example"
			}
			if f.Name == "cache-control" {
				arg = "--cache-control=no-cache"
			}
		}
		oneLine(t, exitUsage, "chert: --config and --"+f.Name+` contradict each other; write it into the file; see "chert serve --help"`,
			"serve", "--config", "x", arg)
	}
}

// docs/command.md has every flag of serve, with its shorthand and default.
func TestDocumentedFlags(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "command.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| flag | default | meaning |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	row := regexp.MustCompile("^\\| (?:`-(\\w)`, )?`--([a-z0-9-]+)(?:\\[=FILE\\])?` \\| (?:`([^`]*)`)? *\\| .+ \\|$")
	type flag struct{ shorthand, value string }
	rows := make(map[string]flag)
	for _, line := range strings.Split(table, "\n")[1:] {
		m := row.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("no row of a flag: %s", line)
			continue
		}
		rows[m[2]] = flag{m[1], m[3]}
	}
	cmd := newServeCmd()
	for _, name := range flagNames(cmd) {
		f := cmd.Flags().Lookup(name)
		want := flag{f.Shorthand, f.DefValue}
		if f.Value.Type() == "bool" {
			want.value = ""
		}
		if got, ok := rows[f.Name]; !ok || got != want {
			t.Errorf("docs/command.md has --%s as %+v (%v), want %+v", f.Name, got, ok, want)
		}
		delete(rows, f.Name)
	}
	for name := range rows {
		t.Errorf("docs/command.md has --%s, which is no flag", name)
	}
}
