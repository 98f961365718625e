package field

import (
	"iter"
	"net/http"
	"strings"
	"testing"

	"github.com/chert-http/chert/direct/wire"
)

// Each pair of bytes is compared as net/http's own rule for tokens has it.
func TestEqualFold(t *testing.T) {
	t.Parallel()
	lower := func(c int) int {
		if 'A' <= c && c <= 'Z' {
			return c + 'a' - 'A'
		}
		return c
	}
	for a := range 256 {
		for b := range 256 {
			if got, want := EqualFold([]byte{'x', byte(a)}, string([]byte{'X', byte(b)})), lower(a) == lower(b); got != want {
				t.Errorf("%q, %q: %v", rune(a), rune(b), got)
			}
		}
	}
	if EqualFold("a", "ab") || EqualFold("ab", "a") || !EqualFold("", "") {
		t.Error("lengths")
	}
}

func TestSameVariable(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"X-User", "X-User", true},
		{"X-User", "x_uSER", true},
		{"X_User-Id", "X-User_Id", true},
		{"X-User", "XUser", false},
		{"X-User", "X.User", false},
		{"X-User", "X-Use", false},
	} {
		if SameVariable(tt.a, tt.b) != tt.want || SameVariable(tt.b, tt.a) != tt.want {
			t.Errorf("%q, %q: not %v", tt.a, tt.b, tt.want)
		}
	}
}

func TestIsToken(t *testing.T) {
	t.Parallel()
	for c := range 256 {
		want := c > ' ' && c < 0x7f && !strings.ContainsRune("\"(),/:;<=>?@[\\]{}", rune(c)) // RFC 9110 section 5.6.2
		if s := string([]byte{'a', byte(c)}); IsToken(s) != want {
			t.Errorf("%q: not %v", s, want)
		}
	}
	if IsToken("") {
		t.Error("nothing is a token")
	}
}

func TestHasToken(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]bool{
		"": false, "b": true, "B": true, "a,b": true, "a\t, \tb ,c": true, "ab": false, "a b": false, "bb, b;q=1": false, ",,b,": true,
	} {
		if HasToken(list, "b") != want {
			t.Errorf("%q: not %v", list, want)
		}
	}
}

// bare are fields without a Count of their own.
type bare [][2]string

func (f bare) Get(name string) []byte {
	for _, l := range f {
		if strings.EqualFold(l[0], name) {
			return []byte(l[1])
		}
	}
	return nil
}

func (f bare) First(name string) (value []byte, n int) {
	for _, l := range f {
		if strings.EqualFold(string(l[0]), name) {
			n++
		}
	}
	return f.Get(name), n
}

func (f bare) All() iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		for _, l := range f {
			if !yield([]byte(l[0]), []byte(l[1])) {
				return
			}
		}
	}
}

func TestJoined(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		f    wire.Fields
		want string // "-" is none
	}{
		{bare{}, "-"},
		{bare{{"Accept", "x"}}, "-"},
		{bare{{"accept-encoding", "br"}}, "br"},
		{bare{{"Accept-Encoding", "br"}, {"Accept", "x"}, {"ACCEPT-ENCODING", "gzip;q=0.5, zstd"}}, "br,gzip;q=0.5, zstd"},
		{bare{{"Accept-Encoding", ""}, {"Accept-Encoding", "gzip"}}, ",gzip"},
		{wire.FieldsOf(http.Header{"Accept-Encoding": {"a", "b", "c"}}), "a,b,c"},
	} {
		got := Joined(tt.f, "Accept-Encoding")
		if string(got) != tt.want && (tt.want != "-" || got != nil) {
			t.Errorf("%v: got %q", tt.f, got)
		}
	}
}
