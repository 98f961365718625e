package config

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// documented returns the rows of docs/config.md: the keys of each table, and their types. The head of a table
// of the page names those of the file that it is for.
func documented(t *testing.T) (inPage map[string][]string, types map[string]string) {
	t.Helper()
	text, err := os.ReadFile("../../../../docs/config.md")
	if err != nil {
		t.Fatal(err)
	}
	code := regexp.MustCompile("`([^`]+)`")
	inPage, types = map[string][]string{}, map[string]string{}
	var tables []string
	for line := range strings.Lines(string(text)) {
		first, rest, ok := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		switch {
		case !strings.HasPrefix(line, "| ") || !ok:
			tables = nil
		case strings.HasPrefix(rest, "type | default | meaning"):
			for _, m := range code.FindAllStringSubmatch(first, -1) {
				tables = append(tables, m[1])
			}
			if first == topOfFile {
				tables = []string{topOfFile}
			}
		default:
			typ, _, _ := strings.Cut(rest, " | ")
			for _, m := range code.FindAllStringSubmatch(first, -1) {
				for _, name := range tables {
					inPage[name] = append(inPage[name], m[1])
					types[name+" "+m[1]] = typ
				}
			}
		}
	}
	return inPage, types
}

// docs/config.md has a row for each key of each table, and no others.
func TestDocumentedKeys(t *testing.T) {
	t.Parallel()
	inPage, _ := documented(t)
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

// The type of each key in docs/config.md is the one that the error for a value of another type names.
func TestDocumentedTypes(t *testing.T) {
	t.Parallel()
	_, types := documented(t)
	checked := 0
	for _, name := range allTables {
		for _, key := range (&doc{}).keysOfTables()[name] {
			line := key + " = 2026-11-27\n" // a date, which no key wants
			text := strings.Replace(withAllTables, name+"\n", name+"\n"+line, 1)
			if name == topOfFile {
				text = line + withAllTables
			}
			d := &doc{}
			d.load([]byte(text), noChecks)
			for _, p := range d.problems {
				wants, ok := strings.CutPrefix(p.Message, key+" wants ")
				want := typeOf(wants)
				if !ok || want == "" || types[name+" "+key] == "" { // TestDocumentedKeys says which must be there
					continue
				}
				checked++
				// A key that may have another type too names that after a comma.
				if typ, _, _ := strings.Cut(types[name+" "+key], ", "); typ != want && !slices.Contains(otherTypes, name+" "+key) {
					t.Errorf("docs/config.md: %s of %s is of the type %q, want %s", key, name, typ, want)
				}
			}
		}
	}
	if checked < 150 {
		t.Errorf("%d keys have been checked", checked)
	}
	for key, typ := range types {
		if !slices.Contains([]string{"text", "list", "bool", "number", "size", "time", "table", "text, table", "list, bool", "table, bool"}, typ) {
			t.Errorf("docs/config.md: %s is of the type %q", key, typ)
		}
	}
}

// What is read as one type and written as another: days, which are no Go duration.
var otherTypes = []string{"[defaults] hsts", "[[site]] hsts", "[[redirect]] hsts"}

// typeOf returns the type of a key that wants this; "" if a message does not say it.
func typeOf(wants string) string {
	for _, tt := range []struct{ begins, typ string }{
		{"a string or a list", "list"}, {"a string,", "text"}, {"true or false", "bool"}, {"a time such as", "time"},
		{"a size such as", "size"}, {"a number", "number"}, {"a table", "table"}, {"a list", "list"},
	} {
		if strings.HasPrefix(wants, tt.begins) {
			return tt.typ
		}
	}
	return ""
}
