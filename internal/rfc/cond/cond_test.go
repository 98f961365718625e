package cond

import (
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/testing/race"
)

// fields are lines of "Name: value".
type fields struct {
	lines [][2][]byte
	all   iter.Seq2[[]byte, []byte]
}

func newFields(lines ...string) *fields {
	f := new(fields)
	for _, l := range lines {
		name, value, ok := strings.Cut(l, ":")
		if !ok {
			panic(l)
		}
		f.lines = append(f.lines, [2][]byte{[]byte(name), []byte(strings.Trim(value, " \t"))})
	}
	f.all = f.each // bound once, so that All allocates nothing
	return f
}

func (f *fields) Get(name string) []byte {
	for _, l := range f.lines {
		if strings.EqualFold(string(l[0]), name) {
			return l[1]
		}
	}
	return nil
}

func (f *fields) First(name string) (value []byte, n int) {
	for _, l := range f.lines {
		if strings.EqualFold(string(l[0]), name) {
			n++
		}
	}
	return f.Get(name), n
}

func (f *fields) All() iter.Seq2[[]byte, []byte] { return f.all }

func (f *fields) each(yield func(name, value []byte) bool) {
	for _, l := range f.lines {
		if !yield(l[0], l[1]) {
			return
		}
	}
}

var (
	modified = time.Date(1994, 11, 6, 8, 49, 37, 999_999_999, time.UTC)
	same     = "Sun, 06 Nov 1994 08:49:37 GMT"
	before   = "Sun, 06 Nov 1994 08:49:36 GMT"
	after    = "Sun, 06 Nov 1994 08:49:38 GMT"
)

const (
	tag     = `"v1"`
	weakTag = `W/"v1"`
)

var checkTests = []struct {
	why    string
	method string
	lines  string // separated by newlines
	etag   string
	want   Result
}{
	{"no conditions", "GET", "Accept: */*\nRange: bytes=0-1", tag, Proceed},

	{"If-None-Match", "GET", `If-None-Match: "v1"`, tag, NotModified},
	{"HEAD is as GET", "HEAD", `If-None-Match: "v1"`, tag, NotModified},
	{"other methods fail", "PUT", `If-None-Match: "v1"`, tag, Failed},
	{"another tag", "GET", `If-None-Match: "v2"`, tag, Proceed},
	{"weak comparison: the client's is weak", "GET", `If-None-Match: W/"v1"`, tag, NotModified},
	{"weak comparison: ours is", "GET", `If-None-Match: "v1"`, weakTag, NotModified},
	{"weak comparison: both are", "GET", `If-None-Match: W/"v1"`, weakTag, NotModified},
	{"a list", "GET", `If-None-Match: "a", "b" ,"v1"`, tag, NotModified},
	{"a list of empty elements", "GET", `If-None-Match: ,, ,"v1",`, tag, NotModified},
	{"a comma within", "GET", `If-None-Match: "a,", ",v1", "v1"`, tag, NotModified},
	{"a comma within, no match", "GET", `If-None-Match: "a,"v1",b"`, tag, Proceed},
	{"without commas, as net/http", "GET", `If-None-Match: "a" "v1"`, tag, NotModified},
	{"two lines are a list", "GET", "If-None-Match: \"a\"\nAccept: */*\nif-none-match: \"v1\"", tag, NotModified},
	{"two lines, none matches", "GET", "If-None-Match: \"a\"\nIf-None-Match: \"b\"", tag, Proceed},
	{"an empty line before", "GET", "If-None-Match:\nIf-None-Match: \"v1\"", tag, NotModified},
	{"a malformed line ends itself only", "GET", "If-None-Match: nonsense\nIf-None-Match: \"v1\"", tag, NotModified},
	{"any", "GET", "If-None-Match: *", tag, NotModified},
	{"any, without a tag of ours", "GET", "If-None-Match: *", "", NotModified},
	{"any, creating", "PUT", "If-None-Match: *", tag, Failed},
	{"any among tags, as net/http", "GET", `If-None-Match: "a", *`, tag, NotModified},
	{"no tag of ours", "GET", `If-None-Match: "v1"`, "", Proceed},
	{"an empty tag", "GET", `If-None-Match: ""`, `""`, NotModified},
	{"an empty tag is not none", "GET", `If-None-Match: ""`, "", Proceed},
	{"not quoted", "GET", "If-None-Match: v1", tag, Proceed},
	{"half quoted", "GET", `If-None-Match: "v1`, tag, Proceed},
	{"a part", "GET", `If-None-Match: "v"`, tag, Proceed},
	{"longer", "GET", `If-None-Match: "v11"`, tag, Proceed},
	{"case counts", "GET", `If-None-Match: "V1"`, tag, Proceed},
	{"w/ is not W/", "GET", `If-None-Match: w/"v1"`, tag, Proceed},
	{"W without slash", "GET", `If-None-Match: W"v1"`, tag, Proceed},
	{"W/ alone", "GET", "If-None-Match: W/", tag, Proceed},
	{"W alone", "GET", "If-None-Match: W", weakTag, Proceed},
	{"a space within", "GET", `If-None-Match: "v 1", "v1"`, tag, Proceed},
	{"DEL within", "GET", "If-None-Match: \"v\x7f\", \"v1\"", tag, Proceed},
	{"obs-text", "GET", "If-None-Match: \"\xe9\xff\"", "\"\xe9\xff\"", NotModified},
	{"a backslash is no escape", "GET", `If-None-Match: "\", "v1"`, tag, NotModified},
	{"gzip suffixes are other tags", "GET", `If-None-Match: "v1-gzip"`, tag, Proceed},

	{"If-Modified-Since, the same", "GET", "If-Modified-Since: " + same, tag, NotModified},
	{"If-Modified-Since, later", "GET", "If-Modified-Since: " + after, tag, NotModified},
	{"If-Modified-Since, earlier", "GET", "If-Modified-Since: " + before, tag, Proceed},
	{"HEAD too", "HEAD", "If-Modified-Since: " + same, tag, NotModified},
	{"not for other methods", "POST", "If-Modified-Since: " + same, tag, Proceed},
	{"RFC 850", "GET", "If-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT", tag, NotModified},
	{"RFC 850, the longest", "GET", "If-Modified-Since: Wednesday, 09-Nov-94 08:49:37 GMT", tag, NotModified},
	{"asctime", "GET", "If-Modified-Since: Sun Nov  6 08:49:37 1994", tag, NotModified},
	{"no date", "GET", "If-Modified-Since: yesterday", tag, Proceed},
	{"another zone", "GET", "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 CET", tag, Proceed},
	{"with rubbish after it, as old browsers", "GET", "If-Modified-Since: " + same + "; length=3", tag, Proceed},
	{"empty", "GET", "If-Modified-Since:", tag, Proceed},
	{"a list of dates", "GET", "If-Modified-Since: " + same + ", " + same, tag, Proceed},
	{"two lines are a list", "GET", "If-Modified-Since: " + same + "\nIf-Modified-Since: " + same, tag, Proceed},
	{"not that day of that month", "GET", "If-Modified-Since: Fri, 31 Feb 2094 08:49:37 GMT", tag, Proceed},
	{"a flood is not read", "GET", "If-Modified-Since: " + strings.Repeat("Sun, ", 10_000), tag, Proceed},
	{"If-None-Match overrules it: no match", "GET", "If-None-Match: \"v2\"\nIf-Modified-Since: " + same, tag, Proceed},
	{"If-None-Match overrules it: match", "GET", "If-None-Match: \"v1\"\nIf-Modified-Since: " + before, tag, NotModified},
	{"also a malformed one", "GET", "If-None-Match: v1\nIf-Modified-Since: " + same, tag, Proceed},
	{"also one of commas", "GET", "If-None-Match: ,\nIf-Modified-Since: " + same, tag, Proceed},
	{"not an empty one", "GET", "If-None-Match:\nIf-Modified-Since: " + same, tag, NotModified},

	{"If-Match", "GET", `If-Match: "v1"`, tag, Proceed},
	{"If-Match, another", "GET", `If-Match: "v2"`, tag, Failed},
	{"If-Match fails for all methods", "DELETE", `If-Match: "v2"`, tag, Failed},
	{"strong comparison: the client's is weak", "GET", `If-Match: W/"v1"`, tag, Failed},
	{"strong comparison: ours is", "GET", `If-Match: "v1"`, weakTag, Failed},
	{"strong comparison: both are", "GET", `If-Match: W/"v1"`, weakTag, Failed},
	{"If-Match, a list", "GET", `If-Match: W/"v1", "v1"`, tag, Proceed},
	{"If-Match, lines", "GET", "If-Match: \"a\"\nIf-Match: \"v1\"", tag, Proceed},
	{"If-Match, any", "PUT", "If-Match: *", tag, Proceed},
	{"If-Match, any, without a tag of ours", "GET", "If-Match: *", "", Proceed},
	{"If-Match, no tag of ours", "GET", `If-Match: "v1"`, "", Failed},
	{"If-Match, malformed", "GET", "If-Match: v1", tag, Failed},
	{"If-Match, empty", "GET", "If-Match:", tag, Proceed},
	{"If-Match, commas", "GET", "If-Match: ,", tag, Failed},

	{"If-Unmodified-Since, the same", "GET", "If-Unmodified-Since: " + same, tag, Proceed},
	{"If-Unmodified-Since, later", "GET", "If-Unmodified-Since: " + after, tag, Proceed},
	{"If-Unmodified-Since, earlier", "GET", "If-Unmodified-Since: " + before, tag, Failed},
	{"for all methods", "PUT", "If-Unmodified-Since: " + before, tag, Failed},
	{"no date", "PUT", "If-Unmodified-Since: tomorrow", tag, Proceed},
	{"a list of dates", "PUT", "If-Unmodified-Since: " + before + "\nIf-Unmodified-Since: " + before, tag, Proceed},
	{"If-Match overrules it: match", "PUT", "If-Match: \"v1\"\nIf-Unmodified-Since: " + before, tag, Proceed},
	{"If-Match overrules it: no match", "PUT", "If-Match: \"v2\"\nIf-Unmodified-Since: " + after, tag, Failed},

	// Section 13.2.2: 412 of the first steps comes before 304 of the later ones.
	{"both fail", "GET", "If-Match: \"v2\"\nIf-None-Match: \"v1\"", tag, Failed},
	{"the first holds", "GET", "If-Match: \"v1\"\nIf-None-Match: \"v1\"", tag, NotModified},
	{"dates, both fail", "GET", "If-Unmodified-Since: " + before + "\nIf-Modified-Since: " + same, tag, Failed},
	{"dates, the first holds", "GET", "If-Unmodified-Since: " + same + "\nIf-Modified-Since: " + same, tag, NotModified},
	{"If-Range is another matter", "GET", `If-Range: "v2"`, tag, Proceed},

	// Section 13.2.1.
	{"OPTIONS has no conditions", "OPTIONS", `If-Match: "v2"`, tag, Proceed},
	{"TRACE neither", "TRACE", "If-None-Match: *", tag, Proceed},
	{"CONNECT neither", "CONNECT", "If-Unmodified-Since: " + before, tag, Proceed},
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, tt := range checkTests {
		f := newFields(strings.Split(tt.lines, "\n")...)
		if got := Check(tt.method, f, tt.etag, modified); got != tt.want {
			t.Errorf("%s: %s with %.80q for %s: %v, want %v", tt.why, tt.method, tt.lines, tt.etag, got, tt.want)
		}
	}
}

// TestUndated: without a modification date, dates are ignored.
func TestUndated(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		line string
		want Result
	}{
		{"If-Modified-Since: " + after, Proceed},
		{"If-Unmodified-Since: " + before, Proceed},
		{"If-Modified-Since: Mon, 01 Jan 0001 00:00:00 GMT", Proceed},
		{`If-None-Match: "v1"`, NotModified}, // tags are not
	} {
		if got := Check("GET", newFields(tt.line), tag, time.Time{}); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.line, got, tt.want)
		}
	}
	// The epoch is a date: archives that are built reproducibly are full of it.
	if got := Check("GET", newFields("If-Modified-Since: Thu, 01 Jan 1970 00:00:00 GMT"), "", time.Unix(0, 0)); got != NotModified {
		t.Errorf("the epoch: %v", got)
	}
}

func TestRangeApplies(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		why, lines, etag string
		want             bool
	}{
		{"none", "Range: bytes=0-1", tag, true},
		{"the tag", `If-Range: "v1"`, tag, true},
		{"another tag", `If-Range: "v2"`, tag, false},
		{"a weak tag never", `If-Range: W/"v1"`, tag, false},
		{"a weak tag of ours never", `If-Range: "v1"`, weakTag, false},
		{"two weak tags never", `If-Range: W/"v1"`, weakTag, false},
		{"no tag of ours", `If-Range: "v1"`, "", false},
		{"no list", `If-Range: "v1", "v2"`, tag, false},
		{"no list in lines", "If-Range: \"v1\"\nIf-Range: \"v1\"", tag, false},
		{"no star", "If-Range: *", tag, false},
		{"not quoted", "If-Range: v1", tag, false},
		{"half quoted", `If-Range: "v1`, tag, false},
		{"empty", "If-Range:", tag, false},
		{"the date", "If-Range: " + same, tag, true},
		{"an earlier date", "If-Range: " + before, tag, false},
		{"a later date is not it either", "If-Range: " + after, tag, false},
		{"the date in another form", "If-Range: Sunday, 06-Nov-94 08:49:37 GMT", tag, true},
		{"two dates", "If-Range: " + same + "\nIf-Range: " + same, tag, false},
		{"a date and a tag", "If-Range: " + same + "\nIf-Range: \"v1\"", tag, false},
		{"no date", "If-Range: now", tag, false},
	} {
		f := newFields(strings.Split(tt.lines, "\n")...)
		if got := RangeApplies(f, tt.etag, modified); got != tt.want {
			t.Errorf("%s: %q for %s: %v, want %v", tt.why, tt.lines, tt.etag, got, tt.want)
		}
	}
	if RangeApplies(newFields("If-Range: "+same), tag, time.Time{}) {
		t.Error("a date applies where the modification date is not known")
	}
	if RangeApplies(newFields("If-Range: Mon, 01 Jan 0001 00:00:00 GMT"), tag, time.Time{}) {
		t.Error("the zero date applies where the modification date is not known")
	}
}

func TestAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector makes sync.Pool drop things")
	}
	browser := []string{"User-Agent: x", "Accept: */*", "Accept-Encoding: gzip", "Accept-Language: en", "Cookie: a=b"}
	for _, lines := range [][]string{
		{},
		{`If-None-Match: "v1"`},
		{`If-None-Match: W/"v1"`},
		{`If-None-Match: "v2"`},
		{`If-None-Match: "a", "b"`, `If-None-Match: "v1"`},
		{`If-None-Match: "v1"`, "If-Modified-Since: " + same},
		{"If-Modified-Since: " + same},
		{"If-Modified-Since: " + before},
		{`If-Match: "v1"`},
		{"If-Unmodified-Since: " + same},
		{"If-Range: " + same},
		{`If-Range: "v1"`},
	} {
		var f wire.Fields = newFields(append(browser, lines...)...)
		if n := testing.AllocsPerRun(100, func() {
			Check("GET", f, tag, modified)
			RangeApplies(f, tag, modified)
		}); n != 0 {
			t.Errorf("%q: %v allocations", lines, n)
		}
	}
}

// TestAllocationsWithoutAll: what the first line settles does not ask All, which
// allocates in most implementations of Fields.
func TestAllocationsWithoutAll(t *testing.T) {
	for _, lines := range [][]string{
		{"Accept: */*"},
		{`If-None-Match: "a", W/"v1"`},
		{`If-None-Match: "v1"`, "If-Modified-Since: " + same},
	} {
		f := newFields(lines...)
		f.all = func(func(name, value []byte) bool) { t.Errorf("%q: All is asked", lines) }
		Check("GET", f, tag, modified)
		RangeApplies(f, tag, modified)
	}
}

func BenchmarkCheck(b *testing.B) {
	browser := []string{"User-Agent: x", "Accept: */*", "Accept-Encoding: gzip", "Accept-Language: en", "Cookie: a=b"}
	for name, line := range map[string]string{
		"none":    "Priority: u=0",
		"tag":     `If-None-Match: "v1"`,
		"old tag": `If-None-Match: "v0"`,
		"date":    "If-Modified-Since: " + same,
	} {
		b.Run(name, func(b *testing.B) {
			f := newFields(append(browser, line)...)
			b.ReportAllocs()
			for b.Loop() {
				Check("GET", f, tag, modified)
			}
		})
	}
}

func TestNamed(t *testing.T) {
	for _, tt := range []struct {
		lines, etag string
		want        bool
	}{
		{`If-None-Match: "v1"`, tag, true},
		{`If-None-Match: "v1"`, weakTag, false},
		{`If-None-Match: W/"v1"`, tag, false},
		{`If-None-Match: W/"v1"`, weakTag, true},
		{"If-None-Match: \"a\"\nif-none-match: \"b\", \"v1\"", tag, true},
		{"If-None-Match: *", tag, false},
		{`If-None-Match: "v1", *`, tag, false},
		{"Accept: */*", tag, false},
		{"If-None-Match:", "", false},
	} {
		if got := Named(newFields(strings.Split(tt.lines, "\n")...), tt.etag); got != tt.want {
			t.Errorf("%s, %s: %v", tt.lines, tt.etag, got)
		}
	}
}
