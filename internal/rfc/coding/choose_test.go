package coding

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	all       = Set(0).With(Gzip).With(Brotli).With(Zstd)
	usual     = []Coding{Brotli, Zstd, Gzip}
	quick     = []Coding{Zstd, Gzip, Brotli}
	notAtAll  = []Coding(nil)
	plainOnly = Set(0)
)

var chooseTests = []struct {
	accept  string // "-" for no field
	offered Set
	prefer  []Coding
	want    Coding
	ok      bool
}{
	// What browsers and tools send.
	{"gzip, deflate, br, zstd", all, usual, Brotli, true},                         // browsers over TLS
	{"gzip, deflate", all, usual, Gzip, true},                                     // browsers without TLS
	{"gzip;q=1.0,deflate;q=0.6,identity;q=0.3", all, usual, Gzip, true},           // Ruby
	{"gzip, deflate, br, zstd", all, quick, Zstd, true},                           // prefer decides ties
	{"gzip, deflate, br, zstd", all, notAtAll, Gzip, true},                        // else the constants do
	{"gzip, deflate, br", Set(0).With(Zstd), usual, Identity, true},               // none in common
	{"gzip, deflate, br", plainOnly, usual, Identity, true},                       // nothing there
	{"identity", all, usual, Identity, true},                                      // download managers, players
	{"-", all, usual, Identity, true},                                             // any would do, none is known
	{"", all, usual, Identity, true},                                              // RFC 9110 12.5.3: none is wanted
	{"*", all, usual, Brotli, true},                                               // any
	{"*", all, notAtAll, Gzip, true},                                              // Identity is last of equals
	{"*", all, []Coding{Identity, Gzip}, Identity, true},                          // unless it is preferred
	{"gzip, identity", Set(0).With(Gzip), []Coding{Identity}, Identity, true},     // here too
	{"gzip", all, []Coding{Brotli, 77}, Gzip, true},                               // what is no coding is not minded
	{"br", all, []Coding{Gzip, Gzip, Brotli, Brotli, Identity}, Brotli, true},     // nor said twice
	{"gzip;q=0.5", all, []Coding{Identity}, Gzip, true},                           // what is not mentioned is liked least
	{"gzip;q=0.001", Set(0).With(Gzip), usual, Gzip, true},                        // however little the other is
	{"gzip;q=0.5, *;q=0.8", all, usual, Brotli, true},                             // "*" is all the others
	{"gzip;q=0.5, *;q=0.8", Set(0).With(Gzip), usual, Identity, true},             // identity is one of them
	{"br;q=0.9, zstd;q=0.901", all, usual, Zstd, true},                            // three digits
	{"br;q=0.9, zstd;q=0.90", all, quick, Zstd, true},                             // a tie
	{"br;q=1.000, gzip;q=1.", all, usual, Brotli, true},                           // "1." is in the grammar
	{"gzip;q=0., identity;q=0.", all, usual, Identity, false},                     // and "0."
	{"gzip;q=0.3, identity;q=0.7", all, usual, Identity, true},                    // identity may be liked better
	{"gzip;q=0", all, usual, Identity, true},                                      // only that is not wanted
	{"*;q=0", all, usual, Identity, false},                                        // nothing is
	{"identity;q=0", all, usual, Identity, false},                                 // no other is said to be known
	{"identity;q=0, gzip", all, usual, Gzip, true},                                // that one is
	{"identity;q=0, gzip", Set(0).With(Brotli), usual, Identity, false},           // but it is not there
	{"*;q=0, identity", all, usual, Identity, true},                               // the closer entry wins
	{"*;q=0, br;q=0.1", all, usual, Brotli, true},                                 // in any order
	{"br;q=0.1, *;q=0", all, usual, Brotli, true},                                 //
	{"identity;q=0, *;q=0.5", all, quick, Zstd, true},                             // "*" does not undo
	{"x-gzip", all, usual, Gzip, true},                                            // RFC 9110 8.4.1.3
	{"gzip;q=0, x-gzip;q=0.5", all, usual, Gzip, true},                            // the higher counts
	{"x-gzip;q=0.5, gzip;q=0", all, usual, Gzip, true},                            //
	{"GZip, ZSTD;Q=0.5", all, usual, Gzip, true},                                  // any case
	{" \tgzip \t; \tq=0.5\t ,\t br ;q=0.4 ", all, usual, Gzip, true},              // white space
	{",, ,gzip,,", all, usual, Gzip, true},                                        // empty elements (5.6.1.2)
	{"compress, deflate, sdch, dcb, dcz, exi", all, usual, Identity, true},        // not known here
	{"gzip;q=2, br;q=0.1", all, usual, Brotli, true},                              // malformed elements are ignored:
	{"gzip;q=1.001, br;q=0.1", all, usual, Brotli, true},                          //
	{"gzip;q=0.5555, br;q=0.1", all, usual, Brotli, true},                         // four digits
	{"gzip;q=-1, br;q=0.1", all, usual, Brotli, true},                             //
	{"gzip;q=.5, br;q=0.1", all, usual, Brotli, true},                             //
	{"gzip;q=00, br;q=0.1", all, usual, Brotli, true},                             //
	{"gzip;q=, br;q=0.1", all, usual, Brotli, true},                               //
	{"gzip;, br;q=0.1", all, usual, Brotli, true},                                 //
	{"gzip;q =1, br;q=0.1", all, usual, Brotli, true},                             // no space there
	{"gzip;q= 1, br;q=0.1", all, usual, Brotli, true},                             // nor there
	{"gzip;q=1;q=1, br;q=0.1", all, usual, Brotli, true},                          // one weight only
	{"gzip;level=9, br;q=0.1", all, usual, Brotli, true},                          // no parameters
	{"gzip;q=0.1x, br;q=0.1", all, usual, Brotli, true},                           //
	{"gzip;q=\"1\", br;q=0.1", all, usual, Brotli, true},                          //
	{"gzip br", all, usual, Identity, true},                                       // one unknown thing
	{"gzip\x00, br;q=0.1", all, usual, Brotli, true},                              // not gzip
	{"g\x7aip, \xe2\x84\xaabr", all, usual, Gzip, true},                           // bytes, not runes
	{"**, *x, identity;q=0", all, usual, Identity, false},                         // no stars
	{"identity;q=0.000", all, usual, Identity, false},                             //
	{"identity;q=0.001", all, usual, Identity, true},                              //
	{"identity;q=0.0000", all, usual, Identity, true},                             // malformed: not said
	{strings.Repeat(",", 1<<12) + "gzip", all, usual, Gzip, true},                 // a flood is one pass
	{strings.Repeat("gzip;q=0.1,", 1<<10) + "br;q=0.2", all, usual, Brotli, true}, //
}

func acceptOf(s string) []byte {
	if s == "-" {
		return nil
	}
	return []byte(s)
}

func TestChoose(t *testing.T) {
	t.Parallel()
	for _, tt := range chooseTests {
		c, ok := Choose(acceptOf(tt.accept), tt.offered, tt.prefer)
		if c != tt.want || ok != tt.ok {
			t.Errorf("Choose(%.80q, %03b, %v) = %v, %v, want %v, %v", tt.accept, tt.offered, tt.prefer, c, ok, tt.want, tt.ok)
		}
	}
}

func TestChooseAllocations(t *testing.T) {
	accept := []byte("gzip;q=0.9, deflate, br, zstd;q=0.5, *;q=0.1")
	if n := testing.AllocsPerRun(100, func() { Choose(accept, all, usual) }); n != 0 {
		t.Errorf("Choose allocates %v times", n)
	}
}

var elementGrammar = regexp.MustCompile(`^[ \t]*([^ \t;,](?:[^;,]*[^ \t;,])?)[ \t]*(?:;[ \t]*[qQ]=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?))?[ \t]*$`)

// model is Choose as the RFC describes it, without regard to cost.
func model(accept string, offered Set, prefer []Coding) (Coding, bool) {
	if accept == "" {
		return Identity, true
	}
	said := map[string]float64{}
	for element := range strings.SplitSeq(accept, ",") {
		m := elementGrammar.FindStringSubmatch(element)
		if m == nil {
			continue
		}
		name, q := lowerASCII(m[1]), 1.0
		if name == "x-gzip" {
			name = "gzip"
		}
		if m[2] != "" {
			q, _ = strconv.ParseFloat(m[2], 64)
		}
		said[name] = max(said[name], q)
	}
	quality := func(c Coding) float64 {
		if q, ok := said[c.String()]; ok {
			return q
		}
		if q, ok := said["*"]; ok {
			return q
		}
		if c == Identity {
			return 0.0001
		}
		return 0
	}
	order := slices.Concat(prefer, []Coding{Gzip, Brotli, Zstd, Identity})
	candidates := []Coding{Identity}
	for _, c := range []Coding{Gzip, Brotli, Zstd} {
		if offered&(1<<c) != 0 {
			candidates = append(candidates, c)
		}
	}
	candidates = slices.DeleteFunc(candidates, func(c Coding) bool { return quality(c) == 0 })
	if len(candidates) == 0 {
		return Identity, false
	}
	slices.SortStableFunc(candidates, func(a, b Coding) int {
		if qa, qb := quality(a), quality(b); qa != qb {
			if qa > qb {
				return -1
			}
			return 1
		}
		return slices.Index(order, a) - slices.Index(order, b)
	})
	return candidates[0], true
}

func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// FuzzChoose compares with the model.
func FuzzChoose(f *testing.F) {
	for _, tt := range chooseTests {
		f.Add(string(acceptOf(tt.accept)), uint8(tt.offered), uint16(0x0132))
	}
	f.Fuzz(func(t *testing.T, accept string, offered uint8, order uint16) {
		var prefer []Coding
		for ; order != 0; order >>= 4 {
			prefer = append(prefer, Coding(order&15))
		}
		c, ok := Choose([]byte(accept), Set(offered), prefer)
		// Invalid UTF-8 is mangled by the model's regexp, in names only.
		wantC, wantOK := model(strings.ToValidUTF8(accept, "?"), Set(offered), prefer)
		if c != wantC || ok != wantOK {
			t.Errorf("Choose(%q, %b, %v) = %v, %v; the model says %v, %v", accept, offered, prefer, c, ok, wantC, wantOK)
		}
		if !Set(offered).With(Identity).Has(c) {
			t.Errorf("Choose(%q, %b, %v) = %v, which is not offered", accept, offered, prefer, c)
		}
	})
}

func TestSet(t *testing.T) {
	t.Parallel()
	var s Set
	for c := range Coding(255) {
		if s.Has(c) {
			t.Errorf("an empty set has %v", c)
		}
		one := s.With(c)
		if one.Has(c) != (c < codings) {
			t.Errorf("Has(%v) = %v of a set with it", c, one.Has(c))
		}
		for d := range codings {
			if d != c && one.Has(d) {
				t.Errorf("a set of %v has %v", c, d)
			}
		}
	}
	for c, want := range []string{"identity  ", "gzip gzip .gz", "br br .br", "zstd zstd .zst", "coding(4)  "} {
		c := Coding(c)
		if got := c.String() + " " + c.Token() + " " + c.Suffix(); got != want {
			t.Errorf("coding %d is %q, want %q", c, got, want)
		}
	}
}

func BenchmarkChoose(b *testing.B) {
	accept := []byte("gzip, deflate, br, zstd")
	b.ReportAllocs()
	for b.Loop() {
		Choose(accept, all, usual)
	}
}
