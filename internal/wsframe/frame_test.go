package wsframe

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

const key = 0x12345678

// client returns a masked frame.
func client(op Opcode, fin, rsv1 bool, payload string) []byte {
	h := Header{Fin: fin, RSV1: rsv1, Masked: true, Op: op, Key: key, Length: int64(len(payload))}
	b := h.Append(nil)
	n := len(b)
	b = append(b, payload...)
	Mask(b[n:], key)
	return b
}

// received is what a Reader makes of b, fed in pieces of at most size bytes: one
// line for each message or control frame, then the error.
func received(r *Reader, l *Limits, b []byte, size int) (lines []string, err error) {
	var msg, buf []byte
	for {
		p, n, err := r.Next(buf, l)
		if err != nil {
			return lines, err
		}
		if n == 0 {
			if len(b) == 0 {
				return lines, nil
			}
			k := min(size, len(b))
			buf, b = append(buf, b[:k]...), b[k:]
			continue
		}
		if p.Op.Control() {
			lines = append(lines, fmt.Sprintf("%d %q", p.Op, p.Data))
		} else {
			if p.First {
				msg = msg[:0]
			}
			if msg = append(msg, p.Data...); p.Last {
				lines = append(lines, fmt.Sprintf("%d %v %q", p.Op, p.Compressed, msg))
			}
		}
		buf = buf[n:]
	}
}

func join(frames ...[]byte) []byte { return bytes.Join(frames, nil) }

func TestReader(t *testing.T) {
	long := strings.Repeat("x", 70000)
	unmasked := AppendFrame(nil, Text, false, []byte("a"))
	tests := []struct {
		name string
		in   []byte
		want []string
		code Code // 0: no error
	}{
		{"text", client(Text, true, false, "Hello"), []string{`1 false "Hello"`}, 0},
		{"empty", client(Binary, true, false, ""), []string{`2 false ""`}, 0},
		{"length of 16 bits", client(Binary, true, false, long[:126]), []string{fmt.Sprintf("2 false %q", long[:126])}, 0},
		{"length of 64 bits", client(Binary, true, false, long), []string{fmt.Sprintf("2 false %q", long)}, 0},
		{"fragments", join(client(Text, false, false, "He"), client(Continuation, false, false, ""), client(Continuation, true, false, "llo")),
			[]string{`1 false "Hello"`}, 0},
		{"control frames between fragments", join(client(Text, false, false, "a"), client(Ping, true, false, "p"), client(Pong, true, false, ""), client(Continuation, true, false, "b")),
			[]string{`9 "p"`, `10 ""`, `1 false "ab"`}, 0},
		{"close", client(Close, true, false, "\x03\xe8bye"), []string{`8 "\x03\xe8bye"`}, 0},
		{"compressed", client(Text, true, true, "\xff"), []string{`1 true "\xff"`}, 0},
		{"compressed fragments", join(client(Text, false, true, "\xff"), client(Continuation, true, false, "\xfe")), []string{`1 true "\xff\xfe"`}, 0},
		{"a character in two fragments", join(client(Text, false, false, "\xe2\x82"), client(Continuation, true, false, "\xac")), []string{`1 false "€"`}, 0},

		{"unmasked", unmasked, nil, CodeProtocol},
		{"RSV1 on a continuation", join(client(Text, false, true, "a"), client(Continuation, true, true, "b")), nil, CodeProtocol},
		{"RSV1 on a control frame", client(Ping, true, true, ""), nil, CodeProtocol},
		{"RSV2", []byte{0xa1}, nil, CodeProtocol},
		{"RSV3", []byte{0x91}, nil, CodeProtocol},
		{"opcode 3", []byte{0x83}, nil, CodeProtocol},
		{"opcode 11", []byte{0x8b}, nil, CodeProtocol},
		{"fragmented ping", []byte{0x09}, nil, CodeProtocol},
		{"ping of 126", []byte{0x89, 0xfe}, nil, CodeProtocol},
		{"continuation of nothing", []byte{0x80}, nil, CodeProtocol},
		{"message within a message", join(client(Text, false, false, "a"), []byte{0x81}), nil, CodeProtocol},
		{"length with its highest bit", []byte{0x82, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0}, nil, CodeProtocol},
		{"16 bits for a short length", []byte{0x82, 0xfe, 0, 125}, nil, CodeProtocol},
		{"64 bits for a short length", []byte{0x82, 0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, nil, CodeProtocol},
		{"invalid text", client(Text, true, false, "\xff"), nil, CodeInvalid},
		{"unfinished character", client(Text, true, false, "\xe2\x82"), nil, CodeInvalid},
		{"surrogate, in its second byte", client(Text, false, false, "\xed\xa0"), nil, CodeInvalid},
		{"too large", client(Binary, true, false, strings.Repeat("x", 100001)), nil, CodeTooBig},
		{"too large, as the header says", []byte{0x82, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}, nil, CodeTooBig},
		{"too large together", join(client(Binary, false, false, long), client(Continuation, true, false, long)), nil, CodeTooBig},
		{"too many empty fragments", join(client(Binary, false, false, ""), bytes.Repeat(client(Continuation, false, false, ""), 5)), nil, CodePolicy},
	}
	for _, tt := range tests {
		for _, size := range []int{1, 2, 3, 7, len(tt.in)} {
			got, err := received(&Reader{Deflate: true}, &Limits{Message: 100000, Deflated: 100, Fragments: 5}, bytes.Clone(tt.in), size)
			var e *Error
			if errors.As(err, &e); (tt.code == 0) != (err == nil) || err != nil && e.Code != tt.code {
				t.Errorf("%s, by %d: error %v, want code %d", tt.name, size, err, tt.code)
			}
			if err == nil && strings.Join(got, "\n") != strings.Join(tt.want, "\n") {
				t.Errorf("%s, by %d: %q", tt.name, size, got)
			}
		}
	}
	if _, err := received(new(Reader), new(Limits), client(Text, true, true, "a"), 1); err == nil {
		t.Error("RSV1 without an extension")
	}
	if got, err := received(&Reader{Client: true}, new(Limits), unmasked, 1); err != nil || got[0] != `1 false "a"` {
		t.Error("of a server:", got, err)
	}
	if _, err := received(&Reader{Client: true}, new(Limits), client(Text, true, false, "a"), 1); err == nil {
		t.Error("masked by a server")
	}
}

// TestFailFast: an error is found with the byte that shows it, not with the
// frame's end.
func TestFailFast(t *testing.T) {
	frame := client(Text, true, false, "ok\xffmuch more")
	var r Reader
	if _, n, err := r.Next(frame[:6+2], new(Limits)); n != 8 || err != nil {
		t.Fatal(n, err)
	}
	if _, _, err := r.Next(frame[8:9], new(Limits)); err != errUTF8 {
		t.Fatal(err)
	}
}

func TestMask(t *testing.T) {
	src := make([]byte, 300)
	for i := range src {
		src[i] = byte(rand.Uint32())
	}
	k := [4]byte{0x78, 0x56, 0x34, 0x12} // key, as on the wire
	for from := range 9 {
		for to := from; to <= len(src); to++ {
			want := bytes.Clone(src[from:to])
			for i := range want {
				want[i] ^= k[i%4]
			}
			got := bytes.Clone(src[from:to])
			cut := rand.IntN(len(got) + 1)
			Mask(got[cut:], Mask(got[:cut], key))
			if !bytes.Equal(got, want) {
				t.Fatal(from, to, cut)
			}
		}
	}
}

func TestClose(t *testing.T) {
	for c := Code(0); c < 6000; c++ {
		want := c >= 1000 && c <= 1003 || c >= 1007 && c <= 1014 || c >= 3000 && c <= 4999
		if c.Valid() != want {
			t.Errorf("%d: %v", c, !want)
		}
	}
	for _, tt := range []struct {
		p    string
		code Code
		text string
		err  bool
	}{
		{"", CodeNoStatus, "", false},
		{"\x03\xe8", CodeNormal, "", false},
		{"\x03\xe9going", CodeGoingAway, "going", false},
		{"\x03", 0, "", true},
		{"\x03\xed", 0, "", true}, // 1005
		{"\x03\xe8\xff", 0, "", true},
	} {
		code, text, err := ParseClose([]byte(tt.p))
		if (err != nil) != tt.err || err == nil && (code != tt.code || text != tt.text) {
			t.Errorf("%q: %d %q %v", tt.p, code, text, err)
		}
	}
	for _, reason := range []string{"", "bye", strings.Repeat("€", 100), "bad \xff text"} {
		b := AppendClose(nil, CodeNormal, reason)
		if len(b) > 2+MaxControl {
			t.Error(len(b), "bytes")
		}
		code, got, err := ParseClose(b[2:])
		if err != nil || code != CodeNormal || !strings.HasPrefix(strings.ToValidUTF8(reason, "\ufffd"), got) {
			t.Errorf("%q: %d %q %v", reason, code, got, err)
		}
	}
	if b := AppendClose(nil, CodeNoStatus, "x"); string(b) != "\x88\x00" {
		t.Errorf("%q", b)
	}
}

func FuzzUTF8(f *testing.F) {
	for _, s := range []string{"", "a€𝄞", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc0\x80", "\xe2\x82", "a\x80"} {
		f.Add([]byte(s), uint(1))
	}
	f.Fuzz(func(t *testing.T, p []byte, seed uint) {
		r := rand.New(rand.NewPCG(uint64(seed), 0))
		var u UTF8
		for rest, done := p, 0; ; {
			if len(rest) == 0 {
				if u.Complete() != utf8.Valid(p) {
					t.Fatalf("%q: %v", p, !utf8.Valid(p))
				}
				return
			}
			k := 1 + r.IntN(len(rest))
			ok := u.Write(rest[:k])
			done += k
			rest = rest[k:]
			// Whether any continuation is valid: that of the last unfinished
			// character, by definition of FullRune.
			valid := utf8.Valid(p[:done])
			for i := 1; i < 4 && i <= done && !valid; i++ {
				valid = utf8.Valid(p[:done-i]) && !utf8.FullRune(p[done-i:done])
			}
			if ok != valid {
				t.Fatalf("%q: %v", p[:done], ok)
			}
			if !ok {
				return
			}
		}
	})
}

func TestNoAllocation(t *testing.T) {
	frame := client(Text, true, false, strings.Repeat("é", 100))
	var r Reader
	l := Limits{Message: 1 << 20, Fragments: 10}
	if n := testing.AllocsPerRun(100, func() {
		b := frame
		if p, n, err := r.Next(b, &l); !p.Last || n != len(b) || err != nil {
			t.Fatal(n, err)
		}
		Mask(frame[8:], key) // as it was
	}); n != 0 {
		t.Error(n, "allocations")
	}
}

func BenchmarkMask(b *testing.B) {
	p := make([]byte, 4096)
	b.SetBytes(4096)
	for b.Loop() {
		Mask(p, key)
	}
}
