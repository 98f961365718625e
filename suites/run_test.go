package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A suite that ends early on net/http is run there once more, and not a third time.
func TestMeasure(t *testing.T) {
	t.Parallel()
	const source = `package x

import (
	"os"
	"testing"
)

func TestPanics(t *testing.T) {
	f, err := os.OpenFile("runs", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.WriteString("x")
	if info, err := f.Stat(); err != nil || info.Size() <= LIMIT {
		panic("it ends the package")
	}
}
`
	for limit, want := range map[string]string{"0": "", "1": "", "2": "not all tests were run, twice"} {
		dir := t.TempDir()
		for name, text := range map[string]string{
			"go.mod": "module x\n", "x_test.go": strings.Replace(source, "LIMIT", limit, 1),
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		p := &prepared{plain: tree{dir: dir, env: []string{"GOWORK=off"}, packages: []string{"."}}}
		r, err := p.measure(t.Context(), "x", nil, io.Discard, io.Discard)
		switch {
		case want == "" && (err != nil || r.count("pass") != 1):
			t.Errorf("panics %s times: %v, %v", limit, r, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "it ends the package")):
			t.Errorf("panics %s times: %v, want %q", limit, err, want)
		}
	}
}
