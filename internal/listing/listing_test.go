package listing

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files")

var noon = time.Date(2026, 11, 20, 12, 34, 56, 789, time.FixedZone("", 3600))

// odd are names that go wrong where one kind of escaping is forgotten.
var odd = []string{
	"plain.txt", "two words", " leading", "trailing ", "   ", "100%", "%2e%2e", "%00", "a\"b'c", "<script>alert(1)</script>",
	"&amp;", "]]>", "line\nbreak", "cr\rlf\r\n", "tab\there", "esc\x1b[31m", "del\x7f", "c1\u0085", "\xff\xfe", "half\xe2\x82",
	"surrogate\xed\xa0\x80", "overlong\xc0\xaf", "gpj.\u202egnp", "\u2066iso\u2069", "\ufeffbom", "soft\u00adhyphen", "\u3164", "...", "..a",
	"a:b", "javascript:alert(1)", "//host", "what?", "#hash", "a;b=c,d", "a+b", "~user", "\\back\\slash", "\U0001f600 \U0001f468\u200d\U0001f469\u200d\U0001f467.png",
	"שלום.txt", "日本語", "e\u0301", "\u2028", "\uffff", "\U000e0041", "{{.}}", "--", "[x]", "a|b^c`d", "*",
}

func oddEntries() []Entry {
	var list []Entry
	for i, name := range odd {
		list = append(list, Entry{Name: name, Dir: i%5 == 3, Link: i%7 == 2, Size: int64(i) * 777_777, Modified: noon.Add(-time.Duration(i*i) * time.Hour)})
	}
	return list
}

func TestGolden(t *testing.T) {
	t.Parallel()
	page := Page{Path: "/a b/<c>/", Entries: oddEntries()}
	golden(t, "odd.html", page.AppendHTML(nil))
	golden(t, "odd.json", page.AppendJSON(nil))
	empty := Page{Path: "/", Root: true, Order: Order{By: Size, Desc: true}, Truncated: true}
	golden(t, "empty.html", empty.AppendHTML(nil))
	golden(t, "empty.json", empty.AppendJSON(nil))
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	// The style sheet and the icons are files already.
	got = bytes.Replace(got, []byte(style), []byte("STYLE"), 1)
	got = bytes.Replace(got, []byte(icons), []byte("ICONS\n"), 1)
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what it was; if that is right: go test -run Golden ./internal/listing -args -update\n%s", name, got)
	}
}

func TestParseOrder(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]Order{
		"":                               {},
		"sort=name":                      {},
		"sort=size":                      {By: Size},
		"sort=time&order=desc":           {By: Modified, Desc: true},
		"order=desc":                     {Desc: true},
		"order=desc&sort=size":           {By: Size, Desc: true},
		"x=y&sort=size&format=json":      {By: Size},
		"sort=size&sort=name":            {}, // the last one
		"sort=size;order=desc":           {}, // not a separator
		"sort=Size":                      {},
		"sort=%73ize":                    {}, // unusual, but valid
		"sort=date":                      {},
		"sort":                           {},
		"&&&":                            {},
		"sort=time&order=up":             {By: Modified},
		strings.Repeat("sort=size&", 99): {By: Size},
	} {
		if got := ParseOrder(query); got != want {
			t.Errorf("ParseOrder(%q) is %v, want %v", query, got, want)
		}
	}
	for by := Name; by <= Modified; by++ {
		for _, desc := range []bool{false, true} {
			want := Order{by, desc}
			query := strings.TrimPrefix(strings.ReplaceAll(want.attribute(), "&amp;", "&"), "?")
			if got := ParseOrder(query); got != want {
				t.Errorf("%v becomes %q, which is %v", want, query, got)
			}
		}
	}
}

func TestCompareNames(t *testing.T) {
	t.Parallel()
	// Each is less than the next.
	row := []string{
		" a", "0", "00", "01", "1", "2", "010", "10", "10a", "10b", "99999999999999999999998", "99999999999999999999999",
		"A", "a", "a.txt", "A01", "A1", "a1", "a2b", "a2b1", "a10", "ab", "z", "É", "é", "É1", "é2", "日", "\U0001f600", "\xff", "\xff0",
	}
	for i, a := range row {
		for j, b := range row {
			if got, want := compareNames(a, b), sign(i-j); sign(got) != want {
				t.Errorf("compareNames(%q, %q) is %d, want %d", a, b, got, want)
			}
		}
	}
}

func sign(n int) int { return min(max(n, -1), 1) }

func TestOrder(t *testing.T) {
	t.Parallel()
	entries := []Entry{
		{Name: "b10", Size: 5, Modified: noon.Add(2)},
		{Name: "B9", Size: 7, Modified: noon.Add(1)},
		{Name: "c", Size: 5, Modified: noon},
		{Name: "y", Dir: true, Size: 1, Modified: noon.Add(9)},
		{Name: "z", Dir: true, Size: 4096, Modified: noon},
		{Name: ".."}, {Name: "."}, {Name: ""}, {Name: "a/b"}, {Name: "a\x00"}, // no URL leads to them
	}
	before := slices.Clone(entries)
	for order, want := range map[Order]string{
		{}:                          "y z B9 b10 c",
		{Desc: true}:                "z y c b10 B9",
		{By: Size}:                  "y z b10 c B9",
		{By: Size, Desc: true}:      "y z B9 b10 c",
		{By: Modified}:              "z y c B9 b10",
		{By: Modified, Desc: true}:  "y z b10 B9 c",
		{By: Column(9)}:             "y z B9 b10 c",
		{By: Column(9), Desc: true}: "z y c b10 B9",
	} {
		page := Page{Path: "/", Entries: entries, Order: order}
		var got []string
		for _, e := range page.sorted() {
			got = append(got, e.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%v: %v, want %v", order, got, want)
		}
	}
	if !slices.Equal(entries, before) {
		t.Error("the caller's entries have moved")
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n           int64
		size, exact string
	}{
		{0, "0 B", "0 bytes"},
		{1, "1 B", "1 byte"},
		{1023, "1023 B", "1,023 bytes"},
		{1024, "1.0 KiB", "1,024 bytes"},
		{1075, "1.0 KiB", "1,075 bytes"},
		{1076, "1.1 KiB", "1,076 bytes"},
		{10188, "9.9 KiB", "10,188 bytes"},
		{10189, "10 KiB", "10,189 bytes"}, // not 10.0
		{1<<20 - 513, "1023 KiB", "1,048,063 bytes"},
		{1<<20 - 512, "1.0 MiB", "1,048,064 bytes"}, // not 1024 KiB
		{1 << 20, "1.0 MiB", "1,048,576 bytes"},
		{123_456_789, "118 MiB", "123,456,789 bytes"},
		{1 << 40, "1.0 TiB", "1,099,511,627,776 bytes"},
		{math.MaxInt64, "8.0 EiB", "9,223,372,036,854,775,807 bytes"},
	} {
		if size := string(appendSize(nil, c.n)); size != c.size {
			t.Errorf("%d is shown as %s, want %s", c.n, size, c.size)
		}
		if exact := string(appendBytes(nil, c.n)); exact != c.exact {
			t.Errorf("%d is written as %s, want %s", c.n, exact, c.exact)
		}
	}
}

func TestDates(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		at   time.Time
		want string // "" for none
	}{
		{noon, "2026-11-20T11:34:56Z"},
		{time.Time{}, ""},
		{time.Unix(0, 0), "1970-01-01T00:00:00Z"},
		{time.Unix(-1, 0), "1969-12-31T23:59:59Z"},
		{time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), "9999-12-31T23:59:59Z"},
		{time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), ""}, // five digits are not RFC 3339
		{time.Unix(math.MaxInt64>>1, 0), ""},
		{time.Unix(math.MinInt64>>1, 0), ""},
	} {
		e := Entry{Name: "x", Modified: c.at}
		got := ""
		if dated(&e) {
			got = string(appendTime(nil, &e))
		}
		if got != c.want {
			t.Errorf("%v: %q, want %q", c.at, got, c.want)
		}
		page := Page{Path: "/", Entries: []Entry{e}}
		if want := c.want != ""; bytes.Contains(page.AppendHTML(nil), []byte("<time")) != want {
			t.Errorf("%v: the page has a date or has none; it should be %v", c.at, want)
		}
	}
}

func TestCrumbs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path string
		root bool
		want []string
		why  string
	}{
		{"/", true, []string{"<h1><bdi>Index"}, "the root has no parent"},
		{"/", false, []string{"<h1><bdi>Index"}, "no prefix is known"},
		{"/a/", false, []string{`../"><bdi>Index`, "<h1><bdi>a<"}, ""},
		{"/a/b/", false, []string{`../../"><bdi>Index`, `../"><bdi>a<`, "<h1><bdi>b<"}, ""},
		{"/a//b/", false, []string{`../../../"><bdi>Index`, `../../"><bdi>a<`, "<h1><bdi>b<"}, "an empty segment is a level"},
		{"/a//", false, []string{`../../"><bdi>Index`, "<h1><bdi>a<"}, ""},
		{"//", false, []string{"<h1><bdi>Index"}, ""},
		{"/x/y/", true, []string{"<span><bdi>Index", "<span><bdi>x<", "<h1><bdi>y<"}, "nothing above a root is linked"},
		{"/<b>/c\n/", false, []string{"&lt;b&gt;", `<h1><bdi>c<i>\n</i>`}, "a request chooses the path"},
	} {
		page := Page{Path: c.path, Root: c.root}
		got := string(page.appendCrumbs(nil))
		if n := strings.Count(got, "<li"); n != len(c.want) && !strings.Contains(c.path, "<") {
			t.Errorf("%q: %d crumbs, want %d %s", c.path, n, len(c.want), c.why)
		}
		at := 0
		for _, want := range c.want {
			i := strings.Index(got[at:], want)
			if i < 0 {
				t.Errorf("%q: no %s after byte %d of\n%s%s", c.path, want, at, got, c.why)
				break
			}
			at += i + len(want)
		}
	}
}

func TestKinds(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]kind{
		"a.png": image, "A.PNG": image, "a.tar.gz": archive, "main.go": code, "README.md": text, "README": file, "a.": file,
		".png": image, "png": file, "a.mp3": sound, "a.\xff\xff": file, "a." + strings.Repeat("x", 300): file,
	} {
		if got := kindOf(&Entry{Name: name}); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
	if got := kindOf(&Entry{Name: "a.png", Dir: true}); got != folder {
		t.Errorf("a folder is %q", got)
	}
	for _, k := range append(slices.Collect(mapValues(kinds)), folder, file, parent, link) {
		if n := strings.Count(icons, fmt.Sprintf("<symbol id=%q ", string(k))); n != 1 {
			t.Errorf("icons.svg has %d symbols %q", n, k)
		}
	}
	for ext := range kinds {
		if len(ext) >= longest {
			t.Errorf("%q is too long to be found", ext)
		}
	}
}

func mapValues(m map[string]kind) func(func(kind) bool) {
	return func(yield func(kind) bool) {
		for _, k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func many(n int) *Page {
	random := rand.New(rand.NewPCG(1, 2))
	page := &Page{Path: "/many/"}
	for i := range n {
		page.Entries = append(page.Entries, Entry{Name: fmt.Sprintf("Photograph %d of %d.jpg", random.IntN(n), i), Dir: i%20 == 0,
			Size: random.Int64N(1 << 30), Modified: noon.Add(-time.Duration(random.Int64N(1e17)))})
	}
	return page
}

// The list that is sorted is all that is allocated, if the caller has room.
func TestAllocations(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { ParseOrder("a=b&sort=time&order=desc") }); n != 0 {
		t.Errorf("ParseOrder allocates %v times", n)
	}
	page := many(1000)
	buf := page.AppendJSON(page.AppendHTML(nil))
	if n := testing.AllocsPerRun(10, func() { page.AppendHTML(buf[:0]) }); n > 4 {
		t.Errorf("AppendHTML allocates %v times", n)
	}
	if n := testing.AllocsPerRun(10, func() { page.AppendJSON(buf[:0]) }); n > 1 {
		t.Errorf("AppendJSON allocates %v times", n)
	}
}

func BenchmarkHTML5000(b *testing.B) {
	page := many(5000)
	buf := page.AppendHTML(nil)
	b.ReportAllocs()
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		buf = page.AppendHTML(buf[:0])
	}
}

func BenchmarkJSON5000(b *testing.B) {
	page := many(5000)
	buf := page.AppendJSON(nil)
	b.ReportAllocs()
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		buf = page.AppendJSON(buf[:0])
	}
}
