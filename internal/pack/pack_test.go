package pack

import (
	"bytes"
	"math"
	"net/textproto"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

func TestInteger(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		in   string
		bits uint
		want uint64
		rest int
		err  error
	}{
		// The examples of RFC 7541 appendix C.1.
		{"\x0a", 5, 10, 0, nil},
		{"\x1f\x9a\x0a", 5, 1337, 0, nil},
		{"\x2a", 8, 42, 0, nil},
		{"\xea!", 5, 10, 1, nil}, // what is above the prefix is not its
		{"\xff\x00!", 8, 255, 1, nil},
		{"\xff\x80\x80\x80\x00", 8, 255, 0, nil}, // longer than it must be
		{"\xff", 8, 0, 0, ErrShort},
		{"\xff\x80", 8, 0, 0, ErrShort},
		{"\x7f\x80\xff\xff\xff\xff\xff\xff\xff\x3f", 7, 1<<62 - 1, 0, nil},
		{"\x7f\x81\xff\xff\xff\xff\xff\xff\xff\x3f", 7, 0, 0, ErrInteger},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 8, 0, 0, ErrInteger},
		{"\xff\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 8, 0, 0, ErrInteger},
	} {
		v, rest, err := Integer([]byte(test.in), test.bits)
		if v != test.want || len(rest) != test.rest || err != test.err {
			t.Errorf("%x with %d bits: %d, %q, %v", test.in, test.bits, v, rest, err)
		}
	}
	for bits := uint(1); bits <= 8; bits++ {
		for _, v := range []uint{0, 1, 6, 7, 14, 15, 126, 127, 128, 254, 255, 256, 1 << 14, 1 << 21, math.MaxInt32} {
			b := AppendInteger(nil, 0, bits, v)
			if got, rest, err := Integer(b, bits); got != uint64(v) || len(rest) > 0 || err != nil {
				t.Errorf("%d with %d bits: %x, %d, %v", v, bits, b, got, err)
			}
		}
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "a", "www.example.com", "\x00\xff", strings.Repeat("x", 500)} {
		for n := uint(1); n < 8; n++ {
			var f Fields
			b := AppendText([]byte(nil), 0, n, s)
			at, rest, err := f.Text(append(b, '!'), n)
			if err != nil || string(f.Get(at)) != s || string(rest) != "!" {
				t.Errorf("%q with %d bits: %x, %q, %v", s, n, b, f.Get(at), err)
			}
			if !bytes.Equal(b, AppendText(nil, 0, n, []byte(s))) {
				t.Errorf("%q is another thing as bytes", s)
			}
			for i := range b {
				if _, _, err := f.Text(b[:i], n); err != ErrShort {
					t.Errorf("%x: %v", b[:i], err)
				}
			}
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for id := NameID(1); id < NameIDs; id++ {
		name := id.Name()
		if name == "" {
			continue // HPACK has it twice
		}
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		if LookupWire([]byte(name)) != id || LookupFold(name) != id {
			t.Errorf("%q is %d, and in any case %d", name, LookupWire([]byte(name)), LookupFold(name))
		}
		if pseudo := name[0] == ':'; pseudo != (id <= IDStatus) || pseudo != (id.Canonical() == "") || pseudo != (Lookup(canonical) == 0) ||
			!pseudo && (id.Canonical() != canonical || Lookup(canonical) != id || LookupFold(strings.ToUpper(name)) != id) {
			t.Errorf("%q, canonical %q", name, id.Canonical())
		}
	}
	for _, name := range []string{"", "x", "connection", "X-Forwarded-Fo", strings.Repeat("a", 33)} {
		if LookupFold(name) != 0 {
			t.Errorf("%q is known", name)
		}
	}
	if !FoldEqual([]byte("a-B"), "A-b") || FoldEqual([]byte("ab"), "ac") || FoldEqual([]byte("a"), "ab") {
		t.Error("FoldEqual")
	}
}

func TestAppendName(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, want string }{
		{"x-a", "x-a"}, {"X-Thing", "x-thing"}, {"", ""}, {"a b", ""}, {"a:", ""}, {"Ä", ""}, {strings.Repeat("A", 200), strings.Repeat("a", 200)},
	} {
		var f Fields
		b := AppendName(nil, 0, 7, test.name)
		if (b == nil) != (test.want == "") || ValidName(test.name) != (b != nil) {
			t.Errorf("%q: %x", test.name, b)
		} else if b != nil {
			if at, _, err := f.Text(b, 7); err != nil || string(f.Get(at)) != test.want {
				t.Errorf("%q: %q, %v", test.name, f.Get(at), err)
			}
		}
	}
}

func TestAppendNameAllocs(t *testing.T) {
	b := make([]byte, 0, 200)
	long := strings.Repeat("Long-", 10)
	if n := testing.AllocsPerRun(100, func() { b = AppendName(b[:0], 0, 7, long) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestSentValue(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		in, want string
		ok       bool
	}{
		{"", "", true}, {"a", "a", true}, {" a\t", "a", true}, {" ", "", true}, {"a b", "a b", true}, {"é", "é", true},
		{"a\r\nb", "", false}, {"\x00", "", false}, {"\x7f", "", false}, {"a\n", "", false},
	} {
		if got, ok := SentValue(test.in); got != test.want || ok != test.ok {
			t.Errorf("%q: %q, %v", test.in, got, ok)
		}
	}
}

// A Memo appends what the function does, also for values that share a place.
func TestMemo(t *testing.T) {
	t.Parallel()
	var m Memo
	encode := func(b []byte, v string) []byte { return append(append(b, '<'), v+">"...) }
	values := []string{"text/plain", "text/plain", "a", "q", "a", "", strings.Repeat("x", maxMemo), strings.Repeat("x", maxMemo+1)}
	for _, v := range slices.Concat(values, values) {
		if got, want := m.Append([]byte("-"), v, encode), encode([]byte("-"), v); !bytes.Equal(got, want) {
			t.Errorf("%q: %q, want %q", v, got, want)
		}
	}
}

func TestReset(t *testing.T) {
	t.Parallel()
	if s := unsafe.Sizeof(Field{}); s != fieldSize {
		t.Errorf("a Field has %d bytes", s)
	}
	f := Fields{Bytes: make([]byte, 5, 100), List: make([]Field, 5, 10), Malformed: true, TooLarge: true, size: 1}
	f.Reset(200)
	if cap(f.Bytes) != 100 || cap(f.List) != 10 || len(f.Bytes)+len(f.List)+f.size > 0 || f.Malformed || f.TooLarge {
		t.Errorf("%+v", f)
	}
	f.Reset(99)
	if f.Bytes != nil || f.List != nil {
		t.Errorf("keeps %d and %d", cap(f.Bytes), cap(f.List))
	}
}
