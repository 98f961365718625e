package proxyproto

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"net/netip"
	"strings"
	"testing"
)

// v2 is a header of version 2 with these bytes 12 and 13, and body after its length.
func v2(command, family byte, body string) string {
	b := append([]byte(nil), prefixV2...)
	b = append(b, command, family)
	b = binary.BigEndian.AppendUint16(b, uint16(len(body)))
	return string(b) + body
}

// summed is h, which ends with a checksum's TLV, with the right checksum.
func summed(h string) string {
	b := []byte(h)
	binary.BigEndian.PutUint32(b[len(b)-4:], crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
	return string(b)
}

const (
	four = "\x0a\x00\x00\x01\x0a\x00\x00\x02\x04\xd2\x01\xbb"
	six  = "\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01" +
		"\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x04\xd2\x01\xbb"
	crc = "\x03\x00\x04\x00\x00\x00\x00"
)

var cases = []struct {
	name, in, src, dst string
	err                error
}{
	{"v1, IPv4", "PROXY TCP4 10.0.0.1 10.0.0.2 1234 443\r\n", "10.0.0.1:1234", "10.0.0.2:443", nil},
	{"v1, IPv6", "PROXY TCP6 2001:db8::1 2001:db8::2 1234 443\r\n", "[2001:db8::1]:1234", "[2001:db8::2]:443", nil},
	{"v1, mapped", "PROXY TCP6 ::ffff:10.0.0.1 ::ffff:10.0.0.2 1 2\r\n", "10.0.0.1:1", "10.0.0.2:2", nil},
	{"v1, ports at the ends", "PROXY TCP4 10.0.0.1 10.0.0.2 0 65535\r\n", "10.0.0.1:0", "10.0.0.2:65535", nil},
	{"v1, unknown", "PROXY UNKNOWN\r\n", "", "", nil},
	{"v1, unknown with anything", "PROXY UNKNOWN ffff::1 x 99999999\r\n", "", "", nil},
	{"v1, longest", "PROXY UNKNOWN " + strings.Repeat("x", 91) + "\r\n", "", "", nil},
	{"v1, too long", "PROXY UNKNOWN " + strings.Repeat("x", 92) + "\r\n", "", "", ErrTooLong},
	{"v1, LF alone", "PROXY UNKNOWN\n", "", "", ErrMalformed},
	{"v1, CR within", "PROXY UNKNOWN \r \r\n", "", "", ErrMalformed},
	{"v1, no family", "PROXY \r\n", "", "", ErrMalformed},
	{"v1, family with more", "PROXY UNKNOWNX\r\n", "", "", ErrMalformed},
	{"v1, family in lower case", "PROXY tcp4 10.0.0.1 10.0.0.2 1 2\r\n", "", "", ErrMalformed},
	{"v1, other family", "PROXY TCP4 2001:db8::1 2001:db8::2 1 2\r\n", "", "", ErrMalformed},
	{"v1, IPv4 as IPv6", "PROXY TCP6 10.0.0.1 10.0.0.2 1 2\r\n", "", "", ErrMalformed},
	{"v1, zone", "PROXY TCP6 fe80::1%eth0 fe80::2 1 2\r\n", "", "", ErrMalformed},
	{"v1, two spaces", "PROXY TCP4  10.0.0.1 10.0.0.2 1 2\r\n", "", "", ErrMalformed},
	{"v1, space at the end", "PROXY TCP4 10.0.0.1 10.0.0.2 1 2 \r\n", "", "", ErrMalformed},
	{"v1, port too large", "PROXY TCP4 10.0.0.1 10.0.0.2 65536 2\r\n", "", "", ErrMalformed},
	{"v1, port with zeros", "PROXY TCP4 10.0.0.1 10.0.0.2 01 2\r\n", "", "", ErrMalformed},
	{"v1, port with a sign", "PROXY TCP4 10.0.0.1 10.0.0.2 +1 2\r\n", "", "", ErrMalformed},
	{"v1, a port missing", "PROXY TCP4 10.0.0.1 10.0.0.2 1\r\n", "", "", ErrMalformed},
	{"a request", "GET / HTTP/1.1\r\n", "", "", ErrMissing},
	{"an HTTP/2 preface", "PRI * HTTP/2.0\r\n", "", "", ErrMissing},
	{"a TLS record", "\x16\x03\x01\x02\x00", "", "", ErrMissing},

	{"v2, IPv4", v2(0x21, 0x11, four), "10.0.0.1:1234", "10.0.0.2:443", nil},
	{"v2, IPv6", v2(0x21, 0x21, six), "[2001:db8::1]:1234", "[2001:db8::2]:443", nil},
	{"v2, unix", v2(0x21, 0x31, strings.Repeat("x", 216)), "", "", nil},
	{"v2, unspecified", v2(0x21, 0x00, ""), "", "", nil},
	{"v2, datagrams", v2(0x21, 0x12, four), "", "", nil},
	{"v2, local", v2(0x20, 0x00, ""), "", "", nil},
	{"v2, local with addresses", v2(0x20, 0x11, four), "", "", nil},
	{"v2, TLVs", v2(0x21, 0x11, four+"\x04\x00\x02xx\x01\x00\x00"), "10.0.0.1:1234", "10.0.0.2:443", nil},
	{"v2, checksum", summed(v2(0x21, 0x11, four+crc)), "10.0.0.1:1234", "10.0.0.2:443", nil},
	{"v2, wrong checksum", v2(0x21, 0x11, four+crc), "", "", ErrChecksum},
	{"v2, short checksum", v2(0x21, 0x11, four+"\x03\x00\x03xxx"), "", "", ErrMalformed},
	{"v2, two checksums", v2(0x21, 0x11, four+crc+crc), "", "", ErrMalformed},
	{"v2, TLV beyond the end", v2(0x21, 0x11, four+"\x04\x00\x03xx"), "", "", ErrMalformed},
	{"v2, part of a TLV", v2(0x21, 0x11, four+"\x04\x00"), "", "", ErrMalformed},
	{"v2, short addresses", v2(0x21, 0x11, four[1:]), "", "", ErrMalformed},
	{"v2, short unix", v2(0x21, 0x31, "x"), "", "", ErrMalformed},
	{"v2, other version", v2(0x31, 0x11, four), "", "", ErrMalformed},
	{"v2, other command", v2(0x22, 0x11, four), "", "", ErrMalformed},
	{"v2, other family", v2(0x21, 0x41, four), "", "", ErrMalformed},
	{"v2, no transport", v2(0x21, 0x10, four), "", "", ErrMalformed},
	{"v2, no family", v2(0x21, 0x01, ""), "", "", ErrMalformed},
	{"v2, local of any family", v2(0x20, 0xff, four), "", "", nil},
	{"v2, other transport", v2(0x21, 0x13, four), "", "", ErrMalformed},
	{"v2, longest", v2(0x20, 0x00, strings.Repeat("x", MaxHeader-16)), "", "", nil},
	{"v2, too long", v2(0x20, 0x00, strings.Repeat("x", MaxHeader-15)), "", "", ErrTooLong},
}

// Each header is parsed whole, with a request behind it, and byte by byte: an error may
// come early, but a result only at the last byte.
func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var want Header
			if c.src != "" {
				want = Header{netip.MustParseAddrPort(c.src), netip.MustParseAddrPort(c.dst)}
			}
			for _, behind := range []string{"", "GET / HTTP/1.1\r\n\r\n"} {
				h, n, err := Parse([]byte(c.in + behind))
				if !errors.Is(err, c.err) || h != want || err == nil && n != len(c.in) {
					t.Fatalf("%v, %d, %v; want %v, %d, %v", h, n, err, want, len(c.in), c.err)
				}
			}
			for i := range len(c.in) {
				h, n, err := Parse([]byte(c.in[:i]))
				if err != nil && err == c.err {
					return
				}
				if h != (Header{}) || n != 0 || err != nil {
					t.Fatalf("%d bytes: %v, %d, %v", i, h, n, err)
				}
			}
		})
	}
}

func TestParseAllocatesNothing(t *testing.T) {
	b := []byte(summed(v2(0x21, 0x21, six+crc)))
	if n := testing.AllocsPerRun(100, func() {
		if _, n, err := Parse(b); n == 0 || err != nil {
			t.Fatal(n, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A result does not depend on how the bytes arrive, nor on what follows.
func FuzzParse(f *testing.F) {
	for _, c := range cases {
		f.Add([]byte(c.in))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, n, err := Parse(b)
		switch {
		case n < 0 || n > len(b) || n > MaxHeader:
			t.Fatalf("%d of %d bytes", n, len(b))
		case err != nil && (n != 0 || h != Header{}):
			t.Fatalf("%v, %d with %v", h, n, err)
		case h.Source.IsValid() != h.Destination.IsValid():
			t.Fatalf("half of the addresses: %v", h)
		case n == 0 && err == nil && len(b) >= MaxHeader:
			t.Fatal("no end")
		}
		read := 0
		for m, err := 0, error(nil); m == 0 && err == nil; _, m, err = Parse(b[:read]) {
			more := Missing(b[:read])
			if more < 1 || n > 0 && read+more > n {
				t.Fatalf("%d bytes missing after %d of %d", more, read, n)
			}
			if read += more; read > len(b) {
				break
			}
		}
		if n > 0 && read != n {
			t.Fatalf("%d bytes were read for a header of %d", read, n)
		}
		if n == 0 {
			return
		}
		for i := range n {
			if _, m, err := Parse(b[:i]); m != 0 || err != nil {
				t.Fatalf("%d of %d bytes: %d, %v", i, n, m, err)
			}
		}
		if again, m, err := Parse(b[:n]); again != h || m != n || err != nil {
			t.Fatalf("alone: %v, %d, %v", again, m, err)
		}
	})
}
