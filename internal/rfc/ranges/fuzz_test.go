package ranges

import (
	"math"
	"math/big"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var specGrammar = regexp.MustCompile(`^([0-9]*)-([0-9]*)$`)

var largest = big.NewInt(math.MaxInt64)

// model is Parse with numbers of any size, a map of bytes, and no care for cost.
// size is small.
func model(value string, size int64) ([]Range, Outcome) {
	if len(value) < 6 || !strings.EqualFold(value[:6], "bytes=") || size <= 0 || len(value) > maxValue {
		return nil, Whole
	}
	var asked []Range
	count, total := 0, int64(0)
	for spec := range strings.SplitSeq(value[6:], ",") {
		if spec = strings.Trim(spec, " \t"); spec == "" {
			continue
		}
		m := specGrammar.FindStringSubmatch(spec)
		if m == nil || spec == "-" {
			return nil, Whole
		}
		if count++; count > maxRanges {
			return nil, Whole
		}
		// The first byte and the one after the last, cut to the content.
		end := big.NewInt(size)
		var from, to *big.Int
		if m[1] == "" {
			n, _ := new(big.Int).SetString(m[2], 10)
			from, to = new(big.Int).Sub(end, n), end
			if from.Sign() < 0 {
				from.SetInt64(0)
			}
		} else {
			from, _ = new(big.Int).SetString(m[1], 10)
			to = end
			if m[2] != "" {
				last, _ := new(big.Int).SetString(m[2], 10)
				// From the largest int64 on, Parse cannot tell which is larger.
				if last.Cmp(from) < 0 && last.Cmp(largest) < 0 {
					return nil, Whole
				}
				if last.Cmp(end) < 0 {
					to = last.Add(last, big.NewInt(1))
				}
			}
		}
		if from.Cmp(to) >= 0 {
			continue
		}
		r := Range{from.Int64(), to.Int64() - from.Int64()}
		total += r.Length
		asked = append(asked, r)
	}
	switch {
	case count == 0, total > size:
		return nil, Whole
	case len(asked) == 0:
		return nil, Unsatisfiable
	}
	wanted := make([]bool, size)
	for _, r := range asked {
		for i := range r.Length {
			wanted[r.Start+i] = true
		}
	}
	var rs []Range
	for _, r := range asked {
		// As far as wanted bytes go to either side.
		from, to := r.Start, r.Start+r.Length
		for from > 0 && wanted[from-1] {
			from--
		}
		for to < size && wanted[to] {
			to++
		}
		if whole := (Range{from, to - from}); !slices.Contains(rs, whole) {
			rs = append(rs, whole)
		}
	}
	return rs, Parts
}

// FuzzRanges compares with the model and, where it has the same opinion on what
// to ignore, with http.ServeContent.
func FuzzRanges(f *testing.F) {
	for _, tt := range parseTests {
		f.Add(tt.value, uint16(min(max(tt.size, 0), 1<<16-1)))
	}
	f.Fuzz(func(t *testing.T, value string, n uint16) {
		size := int64(n)
		got, o := Parse(nil, []byte(value), size)
		want, wantO := model(value, size)
		if o != wantO || !slices.Equal(got, want) {
			t.Fatalf("Parse(%q, %d) = %s; the model says %s", value, size, list(got, o), list(want, wantO))
		}
		for _, r := range got {
			if r.Start < 0 || r.Length <= 0 || r.Start+r.Length > size {
				t.Fatalf("Parse(%q, %d): %v lies outside", value, size, r)
			}
		}
		if o == Whole || strings.Contains(value, ",") {
			return // net/http refuses what is malformed, and makes nothing one
		}
		if o == Unsatisfiable && noSuffix.MatchString(value) {
			return // of "-0" it makes 206 with "bytes 1000-999/1000"
		}
		r := httptest.NewRequest("GET", "/", nil)
		// The unit is in lower case there.
		r.Header.Set("Range", strings.ToLower(value))
		w := httptest.NewRecorder()
		content := strings.NewReader(strings.Repeat("x", int(size)))
		http.ServeContent(w, r, "x.txt", time.Time{}, content)
		code, field := http.StatusRequestedRangeNotSatisfiable, Unsatisfied(size)
		if o == Parts {
			code, field = http.StatusPartialContent, got[0].ContentRange(size)
		} else if w.Code == code && w.Header().Get("Content-Range") == "" {
			return // "invalid range": it takes no number beyond int64
		}
		if o == Parts && w.Code == http.StatusRequestedRangeNotSatisfiable && overlong.MatchString(value) {
			return // the same
		}
		if w.Code != code || w.Header().Get("Content-Range") != field {
			t.Fatalf("%q of %d: %d %q; ServeContent answers %d %q", value, size, code, field, w.Code, w.Header().Get("Content-Range"))
		}
	})
}

var noSuffix = regexp.MustCompile(`=[ \t]*-`)

// overlong finds numbers that may be beyond int64.
var overlong = regexp.MustCompile(`[0-9]{19}`)
