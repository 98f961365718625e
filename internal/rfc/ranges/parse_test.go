package ranges

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// list is ranges as a test writes them: "0+10 20+5", or the outcome's name.
func list(rs []Range, o Outcome) string {
	switch o {
	case Whole:
		return "whole"
	case Unsatisfiable:
		return "unsatisfiable"
	}
	var s []string
	for _, r := range rs {
		s = append(s, fmt.Sprintf("%d+%d", r.Start, r.Length))
	}
	return strings.Join(s, " ")
}

const maxInt = "9223372036854775807"

var parseTests = []struct {
	why, value string
	size       int64
	want       string
}{
	{"the first bytes", "bytes=0-499", 1000, "0+500"},
	{"from the middle", "bytes=500-999", 1000, "500+500"},
	{"one byte", "bytes=0-0", 1000, "0+1"},
	{"the last byte", "bytes=999-999", 1000, "999+1"},
	{"open", "bytes=500-", 1000, "500+500"},
	{"all, open: players ask so", "bytes=0-", 1000, "0+1000"},
	{"all", "bytes=0-999", 1000, "0+1000"},
	{"beyond the end", "bytes=500-1000000", 1000, "500+500"},
	{"suffix", "bytes=-300", 1000, "700+300"},
	{"suffix of all", "bytes=-1000", 1000, "0+1000"},
	{"suffix longer than all", "bytes=-1001", 1000, "0+1000"},
	{"zeros before", "bytes=000-0009", 1000, "0+10"},
	{"many zeros", "bytes=" + strings.Repeat("0", 100) + "1-1", 1000, "1+1"},
	{"the unit in any case", "BYTES=0-1", 1000, "0+2"},

	{"several", "bytes=0-9,20-29", 1000, "0+10 20+10"},
	{"in the order asked for", "bytes=20-29,0-9", 1000, "20+10 0+10"},
	{"first and last", "bytes=0-0,-1", 1000, "0+1 999+1"},
	{"white space", "bytes= 0-9 ,\t20-29\t", 1000, "0+10 20+10"},
	{"empty elements", "bytes=,, 0-9,,20-29,", 1000, "0+10 20+10"},
	{"touching", "bytes=0-9,10-19", 1000, "0+20"},
	{"touching backwards", "bytes=10-19,0-9", 1000, "0+20"},
	{"a byte between", "bytes=0-9,11-19", 1000, "0+10 11+9"},
	{"overlapping", "bytes=0-9,5-14", 1000, "0+15"},
	{"the same twice", "bytes=5-9,5-9", 1000, "5+5"},
	{"within", "bytes=0-99,10-19", 1000, "0+100"},
	{"around", "bytes=10-19,0-99", 1000, "0+100"},
	{"the third joins two", "bytes=0-9,20-29,10-19", 1000, "0+30"},
	{"at the place of the first of them", "bytes=500-509,20-29,600-609,0-9,10-19", 1000, "500+10 0+30 600+10"},
	{"more than two become one", "bytes=90-99,0-9,20-29,40-49,60-69,5-64", 1000, "90+10 0+70"},
	{"all in pieces", "bytes=0-499,500-999", 1000, "0+1000"},
	{"some beyond", "bytes=0-9,1000-,2000-3000", 1000, "0+10"},
	{"more than there is", "bytes=0-,0-", 1000, "whole"},
	{"one more than there is", "bytes=0-999,0-0", 1000, "whole"},
	{"as much as there is", "bytes=0-499,0-499", 1000, "0+500"},

	{"from the end on", "bytes=1000-", 1000, "unsatisfiable"},
	{"from beyond the end on", "bytes=1001-2000", 1000, "unsatisfiable"},
	{"no bytes from the end", "bytes=-0", 1000, "unsatisfiable"},
	{"all beyond", "bytes=1000-,-0,5000-6000", 1000, "unsatisfiable"},
	{"a large number", "bytes=" + maxInt + "-", 1000, "unsatisfiable"},
	{"a larger one", "bytes=9223372036854775808-", 1000, "unsatisfiable"},
	{"one that wraps to 0", "bytes=18446744073709551616-", 1000, "unsatisfiable"},
	{"one that wraps to 1 in 32 bits", "bytes=4294967297-", 1000, "unsatisfiable"},
	{"one that cannot be told from its end", "bytes=9227000000000000000-" + maxInt, 1000, "unsatisfiable"},
	{"a very long one", "bytes=" + strings.Repeat("9", 500) + "-", 1000, "unsatisfiable"},
	{"large ends", "bytes=1-18446744073709551617", 1000, "1+999"},
	{"large suffix", "bytes=-18446744073709551617", 1000, "0+1000"},

	{"nothing is there", "bytes=0-", 0, "whole"},
	{"nothing is there, suffix", "bytes=-5", 0, "whole"},
	{"size unknown", "bytes=0-5", -1, "whole"},
	{"one byte is there", "bytes=0-5", 1, "0+1"},
	{"the largest size", "bytes=0-", math.MaxInt64, "0+" + maxInt},
	{"its last byte", "bytes=-1", math.MaxInt64, "9223372036854775806+1"},
	{"its last byte, by number", "bytes=9223372036854775806-" + maxInt, math.MaxInt64, "9223372036854775806+1"},
	{"beyond it", "bytes=" + maxInt + "-", math.MaxInt64, "unsatisfiable"},
	{"sums do not wrap", "bytes=0-,0-,0-", math.MaxInt64, "whole"},

	{"no value", "", 1000, "whole"},
	{"no unit", "0-5", 1000, "whole"},
	{"unit alone", "bytes", 1000, "whole"},
	{"no ranges", "bytes=", 1000, "whole"},
	{"no ranges but commas", "bytes=, ,", 1000, "whole"},
	{"another unit", "lines=0-5", 1000, "whole"},
	{"another unit like it", "bytesx=0-5", 1000, "whole"},
	{"a space before =", "bytes =0-5", 1000, "whole"},
	{"a colon", "bytes:0-5", 1000, "whole"},
	{"as in Content-Range", "bytes 0-5/10", 1000, "whole"},
	{"end before start", "bytes=5-4", 1000, "whole"},
	{"also beyond the end", "bytes=5000-4999", 1000, "whole"},
	{"one bad one spoils all", "bytes=0-9,5-4", 1000, "whole"},
	{"a bad one after it", "bytes=0-9,x", 1000, "whole"},
	{"no numbers", "bytes=-", 1000, "whole"},
	{"one number", "bytes=5", 1000, "whole"},
	{"a minus", "bytes=--5", 1000, "whole"},
	{"two minuses", "bytes=0--5", 1000, "whole"},
	{"a minus after it", "bytes=0-5-", 1000, "whole"},
	{"a plus", "bytes=+0-5", 1000, "whole"},
	{"spaces within", "bytes=0 - 5", 1000, "whole"},
	{"hex", "bytes=0x0-0x5", 1000, "whole"},
	{"a fraction", "bytes=0-5.0", 1000, "whole"},
	{"underscores", "bytes=0-1_0", 1000, "whole"},
	{"a semicolon", "bytes=0-5;6-7", 1000, "whole"},
	{"the unit again", "bytes=0-5,bytes=7-8", 1000, "whole"},
	{"NUL", "bytes=0-5\x00", 1000, "whole"},
	{"digits of others", "bytes=\u0660-\u0665", 1000, "whole"},
	{"a line end", "bytes=0-5\r\n", 1000, "whole"},

	{"64 ranges", "bytes=" + everyOther(64), 1000, separate(64)},
	{"65 ranges", "bytes=" + everyOther(65), 1000, "whole"},
	{"65 ranges in all, most beyond", "bytes=0-0" + strings.Repeat(",2000-", 64), 1000, "whole"},
	{"65 that are one", "bytes=0-0" + strings.Repeat(",0-0", 64), 1000, "whole"},
	{"a flood", "bytes=" + strings.Repeat("0-0,", 100_000), 1 << 40, "whole"},
	{"a flood of commas", "bytes=0-0" + strings.Repeat(",", 100_000), 1000, "whole"},
	{"a flood of zeros", "bytes=" + strings.Repeat("0", 100_000) + "-1", 1000, "whole"},
}

// everyOther is n ranges of one byte with a byte between.
func everyOther(n int) string {
	var s []string
	for i := range n {
		s = append(s, fmt.Sprintf("%d-%d", 2*i, 2*i))
	}
	return strings.Join(s, ",")
}

func separate(n int) string {
	var s []string
	for i := range n {
		s = append(s, fmt.Sprintf("%d+1", 2*i))
	}
	return strings.Join(s, " ")
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tt := range parseTests {
		rs, o := Parse(nil, []byte(tt.value), tt.size)
		if got := list(rs, o); got != tt.want {
			t.Errorf("%s: %.60q of %d: %s, want %s", tt.why, tt.value, tt.size, got, tt.want)
		}
	}
}

// TestParseAppends: what was in dst stays, and is not made one with what comes.
func TestParseAppends(t *testing.T) {
	t.Parallel()
	for _, tt := range parseTests {
		dst := make([]Range, 1, 1+maxRanges)
		dst[0] = Range{0, 10}
		rs, o := Parse(dst, []byte(tt.value), tt.size)
		if len(rs) < 1 || rs[0] != (Range{0, 10}) {
			t.Errorf("%s: %v: what was there is gone", tt.why, rs)
			continue
		}
		if o != Parts && len(rs) != 1 {
			t.Errorf("%s: %v is left behind", tt.why, rs[1:])
		}
		if got := list(rs[1:], o); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.why, got, tt.want)
		}
	}
}

func TestParseAllocations(t *testing.T) {
	dst := make([]Range, 0, 8)
	for _, s := range []string{"bytes=0-499", "bytes=-5", "bytes=0-9,20-29,5-24", "bytes=5000-", "nonsense"} {
		value := []byte(s)
		if n := testing.AllocsPerRun(100, func() { Parse(dst, value, 1000) }); n != 0 {
			t.Errorf("%s: %v allocations", s, n)
		}
	}
}

// TestPermutations: whatever the order, the same bytes.
func TestPermutations(t *testing.T) {
	t.Parallel()
	specs := []string{"0-9", "8-19", "20-24", "30-34", "40-44", "33-41"}
	permute(specs, 0, func() {
		value := "bytes=" + strings.Join(specs, ",")
		rs, o := Parse(nil, []byte(value), 1000)
		slices.SortFunc(rs, func(a, b Range) int { return int(a.Start - b.Start) })
		if got := list(rs, o); got != "0+25 30+15" {
			t.Errorf("%s: %s", value, got)
		}
	})
}

func permute(s []string, from int, f func()) {
	if from == len(s) {
		f()
		return
	}
	for i := from; i < len(s); i++ {
		s[from], s[i] = s[i], s[from]
		permute(s, from+1, f)
		s[from], s[i] = s[i], s[from]
	}
}

func BenchmarkParse(b *testing.B) {
	dst := make([]Range, 0, maxRanges)
	for _, bb := range []struct{ name, value string }{
		{"one", "bytes=500-999"},
		{"64", "bytes=" + everyOther(64)},
		{"flood", "bytes=" + strings.Repeat("0-0,", 1000)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			value := []byte(bb.value)
			b.ReportAllocs()
			for b.Loop() {
				Parse(dst, value, 1<<20)
			}
		})
	}
}
