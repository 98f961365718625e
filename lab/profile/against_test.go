package profile

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/chert-http/chert/lab/rival"
)

// specsOf makes servers by name; what follows an @ is their revision.
func specsOf(names string) []rival.Spec {
	var specs []rival.Spec
	for _, name := range strings.Fields(names) {
		spec := rival.Spec{Name: name}
		if present, _, found := strings.Cut(name, "@"); found {
			spec.Present = present
		}
		specs = append(specs, spec)
	}
	return specs
}

func TestFamilies(t *testing.T) {
	tests := []struct {
		servers string
		want    []string
	}{
		{"chert", []string{"chert"}},
		{"chert nginx", []string{"chert", "nginx"}},
		{"chert chert@a chert@b nginx chertdirect chertdirect@a", []string{"chert chert@a chert@b", "nginx", "chertdirect chertdirect@a"}},
	}
	for _, tt := range tests {
		var got []string
		for _, family := range families(specsOf(tt.servers)) {
			var names []string
			for _, spec := range family {
				names = append(names, spec.Name)
			}
			got = append(got, strings.Join(names, " "))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.servers, got, tt.want)
		}
	}
}

// Which servers are compared, as name, base and present.
func TestEntrants(t *testing.T) {
	tests := []struct {
		held int
		want []string
	}{
		{0, []string{"chert - -", "chert@a - chert"}},
		{9, []string{"chert - -", "chert+9 chert -", "chert@a - chert", "chert@a+9 chert@a chert+9"}},
	}
	for _, tt := range tests {
		var got []string
		for _, e := range entrants(specsOf("chert chert@a"), tt.held) {
			got = append(got, strings.Join([]string{e.Name, or(e.base), or(e.present)}, " "))
			if (e.Idle > 0) != strings.Contains(e.Name, "+") {
				t.Errorf("%s holds %d", e.Name, e.Idle)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%d held: %q, want %q", tt.held, got, tt.want)
		}
	}
}

func or(name string) string {
	if name == "" {
		return "-"
	}
	return name
}

// Invalid revisions are reported before anything is built.
func TestAgainstMistakes(t *testing.T) {
	chert := filepath.Join("..", "..")
	same, err := filepath.Abs(chert)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ servers, against, want string }{
		{"chert", "no/such/branch", `no revision "no/such/branch" of chert`},
		{"chert", "./nothing", "./nothing is not a folder with chert's source"},
		{"chert", chert + "," + same, "two of the name " + filepath.Base(same)},
		{",", chert, "no servers"},
	}
	for _, tt := range tests {
		c := common{needs: rival.Answers, servers: tt.servers, against: tt.against}
		if _, err := c.build(t.Context(), t.TempDir(), &strings.Builder{}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s against %s: %v, want %q", tt.servers, tt.against, err, tt.want)
		}
	}
}

// A folder with chert's source, but only one of its servers: the others are left out. With none of them it is a mistake.
func TestWithRevisions(t *testing.T) {
	folder := t.TempDir()
	err := os.CopyFS(folder, fstest.MapFS{
		"lab/go.mod":            {Data: []byte("module lab\n\ngo 1.26.0\n")},
		"lab/cmd/chert/main.go": {Data: []byte("package main\n\nfunc main() {}\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		servers, want, log, err string
	}{
		{"chert chertdirect", "chert chert@NAME chertdirect", "without chertdirect@NAME", ""},
		{"nethttp chert", "nethttp chert chert@NAME", "building chert@NAME", ""},
		{"chertdirect nethttp", "", "without chertdirect@NAME", "none of the servers"},
		{"nethttp", "", "", "none of the servers"},
	}
	for _, tt := range tests {
		r, err := rival.OpenRevision(t.Context(), "", folder)
		if err != nil {
			t.Fatal(err)
		}
		filled := func(text string) string { return strings.ReplaceAll(text, "NAME", r.Name) }
		specs := make([]rival.Spec, 0, 2)
		for _, name := range strings.Fields(tt.servers) {
			spec, err := rival.Find(name)
			if err != nil {
				t.Fatal(err)
			}
			specs = append(specs, spec)
		}
		var log strings.Builder
		all, err := withRevisions(t.Context(), t.TempDir(), specs, []*rival.Revision{r}, &log)
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %v, want %q", tt.servers, err, tt.err)
		}
		var names []string
		for _, spec := range all {
			names = append(names, spec.Name)
		}
		if got := strings.Join(names, " "); got != filled(tt.want) {
			t.Errorf("%s: %s, want %s", tt.servers, got, filled(tt.want))
		}
		if !strings.Contains(log.String(), filled(tt.log)) {
			t.Errorf("%s: the log says %q, not %q", tt.servers, log.String(), filled(tt.log))
		}
	}
}
