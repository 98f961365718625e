package http3

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
)

func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}

func TestVarint(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		in   string
		want uint64
		n    int
	}{
		// The examples of RFC 9000 appendix A.1.
		{"c2197c5eff14e88c", 151288809941952652, 8},
		{"9d7f3e7d", 494878333, 4},
		{"7bbd", 15293, 2},
		{"25", 37, 1},
		{"4025", 37, 2}, // longer than it must be
		{"ffffffffffffffff", MaxVarint, 8},
		{"25ff", 37, 1},
		{"", 0, 0},
		{"40", 0, 0},
		{"9d7f3e", 0, 0},
		{"c2197c5eff14e8", 0, 0},
	} {
		b := unhex(test.in)
		if v, n := Varint(b); v != test.want || n != test.n {
			t.Errorf("%s: %d of %d bytes", test.in, v, n)
		}
		// The same byte by byte.
		var r VarintReader
		for i := range b {
			v, n, done := r.Read(b[i : i+1])
			if want := i+1 == test.n; n != 1 || done != want || done && v != test.want || r.Within() == want {
				t.Errorf("%s: byte %d: %d, %d, %v, %v", test.in, i, v, n, done, r.Within())
			}
			if done {
				break
			}
		}
		if v, n, done := r.Read(nil); v != 0 || n != 0 || done {
			t.Errorf("%s: nothing is %d, %d, %v", test.in, v, n, done)
		}
	}
}

func TestAppendVarint(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		v    uint64
		want int
	}{
		{0, 1}, {1<<6 - 1, 1}, {1 << 6, 2}, {1<<14 - 1, 2}, {1 << 14, 4}, {1<<30 - 1, 4}, {1 << 30, 8}, {MaxVarint, 8},
	} {
		b := AppendVarint([]byte("-"), test.v)[1:]
		if v, n := Varint(b); v != test.v || n != test.want || len(b) != n || VarintLen(test.v) != n {
			t.Errorf("%d is %x, which is %d", test.v, b, v)
		}
	}
}

// FuzzVarint: where an integer is cut does not matter, nor what follows it.
func FuzzVarint(f *testing.F) {
	f.Add(unhex("c2197c5eff14e88c25"), uint8(3))
	f.Add(unhex("4025"), uint8(1))
	f.Fuzz(func(t *testing.T, b []byte, cut uint8) {
		v, n := Varint(b)
		if n > 0 {
			if got, m := Varint(AppendVarint(nil, v)); got != v || m > n {
				t.Fatalf("%x is %d, and then %d", b, v, got)
			}
		}
		at := min(int(cut), len(b))
		var r VarintReader
		got, used, done := r.Read(b[:at])
		if !done {
			var more int
			got, more, done = r.Read(b[at:])
			used += more
		}
		if done != (n > 0) || done && (got != v || used != n) || !done && used != len(b) {
			t.Fatalf("%x cut at %d: %d, %d, %v, want %d, %d", b, at, got, used, done, v, n)
		}
	})
}

func TestCodes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		code  ErrCode
		value uint64
		name  string
	}{
		{NoError, 0x100, "H3_NO_ERROR"}, {ClosedCriticalStream, 0x104, "H3_CLOSED_CRITICAL_STREAM"},
		{FrameError, 0x106, "H3_FRAME_ERROR"}, {SettingsError, 0x109, "H3_SETTINGS_ERROR"},
		{RequestCancelled, 0x10c, "H3_REQUEST_CANCELLED"}, {VersionFallback, 0x110, "H3_VERSION_FALLBACK"},
		{QPACKDecompressionFailed, 0x200, "QPACK_DECOMPRESSION_FAILED"},
		{QPACKDecoderStreamError, 0x202, "QPACK_DECODER_STREAM_ERROR"}, {DatagramError, 0x33, "H3_DATAGRAM_ERROR"},
		{0, 0, "error code 0x0"}, {0xff, 0xff, "error code 0xff"}, {0x111, 0x111, "error code 0x111"},
		{0x203, 0x203, "error code 0x203"}, {MaxVarint, MaxVarint, "error code 0x3fffffffffffffff"},
	} {
		if uint64(test.code) != test.value || test.code.String() != test.name {
			t.Errorf("%#x is %s, want %s", uint64(test.code), test.code, test.name)
		}
	}
	if s := errPush.Error(); s != "http3: H3_FRAME_UNEXPECTED: a client sends PUSH_PROMISE" {
		t.Error(s)
	}
	if s := (&StreamError{MessageError, "x"}).Error(); s != "http3: stream: H3_MESSAGE_ERROR: x" {
		t.Error(s)
	}
}

// parts cuts b into parts of the lengths in cuts, and the rest.
func parts(b []byte, cuts []byte) (all [][]byte) {
	for _, c := range cuts {
		n := min(int(c), len(b))
		all = append(all, b[:n])
		b = b[n:]
	}
	return append(all, b)
}

// single cuts b into single bytes.
func single(b []byte) [][]byte { return parts(b, bytes.Repeat([]byte{1}, len(b))) }
