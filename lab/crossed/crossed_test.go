package crossed

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFunctions(t *testing.T) {
	root := t.TempDir()
	source := `package p

func plain() { println() }

func (t *T[A]) outer() {
	println()
	f := func() {
		if true {
			println()
		}
	}
	f()
}

func rare() { println() }
`
	if err := os.Mkdir(filepath.Join(root, "p"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "p", "p.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	profile := "mode: atomic\n" +
		module + "/p/p.go:3.16,3.26 1 200\n" + // twice for each request
		module + "/p/p.go:6.2,7.15 2 60\n" +
		module + "/p/p.go:12.2,12.5 1 200\n" + // the block after the literal does not count
		module + "/p/p.go:8.3,8.11 1 100\n" +
		module + "/p/p.go:9.4,9.13 1 1\n" +
		module + "/p/p.go:15.15,15.25 1 49\n" +
		module + "/lab/handler/handler.go:1.1,1.2 1 100\n"
	found, err := functions(root, profile, 100)
	if err != nil {
		t.Fatal(err)
	}
	want := []Function{{"p/p.go", 3, "plain", 2}, {"p/p.go", 5, "(*T).outer", 0.6}, {"p/p.go", 7, "(*T).outer.func", 1}}
	if len(found) != len(want) {
		t.Fatalf("got %v, want %v", found, want)
	}
	for i, f := range found {
		if f != want[i] {
			t.Errorf("got %v, want %v", f, want[i])
		}
	}
	if _, err := functions(root, "mode: atomic\nnothing\n", 100); err == nil || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("a bad line: %v", err)
	}
}
