package browser

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/chertest"
	"github.com/chert-http/chert/internal/listing"
	"github.com/chert-http/chert/static"
	"github.com/chromedp/chromedp"
)

// odd are names that break if one kind of escaping is missing.
var odd = []string{
	"plain.txt", "two words", " leading", "trailing ", "   ", "100%", "%2e%2e", "%2F", "%00", "a\"b'c", "<script>alert(1)<script>",
	"<img src=x onerror=alert(1)>", "&amp;", "]]>", "line\nbreak", "cr\rlf\r\n", "\n", "tab\there", "esc\x1b[31m", "del\x7f", "c1\u0085", "\xff\xfe",
	"half\xe2\x82", "surrogate\xed\xa0\x80", "overlong\xc0\xaf", "gpj.\u202egnp", "\u2066iso\u2069", "\ufeffbom", "soft\u00adhyphen",
	"\u3164", "...", "..a", "a:b", "javascript:alert(1)", "data:text", "what?", "?sort=size", "#hash", "a;b=c,d", "a+b", "~user",
	"\\back\\slash", "\\\\host", "\U0001f600 \U0001f468\u200d\U0001f469\u200d\U0001f467.png", "שלום.txt", "日本語", "e\u0301", "\u00e9", "\u2028",
	"\uffff", "{{.}}", "--", "[x]", "a|b^c`d", "*", "index", "file 9", "File 10", "file 010", strings.Repeat("long", 60),
	"favicon.ico", // for text pages; a listing must not request it, and in TestLook it does not exist
}

// A folder has the unusual names that a file system permits, every fourth a
// folder.
type folder struct {
	dir     string
	names   []string
	content map[string]string // of the file, or of the file "inside" the folder
}

func isFolder(i int) bool { return i%4 == 3 }

func makeOdd(t *testing.T) folder {
	t.Helper()
	f := folder{dir: t.TempDir(), content: map[string]string{}}
	for i, name := range odd {
		content := "This is " + strconv.QuoteToASCII(name) + strings.Repeat(".", i*i%1201)
		path := filepath.Join(f.dir, name)
		modified := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).Add(-time.Duration(i*37%101) * 9 * time.Hour)
		err := error(nil)
		if isFolder(i) {
			if err = os.Mkdir(path, 0o755); err == nil {
				err = os.WriteFile(filepath.Join(path, "inside"), []byte(content), 0o644)
			}
		} else {
			err = os.WriteFile(path, []byte(content), 0o644)
		}
		if err != nil {
			t.Logf("left out: %v", err)
			continue
		}
		if err := os.Chtimes(path, modified, modified); err != nil {
			t.Fatal(err)
		}
		f.names = append(f.names, name)
		f.content[name] = content
	}
	return f
}

func serve(t *testing.T, dir string) (origin string) {
	t.Helper()
	files, err := static.New(dir, &static.Options{Listing: true, Dotfiles: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { files.Close() })
	s := chertest.NewServer(files)
	t.Cleanup(s.Close)
	return s.URL
}

// A row is the browser's view of one entry. URL is resolved by it.
type row struct {
	URL, Text, Title, Date string
	Folder                 bool
}

const readRows = `Array.from(document.querySelectorAll("tbody tr")).filter(r => r.querySelector("bdi")).map(r => ({
	URL: r.querySelector("a").href, Text: r.querySelector("bdi").textContent, Title: r.cells[1].title,
	Date: r.querySelector("time").dateTime, Folder: r.cells[0].className == "d"}))`

// Every link leads to the content of its name. The browser resolves the URLs on
// the page itself and fetches them from a page without a policy against it.
func TestEveryName(t *testing.T) {
	t.Parallel()
	f := makeOdd(t)
	origin := serve(t, f.dir)
	tab := openTab(t, origin)
	response, err := chromedp.Run(tab.ctx, chromedp.NavigateResponse(origin+"/"))
	if err != nil {
		t.Fatal(err)
	}
	// Without the field, the absence of violations proves nothing.
	if got := response.Headers["Content-Security-Policy"]; got != listing.ContentSecurityPolicy {
		t.Errorf("the policy is %v", got)
	}
	rows := eval[[]row](t, tab, readRows)
	if len(rows) != len(f.names) {
		t.Fatalf("%d rows for %d names", len(rows), len(f.names))
	}
	if n := eval[int](t, tab, `document.querySelectorAll("body script ~ *, * script + script, img, iframe, [onerror], [style]").length`); n != 0 {
		t.Errorf("%d elements that no listing has", n)
	}
	tab.visit(t, origin+"/plain.txt")
	found := map[string]bool{}
	for _, r := range rows {
		url := r.URL
		if r.Folder {
			url += "inside"
		}
		got := eval[string](t, tab, "fetch("+quoted(url)+").then(r => r.text())")
		name, err := strconv.Unquote(strings.TrimRight(strings.TrimPrefix(got, "This is "), "."))
		if err != nil || got != f.content[name] || found[name] {
			t.Errorf("%q leads to %q", r.URL, got)
		}
		found[name] = true
		if !strings.Contains(name, `\`) && strings.ContainsAny(name, "\n\r\t\x1b\u202e\u2066\u3164") && !strings.Contains(r.Text, `\`) {
			t.Errorf("%q is shown as %q", name, r.Text)
		}
	}
}

// A click leads where the link says, and back.
func TestClicks(t *testing.T) {
	t.Parallel()
	f := makeOdd(t)
	origin := serve(t, f.dir)
	tab := openTab(t, origin)
	tab.visit(t, origin+"/")
	for i, r := range eval[[]row](t, tab, readRows) {
		if !r.Folder { // these come first
			break
		}
		tab.click(t, "tbody tr:nth-child("+strconv.Itoa(i+1)+") a")
		if got := eval[string](t, tab, "location.href"); got != r.URL {
			t.Errorf("a click on %s leads to %s", r.URL, got)
		}
		if got := eval[string](t, tab, `document.querySelector("h1").textContent`); got != r.Text {
			t.Errorf("the title of %q is %q", r.Text, got)
		}
		up := []string{"tbody tr:first-child a", "nav li:first-child a"}[i%2]
		tab.click(t, up)
		if got := eval[string](t, tab, "location.href"); got != origin+"/" {
			t.Errorf("%s leads from %s to %s", up, r.URL, got)
		}
	}
	tab.click(t, `tbody a[href="./plain.txt"]`)
	if got := eval[string](t, tab, "document.body.innerText"); got != f.content["plain.txt"] {
		t.Errorf("plain.txt is %q", got)
	}
	tab.visit(t, origin+"/?sort=size")
	tab.click(t, "footer a")
	if got := eval[string](t, tab, "JSON.parse(document.body.innerText).path"); got != "/" {
		t.Errorf("the path in JSON is %q", got)
	}
}

// Each click on a column sorts by it, or reverses the order.
func TestSort(t *testing.T) {
	t.Parallel()
	f := makeOdd(t)
	origin := serve(t, f.dir)
	tab := openTab(t, origin)
	tab.visit(t, origin+"/")
	names := eval[[]row](t, tab, readRows)
	if i := slices.IndexFunc(names, func(r row) bool { return r.Text == "file 9" }); names[i+1].Text != "File 10" || names[i+2].Text != "file 010" {
		t.Errorf("after file 9 come %q and %q", names[i+1].Text, names[i+2].Text)
	}
	size := func(a, b row) int {
		if a.Folder { // these have none
			return 0
		}
		return exact(a) - exact(b)
	}
	date := func(a, b row) int { return strings.Compare(a.Date, b.Date) }
	name := func(a, b row) int { return slices.Index(names, a) - slices.Index(names, b) }
	for _, c := range []struct {
		column int
		want   string
		order  func(a, b row) int
	}{
		{2, "descending", size}, // the largest first
		{2, "ascending", size},
		{2, "descending", size},
		{3, "descending", date}, // the newest first
		{3, "ascending", date},
		{1, "ascending", name},
		{1, "descending", name},
		{1, "ascending", name},
	} {
		th := "thead th:nth-child(" + strconv.Itoa(c.column) + ")"
		tab.click(t, th+" a")
		if got := eval[string](t, tab, "document.querySelector('"+th+"').ariaSort"); got != c.want {
			t.Errorf("column %d is %q, want %q", c.column, got, c.want)
		}
		if n := eval[int](t, tab, "document.querySelectorAll('[aria-sort]').length"); n != 1 {
			t.Errorf("%d columns say that they are sorted by", n)
		}
		rows := eval[[]row](t, tab, readRows)
		sorted := slices.IsSortedFunc(rows, func(a, b row) int {
			switch {
			case a.Folder && !b.Folder:
				return -1
			case !a.Folder && b.Folder:
				return +1
			case c.want == "descending":
				return c.order(b, a)
			}
			return c.order(a, b)
		})
		if !sorted || len(rows) != len(names) {
			t.Errorf("column %d %s: not sorted so: %v", c.column, c.want, rows)
		}
	}
	if got := eval[string](t, tab, "location.href"); got != origin+"/" {
		t.Errorf("the default order is at %s", got)
	}
}

// exact parses the size in the title: "1,234 bytes".
func exact(r row) int {
	digits, _, _ := strings.Cut(r.Title, " ")
	n, _ := strconv.Atoi(strings.ReplaceAll(digits, ",", ""))
	return n
}

// A phone makes its window wider for content that does not fit, rather than
// scroll.
const pageWidth = "Math.max(document.documentElement.scrollWidth, innerWidth)"

// Nothing is wider than the window, whatever the names.
func TestWidths(t *testing.T) {
	t.Parallel()
	f := makeOdd(t)
	deep := strings.Repeat(strings.Repeat("deep", 50)+"/", 3) + "x/y/z"
	if err := os.MkdirAll(filepath.Join(f.dir, filepath.FromSlash(deep)), 0o755); err != nil {
		t.Fatal(err)
	}
	origin := serve(t, f.dir)
	tab := openTab(t, origin)
	for _, width := range []int64{320, 375, 640, 641, 800, 1280} {
		tab.look(t, width, 800, "light", chromedp.EmulateMobile)
		for _, path := range []string{"/", "/" + deep + "/"} {
			tab.visit(t, origin+path)
			if got := eval[int64](t, tab, pageWidth); got != width {
				t.Errorf("%.20s is %d wide in a window of %d", path, got, width)
			}
		}
	}
	tab.look(t, 375, 812, "light", chromedp.EmulateMobile, chromedp.EmulateScale(2))
	tab.visit(t, origin+"/")
	tab.picture(t, "odd-phone")
	tab.look(t, 1100, 1800, "light")
	tab.visit(t, origin+"/?sort=size&order=desc")
	tab.picture(t, "odd")
}

// The colors follow the user's preference, and the keyboard focus is visible.
func TestLook(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	makeNice(t, dir)
	origin := serve(t, dir)
	tab := openTab(t, origin)
	const path = "/projects/field%20survey%202026/"
	background := map[string]string{}
	for _, scheme := range []string{"light", "dark"} {
		tab.look(t, 1100, 800, scheme, chromedp.EmulateScale(1.5))
		tab.visit(t, origin+path)
		background[scheme] = eval[string](t, tab, "getComputedStyle(document.body).backgroundColor")
		tab.do(t, chromedp.KeyEvent(strings.Repeat("\t", 9)))
		if got := eval[string](t, tab, "getComputedStyle(document.activeElement).outlineStyle"); got != "solid" {
			t.Errorf("what has the focus has the outline %q", got)
		}
		tab.picture(t, scheme)
		tab.look(t, 375, 812, scheme, chromedp.EmulateMobile, chromedp.EmulateScale(2))
		tab.visit(t, origin+path+"?sort=time&order=desc")
		if got := eval[int](t, tab, pageWidth); got != 375 {
			t.Errorf("on a phone of 375 the page is %d wide", got)
		}
		tab.picture(t, "phone-"+scheme)
	}
	if background["light"] == background["dark"] {
		t.Errorf("light and dark are both %s", background["dark"])
	}
	tab.look(t, 1100, 500, "light")
	tab.visit(t, origin+"/empty/")
	tab.picture(t, "empty")
	tab.visit(t, origin+"/")
	tab.picture(t, "root")
}

// makeNice makes a folder like those of users.
func makeNice(t *testing.T, dir string) {
	t.Helper()
	at := filepath.Join(dir, "projects", "field survey 2026")
	for _, d := range []string{filepath.Join(at, "maps"), filepath.Join(at, "Photographs"), filepath.Join(at, "raw data"), filepath.Join(dir, "empty")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Date(2026, 11, 20, 14, 7, 0, 0, time.UTC)
	for i, f := range []struct {
		name string
		size int64
	}{
		{"README.md", 3_812}, {"chalk ridge, north face.jpg", 4_811_020}, {"chalk ridge, south face.jpg", 5_240_331}, {"notes 9.txt", 912},
		{"notes 10.txt", 1_404}, {"interview.mp3", 48_120_400}, {"survey.tar.gz", 1_811_939_328}, {"analyse.go", 18_204},
		{"site.html", 20_480}, {"LICENSE", 1_074}, {"סקר שדה.pdf", 733_120}, {"checksums", 0},
		{"a very long name that somebody gave to a file because nobody had told them about folders, final version (2).pdf", 1_204_112},
	} {
		path := filepath.Join(at, f.name)
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, f.size); err != nil {
			t.Fatal(err)
		}
		modified := now.Add(-time.Duration(i*i) * 31 * time.Hour)
		if err := os.Chtimes(path, modified, modified); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("survey.tar.gz", filepath.Join(at, "latest.tar.gz")); err != nil {
		t.Logf("left out: %v", err) // Windows may not permit it
	}
}

// The other tests find no fault; this one shows that they would.
func TestFaultsAreSeen(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/policy", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='")
		w.Header().Set("Content-Type", "text/html")
		w.Write([]byte("<link rel=icon href='data:,'><style>p{color:red}</style><p>red"))
	})
	mux.HandleFunc("/image", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Write([]byte("<link rel=icon href='data:,'><img src=/missing>"))
	})
	mux.HandleFunc("/throws", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Write([]byte("<link rel=icon href='data:,'><script>throw 1</script>"))
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	for path, want := range map[string]string{
		"/policy": "Content Security Policy",
		"/image":  "404",
		"/throws": "exception",
	} {
		t.Run(path[1:], func(t *testing.T) {
			tab := startTab(t, s.URL)
			tab.visit(t, s.URL+path)
			for !strings.Contains(strings.Join(tab.found(), "\n"), want) {
				if err := tab.ctx.Err(); err != nil {
					t.Fatalf("%v; found %q, want something of %q", err, tab.found(), want)
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
}
