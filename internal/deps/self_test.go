package deps

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// Tests of the checks themselves: a check that never fails proves nothing.

// wantFault fails unless there is exactly one fault and it contains want, or
// none if want is empty.
func wantFault(t *testing.T, why string, faults []string, want string) {
	t.Helper()
	if want == "" {
		if len(faults) != 0 {
			t.Errorf("%s: unexpected faults %q", why, faults)
		}
		return
	}
	if len(faults) != 1 || !strings.Contains(faults[0], want) {
		t.Errorf("%s: faults %q, want one with %q", why, faults, want)
	}
}

func TestCheckImports(t *testing.T) {
	for _, tt := range []struct {
		from, path string
		want       string
		why        string
	}{
		{"internal/loop", module + "/internal/poll", "", "down the order"},
		{"internal/conn", module + "/internal/sys", "", "far down the order"},
		{"internal/poll", module + "/internal/loop", "may not import internal/loop", "up the order"},
		{"internal/conn", module + "/internal/bridge", "may not import internal/bridge", "up the order"},
		{"internal/bridge", module, "may not import .", "the root, from below"},
		{"internal/buf", module + "/internal/timer", "may import: nothing", "sideways"},
		{"internal/stream", module + "/internal/buf", "", "the goroutine engine has buffers"},
		{"internal/stream", module + "/internal/loop", "may not import internal/loop", "but no loops"},
		{"internal/bridge", module + "/internal/stream", "may not import internal/stream", "the root joins the two"},
		{"internal/http1", "bytes", "", "std"},
		{"internal/http1", module + "/internal/buf", "may not import internal/buf", "codecs take bytes"},
		{"internal/http2", "golang.org/x/net/http2/hpack", "may not import golang.org/x/net/http2/hpack", "HPACK is our own"},
		{"internal/http3", "github.com/quic-go/qpack", "may not import github.com/quic-go/qpack", "and so is QPACK"},
		{"internal/http1", "golang.org/x/net/http2/hpack", "may not import", "and only where it belongs"},
		{"internal/sys", "golang.org/x/sys/unix", "", "its home"},
		{"internal/poll", "golang.org/x/sys/unix", "only internal/sys", "not its home"},
		{"cmd/chert", "golang.org/x/sys/windows", "only internal/sys", "not even the roof"},
		{"internal/sys", "golang.org/x/system", "may not import", "a prefix of a name is no folder"},
		{"websocket", module + "/internal/wsframe", "", "its codec"},
		{"websocket", module + "/internal/loop", "may not import internal/loop", "of chert's engines it knows the goroutine's"},
		{"router", module, "may not import .", "must run on net/http"},
		{"middleware", module + "/direct", "", "the fast contract"},
		{"static", module + "/internal/conn", "may not import internal/conn", "must run on net/http"},
		{".", module + "/internal/bridge", "", "the root wires"},
		{".", "github.com/spf13/cobra", "may not import github.com", "the core is light"},
		{"cmd/chert", "github.com/spf13/cobra", "", "the binary has flags"},
		{"cmd/chert", module + "/internal/sys", "", "the binary may see all"},
		{"cmd/chert/inner", module, "", "a folder below"},
		{"chertest", module, "", "wraps the server"},
		{"internal/sys", "C", "may not import C", "cgo is not std"},
	} {
		faults := checkImports(policy, []imp{{from: tt.from, path: tt.path, at: "f.go:3"}})
		wantFault(t, tt.from+" imports "+tt.path+" ("+tt.why+")", faults, tt.want)
		if tt.want != "" && len(faults) > 0 && !strings.HasPrefix(faults[0], "f.go:3: ") {
			t.Errorf("%q does not say where", faults[0])
		}
	}
}

func TestCheckKnown(t *testing.T) {
	wantFault(t, "known", checkKnown(policy, []string{".", "internal/sys", "cmd/chert"}), "")
	wantFault(t, "unknown", checkKnown(policy, []string{"internal/util"}),
		"package internal/util is not in the policy: add a line for it to the table in internal/deps/policy_test.go")
	wantFault(t, "below a known one", checkKnown(policy, []string{"ratelimit/redis"}), "ratelimit/redis")
}

func TestCheckPolicy(t *testing.T) {
	for _, tt := range []struct {
		why    string
		policy []rule
		want   string
	}{
		{"in order", []rule{{pkg: "a", other: "x.org/y"}, {pkg: ".", may: "a"}}, ""},
		{"a cycle", []rule{{pkg: "a", may: "b"}, {pkg: "b", may: "a"}}, "a may import b, which has no line above"},
		{"itself", []rule{{pkg: "a", may: "a"}}, "no line above"},
		{"a misspelt name", []rule{{pkg: "a"}, {pkg: "b", may: "aa"}}, "no line above"},
		{"twice", []rule{{pkg: "a"}, {pkg: "a"}}, "has a line already"},
		{"hidden by a tree", []rule{{pkg: "a/..."}, {pkg: "a/b"}}, "has a line already"},
		{"a heavy core", []rule{{pkg: "a", other: "x.org/z"}, {pkg: "b", may: "a"}, {pkg: ".", may: "b"}}, "is in the core"},
		{"heavy beside the core", []rule{{pkg: "a", other: "x.org/z"}, {pkg: "."}}, ""},
	} {
		wantFault(t, tt.why, checkPolicy(tt.policy, []string{"x.org/y"}), tt.want)
	}
}

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

func TestTree(t *testing.T) {
	bad := "package p\n\nimport \"golang.org/x/sys/windows\"\n"
	tree := fstest.MapFS{
		"go.mod":                   file("module " + module),
		"doc.go":                   file("// Package chert serves.\npackage chert\n"),
		"internal/loop/doc.go":     file("package loop\n"),
		"internal/loop/x_plan9.go": file("//go:build plan9 && never\n\n" + bad),
		"internal/loop/x_test.go":  file(bad),
		"internal/sys/sys.go":      file(bad),
		"internal/sys/testdata/a":  file(""),
		"router/testdata/x.go":     file(bad),
		"router/.hidden/x.go":      file(bad),
		"router/_old/x.go":         file(bad),
		"router/_x.go":             file(bad),
		"lab/go.mod":               file("module lab"),
		"lab/x.go":                 file(bad),
		"lab/deep/x.go":            file(bad),
		"docs/README.md":           file(""),
	}
	files, err := goFiles(tree)
	if err != nil {
		t.Fatal(err)
	}
	folders := foldersOf(files)
	if want := []string{".", "internal/loop", "internal/sys"}; !slices.Equal(folders, want) {
		t.Fatalf("folders %q, want %q", folders, want)
	}
	imports, err := importsOf(tree, files)
	if err != nil {
		t.Fatal(err)
	}
	wantFault(t, "a file of another system", checkImports(policy, imports), "internal/loop/x_plan9.go:5: internal/loop imports")
	wantFault(t, "no comment", checkDocs(tree, []string{"internal/loop"}), "internal/loop/doc.go: no package comment")
	wantFault(t, "no file", checkDocs(tree, []string{"internal/sys"}), "internal/sys has no doc.go")
	wantFault(t, "a comment", checkDocs(tree, []string{"."}), "")
}

func TestCheckLengths(t *testing.T) {
	body := func(lines int) string { return "{\n" + strings.Repeat("\n", lines-2) + "}\n" }
	for _, tt := range []struct {
		why, text, want string
	}{
		{"at the limit", "package p\n\nfunc f() " + body(maxFuncLines), ""},
		{"a function", "package p\n\nfunc f() " + body(maxFuncLines+1), "x.go:3: function f of 101 lines"},
		{"a method", "package p\n\n\nfunc (t T) m() " + body(maxFuncLines+1), "x.go:4: function m of 101 lines"},
		{"a literal", "package p\nvar f = func() " + body(maxFuncLines+1), "x.go:2: function literal of 101 lines"},
		{"a full file", "package p\n" + strings.Repeat("\n", maxFileLines-1), ""},
		{"a file", "package p\n" + strings.Repeat("\n", maxFileLines), "x.go:801: file of 801 lines"},
		{"generated", "// Code generated by x. DO NOT EDIT.\n\npackage p\n" + strings.Repeat("\n", maxFileLines), ""},
		{"broken", "package p\nfunc {", "x.go:2"},
	} {
		wantFault(t, tt.why, checkLengths(fstest.MapFS{"x.go": file(tt.text)}, []string{"x.go"}), tt.want)
	}
	long := fstest.MapFS{"x_test.go": file("package p\n\nfunc f() " + body(maxFuncLines+1))}
	wantFault(t, "a test", checkLengths(long, []string{"x_test.go"}), "")
}

func TestCheckColumns(t *testing.T) {
	long := strings.Repeat("x", maxColumns)
	for _, tt := range []struct {
		why, text, want string
	}{
		{"at the limit", "package p\n\n//" + long[2:] + "\n", ""},
		{"a comment", "package p\n\n//" + long[1:] + "\n", "p/x.go:3: line of 121 columns"},
		{"tabs have four", "package p\n\nfunc f() {\n\t_ = `" + long[9:] + "`\n}\n", "p/x.go:4: line of 121 columns"},
		{"letters are not bytes", "package p\n\n//" + strings.Repeat("\u00e9", maxColumns-2) + "\n", ""},
		{"a text", "package p\n\nconst a = `\n" + long + "y\n`\n", ""},
		{"generated", "// Code generated by x. DO NOT EDIT.\n\npackage p\n\n//" + long + "\n", ""},
	} {
		wantFault(t, tt.why, checkColumns(fstest.MapFS{"p/x.go": file(tt.text)}, []string{"p/x.go"}), tt.want)
	}
	test := fstest.MapFS{"p/x_test.go": file("package p\n\n//" + long + "\n")}
	wantFault(t, "a test", checkColumns(test, []string{"p/x_test.go"}), "")
}

func TestCheckAPI(t *testing.T) {
	for _, tt := range []struct {
		src  string
		want string
		why  string
	}{
		{"func New(o *Options) (int, error)", "", "a pointer"},
		{"func New(o Options) (int, error)", "takes Options by value", "a value"},
		{"func New(o p.FooOptions)", "takes p.FooOptions by value", "of another package"},
		{"func New(o *Options, dir string)", "before its last", "not last"},
		{"func hidden(o Options)", "", "not exported"},
		{"func New(o *Options) { if o == nil { panic(1) } }", "panics", "no error"},
		{"func NewFoo() { panic(1) }", "panics", "without options"},
		{"func Foo(o *FooOptions)", "", "options with its name"},
		{"func NewFoo(o *FooOptions)", "", "options with the name of what it makes"},
		{"func FooBar(o *FooOptions)", "name them alike", "options with another name"},
		{"func CheckFoo(s string) error", "checks options", "a second way to an error"},
		{"func Must(err error) { panic(err) }", "", "what Must is for"},
		{"func User(v filter.Values) string", "reads Values", "an accessor"},
		{"func UserOf(v filter.Values) string", "", "named after its value"},
		{"type T struct { ErrorLog *log.Logger }", "use *slog.Logger", "package log"},
		{"type T struct { Log *slog.Logger }", "name it Logger", "another name"},
		{"type T struct { Logger *slog.Logger; log *log.Logger }", "", "as it should be"},
		{"type FooOptions struct {\n// Default 1; negative: none.\nN int }", "", "both are said"},
		{"type FooOptions struct {\n// N is 1 by default.\nN int64 }", "a negative value", "negative is not"},
		{"type FooOptions struct {\n// Negative: none.\nN time.Duration }", "what its default is", "zero is not"},
		{"type FooOptions struct {\n// Default 80.\nN uint16 }", "", "cannot be negative"},
		{"// Negative values mean none.\ntype Server struct {\n// Default 5.\nN int }", "", "said of the type"},
		{"type Foo struct { N int }", "", "no options"},
		{"type Foo uint8\nconst (\nFooA Foo = iota\nFooB\n)\nconst C = 1", "", "an enumeration"},
		{"type Foo uint8\nconst (\nFooA Foo = iota\nB\n)", "B is a constant of type Foo", "the second of one"},
		{"type FooBar uint8\nconst FooA FooBar = 1", "", "the first word is enough"},
	} {
		tree := fstest.MapFS{"p/p.go": {Data: []byte("package p\n" + tt.src)}, "cmd/x/x.go": {Data: []byte("package x\nfunc New(o Options)")}}
		faults, err := checkAPI(tree, []string{"p/p.go", "cmd/x/x.go", "internal/x_test.go"})
		if err != nil {
			t.Fatalf("%s: %v", tt.why, err)
		}
		wantFault(t, tt.why, faults, tt.want)
	}
}
