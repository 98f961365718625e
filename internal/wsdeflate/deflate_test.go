package wsdeflate

import (
	"bytes"
	stdflate "compress/flate"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// messages are n of many kinds and lengths; later ones repeat parts of earlier ones.
func messages(n int) (m [][]byte) {
	r := rand.New(rand.NewPCG(1, 2))
	var all []byte
	for i := range n {
		p := make([]byte, 1+r.IntN(1<<(1+i%14)))
		if i%4 == 3 {
			p = p[:min(len(p), 100)]
		}
		for j := range p {
			p[j] = byte(r.Uint32())
			if i%2 == 0 {
				p[j] = "abcd"[p[j]%4]
			}
		}
		for len(all) > len(p) && i%3 > 0 {
			at := r.IntN(len(all) - len(p)/2)
			copy(p[r.IntN(len(p)):], all[at:at+len(p)/2])
			break
		}
		m = append(m, p)
		all = append(all, p...)
	}
	return m
}

func TestRoundTrip(t *testing.T) {
	for bits := uint8(MinBits); bits <= MaxBits; bits++ {
		var out, in Window
		for i, p := range messages(60) {
			for _, takeover := range []bool{false, true} {
				var wo, wi *Window
				if takeover {
					wo, wi = &out, &in
				}
				z := Deflate([]byte("head"), p, wo, bits)
				got, err := Inflate([]byte("head"), z[4:], wi, int64(len(p)))
				if err != nil || !bytes.Equal(got[4:], p) {
					t.Fatalf("%d bits, message %d, takeover %v: %v", bits, i, takeover, err)
				}
			}
			out.Add(p, bits)
			in.Add(p, bits)
			if n := len(out.b); n > 1<<bits || cap(out.b) > max(256, 1<<bits) {
				t.Fatal(n, cap(out.b))
			}
		}
	}
}

// TestWindow: another implementation inflates a connection's messages with a window of the
// size agreed, and no larger one; those without takeover, too, whatever its window
// has in it.
func TestWindow(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		if os.Getenv("CHERT_REQUIRE_ALL") == "1" {
			t.Fatal("python3 is not installed; the Debian package is python3")
		}
		t.Skip("python3 is not installed; the Debian package is python3")
	}
	const script = `
import struct, sys, zlib
read = sys.stdin.buffer.read
bits, = struct.unpack("<I", read(4))
d = zlib.decompressobj(-bits)
while True:
    h = read(4)
    if not h: break
    n, = struct.unpack("<I", h)
    out = d.decompress(read(n) + b"\x00\x00\xff\xff")
    sys.stdout.buffer.write(struct.pack("<I", len(out)) + out)
`
	for bits := uint8(MinBits); bits <= MaxBits; bits++ {
		in, want := binary.LittleEndian.AppendUint32(nil, uint32(bits)), []byte(nil)
		var w Window
		for i, p := range messages(40) {
			with := &w
			if i%5 == 4 {
				with = nil // a broadcast
			}
			z := Deflate(nil, p, with, bits)
			w.Add(p, bits)
			in = append(binary.LittleEndian.AppendUint32(in, uint32(len(z))), z...)
			want = append(binary.LittleEndian.AppendUint32(want, uint32(len(p))), p...)
		}
		cmd := exec.Command(python, "-c", script)
		cmd.Stdin = bytes.NewReader(in)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		got, err := cmd.Output()
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bits: %v\n%s", bits, err, stderr.String())
		}
	}
}

// TestShort: short messages that resemble each other become much shorter.
func TestShort(t *testing.T) {
	var w Window
	plain, sent := 0, 0
	for i := range 100 {
		p := fmt.Appendf(nil, `{"n":%d,"words":"the quick brown fox jumps over the lazy dog"}`, i)
		sent += len(Deflate(nil, p, &w, 10))
		plain += len(p)
		w.Add(p, 10)
	}
	if sent > plain/3 {
		t.Errorf("%d bytes for %d", sent, plain)
	}
}

// TestRFC has the examples of RFC 7692 section 7.2.3.
func TestRFC(t *testing.T) {
	hello := []byte("Hello")
	for _, tt := range []struct {
		name string
		z    string
	}{
		{"one block", "\xf2\x48\xcd\xc9\xc9\x07\x00"},
		{"no compression", "\x00\x05\x00\xfa\xff\x48\x65\x6c\x6c\x6f\x00"},
		{"last block", "\xf3\x48\xcd\xc9\xc9\x07\x00\x00"},
		{"two blocks", "\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00"},
	} {
		if got, err := Inflate(nil, []byte(tt.z), nil, 5); err != nil || !bytes.Equal(got, hello) {
			t.Errorf("%s: %q %v", tt.name, got, err)
		}
	}
	var w Window
	w.Add(hello, MinBits)
	if got, err := Inflate(nil, []byte("\xf2\x00\x11\x00\x00"), &w, 5); err != nil || !bytes.Equal(got, hello) {
		t.Errorf("shared window: %q %v", got, err)
	}
	if got, err := Inflate(nil, []byte("\x00"), nil, 5); err != nil || len(got) != 0 {
		t.Errorf("empty: %q %v", got, err)
	}
}

func TestBomb(t *testing.T) {
	const limit = 100 << 10
	bomb := Deflate(nil, make([]byte, 100<<20), nil, MaxBits)
	out, err := Inflate(nil, bomb, nil, limit)
	if err != ErrTooBig || cap(out) > 2*limit {
		t.Errorf("%d bytes, cap %d, %v", len(bomb), cap(out), err)
	}
	exact := Deflate(nil, make([]byte, limit), nil, MaxBits)
	if out, err := Inflate(nil, exact, nil, limit); err != nil || len(out) != limit {
		t.Error(len(out), err)
	}
	if _, err := Inflate(nil, exact, nil, limit-1); err != ErrTooBig {
		t.Error(err)
	}
	// Last blocks without end, each of which could cost a decompressor.
	if _, err := Inflate(nil, bytes.Repeat([]byte("\x03\x00"), 1000), nil, limit); err != ErrCorrupt {
		t.Error(err)
	}
}

func TestCorrupt(t *testing.T) {
	for _, z := range []string{"\xff", "\x00\x05\x00\x00\x00hello", "\xf2\x00\x11\x00\x00" /* a distance without a window */} {
		if out, err := Inflate(nil, []byte(z), nil, 100); err != ErrCorrupt {
			t.Errorf("%q: %q %v", z, out, err)
		}
	}
}

// TestForget: what was borrowed keeps nothing of a connection.
func TestForget(t *testing.T) {
	var w Window
	w.Add([]byte("Hello"), MinBits)
	for range 10 {
		Inflate(nil, []byte("\xf2\x00\x11\x00\x00"), &w, 5)
		if out, err := Inflate(nil, []byte("\xf2\x00\x11\x00\x00"), nil, 5); err == nil {
			t.Fatalf("%q", out)
		}
	}
}

// FuzzInflate compares with compress/flate, which gets the same bytes at once.
func FuzzInflate(f *testing.F) {
	f.Add([]byte("\xf2\x48\xcd\xc9\xc9\x07\x00"), []byte(""))
	f.Add([]byte("\xf2\x00\x11\x00\x00"), []byte("Hello"))
	f.Fuzz(func(t *testing.T, z, dict []byte) {
		const limit = 1 << 16
		var w Window
		w.Add(dict, MaxBits)
		in := append(bytes.Clone(z), tail+final...)
		src := bytes.NewReader(in)
		want, werr := io.ReadAll(io.LimitReader(stdflate.NewReaderDict(src, w.b), limit+1))
		got, err := Inflate(nil, z, &w, limit)
		if err == nil != (werr == nil && len(want) <= limit) {
			// A last block that is not at the end.
			if left := src.Len(); err == ErrCorrupt && werr == nil && left > len(tail+final) {
				return
			}
			t.Fatalf("%v, want %v, %d bytes", err, werr, len(want))
		}
		if err == nil && !bytes.Equal(got, want) {
			t.Fatal("other bytes")
		}
	})
}

func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte("aaaaaaaaaaaaaaaaaaa"), []byte("aaa"), uint8(8))
	f.Fuzz(func(t *testing.T, p, dict []byte, bits uint8) {
		if bits = MinBits + bits%8; len(p) == 0 {
			return
		}
		var w Window
		w.Add(dict, bits)
		got, err := Inflate(nil, Deflate(nil, p, &w, bits), &w, int64(len(p)))
		if err != nil || !bytes.Equal(got, p) {
			t.Fatal(err)
		}
	})
}

func BenchmarkDeflate(b *testing.B) {
	p := []byte(strings.Repeat(`{"type":"message","room":"lobby","text":"hello, world"}`, 10))
	for _, bits := range []uint8{9, 12, 15} {
		b.Run(fmt.Sprint(bits), func(b *testing.B) {
			var w Window
			for range 100 {
				w.Add(p, bits)
			}
			b.ReportAllocs()
			var dst []byte
			for b.Loop() {
				dst = Deflate(dst[:0], p, &w, bits)
			}
		})
	}
}
