package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Links of what is packed lead to what is packed, or to files of the commit on the web.
func TestPackedLinks(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "chert")
	if err := os.WriteFile(program, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	p := &product{source: &source{clones: [2]string{".."}, commit: "COMMIT"}}
	b := &binary{path: program}
	for name, list := range map[string]func() ([]file, error){
		"archive": func() ([]file, error) { return p.archiveFiles(b, "folder") },
		"deb":     func() ([]file, error) { return p.packageFiles(b, "deb") },
		"rpm":     func() ([]file, error) { return p.packageFiles(b, "rpm") },
	} {
		files, err := list()
		if err != nil {
			t.Fatal(err)
		}
		there := map[string]bool{}
		for _, f := range files {
			there[f.path] = true
		}
		inside, outside := 0, 0
		for _, f := range files {
			for _, m := range regexp.MustCompile(`\]\(([^)\s#]+)[^)\s]*\)`).FindAllStringSubmatch(page(t, f), -1) {
				on, web := strings.CutPrefix(m[1], homepage+"/blob/COMMIT/")
				switch {
				case web:
					outside++
					if _, err := os.Stat(filepath.Join("..", on)); err != nil {
						t.Errorf("%s: %s: %s: %v", name, f.path, m[1], err)
					}
				case !strings.Contains(m[1], "://"):
					inside++
					if !there[path.Join(path.Dir(f.path), m[1])] {
						t.Errorf("%s: %s: %s is not packed", name, f.path, m[1])
					}
				}
			}
		}
		if inside < 50 || outside < 10 {
			t.Errorf("%s: %d links to what is packed, and %d to the web", name, inside, outside)
		}
	}
}

// page returns the text of a file in Markdown, "" for others.
func page(t *testing.T, f file) string {
	t.Helper()
	name, zipped := strings.CutSuffix(f.path, ".gz")
	if path.Ext(name) != ".md" {
		return ""
	}
	if !zipped {
		return string(f.data)
	}
	r, err := gzip.NewReader(bytes.NewReader(f.data))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
