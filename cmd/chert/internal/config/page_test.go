package config

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// docs/config.md has a row for each key of each table, and no others. The head of a table
// of the page names those of the file that it is for.
func TestDocumentedKeys(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../../docs/config.md")
	if err != nil {
		t.Fatal(err)
	}
	code := regexp.MustCompile("`([^`]+)`")
	inPage := map[string][]string{}
	var tables []string
	for line := range strings.Lines(string(text)) {
		first, rest, ok := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		switch {
		case !strings.HasPrefix(line, "| ") || !ok:
			tables = nil
		case strings.HasPrefix(rest, "default | meaning"):
			for _, m := range code.FindAllStringSubmatch(first, -1) {
				tables = append(tables, m[1])
			}
			if first == topOfFile {
				tables = []string{topOfFile}
			}
		default:
			for _, m := range code.FindAllStringSubmatch(first, -1) {
				for _, name := range tables {
					inPage[name] = append(inPage[name], m[1])
				}
			}
		}
	}
	// Keys with a table of their own, which the page has under its name.
	own := regexp.MustCompile(`^(rate_limit|cluster|errors|upstream|defaults|site|redirect|route|rules|limits|response_headers|rewrite|log)$`)
	d := &doc{}
	for name, keys := range d.keysOfTables() {
		if !slices.Contains(allTables, name) {
			continue
		}
		for _, key := range keys {
			inOwn := own.MatchString(key) && name != "[site.forward_auth]"
			if !slices.Contains(inPage[name], key) && !inOwn {
				t.Errorf("docs/config.md does not have %s of %s", key, name)
			}
		}
		for _, key := range inPage[name] {
			// Of [errors] the other keys are statuses.
			if !slices.Contains(keys, key) && !strings.HasSuffix(name, "errors]") {
				t.Errorf("docs/config.md has %s of %s, which is no key", key, name)
			}
		}
	}
}
