package deps

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func load(t *testing.T) (tree fs.FS, files []string) {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	tree = os.DirFS(root)
	if files, err = goFiles(tree); err != nil {
		t.Fatal(err)
	}
	return tree, files
}

func report(t *testing.T, faults []string) {
	t.Helper()
	for _, f := range faults {
		t.Error(f)
	}
}

func TestPolicy(t *testing.T) {
	report(t, checkPolicy(policy, core))
}

func TestModulePath(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if first, _, _ := strings.Cut(string(mod), "\n"); strings.TrimSpace(first) != "module "+module {
		t.Errorf("go.mod begins with %q; bring the constant module in check_test.go up to date", first)
	}
}

func TestImportOrder(t *testing.T) {
	tree, files := load(t)
	report(t, checkKnown(policy, foldersOf(files)))
	imports, err := importsOf(tree, files)
	if err != nil {
		t.Fatal(err)
	}
	report(t, checkImports(policy, imports))
}

func TestEveryPackageHasDoc(t *testing.T) {
	tree, files := load(t)
	report(t, checkDocs(tree, foldersOf(files)))
}

func TestColumns(t *testing.T) {
	tree, files := load(t)
	report(t, checkColumns(tree, files))
}

func TestLengths(t *testing.T) {
	tree, files := load(t)
	report(t, checkLengths(tree, files))
}
