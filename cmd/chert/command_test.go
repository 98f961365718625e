package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
)

func TestHelp(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--help"}, {"serve", "--help"}, {"help", "serve"}, {"check", "--help"}, {"cert", "--help"}, {"demo", "--help"}, {"help", "demo"}, {"version", "--help"}} {
		code, stdout, stderr := inProcess(t, args...)
		if code != exitOK || !strings.Contains(stdout, "Usage:") || stderr != "" {
			t.Errorf("chert %q: %d %q %q", args, code, stdout, stderr)
		}
	}
	_, help, _ := inProcess(t, "--help")
	if !strings.Contains(help, "Usage:\n  chert --version\n  chert [command]\n") {
		t.Errorf("the usage is %s", help)
	}
	_, help, _ = inProcess(t, "serve", "--help")
	for _, s := range []string{"Only this machine", "(default 127.0.0.1:8080)", "(default off)", "(default 30s)",
		"(default 64MiB)", "(default 16KiB)", "(default 8MiB)", "(default index.html)"} {
		if !strings.Contains(help, s) {
			t.Errorf("the help does not say %q", s)
		}
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	for _, arg := range []string{"--version", "version"} {
		out, err := command(t, arg).Output()
		if err != nil || !strings.HasPrefix(string(out), "chert devel (go1.") || strings.Count(string(out), "\n") != 1 ||
			!strings.Contains(string(out), runtime.GOOS+"/"+runtime.GOARCH) {
			t.Errorf("%s: %q %v", arg, out, err)
		}
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	vcs := func(modified string) []debug.BuildSetting {
		return []debug.BuildSetting{
			{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"},
			{Key: "vcs.modified", Value: modified},
		}
	}
	tests := []struct {
		version  string
		settings []debug.BuildSetting
		want     string
	}{
		{"v1.2.3", nil, "v1.2.3 (go1.26.0)"},
		{"v1.2.3", vcs("false"), "v1.2.3 (go1.26.0, revision 0123456789ab)"},
		{"(devel)", vcs("true"), "devel (go1.26.0, revision 0123456789ab, modified)"},
		{"", nil, "devel (go1.26.0)"},
	}
	for _, tt := range tests {
		info := &debug.BuildInfo{GoVersion: "go1.26.0", Settings: tt.settings}
		info.Main.Version = tt.version
		want := strings.Replace(tt.want, "go1.26.0", "go1.26.0, "+runtime.GOOS+"/"+runtime.GOARCH, 1)
		if got := describe(info); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		code, stdout, stderr := inProcess(t, "completion", shell)
		if code != exitOK || !strings.Contains(stdout, "__complete") || stderr != "" {
			t.Errorf("%s: %d, %d bytes, stderr %q", shell, code, len(stdout), stderr)
		}
	}
}

func TestCompletions(t *testing.T) {
	t.Parallel()
	const noFile, filterExt, filterDirs = ":4", ":8", ":16"
	tests := []struct {
		args []string
		want string // suggestions without their descriptions, and what the shell should do
	}{
		{[]string{"ser"}, "serve " + noFile},
		{[]string{"che"}, "check " + noFile},
		{[]string{"ce"}, "cert " + noFile},
		{[]string{"cert", ""}, noFile},
		{[]string{"cert", "--dir", ""}, filterDirs},
		{[]string{"de"}, "demo " + noFile},
		{[]string{"demo", ""}, noFile},
		{[]string{"demo", "--log", ""}, "off common combined vhost text json " + noFile},
		{[]string{"check", ""}, "toml " + filterExt},
		{[]string{"check", "a.toml", ""}, noFile},
		{[]string{"serve", "--config", ""}, "toml " + filterExt},
		{[]string{"serve", "--header", ""}, noFile},
		{[]string{"serve", "--cache", ""}, noFile},
		{[]string{"serve", "--no-l"}, "--no-listing " + noFile},
		{[]string{"serve", ""}, filterDirs},
		{[]string{"serve", "dir", ""}, noFile}, // one folder is all it takes
		{[]string{"serve", "--log", ""}, "off common combined vhost text json " + noFile},
		{[]string{"serve", "--listen", ""}, noFile},
		{[]string{"serve", "--tls-min", ""}, "1.2 1.3 " + noFile},
		{[]string{"adapt", "--from", ""}, "nginx caddy " + noFile},
		{[]string{"proxy", "--balance", ""}, "least round-robin sticky " + noFile},
	}
	for _, tt := range tests {
		code, stdout, _ := inProcess(t, append([]string{"__complete"}, tt.args...)...)
		var got []string
		for line := range strings.Lines(stdout) {
			word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
			got = append(got, word)
		}
		if code != exitOK || strings.Join(got, " ") != tt.want {
			t.Errorf("%q: %d %q, want %q", tt.args, code, got, tt.want)
		}
	}
}

// full is a file on a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}
}

// A command that cannot print what it was called for has failed.
func TestStdoutFull(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"all.conf":  "server {\n    listen 80;\n    root /srv;\n}\n",
		"some.conf": "server {\n    listen 80;\n    root /srv;\n    perl x;\n}\n",
	})
	for _, args := range [][]string{
		{"adapt", filepath.Join(dir, "all.conf")}, {"adapt", filepath.Join(dir, "some.conf")},
		{"completion", "bash"}, {"completion", "fish"}, {"version"}, {"--version"}, {"--help"},
	} {
		var stderr bytes.Buffer
		code := run(args, full{}, &stderr)
		want := "chert: cannot write to stdout: " + syscall.ENOSPC.Error() + "\n"
		if code != exitFailure || !strings.HasSuffix(stderr.String(), want) {
			t.Errorf("%q: %d %q, want %q", args, code, stderr.String(), want)
		}
	}
}

func TestQuote(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		filepath.Join("a b", "c"): `"` + filepath.Join("a b", "c") + `"`,
		"esc\x1b[2J":              `"esc\x1b[2J"`,
		"two\nlines":              `"two\nlines"`,
	} {
		if got := quote(path); got != want {
			t.Errorf("%q: %s, want %s", path, got, want)
		}
	}
}
