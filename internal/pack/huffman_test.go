package pack

import (
	"bytes"
	"testing"

	"golang.org/x/net/http2/hpack"
)

func TestHuffman(t *testing.T) {
	t.Parallel()
	for n := range 300 {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(i*7 + n)
		}
		s := string(b)
		code := AppendHuffman([]byte("x"), s)[1:]
		if want := hpack.AppendHuffmanString(nil, s); !bytes.Equal(code, want) || len(code) != HuffmanLen(s) {
			t.Fatalf("%q is %x, want %x", s, code, want)
		}
		if got, err := AppendHuffmanDecoded(nil, code); err != nil || string(got) != s {
			t.Fatalf("%x is %q, %v", code, got, err)
		}
	}
}

func FuzzHuffman(f *testing.F) {
	f.Add([]byte("hello"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := AppendHuffmanDecoded(nil, b)
		want, xerr := hpack.HuffmanDecodeToString(b)
		if (err == nil) != (xerr == nil) || err == nil && string(got) != want {
			t.Fatalf("%x: %q, %v; x/net: %q, %v", b, got, err, want, xerr)
		}
		if code := AppendHuffman(nil, string(b)); !bytes.Equal(code, hpack.AppendHuffmanString(nil, string(b))) {
			t.Fatalf("%x encoded is %x", b, code)
		}
	})
}
