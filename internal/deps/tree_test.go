package deps

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// moduleRoot walks up to the go.mod of this module.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod in this folder or above")
		}
		dir = up
	}
}

// goFiles lists the module's Go files of all systems: build constraints are
// ignored, so a file for Windows counts on Linux too. Files that the go command
// would not build are skipped: nested modules, testdata, vendor, and names that
// begin with a dot or an underscore.
func goFiles(tree fs.FS) (files []string, err error) {
	err = fs.WalkDir(tree, ".", func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed during the walk, by a concurrent build
		}
		if err != nil {
			return err
		}
		name := d.Name()
		hidden := p != "." && strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
		if !d.IsDir() {
			if !hidden && strings.HasSuffix(name, ".go") {
				files = append(files, p)
			}
			return nil
		}
		if hidden || name == "testdata" || name == "vendor" {
			return fs.SkipDir
		}
		if _, err := fs.Stat(tree, path.Join(p, "go.mod")); err == nil && p != "." {
			return fs.SkipDir
		}
		return nil
	})
	return files, err
}

func isTest(file string) bool { return strings.HasSuffix(file, "_test.go") }

// foldersOf returns the folders of the files: one for each package.
func foldersOf(files []string) (folders []string) {
	for _, f := range files {
		folders = append(folders, path.Dir(f))
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}

// importsOf returns the imports of the files except tests, which may import
// anything.
func importsOf(tree fs.FS, files []string) (imports []imp, err error) {
	for _, f := range files {
		if isTest(f) {
			continue
		}
		fset, parsed, err := parse(tree, f, parser.ImportsOnly)
		if err != nil {
			return nil, err
		}
		for _, spec := range parsed.Imports {
			p, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return nil, err
			}
			imports = append(imports, imp{from: path.Dir(f), path: p, at: place(fset, spec.Pos())})
		}
	}
	return imports, nil
}

// checkDocs returns a fault for each folder without a doc.go that has a
// package comment.
func checkDocs(tree fs.FS, folders []string) (faults []string) {
	for _, folder := range folders {
		doc := path.Join(folder, "doc.go")
		_, parsed, err := parse(tree, doc, parser.PackageClauseOnly|parser.ParseComments)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			faults = append(faults, fmt.Sprintf("package %s has no doc.go: its first sentence says "+
				"what the package does for its user", folder))
		case err != nil:
			faults = append(faults, err.Error())
		case strings.TrimSpace(parsed.Doc.Text()) == "":
			faults = append(faults, doc+": no package comment right above the package clause")
		}
	}
	return faults
}

// checkLengths returns a fault for each file and function over the limits.
func checkLengths(tree fs.FS, files []string) (faults []string) {
	for _, f := range files {
		if isTest(f) {
			continue
		}
		fset, parsed, err := parse(tree, f, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			faults = append(faults, err.Error())
			continue
		}
		if ast.IsGenerated(parsed) {
			continue
		}
		if n := fset.File(parsed.FileStart).LineCount(); n > maxFileLines {
			faults = append(faults, fmt.Sprintf("%s:%d: file of %d lines, the limit is %d", f, n, n, maxFileLines))
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			name := "function literal"
			switch fn := node.(type) {
			case *ast.FuncDecl:
				name = "function " + fn.Name.Name
			case *ast.FuncLit:
			default:
				return true
			}
			n := fset.Position(node.End()).Line - fset.Position(node.Pos()).Line + 1
			if n > maxFuncLines {
				faults = append(faults, fmt.Sprintf("%s: %s of %d lines, the limit is %d",
					place(fset, node.Pos()), name, n, maxFuncLines))
			}
			return false // a literal inside counts with its function
		})
	}
	return faults
}

func parse(tree fs.FS, file string, mode parser.Mode) (*token.FileSet, *ast.File, error) {
	src, err := fs.ReadFile(tree, file)
	if err != nil {
		return nil, nil, err
	}
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, src, mode)
	return fset, parsed, err
}

// place returns file:line, ignoring //line comments.
func place(fset *token.FileSet, pos token.Pos) string {
	p := fset.PositionFor(pos, false)
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}

// checkColumns returns a fault for each line that is too long, of files that are neither tests, whose tables have a line
// for each case, nor generated, and outside of strings with several lines.
func checkColumns(tree fs.FS, files []string) (faults []string) {
	for _, f := range files {
		if isTest(f) || slices.Contains(notWrapped, path.Dir(f)) {
			continue
		}
		fset, parsed, err := parse(tree, f, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			faults = append(faults, err.Error())
			continue
		}
		if ast.IsGenerated(parsed) {
			continue
		}
		text := map[int]bool{} // lines of strings that have several
		ast.Inspect(parsed, func(node ast.Node) bool {
			if lit, ok := node.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				from, to := fset.Position(lit.Pos()).Line, fset.Position(lit.End()).Line
				for line := from; from < to && line <= to; line++ {
					text[line] = true
				}
			}
			return true
		})
		src, err := fs.ReadFile(tree, f)
		if err != nil {
			faults = append(faults, err.Error())
			continue
		}
		for i, line := range strings.Split(string(src), "\n") {
			n := utf8.RuneCountInString(line) + (tabColumns-1)*strings.Count(line, "\t")
			if n > maxColumns && !text[i+1] {
				faults = append(faults, fmt.Sprintf("%s:%d: line of %d columns, the limit is %d", f, i+1, n, maxColumns))
			}
		}
	}
	return faults
}
