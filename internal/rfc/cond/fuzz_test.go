package cond

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// FuzzCheck compares with http.ServeContent: for GET and HEAD with one line of
// each field, Check and RangeApplies decide the same, but for what is listed
// here, where it leaves RFC 9110.
func FuzzCheck(f *testing.F) {
	for _, tt := range checkTests {
		seed := map[string]string{}
		for line := range strings.SplitSeq(tt.lines, "\n") {
			name, value, _ := strings.Cut(line, ":")
			seed[name] = strings.TrimSpace(value)
		}
		f.Add(tt.method == "HEAD", seed[ifMatch], seed[ifUnmodifiedSince], seed[ifNoneMatch], seed[ifModifiedSince], seed[ifRange], tt.etag, modified.Unix())
	}
	f.Fuzz(func(t *testing.T, head bool, match, unmodified, noneMatch, modifiedSince, rangeIf, etag string, unix int64) {
		if etag != "" {
			if tag, rest := scan([]byte(etag)); tag == nil || len(rest) > 0 {
				return // not an etag to be had
			}
		}
		if unix <= 0 || unix > 253402300799 {
			return // ServeContent takes the epoch for no date; and years of four digits
		}
		at := time.Unix(unix, unix%1e9)
		r := httptest.NewRequest("GET", "/", nil)
		if head {
			r.Method = "HEAD"
		}
		r.Header.Set("Range", "bytes=0-0")
		var lines []string
		for name, value := range map[string]string{
			ifMatch: match, ifUnmodifiedSince: unmodified, ifNoneMatch: noneMatch, ifModifiedSince: modifiedSince, ifRange: rangeIf,
		} {
			if value == "" {
				continue
			}
			if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) || strings.Trim(value, " \t") != value {
				return // not a field value to be had
			}
			r.Header.Set(name, value)
			lines = append(lines, name+":"+value)
		}
		if max(len(unmodified), len(modifiedSince)) > maxDate || len(rangeIf) > maxDate && !strings.Contains(rangeIf, `"`) {
			return // time.Parse takes fractions of a second of any length
		}
		w := httptest.NewRecorder()
		if etag != "" {
			w.Header().Set("Etag", etag)
		}
		http.ServeContent(w, r, "x.txt", at, strings.NewReader("content"))

		fields := newFields(lines...)
		want := map[int]Result{200: Proceed, 206: Proceed, 304: NotModified, 412: Failed}[w.Code]
		got := Check(r.Method, fields, etag, at)
		if got != want {
			t.Fatalf("%q with etag %q of %v: %v, ServeContent answers %d", lines, etag, at.UTC(), got, w.Code)
		}
		if got != Proceed {
			return
		}
		applies := RangeApplies(fields, etag, at)
		if theirs := w.Code == 206; applies != theirs {
			// ServeContent takes the first of a list in If-Range.
			if tag, rest := scan([]byte(rangeIf)); tag != nil && len(rest) > 0 && !applies {
				return
			}
			t.Fatalf("%q with etag %q of %v: RangeApplies = %v, ServeContent answers %d", lines, etag, at.UTC(), applies, w.Code)
		}
	})
}
