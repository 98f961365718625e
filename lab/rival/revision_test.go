package rival

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/chert-http/chert/lab/child"
)

// program makes a file of Go.
func program(body string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte("package main\n\nfunc main() { " + body + " }\n")}
}

// repository makes one with two commits, of which the second is tagged and adds a server; it returns what names both.
func repository(t *testing.T) (dir, first, second string) {
	t.Helper()
	for _, program := range []string{"git", "tar"} {
		if _, err := child.Find(program); err != nil {
			if os.Getenv("CHERT_REQUIRE_ALL") == "1" {
				t.Fatal(err)
			}
			t.Skip(err)
		}
	}
	// No user's settings; and when this runs in a git hook, not that hook's repository.
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	for _, name := range []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"} {
		t.Setenv(name, "") // puts it back afterwards
		os.Unsetenv(name)
	}
	dir = t.TempDir()
	git := func(args ...string) string {
		out, err := child.Run(t.Context(), child.Command{Args: append([]string{"git", "-C", dir, "-c", "user.name=x", "-c", "user.email=x@example.org"}, args...)})
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(out.Stdout)
	}
	commit := func(files fstest.MapFS) string {
		if err := os.CopyFS(dir, files); err != nil {
			t.Fatal(err)
		}
		git("add", ".")
		git("commit", "-q", "-m", "a commit")
		return git("rev-parse", "--short", "HEAD")
	}
	git("init", "-q", "-b", "main")
	first = commit(fstest.MapFS{
		"lab/go.mod":            {Data: []byte("module lab\n\ngo 1.26.0\n")},
		"lab/cmd/chert/main.go": program(`println("first")`),
	})
	second = commit(fstest.MapFS{"lab/cmd/chertdirect/main.go": program("does not build")})
	git("tag", "-a", "-m", "a tag", "v1")
	if err := os.WriteFile(filepath.Join(dir, "lab", "cmd", "chert", "main.go"), []byte("not committed"), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir, first, second
}

func TestCheckout(t *testing.T) {
	dir, first, second := repository(t)
	tests := []struct {
		name, want string // want is empty for an error
	}{
		{"HEAD", second},
		{"main", second},
		{"v1", second},
		{second, second},
		{"HEAD~1", first},
		{"v1^", first},
		{first, first},
		{"main@{0}", second},
		{"HEAD~2", ""},
		{"v2", ""},
		{"", ""},
		{"HEAD~1..HEAD", ""},
		{"HEAD:lab", ""}, // a tree
		{"--all", ""},
	}
	for _, tt := range tests {
		got, err := checkout(t.Context(), dir, t.TempDir(), tt.name)
		if tt.want == "" {
			if err == nil || !strings.Contains(err.Error(), "no revision \""+tt.name+"\" of chert") {
				t.Errorf("%q: %+v, %v, want an error that names it", tt.name, got, err)
			}
			continue
		}
		if err != nil || got.Name != tt.want {
			t.Errorf("%q: %+v, %v, want %s", tt.name, got, err, tt.want)
			continue
		}
		for _, server := range []string{"chert", "chertdirect"} {
			if has, want := got.Has(known(t, server)), server == "chert" || tt.want == second; has != want {
				t.Errorf("%q: has %s: %v, want %v", tt.name, server, has, want)
			}
		}
	}
	if _, err := checkout(t.Context(), t.TempDir(), t.TempDir(), "HEAD"); err == nil || !strings.Contains(err.Error(), "not a git repository") {
		t.Errorf("without a repository: %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := checkout(t.Context(), dir, t.TempDir(), "HEAD"); err == nil || !strings.Contains(err.Error(), "git is not installed") {
		t.Errorf("without git: %v", err)
	}
}

func TestBuildRevision(t *testing.T) {
	dir, _, second := repository(t)
	tmp := t.TempDir()
	r, err := checkout(t.Context(), dir, tmp, "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := r.Build(t.Context(), tmp, known(t, "chert"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "chert@" + second; spec.Name != want || spec.Present != "chert" || spec.binary != filepath.Join(tmp, want) {
		t.Errorf("built %+v", spec)
	}
	command, err := spec.command(place{binary: spec.binary})
	if err != nil || command.Args[0] != spec.binary {
		t.Errorf("runs %v, %v", command.Args, err)
	}
	// What was committed, not what the work tree has.
	if text, err := os.ReadFile(spec.binary); err != nil || !bytes.Contains(text, []byte("first")) {
		t.Errorf("the program is not that of the commit: %v", err)
	}
	for server, want := range map[string]string{
		"chertdirect": "chertdirect@" + second + " does not build: go: exit status 1",
		"nethttp":     "only servers built from chert have revisions",
	} {
		if _, err := r.Build(t.Context(), tmp, known(t, server)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", server, err, want)
		}
	}
}

// The present source, as if it were another: were there any difference between the programs, it would be measured too.
func TestSameSourceSameProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("builds chert twice")
	}
	tmp := t.TempDir()
	present, err := Open(t.Context(), tmp, []string{"chert"})
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "elsewhere")
	source, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(source, folder); err != nil {
		t.Fatal(err)
	}
	r, err := OpenRevision(t.Context(), tmp, folder)
	if err != nil {
		t.Fatal(err)
	}
	other, err := r.Build(t.Context(), tmp, present[0])
	if err != nil {
		t.Fatal(err)
	}
	if other.Name != "chert@elsewhere" {
		t.Errorf("it is called %s", other.Name)
	}
	a, errA := os.ReadFile(present[0].binary)
	b, errB := os.ReadFile(other.binary)
	if errA != nil || errB != nil || !bytes.Equal(a, b) {
		t.Errorf("the two programs differ: %v, %v", errA, errB)
	}
}

func known(t *testing.T, name string) Spec {
	t.Helper()
	spec, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// The present source built with tags stands beside the one without.
func TestBuildTags(t *testing.T) {
	if testing.Short() {
		t.Skip("builds two servers")
	}
	tmp := t.TempDir()
	present := known(t, "chert")
	r, err := OpenTags(t.Context(), "chert_copytls")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := r.Build(t.Context(), tmp, present)
	if err != nil {
		t.Fatal(err)
	}
	if spec.Name != "chert@chert_copytls" || spec.Present != "chert" {
		t.Errorf("built %+v", spec)
	}
	plain := filepath.Join(tmp, "plain")
	if err := child.BuildAt(t.Context(), plain, r.folder(present)); err != nil {
		t.Fatal(err)
	}
	a, err := os.ReadFile(plain)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(spec.binary); err != nil || bytes.Equal(a, b) {
		t.Errorf("the tags change nothing: %v", err)
	}
}
