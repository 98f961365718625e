package chert_test

import (
	"maps"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chert-http/chert"
)

var inBackticks = regexp.MustCompile("`([^`\n]+)`")

// names returns what a text has in backticks.
func names(text string) (names []string) {
	for _, m := range inBackticks.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names
}

// docs/library.md names the fields that http.Server does not have.
func TestDocumentedFields(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/library.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "- the fields ")
	text, _, ok := strings.Cut(text, ";\n")
	if !ok {
		t.Fatal("docs/library.md has no list of fields")
	}
	var added []string
	for f := range fields(reflect.TypeFor[chert.Server]()) {
		if _, ok := reflect.TypeFor[http.Server]().FieldByName(f); !ok {
			added = append(added, f)
		}
	}
	got := names(text)
	slices.Sort(got)
	slices.Sort(added)
	if !slices.Equal(got, added) {
		t.Errorf("docs/library.md names the fields\n%q, Server adds\n%q", got, added)
	}
}

// Each field of Server is in one of the groups of its documentation.
func TestFieldsAreGrouped(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("server.go")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(src), "The fields are in groups:")
	text, _, ok := strings.Cut(text, "type Server struct")
	if !ok {
		t.Fatal("server.go has no list of fields")
	}
	var grouped []string
	for _, group := range strings.Split(text, "//   - ")[1:] {
		_, list, _ := strings.Cut(group, ":")
		grouped = append(grouped, strings.FieldsFunc(list, func(r rune) bool { return r < '0' || r > 'z' })...)
	}
	have := slices.Collect(maps.Keys(fields(reflect.TypeFor[chert.Server]())))
	slices.Sort(grouped)
	slices.Sort(have)
	if !slices.Equal(grouped, have) {
		t.Errorf("the documentation groups the fields\n%q, Server has\n%q", grouped, have)
	}
}

// docs/limits.md has every time and number of Server, and no field that is not there.
func TestDocumentedLimits(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	all := names(string(page))
	have := fields(reflect.TypeFor[chert.Server]())
	for name, kind := range have {
		if (kind == reflect.Int || kind == reflect.Int64) && !slices.Contains(all, name) {
			t.Errorf("docs/limits.md does not have %s", name)
		}
	}
	for line := range strings.SplitSeq(string(page), "\n") {
		cells := strings.Split(line, " | ")
		if len(cells) != 4 {
			continue
		}
		for _, name := range names(cells[1]) {
			if _, ok := have[name]; !ok && name != "chert.Server" {
				t.Errorf("docs/limits.md has %s, which is no field", name)
			}
		}
	}
}

// fields returns the exported fields of a struct and their kinds.
func fields(typ reflect.Type) map[string]reflect.Kind {
	m := make(map[string]reflect.Kind)
	for i := range typ.NumField() {
		if f := typ.Field(i); f.IsExported() {
			m[f.Name] = f.Type.Kind()
		}
	}
	return m
}
