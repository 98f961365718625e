package listing

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// A row is what a reader of the page finds in one of its rows.
type row struct{ href, name string }

// readPage parses a page as strict XML and returns its rows and its style
// sheet. It fails on any element or attribute that listings do not have.
func readPage(t *testing.T, page []byte) (rows []row, sheet string) {
	t.Helper()
	if !utf8.Valid(page) {
		t.Fatal("the page is not UTF-8")
	}
	d := xml.NewDecoder(bytes.NewReader(page))
	var open []string
	for {
		token, err := d.Token()
		if err == io.EOF {
			return rows, sheet
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, page)
		}
		switch token := token.(type) {
		case xml.StartElement:
			checkElement(t, token)
			open = append(open, token.Name.Local)
			if token.Name.Local == "a" && slices.Contains(open, "tbody") {
				rows = append(rows, row{href: token.Attr[0].Value})
			}
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			if slices.Contains(open, "bdi") && slices.Contains(open, "tbody") {
				rows[len(rows)-1].name += string(token)
			}
			if len(open) > 0 && open[len(open)-1] == "style" {
				sheet += string(token)
			}
		case xml.Comment, xml.ProcInst:
			t.Fatalf("%T in the page", token)
		}
	}
}

var elements = strings.Fields("html head meta title link style body svg symbol path nav ol li a span bdi h1 main table thead " +
	"tbody tr th td time use i u b footer p div output input script")

var attributes = strings.Fields("lang charset name content rel href class id viewBox d aria-label aria-current aria-sort " +
	"aria-hidden scope title datetime colspan role xmlns type placeholder autocomplete spellcheck hidden")

func checkElement(t *testing.T, e xml.StartElement) {
	t.Helper()
	if !slices.Contains(elements, e.Name.Local) {
		t.Fatalf("element %s", e.Name.Local)
	}
	for _, a := range e.Attr {
		if !slices.Contains(attributes, a.Name.Local) {
			t.Fatalf("attribute %s of %s", a.Name.Local, e.Name.Local)
		}
	}
}

// checkURL holds a URL to RFC 3986: it must name what lies in the folder.
func checkURL(t *testing.T, href, name string, dir bool) {
	t.Helper()
	base, _ := url.Parse("http://host.example/some/folder/?sort=size")
	ref, err := url.Parse(href)
	if err != nil {
		t.Fatalf("%q: %v", href, err)
	}
	got := base.ResolveReference(ref)
	want := "/some/folder/" + name
	if dir {
		want += "/"
	}
	if got.Path != want || got.Host != base.Host || got.Scheme != base.Scheme || got.Fragment != "" {
		t.Fatalf("%q leads to %q, want %q", href, got, want)
	}
	if i := strings.IndexFunc(href, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("\"'<>&\\^`{|}", r) }); i >= 0 {
		t.Fatalf("%q has a byte that no URL has, or that HTML minds", href)
	}
}

// checkPage holds both forms of a listing to what went in.
func checkPage(t *testing.T, page *Page) {
	t.Helper()
	// What is the same on every page is read by TestPolicy; without it, this
	// takes a tenth of the time.
	html := bytes.Replace(page.AppendHTML(nil), []byte(style), nil, 1)
	rows, _ := readPage(t, bytes.Replace(html, []byte(icons), nil, 1))
	if !page.Root {
		if !strings.HasPrefix(rows[0].href, "../") {
			t.Fatalf("the first row leads to %q", rows[0].href)
		}
		rows = rows[1:]
	}
	var object struct {
		Path    string
		Entries []struct {
			Name, URL, Type string
			Link            bool
			Size            *int64
			Modified        *time.Time
		}
	}
	raw := page.AppendJSON(nil)
	if !utf8.Valid(raw) {
		t.Fatal("JSON is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if page.Truncated {
		d = json.NewDecoder(bytes.NewReader(raw))
	}
	if err := d.Decode(&object); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	if !sameText(object.Path, page.Path) {
		t.Fatalf("path is %q, want %q", object.Path, page.Path)
	}
	list := page.sorted()
	if len(rows) != len(list) || len(object.Entries) != len(list) {
		t.Fatalf("%d rows and %d objects for %d entries", len(rows), len(object.Entries), len(list))
	}
	for i, e := range list {
		href, query, _ := strings.Cut(rows[i].href, "?")
		if e.Dir != (query != "") && page.Order != (Order{}) || query != "" && ParseOrder(query) != page.Order {
			t.Fatalf("%q has the query %q for %v", e.Name, query, page.Order)
		}
		checkURL(t, href, e.Name, e.Dir)
		checkShown(t, rows[i].name, e.Name)
		o := object.Entries[i]
		if o.URL != href || !sameText(o.Name, e.Name) || o.Link != e.Link || (o.Type == "directory") != e.Dir {
			t.Fatalf("%+v stands for %+v", o, e)
		}
		if o.Size == nil != (e.Dir || e.Size < 0) || o.Size != nil && *o.Size != e.Size {
			t.Fatalf("%+v stands for %+v", o, e)
		}
		if o.Modified == nil == dated(e) || o.Modified != nil && !o.Modified.Equal(e.Modified.Truncate(time.Second)) {
			t.Fatalf("%v stands for %v", o.Modified, e.Modified)
		}
	}
}

// sameText compares as JSON can: each byte that is not UTF-8 is one U+FFFD.
func sameText(got, name string) bool { return slices.Equal([]rune(got), []rune(name)) }

// checkShown holds the text that is seen to the name: nothing unseen in it, and
// with its escapes undone it is the name, unless that has backslashes itself.
func checkShown(t *testing.T, shown, name string) {
	t.Helper()
	if i := strings.IndexFunc(shown, unseen); i >= 0 {
		t.Fatalf("%q is shown as %q", name, shown)
	}
	if strings.Contains(name, `\`) {
		return
	}
	got, err := strconv.Unquote(`"` + strings.ReplaceAll(shown, `"`, `\"`) + `"`)
	if err != nil || got != name {
		t.Fatalf("%q is shown as %q, which is %q, %v", name, shown, got, err)
	}
}

func TestOddNames(t *testing.T) {
	t.Parallel()
	for by := Name; by <= Modified; by++ {
		for _, desc := range []bool{false, true} {
			checkPage(t, &Page{Path: "/a\"b/\xff<&>\n\u202e/", Entries: oddEntries(), Order: Order{by, desc}, Truncated: desc})
		}
	}
	for c := range 256 {
		name := "a" + string([]byte{byte(c)}) + "b"
		if c == 0 || c == '/' {
			continue
		}
		checkPage(t, &Page{Path: "/", Root: true, Entries: []Entry{{Name: name}, {Name: name[1:], Dir: true}, {Name: name[:2]}}})
	}
	for r := rune(0x80); r < 0x3100; r++ {
		checkShown(t, readOne(t, string(r)), string(r))
	}
}

func readOne(t *testing.T, name string) string {
	t.Helper()
	b := append([]byte("<table><tbody><a href=''><bdi>"), appendName(nil, name)...)
	rows, _ := readPage(t, append(b, "</bdi></a></tbody></table>"...))
	return rows[0].name
}

func TestEscapes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, html, json string }{
		{"a b", "a b", `"a b"`},
		{" a ", "<u> </u>a<u> </u>", `" a "`},
		{"  ", "<u>  </u>", `"  "`},
		{"a\nb", `a<i>\n</i>b`, `"a\nb"`},
		{`a\nb`, `a\nb`, `"a\\nb"`},
		{"\x1b\x7f", `<i>\x1b</i><i>\x7f</i>`, `"\u001b\u007f"`},
		{"\xff", `<i>\xff</i>`, "\"\ufffd\""},
		{"\ufffd", "\ufffd", "\"\ufffd\""},
		{"\u202egnp", `<i>\u202e</i>gnp`, `"\u202egnp"`},
		{"\U000e0041", `<i>\U000e0041</i>`, `"\udb40\udc41"`},
		{"<&>\"'", "&lt;&amp;&gt;&#34;&#39;", `"\u003c&>\"'"`},
		{"\U0001f468\u200d\U0001f469", "\U0001f468\u200d\U0001f469", "\"\U0001f468\u200d\U0001f469\""}, // a joiner is no trick
	} {
		if got := string(appendName(nil, c.name)); got != c.html {
			t.Errorf("%q is %s in HTML, want %s", c.name, got, c.html)
		}
		if got := string(appendJSON(nil, c.name)); got != c.json {
			t.Errorf("%q is %s in JSON, want %s", c.name, got, c.json)
		}
	}
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	page := Page{Path: "/"}
	_, sheet := readPage(t, page.AppendHTML(nil))
	sum := sha256.Sum256([]byte(sheet))
	if want := "style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "' "; !strings.Contains(ContentSecurityPolicy, want) {
		t.Errorf("%s has no %s", ContentSecurityPolicy, want)
	}
	html := string(page.AppendHTML(nil))
	_, inline, _ := strings.Cut(html, "<script>")
	inline, _, _ = strings.Cut(inline, "</script>")
	if want := "script-src " + hash(inline) + ";"; inline == "" || !strings.Contains(ContentSecurityPolicy, want) {
		t.Errorf("%s has no %s", ContentSecurityPolicy, want)
	}
	if strings.ContainsAny(script, "<&\r") || strings.Contains(script, "innerHTML") || strings.Count(html, "<script") != 1 {
		t.Error("the script writes markup, or is not well-formed in XML")
	}
	for _, what := range []string{"default-src 'none'", "base-uri 'none'", "form-action 'none'", "img-src data:", "frame-ancestors 'self'"} {
		if !strings.Contains(ContentSecurityPolicy, what) {
			t.Errorf("%s has no %s", ContentSecurityPolicy, what)
		}
	}
	if strings.ContainsAny(ContentSecurityPolicy, "\r\n") {
		t.Error("the policy is more than a line")
	}
	for _, style := range []string{style, errorStyle} {
		if strings.ContainsAny(style, "<&\r") || strings.Contains(style, "url(") || strings.Contains(style, "@import") {
			t.Error("the style sheet loads something, or is not well-formed in XML")
		}
	}
}

// What an error page is given is text, and its style sheet is in the policy.
func TestErrorPage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		page ErrorPage
		want []string
		not  string
	}{
		{ErrorPage{404, "Not Found", "Nothing here.", "./"}, []string{"<title>404 Not Found</title>", "<h1><b>404</b> Not Found</h1>", "<p>Nothing here.</p>", `<a href="./">`}, "<script"},
		{ErrorPage{403, "Forbidden", "No.", ""}, []string{"<h1><b>403</b> Forbidden</h1>"}, "<a "},
		{ErrorPage{500, "<b>", "a & b", `"><i>`}, []string{"500 &lt;b&gt;", "a &amp; b", `href="&#34;&gt;&lt;i&gt;"`}, "<i>"},
	} {
		page := c.page.AppendHTML(nil)
		_, sheet := readPage(t, page)
		if !strings.Contains(ContentSecurityPolicy, hash(sheet)) {
			t.Errorf("the policy has no %s", hash(sheet))
		}
		for _, want := range c.want {
			if !bytes.Contains(page, []byte(want)) {
				t.Errorf("no %s in\n%s", want, page)
			}
		}
		if bytes.Contains(page, []byte(c.not)) {
			t.Errorf("%s in\n%s", c.not, page)
		}
	}
}

// WCAG 2.2, 1.4.3: text has a contrast of at least 4.5:1; 1.4.11: graphics 3:1.
func TestContrast(t *testing.T) {
	t.Parallel()
	palettes := regexp.MustCompile(`:root\{([^}]*)\}`).FindAllStringSubmatch(style, -1)
	if len(palettes) != 2 {
		t.Fatalf("%d palettes, want light and dark", len(palettes))
	}
	for _, p := range palettes {
		colors := map[string]float64{}
		for _, m := range regexp.MustCompile(`--(\w+):#(\w+)`).FindAllStringSubmatch(p[1], -1) {
			colors[m[1]] = luminance(t, m[2])
		}
		for _, c := range []struct {
			fore, back string
			least      float64
		}{
			{"ink", "bg", 7}, {"ink", "over", 7}, {"ink", "mark", 7},
			{"soft", "bg", 4.5}, {"soft", "over", 4.5}, {"link", "bg", 4.5}, {"link", "over", 4.5}, {"link", "mark", 4.5},
			{"folder", "bg", 3}, {"folder", "over", 3},
		} {
			if _, ok := colors[c.fore]; !ok {
				t.Fatalf("no color %s", c.fore)
			}
			if got := contrast(colors[c.fore], colors[c.back]); got < c.least {
				t.Errorf("%s on %s has a contrast of %.2f, want %v", c.fore, c.back, got, c.least)
			}
		}
	}
}

func contrast(a, b float64) float64 { return (max(a, b) + 0.05) / (min(a, b) + 0.05) }

func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	if len(hex) == 3 {
		hex = fmt.Sprintf("%c%c%c%c%c%c", hex[0], hex[0], hex[1], hex[1], hex[2], hex[2])
	}
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c := float64(n) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}

// FuzzListing lists any names, with NUL between them, in any folder.
func FuzzListing(f *testing.F) {
	for i := 0; i+3 < len(odd); i += 3 {
		f.Add("/", strings.Join(odd[i:i+3], "\x00"), int64(i), uint8(i))
	}
	f.Add("/a/b/", "a\x00a\x00A", int64(-1), uint8(3))
	f.Add("x//<>&/", "/\x00.\x00..\x00", int64(math.MaxInt64), uint8(255))
	f.Fuzz(func(t *testing.T, path, names string, size int64, flags uint8) {
		page := Page{Path: path, Order: Order{By: Column(flags & 3), Desc: flags&4 != 0}, Root: flags&8 != 0, Truncated: flags&16 != 0}
		if page.Order.By > Modified {
			page.Order.By = Name
		}
		for i, name := range strings.Split(names, "\x00") {
			page.Entries = append(page.Entries, Entry{Name: name, Dir: (size+int64(i))%3 == 0, Link: i%2 == 0, Size: size,
				Modified: time.Unix(size, 0).Add(time.Duration(i))})
		}
		checkPage(t, &page)
		list := page.sorted()
		if !slices.IsSortedFunc(list, page.Order.compare) {
			t.Fatal("not sorted: the order is no order")
		}
	})
}
