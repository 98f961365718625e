package http1

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/chert-http/chert/internal/testing/race"
)

// This file compares what examines words with what examines one byte after the
// other.

func valueByte(c byte) bool { return c == '\t' || c >= ' ' && c != 0x7f }

func tokenByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

func end(b []byte, i int, in func(c byte) bool) int {
	for i < len(b) && in(b[i]) {
		i++
	}
	return i
}

// idOf compares all names.
func idOf(name []byte) FieldID {
	for id := FieldUnknown + 1; id < fieldCount; id++ {
		if known := fieldNames[id]; len(known) == len(name) && asciiLower(string(name)) == asciiLower(known) {
			return id
		}
	}
	return FieldUnknown
}

func asciiLower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// parseSlowly is Field.parse.
func parseSlowly(b []byte, i int) (f Field, next int, e *Error) {
	start := i
	i = end(b, i, tokenByte)
	if i == len(b) {
		return f, 0, nil
	}
	if b[i] != ':' || i == start {
		return f, 0, refuse(b, i, nameError(b, start, i))
	}
	f.ID, f.Name = idOf(b[start:i]), Span{uint32(start), uint32(i)}
	start = end(b, i+1, func(c byte) bool { return c == ' ' || c == '\t' })
	i = end(b, start, valueByte)
	switch {
	case i == len(b):
		return f, 0, nil
	case b[i] != '\r' || i+1 < len(b) && b[i+1] != '\n':
		return f, 0, refuse(b, i, valueError(b[i]))
	case i+1 == len(b):
		return f, 0, nil
	}
	last := i
	for last > start && (b[last-1] == ' ' || b[last-1] == '\t') {
		last--
	}
	f.Value = Span{uint32(start), uint32(last)}
	return f, i + 2, nil
}

func compareField(t *testing.T, b []byte, i int) (whole bool) {
	t.Helper()
	var got Field
	next, e := got.parse(b, i)
	want, wantNext, wantE := parseSlowly(b, i)
	if next != wantNext || e != wantE || next > 0 && got != want {
		t.Fatalf("%s from %d: got %+v, %d, %v; want %+v, %d, %v", show(b), i, got, next, e, want, wantNext, wantE)
	}
	return next > 0
}

// Every byte at every place of a value, of a target and of a name, wherever
// they begin and however much follows.
func TestEveryByte(t *testing.T) {
	t.Parallel()
	step := 1
	if race.Enabled {
		step = 15 // nothing in it runs at the same time
	}
	for n := range 36 {
		for begin := range min(n+1, 9) {
			b := []byte(strings.Repeat("a", n))
			for at := range n {
				for c := 0; c < 256; c += step {
					b[at] = byte(c)
					if got, want := valueEnd(b, begin), end(b, begin, valueByte); got != want {
						t.Fatalf("value %s from %d ends at %d, want %d", show(b), begin, got, want)
					}
					if got, want := targetEnd(b, begin), end(b, begin, func(c byte) bool { return c != '\t' && c != ' ' && valueByte(c) }); got != want {
						t.Fatalf("target %s from %d ends at %d, want %d", show(b), begin, got, want)
					}
				}
				b[at] = 'a'
			}
		}
	}
	for id := FieldUnknown + 1; id < fieldCount; id++ {
		for _, name := range []string{fieldNames[id], asciiLower(fieldNames[id]), strings.ToUpper(fieldNames[id])} {
			for _, rest := range []string{"\r\n", "\r\n\r\n" + strings.Repeat("x", 40), "\r\nx: y\r\n" + strings.Repeat(":", 40)} {
				b := []byte(name + ": v" + rest)
				for at := range len(name) + 5 {
					was := b[at]
					for c := 0; c < 256; c += step {
						b[at] = byte(c)
						compareField(t, b, 0)
					}
					b[at] = was
				}
			}
		}
	}
}

// Lines of all kinds, each also cut anywhere.
func TestFieldsAtRandom(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	const odd = "\x00\x01\t\n\v\r\x1f  !:;@[`{~\x7f\x80\x9f\xa0\xba\xff"
	pick := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = "abcXYZ-09 "[rnd.IntN(10)]
		}
		for range rnd.IntN(3) {
			if n > 0 {
				b[rnd.IntN(n)] = odd[rnd.IntN(len(odd))]
			}
		}
		return b
	}
	whole := 0
	lines := 10000
	if race.Enabled {
		lines = 2000
	}
	for range lines {
		before := pick(rnd.IntN(17))
		b := append([]byte(nil), before...)
		if rnd.IntN(4) == 0 {
			b = append(b, pick(rnd.IntN(40))...)
		} else {
			name := []byte(fieldNames[1+rnd.IntN(int(fieldCount)-1)])
			for i := range name {
				if isAlpha(name[i]) && rnd.IntN(3) == 0 {
					name[i] ^= 0x20
				}
			}
			if rnd.IntN(4) == 0 {
				name[rnd.IntN(len(name))] ^= 1 << rnd.IntN(8)
			}
			b = append(b, name...)
		}
		b = append(b, [...]string{":", ": ", ":\t ", " :", "", "::"}[rnd.IntN(6)]...)
		b = append(b, pick(rnd.IntN(60))...)
		b = append(b, [...]string{"\r\n", " \t\r\n", "\n", "\r", "\r\n folded\r\n"}[rnd.IntN(5)]...)
		b = append(b, pick(rnd.IntN(50))...)
		for k := len(before); k <= len(b); k++ {
			if compareField(t, b[:k:k], len(before)) {
				whole++
			}
		}
	}
	if whole < lines/10 {
		t.Errorf("only %d lines were good", whole)
	}
}
