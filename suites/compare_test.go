package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// outcome makes results of lines "package test state"; a test - is the package
// itself, a state - none.
func outcome(lines ...string) *results {
	r := &results{tests: make(map[id]*result), onChert: make(map[id]bool)}
	for _, l := range lines {
		f := strings.Fields(l)
		for i := range f {
			if f[i] == "-" {
				f[i] = ""
			}
		}
		r.tests[id{f[0], f[1]}] = &result{state: f[2]}
	}
	return r
}

// withDifferences replaces the table during a test.
func withDifferences(t *testing.T, list ...difference) {
	old := differences
	differences = list
	t.Cleanup(func() { differences = old })
}

func TestCompare(t *testing.T) {
	withDifferences(t, difference{suite: "s", test: "TestH2", why: "no HTTP/2"}, difference{suite: "other", test: "TestA", why: "no"})
	for _, c := range []struct {
		why          string
		plain, chert []string
		want         string
	}{
		{"all pass", []string{"p TestA pass", "p - pass"}, []string{"p TestA pass", "p - pass"}, ""},
		{"failed on both", []string{"p TestA fail"}, []string{"p TestA fail"}, ""},
		{"skipped on both", []string{"p TestA skip"}, []string{"p TestA skip"}, ""},
		{"passes on chert alone", []string{"p TestA fail"}, []string{"p TestA pass"}, ""},
		{"fails, and its package with it", []string{"p TestA pass", "p - pass"}, []string{"p TestA fail", "p - fail"}, "fail p TestA"},
		{"of the same name in another package", []string{"p TestA pass", "q TestA pass"}, []string{"p TestA fail", "q TestA pass"}, "fail p TestA"},
		{"skipped", []string{"p TestA pass"}, []string{"p TestA skip"}, "skip p TestA"},
		{"not run", []string{"p TestA pass", "p TestB pass"}, []string{"p TestA fail"}, "fail p TestA; not run p TestB"},
		{"cut off", []string{"p TestA pass"}, []string{"p TestA -"}, "not ended p TestA"},
		{"a subtest, and what holds it", []string{"p TestA pass", "p TestA/b pass", "p TestA/b/c pass"},
			[]string{"p TestA fail", "p TestA/b fail", "p TestA/b/c fail"}, "fail p TestA/b/c"},
		{"a test beside one whose name begins like it", []string{"p TestA pass", "p TestAB pass"},
			[]string{"p TestA fail", "p TestAB fail"}, "fail p TestA; fail p TestAB"},
		{"the package alone: what it checks when its tests are over", []string{"p TestA pass", "p - pass"}, []string{"p TestA pass", "p - fail"}, "fail p"},
		{"a subtest that net/http does not get to", []string{"p TestA pass"}, []string{"p TestA pass", "p TestA/new fail"}, "fail p TestA/new"},
		{"listed, with its subtests", []string{"p TestH2 pass", "p TestH2/a pass"}, []string{"p TestH2 fail", "p TestH2/a fail"}, "fail p TestH2/a (no HTTP/2)"},
		{"not listed: the name goes on", []string{"p TestH2Frames pass"}, []string{"p TestH2Frames fail"}, "fail p TestH2Frames"},
	} {
		var got []string
		for _, d := range compare("s", outcome(c.plain...), outcome(c.chert...)) {
			line := fmt.Sprintf("%s %v", d.state, d.id)
			if d.why != "" {
				line += " (" + d.why + ")"
			}
			got = append(got, line)
		}
		if s := strings.Join(got, "; "); s != c.want {
			t.Errorf("%s: got %q, want %q", c.why, s, c.want)
		}
	}
}

func TestStale(t *testing.T) {
	withDifferences(t, difference{suite: "s", test: "TestH2", why: "no HTTP/2"})
	pass, fail := outcome("p TestH2 pass", "p TestH2/a pass"), outcome("p TestH2 fail", "p TestH2/a skip")
	for _, c := range []struct {
		why   string
		plain *results
		runs  []*results
		stale bool
	}{
		{"needed", pass, []*results{fail}, false},
		{"needed by one engine", pass, []*results{pass, fail}, false},
		{"needed for a subtest", pass, []*results{outcome("p TestH2 pass", "p TestH2/a skip")}, false},
		{"not there any more", outcome("p TestA pass"), []*results{outcome("p TestA pass")}, true},
		{"passes", pass, []*results{pass, pass}, true},
	} {
		if got := len(stale("s", c.plain, c.runs)) > 0; got != c.stale {
			t.Errorf("%s: stale %v", c.why, got)
		}
	}
}

// The real table: each line has a reason and belongs to a suite.
func TestDifferences(t *testing.T) {
	for i, d := range differences {
		if d.why == "" || !slices.Contains(names(true), d.suite) || !strings.HasPrefix(d.test, "Test") {
			t.Errorf("%+v is not complete", d)
		}
		if d.omit && strings.Contains(d.test, "/") {
			t.Errorf("%s: only a whole function can be omitted", d.test)
		}
		if prior, ok := explain(d.suite, d.test); ok && prior != differences[i] {
			t.Errorf("%s: %s explains it already", d.test, prior.test)
		}
	}
}

func TestSummary(t *testing.T) {
	ran := func(res *results, served ...string) *results {
		for _, name := range served {
			res.servers++
			if name != "" {
				res.onChert[id{"p", name}] = true
			}
		}
		return res
	}
	rep := func(chert ...*results) []*report {
		return []*report{{name: "s", prepared: &prepared{version: "v1.2.3", places: 7}, plain: outcome("p TestA pass", "p TestB pass"), chert: chert}}
	}
	good := ran(outcome("p TestA pass", "p TestB pass"), "TestA")
	for _, c := range []struct {
		why     string
		reports []*report
		err     string
	}{
		{"all pass", rep(good, good), ""},
		{"one engine fails", rep(good, ran(outcome("p TestA fail", "p TestB pass"), "TestA")), "1 differences are not explained"},
		{"a server that no test is known for", rep(good, ran(outcome("p TestA pass", "p TestB pass"), "")), ""},
		{"no server is chert's", rep(good, outcome("p TestA pass", "p TestB pass")),
			"s, engine goroutines: no server was chert's: its tests have tested another server, or none"},
	} {
		var out strings.Builder
		got := ""
		if err := summary(&out, c.reports); err != nil {
			got = err.Error()
		}
		if got != c.err {
			t.Errorf("%s: error %q, want %q", c.why, got, c.err)
		}
		if !strings.Contains(out.String(), "v1.2.3") {
			t.Errorf("%s: printed\n%s", c.why, &out)
		}
	}
}

// The table has the number of servers of the engine with fewer of them.
func TestTableCountsServers(t *testing.T) {
	many, few := outcome("p TestA pass"), outcome("p TestA pass")
	many.servers, few.servers = 4711, 4242
	var out strings.Builder
	table(&out, []*report{{name: "s", prepared: &prepared{}, plain: outcome("p TestA pass"), chert: []*results{many, few}}})
	if s := out.String(); !strings.Contains(s, "servers") || !strings.Contains(s, "4242") || strings.Contains(s, "4711") {
		t.Errorf("printed\n%s", s)
	}
}

func TestReadNotes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "notes")
	if tests, n, err := readNotes(file); len(tests) != 0 || n != 0 || err != nil {
		t.Errorf("without a file: %v, %d, %v", tests, n, err)
	}
	if err := os.WriteFile(file, []byte("p TestA\np TestA\np\nq TestB\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests, n, err := readNotes(file)
	if len(tests) != 2 || !tests[id{"p", "TestA"}] || !tests[id{"q", "TestB"}] || n != 4 || err != nil {
		t.Errorf("%v, %d, %v", tests, n, err)
	}
}

func TestRead(t *testing.T) {
	const events = `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"one\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"two\n"}
{"Action":"fail","Package":"p","Test":"TestA","Elapsed":1}
{"Action":"run","Package":"p","Test":"TestB"}
{"Action":"fail","Package":"p","Elapsed":1}
{"ImportPath":"q","Action":"build-output","Output":"# q\n"}
{"ImportPath":"q","Action":"build-fail"}
`
	var shown strings.Builder
	r, build, err := read(strings.NewReader(events), &shown)
	if err != nil {
		t.Fatal(err)
	}
	if a := r.tests[id{"p", "TestA"}]; a == nil || a.state != "fail" || a.output != "one\ntwo\n" {
		t.Errorf("TestA: %+v", a)
	}
	if b := r.tests[id{"p", "TestB"}]; b == nil || b.state != "" {
		t.Errorf("TestB: %+v", b)
	}
	if build != "# q\n" || shown.String() != "one\ntwo\n# q\n" {
		t.Errorf("build %q, shown %q", build, &shown)
	}
	if _, ok := r.cut(); !ok {
		t.Error("a test did not end, and nothing is said")
	}
	if _, _, err := read(strings.NewReader(`{"Action":`), io.Discard); err == nil {
		t.Error("half an event is no error")
	}
}

func TestPatch(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f.go")
	for _, c := range []struct {
		why, text, want string
		patch
	}{
		{"once", "a b c", "a x c", patch{old: "b", new: "x"}},
		{"the whole file", "a b c", "x", patch{new: "x"}},
		{"gone", "a c", "", patch{old: "b", new: "x"}},
		{"twice", "b b", "", patch{old: "b", new: "x"}},
	} {
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		c.file = "f.go"
		err := c.apply(dir)
		if (err == nil) != (c.want != "") {
			t.Errorf("%s: error %v", c.why, err)
		}
		if got, _ := os.ReadFile(file); err == nil && string(got) != c.want {
			t.Errorf("%s: got %q", c.why, got)
		}
	}
	if err := (patch{file: "none.go", new: "x"}).apply(dir); err == nil {
		t.Error("a file that is not there can be patched")
	}
}

// A tree of links has the packages that are tested as files of its own.
func TestLink(t *testing.T) {
	from, root := t.TempDir(), t.TempDir()
	for _, f := range []string{"VERSION", "src/fmt/print.go", "src/net/net.go", "src/net/http/a_test.go", "src/net/http/testdata/x"} {
		f = filepath.Join(from, f)
		if err := os.MkdirAll(filepath.Dir(f), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f, []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g := &goTests{packages: []string{"net/http"}}
	if err := g.link(root, from); err != nil {
		t.Skip("no links here:", err)
	}
	for f, isLink := range map[string]bool{"VERSION": true, "src": false, "src/fmt": true, "src/net": false, "src/net/net.go": true,
		"src/net/http": false, "src/net/http/a_test.go": false, "src/net/http/testdata": true} {
		st, err := os.Lstat(filepath.Join(root, f))
		if err != nil {
			t.Error(err)
		} else if got := st.Mode()&os.ModeSymlink != 0; got != isLink {
			t.Errorf("%s is a link: %v", f, got)
		}
	}
	if text, err := os.ReadFile(filepath.Join(root, "src/fmt/print.go")); string(text) != "text" || err != nil {
		t.Errorf("through a link: %q, %v", text, err)
	}
}

func TestFlags(t *testing.T) {
	for _, args := range []string{"nosuch", "-p 0", "-engine x", "-all chi", "-record f -run X"} {
		if err := run(context.Background(), strings.Fields(args), io.Discard, io.Discard); err == nil {
			t.Errorf("%s: no error", args)
		}
	}
	o, err := parse([]string{"-race", "chi", "go"}, io.Discard)
	if err != nil || !o.race || !slices.Equal(o.suites, []string{"chi", "go"}) {
		t.Errorf("%+v, %v", o, err)
	}
	few, err := parse(nil, io.Discard)
	if err != nil || slices.Contains(few.suites, "caddy") || !slices.Contains(few.suites, "go") {
		t.Errorf("by default: %+v, %v", few, err)
	}
	all, err := parse([]string{"--all", "--record", "f"}, io.Discard)
	if err != nil || len(all.suites) != len(suites) || all.record != "f" {
		t.Errorf("all: %+v, %v", all, err)
	}
}

// A run replaces the rows of its suites and keeps the others, in the order of the table.
func TestRecord(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results.md")
	write := func(day, servers int, names ...string) {
		t.Helper()
		res := outcome("p TestA pass")
		res.servers = servers
		var reports []*report
		for _, name := range names {
			reports = append(reports, &report{name: name, prepared: &prepared{version: "v1.2.3"}, plain: outcome("p TestA pass"), chert: []*results{res, res}})
		}
		if err := record(t.Context(), &checkout{dir: t.TempDir()}, file, time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC), reports); err != nil {
			t.Fatal(err)
		}
	}
	write(2, 41, "chi", "gin")
	write(3, 42, "gin", "go")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, rows, _ := strings.Cut(string(text), "--- |\n")
	lines := strings.Split(strings.TrimSpace(rows), "\n")
	const row = "| %s | v1.2.3 | 0 | %d | 1 | 0 | 1 | 1 | 1 | 0 | 0 | 0 | 2026-01-0%d | unknown | "
	for i, want := range []string{fmt.Sprintf(row, "go", 42, 3), fmt.Sprintf(row, "chi", 41, 2), fmt.Sprintf(row, "gin", 42, 3)} {
		if len(lines) != 3 || !strings.HasPrefix(lines[i], want) {
			t.Fatalf("got\n%s\nwant line %d to begin with\n%s", text, i, want)
		}
	}
}
