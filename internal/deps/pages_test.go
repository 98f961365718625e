package deps

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

// TestLinks checks the links between the pages of the repository. Links to
// other sites are not checked, since a test must not need the network.
func TestLinks(t *testing.T) {
	tree, _ := load(t)
	faults, err := checkLinks(tree)
	if err != nil {
		t.Fatal(err)
	}
	report(t, faults)
}

// TestArchitecture: the table of docs/ARCHITECTURE.md has every package directly below internal.
func TestArchitecture(t *testing.T) {
	tree, _ := load(t)
	page, err := fs.ReadFile(tree, "docs/ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	folders, err := fs.ReadDir(tree, "internal")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		name := "`internal/" + f.Name()
		if f.IsDir() && !strings.Contains(string(page), name+"`") && !strings.Contains(string(page), name+"/...`") {
			t.Errorf("internal/%s is not in the table", f.Name())
		}
	}
}

func TestCheckLinks(t *testing.T) {
	for _, tt := range []struct {
		why, text, want string
	}{
		{"a page", "[a](docs/a.md)", ""},
		{"a folder", "[a](docs) and [b](docs/)", ""},
		{"a heading", "[a](docs/a.md#one-two-and-three)", ""},
		{"a heading that comes twice", "[a](docs/a.md#twice-1)", ""},
		{"a heading of its own page", "# Here\n\n[a](#here)", ""},
		{"text over two lines", "[a\nb](docs/a.md)", ""},
		{"a picture", "![a](docs/none.svg)", "README.md: docs/none.svg"},
		{"a page that is not there", "[a](docs/none.md)", "README.md: docs/none.md"},
		{"a heading that is not there", "[a](docs/a.md#four)", "README.md: docs/a.md#four"},
		{"a heading inside of code", "[a](docs/a.md#code)", "README.md: docs/a.md#code"},
		{"out of the repository", "[a](../a.md)", "README.md: ../a.md"},
		{"another place", "[a](https://example.com/none) [b](mailto:a@example.com)", ""},
		{"code", "`[a](none)`\n\n```\n[a](none)\n```\n", ""},
	} {
		tree := fstest.MapFS{
			"README.md":            file(tt.text),
			"docs/a.md":            file("# One, `two` & three\n\n# One: two and three\n\n## Twice\n\n## Twice\n\n```\n# Code\n```\n"),
			"x/testdata/README.md": file("[a](none)"),
		}
		faults, err := checkLinks(tree)
		if err != nil {
			t.Fatal(err)
		}
		wantFault(t, tt.why, faults, tt.want)
	}
}

var (
	fenced  = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	inline  = regexp.MustCompile("`[^`\n]+`")
	link    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+?) *$`)
	noSlug  = regexp.MustCompile(`[^\pL\pN _-]`)
	foreign = regexp.MustCompile(`^[a-z]+:`)
)

// checkLinks returns a fault for each link in a Markdown file of the tree, nested
// modules included, that leads to no file or to no heading.
func checkLinks(tree fs.FS) (faults []string, err error) {
	pages := map[string]string{}
	err = fs.WalkDir(tree, ".", func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed during the walk, by a concurrent build
		}
		if err != nil {
			return err
		}
		if d.IsDir() && (p != "." && strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if !d.IsDir() && strings.HasSuffix(p, ".md") {
			text, err := fs.ReadFile(tree, p)
			pages[p] = fenced.ReplaceAllString(string(text), "")
			return err
		}
		return nil
	})
	for page, text := range pages {
		for _, m := range link.FindAllStringSubmatch(inline.ReplaceAllString(text, ""), -1) {
			if foreign.MatchString(m[1]) {
				continue
			}
			if why := checkLink(tree, pages, page, m[1]); why != "" {
				faults = append(faults, fmt.Sprintf("%s: %s %s", page, m[1], why))
			}
		}
	}
	return faults, err
}

func checkLink(tree fs.FS, pages map[string]string, page, target string) string {
	to, fragment, _ := strings.Cut(target, "#")
	file := page
	if to != "" {
		file = path.Join(path.Dir(page), to)
	}
	if !fs.ValidPath(file) {
		return "leads out of the repository"
	}
	if _, err := fs.Stat(tree, file); err != nil {
		return "is not there"
	}
	if fragment != "" && !anchors(pages[file])[fragment] {
		return "has no such heading"
	}
	return ""
}

// anchors returns the names that GitHub gives to the headings of a page.
func anchors(text string) map[string]bool {
	names := map[string]bool{}
	times := map[string]int{}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		name := strings.ReplaceAll(noSlug.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")
		if n := times[name]; n > 0 {
			names[fmt.Sprintf("%s-%d", name, n)] = true
		} else {
			names[name] = true
		}
		times[name]++
	}
	return names
}
