package static_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// This file compares with http.ServeContent, on net/http, what static makes of
// conditional and range requests on all servers.

// The three files of the comparison. Their time is not a whole second, as most
// are not.
var (
	compared = map[string]string{
		"small.txt": strings.Repeat("small ", 100),
		"large.bin": pattern(1, 40_000),
		"empty.txt": "",
	}
	comparedAt = time.Date(2024, 5, 17, 10, 20, 30, 987654321, time.UTC)
)

// A request of the comparison: indexes into the lists of values below.
type combination struct {
	method, file                                  string
	match, noneMatch, modified, unmodified, ifRng string
	rng                                           string
}

// Values of the fields. "" is no field; TAG stands for the file's tag, and TIME,
// BEFORE and AFTER for its time and those a second off.
var (
	matches     = []string{"", `TAG`, `"other"`, `*`, `W/TAG`, `"a", TAG`, `nonsense`}
	noneMatches = []string{"", `TAG`, `"other"`, `*`, `W/TAG`, `"a" , "b", TAG`, `nonsense`}
	modifieds   = []string{"", "TIME", "BEFORE", "AFTER", "nonsense"}
	unmodifieds = []string{"", "TIME", "BEFORE", "AFTER", "nonsense"}
	ifRanges    = []string{"", `TAG`, `"other"`, `W/TAG`, "TIME", "BEFORE", "AFTER", "nonsense", `"a", TAG`}
	rangeValues = []string{
		"", "bytes=0-9", "bytes=5-", "bytes=-5", "bytes=0-", "bytes=99-99", "bytes=0-999999999", "bytes=-999999999",
		"bytes=999999999-", "bytes=0-0,-1", "bytes=10-19,0-9", "bytes=0-9,10-19", "bytes=0-9,5-14", "bytes=0-0, 2-2, 4-4", "bytes=0-9,999999999-",
		"bytes=999999998-,999999999-", "bytes=5-2", "bytes=-0", "bytes=-", "bytes=", "bytes=a-b", "bytes=0-9,a-b", "items=0-9", "0-9", "Bytes=0-9",
		"bytes=0-9,20-29,40-49,60-69", "bytes = 0-9", "bytes= 0-9 , 20-29", "bytes=0-,0-,0-", "bytes=1-,2-,3-,4-", "bytes=99999999999999999999-", "bytes=0-99999999999999999999",
		twoLines,
	}
)

// twoLines stands for two lines of Range.
const twoLines = "bytes=0-9\r\nRange: bytes=20-29"

// combinations are what is asked: every two conditions, every If-Range with
// every Range, and some of all else, the same each time.
func combinations() (all []combination) {
	for _, method := range []string{"GET", "HEAD"} {
		for _, rng := range []string{"", "bytes=0-9"} {
			for _, m := range matches {
				for _, n := range noneMatches {
					all = append(all, combination{method: method, file: "small.txt", match: m, noneMatch: n, rng: rng})
				}
				for _, u := range unmodifieds {
					all = append(all, combination{method: method, file: "large.bin", match: m, unmodified: u, rng: rng})
				}
			}
			for _, ms := range modifieds {
				for _, n := range noneMatches {
					all = append(all, combination{method: method, file: "large.bin", modified: ms, noneMatch: n, rng: rng})
				}
				for _, u := range unmodifieds {
					all = append(all, combination{method: method, file: "empty.txt", modified: ms, unmodified: u, rng: rng})
				}
			}
		}
		for file := range compared {
			for _, rng := range rangeValues {
				for _, i := range ifRanges {
					all = append(all, combination{method: method, file: file, ifRng: i, rng: rng})
				}
			}
		}
	}
	files := []string{"small.txt", "large.bin", "empty.txt"}
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(of []string) string { return of[r.IntN(len(of))] }
	for range 500 {
		all = append(all, combination{
			pick([]string{"GET", "GET", "HEAD", "POST", "DELETE"}), pick(files),
			pick(matches), pick(noneMatches), pick(modifieds), pick(unmodifieds), pick(ifRanges), pick(rangeValues),
		})
	}
	slices.SortStableFunc(all, func(a, b combination) int { return strings.Compare(a.file, b.file) })
	return all
}

// lines are the fields for a file with the given tag.
func (c *combination) lines(tag string) (lines []string) {
	at := func(d time.Duration) string { return comparedAt.Add(d).Format(http.TimeFormat) }
	fill := strings.NewReplacer("TAG", tag, "TIME", at(0), "BEFORE", at(-time.Second), "AFTER", at(time.Second))
	for _, f := range [][2]string{
		{"If-Match", c.match}, {"If-None-Match", c.noneMatch}, {"If-Modified-Since", c.modified},
		{"If-Unmodified-Since", c.unmodified}, {"If-Range", c.ifRng}, {"Range", c.rng},
	} {
		if f[1] != "" {
			lines = append(lines, f[0]+": "+fill.Replace(f[1]))
		}
	}
	return lines
}

func (c *combination) String() string {
	return fmt.Sprintf("%s %s %q", c.method, c.file, c.lines("TAG"))
}

// A view is what is compared of an answer. Presence is compared where values
// cannot agree: the words of errors, and boundaries.
type view struct {
	status                    int
	body                      string // of parts: each one's fields and content; of errors: nothing
	contentRange, contentType string
	length                    int64
	etag, modified, accept    bool
}

func (v view) String() string {
	if len(v.body) > 100 {
		v.body = fmt.Sprintf("%.100s... of %d bytes", v.body, len(v.body))
	}
	return fmt.Sprintf("%d, %q, Content-Range %q, Content-Type %q, Content-Length %d, ETag %v, Last-Modified %v, Accept-Ranges %v",
		v.status, v.body, v.contentRange, v.contentType, v.length, v.etag, v.modified, v.accept)
}

func viewOf(a *answer) (view, error) {
	v := view{
		status: a.status, body: a.body, contentRange: a.field("Content-Range"), contentType: a.field("Content-Type"), length: a.length,
		etag: a.field("Etag") != "", modified: a.field("Last-Modified") != "", accept: a.field("Accept-Ranges") == "bytes",
	}
	if a.cut != nil {
		return v, a.cut
	}
	media, params, _ := mime.ParseMediaType(v.contentType)
	switch {
	case a.status >= 400:
		v.body, v.length = "", 0
	case media == "multipart/byteranges":
		v.contentType, v.length = media, 0
		if a.body == "" {
			break // HEAD
		}
		if a.length != int64(len(a.body)) {
			return v, fmt.Errorf("Content-Length %d of %d bytes", a.length, len(a.body))
		}
		v.body = ""
		for r := multipart.NewReader(strings.NewReader(a.body), params["boundary"]); ; {
			p, err := r.NextRawPart()
			if err == io.EOF {
				break
			}
			if err != nil {
				return v, err
			}
			b, err := io.ReadAll(p)
			if err != nil {
				return v, err
			}
			v.body += fmt.Sprintf("[%s %s %s]", p.Header.Get("Content-Type"), p.Header.Get("Content-Range"), b)
		}
	}
	return v, nil
}

// A contentDifference is one from http.ServeContent that is meant. id is a
// row of docs/files.md, which has the section of RFC 9110. mean makes of
// net/http's answer the one that is meant.
type contentDifference struct {
	id   string
	mean func(c *combination, v *view)
	used atomic.Int32
}

// whole makes v the answer with all of the file.
func (v *view) whole(c *combination) {
	*v = view{status: 200, body: compared[c.file], contentType: typeOf(c.file), length: int64(len(compared[c.file])), etag: true, modified: true, accept: true}
	if c.method == "HEAD" {
		v.body = ""
	}
}

// part makes v the answer with one part of it.
func (v *view) part(c *combination, from, to int) {
	v.whole(c)
	v.status, v.body, v.length = 206, v.body[from:to], int64(to-from)
	v.contentRange = fmt.Sprintf("bytes %d-%d/%d", from, to-1, len(compared[c.file]))
}

// refused makes v the answer of an error about the file.
func (v *view) refused(status int, contentRange string) {
	*v = view{status: status, contentRange: contentRange, contentType: "text/plain; charset=utf-8", etag: true}
}

func (v *view) unsatisfiable(c *combination) {
	v.refused(416, fmt.Sprintf("bytes */%d", len(compared[c.file])))
}

func typeOf(file string) string {
	if strings.HasSuffix(file, ".txt") {
		return "text/plain; charset=utf-8"
	}
	return "application/octet-stream"
}

// heeded reports whether c's range is one of those, and v made by it.
func (c *combination) heeded(v *view, of ...string) bool {
	return c.method == "GET" && (v.status == 206 || v.status == 416) && slices.Contains(of, c.rng)
}

// contentDifferences apply in this order, each to what the ones before have
// made.
var contentDifferences = []*contentDifference{
	{id: "files-methods", mean: func(c *combination, v *view) {
		if c.method != "GET" && c.method != "HEAD" {
			*v = view{status: 405, contentType: "text/plain; charset=utf-8"}
		}
	}},
	{id: "files-range-head", mean: func(c *combination, v *view) {
		if c.method == "HEAD" && (v.status == 206 || v.status == 416) {
			v.whole(c)
		}
	}},
	{id: "files-range-unit", mean: func(c *combination, v *view) {
		switch {
		case c.heeded(v, "items=0-9", "0-9", "bytes = 0-9"):
			v.whole(c)
		case c.heeded(v, "Bytes=0-9") && len(compared[c.file]) > 0:
			v.part(c, 0, 10)
		}
	}},
	{id: "files-range-malformed", mean: func(c *combination, v *view) {
		if c.heeded(v, "bytes=5-2", "bytes=-", "bytes=a-b", "bytes=0-9,a-b") {
			v.whole(c)
		}
	}},
	{id: "files-range-numbers", mean: func(c *combination, v *view) {
		switch size := len(compared[c.file]); {
		case size == 0: // files-range-empty
		case c.heeded(v, "bytes=99999999999999999999-"):
			v.unsatisfiable(c)
		case c.heeded(v, "bytes=0-99999999999999999999"):
			v.part(c, 0, size)
		}
	}},
	{id: "files-range-suffix", mean: func(c *combination, v *view) {
		if c.heeded(v, "bytes=-0") && len(compared[c.file]) > 0 {
			v.unsatisfiable(c)
		}
	}},
	{id: "files-range-empty", mean: func(c *combination, v *view) {
		if len(compared[c.file]) == 0 && (v.status == 206 || v.status == 416) {
			v.whole(c)
		}
	}},
	{id: "files-range-merged", mean: func(c *combination, v *view) {
		switch {
		case v.status != 206:
		case c.heeded(v, "bytes=10-19,0-9", "bytes=0-9,10-19"):
			v.part(c, 0, 20)
		case c.heeded(v, "bytes=0-9,5-14"):
			v.part(c, 0, 15)
		}
	}},
	{id: "files-range-lines", mean: func(c *combination, v *view) {
		if c.heeded(v, twoLines) {
			v.whole(c)
		}
	}},
	{id: "files-errors", mean: func(c *combination, v *view) {
		switch v.status {
		case 412:
			v.refused(412, "")
		case 416:
			v.unsatisfiable(c)
		}
	}},
}

func TestServeContent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	makeTree(t, dir, compared)
	for name := range compared {
		if err := os.Chtimes(filepath.Join(dir, name), comparedAt, comparedAt); err != nil {
			t.Fatal(err)
		}
	}
	made := time.Now()
	all := combinations()
	h := serveDir(t, dir, nil)
	settle(t, made)
	tags := map[string]string{}
	first := newClient(t, onNetHTTP(t, h))
	for name, content := range compared {
		a := first.ask("GET", "/"+name)
		if tags[name] = a.field("Etag"); a.status != 200 || a.body != content || !strings.HasPrefix(tags[name], `"`) {
			t.Fatalf("%s: %v", name, a)
		}
	}
	oracle := newClient(t, onNetHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.URL.Path[1:]
		w.Header().Set("Etag", tags[name])
		http.ServeContent(w, r, name, comparedAt, strings.NewReader(compared[name]))
	})))
	want, raw := make([]view, len(all)), make([]view, len(all))
	for i := range all {
		c := &all[i]
		var err error
		if want[i], err = viewOf(oracle.ask(c.method, "/"+c.file, c.lines(tags[c.file])...)); err != nil {
			t.Fatalf("%v: net/http: %v", c, err)
		}
		raw[i] = want[i]
		for _, d := range contentDifferences {
			v := want[i]
			if d.mean(c, &v); v != want[i] {
				want[i] = v
				d.used.Add(1)
			}
		}
	}
	t.Run("on", func(t *testing.T) {
		everyWay(t, func(t *testing.T, w way) {
			cl := newClient(t, w.serve(t, h))
			failures := 0
			for i := range all {
				c := &all[i]
				got, err := viewOf(cl.ask(c.method, "/"+c.file, c.lines(tags[c.file])...))
				if err == nil && got == want[i] {
					continue
				}
				t.Errorf("%v: %v\ngot          %v\nwant         %v\nServeContent %v", c, err, got, want[i], raw[i])
				if failures++; failures == 20 {
					t.Fatal("and maybe more")
				}
			}
		})
	})
	t.Logf("%d combinations", len(all))
	if len(all) < 300 {
		t.Error("these are few")
	}
	page, err := os.ReadFile("../docs/files.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(page), "\n| files-"); n != len(contentDifferences) {
		t.Errorf("docs/files.md has %d differences, the table %d", n, len(contentDifferences))
	}
	for _, d := range contentDifferences {
		if !strings.Contains(string(page), "\n| "+d.id+": ") {
			t.Errorf("docs/files.md does not explain %q", d.id)
		}
		if d.used.Load() == 0 {
			t.Errorf("no combination shows the difference %q", d.id)
		}
	}
}
