package http1

import (
	"bytes"
	"net/textproto"
	"strings"
	"testing"
)

func TestFieldNames(t *testing.T) {
	for id := FieldUnknown + 1; id < fieldCount; id++ {
		name := id.String()
		if name == "" || name != textproto.CanonicalMIMEHeaderKey(name) {
			t.Errorf("%d: %q is not canonical", id, name)
		}
		for _, s := range []string{name, strings.ToLower(name), strings.ToUpper(name)} {
			if got := LookupField([]byte(s)); got != id {
				t.Errorf("LookupField(%q) = %d, want %d", s, got, id)
			}
		}
		// One bit off, anywhere, is another field.
		for i := range name {
			for bit := range 8 {
				b := []byte(name)
				b[i] ^= 1 << bit
				got := LookupField(b)
				if same := strings.EqualFold(string(b), name) && b[i] < 0x80; same != (got == id) {
					t.Errorf("LookupField(%q) = %v", b, got)
				}
			}
		}
	}
	for _, s := range []string{"", "X", "x-unknown", "Hos", "Hostt", strings.Repeat("x", 1000)} {
		if got := LookupField([]byte(s)); got != FieldUnknown {
			t.Errorf("LookupField(%q) = %v", s, got)
		}
	}
	if FieldUnknown.String() != "" || FieldID(255).String() != "" {
		t.Error("unknown fields have no name")
	}
	if FieldTrailer > 7 {
		t.Error("fields up to FieldTrailer must fit the bits that finish gets")
	}
}

// knownField finds what LookupField does, if there is a colon after it and the
// name is not too long, whatever follows.
func TestKnownField(t *testing.T) {
	found := 0
	check := func(name string, id FieldID) {
		t.Helper()
		for _, rest := range []string{strings.Repeat(" ", 32), strings.Repeat(":", 32), "\xff\xba\x3b\x3a:\r\n" + strings.Repeat("x", 32)} {
			got, n := knownField([]byte(name + ":" + rest))
			if n == 0 && got == FieldUnknown {
				if id != FieldUnknown && len(name) < 8*keyWords {
					t.Errorf("%q is not found", name)
				}
				continue
			}
			found++
			if got != id || n != len(name) {
				t.Errorf("%q: got %v of %d bytes, want %v", name, got, n, id)
			}
		}
		if _, n := knownField([]byte(name + strings.Repeat("x", 32))); n != 0 {
			t.Errorf("%q without a colon: got %d bytes", name, n)
		}
		if _, n := knownField([]byte(name + ":")); n != 0 && len(name)+1 < 8*keyWords {
			t.Errorf("%q at the end of the buffer: got %d bytes", name, n)
		}
	}
	for id := FieldUnknown + 1; id < fieldCount; id++ {
		name := id.String()
		check(name, id)
		check(strings.ToLower(name), id)
		check(strings.ToUpper(name), id)
		for i := range name {
			for bit := range 8 {
				b := []byte(name)
				if b[i] ^= 1 << bit; b[i] != ':' {
					check(string(b), LookupField(b))
				}
			}
			check(name[:i], LookupField([]byte(name[:i])))
			check(name[i:], LookupField([]byte(name[i:])))
			check(name[:i]+"x"+name[i:], LookupField([]byte(name[:i]+"x"+name[i:])))
		}
	}
	if found == 0 {
		t.Error("nothing is found")
	}
	// Those that do not fit are in the hash table too: nothing may be taken for
	// one of them.
	for n := 1; n < 8*keyWords; n++ {
		for c := range 256 {
			if c == ':' {
				continue
			}
			b := bytes.Repeat([]byte{byte(c)}, n)
			check(string(b), LookupField(b))
		}
	}
}

// The table must be sparse enough that a name finds its place at once.
func TestFieldSlots(t *testing.T) {
	displaced := 0
	for h, id := range fieldSlots {
		if id == 0 {
			continue
		}
		name := fieldNames[id]
		if want := fieldSlot(len(name), name[0], name[len(name)/2], name[len(name)-1]); int(want) != h {
			displaced++
		}
	}
	if displaced > 10 {
		t.Errorf("%d of %d names not in their own slot", displaced, fieldCount-1)
	}
}

func TestCanonicalName(t *testing.T) {
	for _, s := range []string{
		"", "a", "A", "abc-def", "ABC-DEF", "x--y-", "-x", "x_y-z", "a b", "a:b", "x\x80", "é", "~a|b",
		strings.Repeat("Long-", 30) + "name", "content-length", "WWW-AUTHENTICATE",
	} {
		want := textproto.CanonicalMIMEHeaderKey(s)
		if got := CanonicalName([]byte(s), FieldUnknown); got != want {
			t.Errorf("%q unknown: got %q, want %q", s, got, want)
		}
		if got := CanonicalName([]byte(s), LookupField([]byte(s))); got != want {
			t.Errorf("%q: got %q, want %q", s, got, want)
		}
	}
}

func TestHasToken(t *testing.T) {
	for _, c := range []struct {
		value string
		want  bool
		why   string
	}{
		{"close", true, "alone"},
		{"CLOSE", true, "any case"},
		{"a,close", true, "last"},
		{" a ,\tclose\t, b", true, "OWS around"},
		{",,close,,", true, "empty elements"},
		{"", false, "empty"},
		{",", false, "empty elements only"},
		{"closed", false, "longer"},
		{"clos", false, "shorter"},
		{"a close", false, "a word in an element is not the element"},
		{"close;q=1", false, "a parameter makes it another element"},
		{"\"close\"", false, "quoted"},
		{"c\x4cose\x00", false, "NUL"},
	} {
		if got := HasToken([]byte(c.value), "close"); got != c.want {
			t.Errorf("%s: %q: got %v", c.why, c.value, got)
		}
	}
}

func TestValidFieldName(t *testing.T) {
	for name, want := range map[string]bool{"": false, "A": true, "x-y_z": true, "a b": false, "a:": false, "é": false} {
		if got := ValidFieldName(name); got != want {
			t.Errorf("%q: got %v", name, got)
		}
	}
}
