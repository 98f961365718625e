package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPromised(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		before, version string
		want            bool
	}{
		{"v0.1.0", "v0.1.1", true},
		{"v0.1.0", "v0.2.0", false},
		{"v0.9.0", "v1.0.0", false},
		{"v1.0.0", "v1.1.0", true},
		{"v1.9.0", "v2.0.0", false},
		{"v0.1.0", "", true},
		{"main", "v1.0.0", true},
	} {
		if got := promised(tt.before, tt.version); got != tt.want {
			t.Errorf("%s after %s: %v", tt.version, tt.before, got)
		}
	}
}

// moduleOf writes a module of files to a folder of its own.
func moduleOf(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module example.com/m\n\ngo 1.26.0\n"
	for name, text := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestCompareAPI(t *testing.T) {
	t.Parallel()
	was, err := apiOf(t.Context(), moduleOf(t, map[string]string{
		"m.go":          "package m\n\ntype T struct{ A, B int }\n\nfunc F(int) {}\n",
		"gone/gone.go":  "package gone\n",
		"internal/i.go": "package i\n\nfunc Gone() {}\n",
		"cmd/x/main.go": "package main\n\nfunc main() {}\n",
	}))
	if err != nil {
		t.Fatal(err)
	}
	is, err := apiOf(t.Context(), moduleOf(t, map[string]string{
		"m.go":          "package m\n\ntype T struct{ A, B, C int }\n\nfunc F(string) {}\n\nfunc G() {}\n",
		"came/came.go":  "package came\n",
		"internal/i.go": "package i\n",
	}))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if broken := compareAPI(was, is, &out); broken != 2 {
		t.Errorf("%d changes are not compatible", broken)
	}
	for _, want := range []string{
		"example.com/m: NOT COMPATIBLE: F: changed from func(int) to func(string)\n",
		"example.com/m: compatible: G: added\n",
		"example.com/m: compatible: T.C: added\n",
		"example.com/m/came: added\n",
		"example.com/m/gone: removed\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "internal") || strings.Contains(out.String(), "cmd") {
		t.Errorf("packages that no program imports:\n%s", out.String())
	}
}
