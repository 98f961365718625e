package http3

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/quic-go/qpack"

	"github.com/chert-http/chert/internal/pack"
)

var roomy = pack.Limits{Fields: 1 << 20, Bytes: 1 << 30}

// lines is what f has, as "name: value" lines.
func lines(f *pack.Fields) []string {
	var out []string
	for _, h := range f.List {
		name := string(f.Get(h.Name))
		if h.ID != 0 {
			name = h.ID.Name()
		}
		out = append(out, name+": "+string(f.Get(h.Value)))
	}
	return out
}

func TestDecode(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, section, want string }{
		{"RFC 9204 B.1", "0000 510b2f696e6465782e68746d6c", ":path: /index.html"},
		{"nothing", "0000", ""},
		{"a base of its own", "007f80ffffffffffffff3f c1", ":path: /"},
		{"the first", "0000 c0", ":authority: "},
		{"the last", "0000 ff23", "x-frame-options: sameorigin"},
		{"an index that is longer than it must be", "0000 ffa38000", "x-frame-options: sameorigin"},
		{"a name of the first", "0000 500161", ":authority: a"},
		{"a name of the last", "0000 5f530161", "x-frame-options: a"},
		{"a name, never indexed", "0000 7f450161", "authorization: a"},
		{"a name that is literal", "0000 22612d 0162", "a-: b"},
		{"a name that is literal, never indexed", "0000 32612d 0162", "a-: b"},
		{"a name in Huffman's code", "0000 2f0125a849e95ba97d7f 8925a849e95bb8e8b4bf", "custom-key: custom-value"},
		{"a name that the table has, as a literal", "0000 24686f7374 0161", "host: a"},
		{"an empty value in Huffman's code", "0000 2161 80", "a: "},
		{"a name that only HPACK has", "0000 23766961 0161", "via: a"},
		{"a name that only QPACK has", "0000 266f726967696e 0161", "origin: a"},
		{"space around a value", "0000 2161 03206220", "a: b"},
		{"a request", "0000 d1 d7", ":method: GET|:scheme: https"},
	} {
		var f pack.Fields
		err := Decode(unhex(test.section), &f, roomy)
		if got := strings.Join(lines(&f), "|"); err != nil || got != test.want || f.Malformed || f.TooLarge {
			t.Errorf("%s: %q, %v, %v", test.name, got, f.Malformed, err)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, section string
		want          error
	}{
		{"no prefix", "", errShort},
		{"half a prefix", "00", errShort},
		{"a base without its end", "007f", errShort},
		{"a base that is too large", "007fffffffffffffffffff7f", errInteger},
		{"RFC 9204 B.2", "0381 10 11", errDynamic},
		{"RFC 9204 B.4", "0500 80 c1 81", errDynamic},
		{"an insert count of many bytes", "ff8001 00", errDynamic},
		{"a negative base", "0080", errBase},
		{"a negative base, further", "0081 c1", errBase},
		{"an index of the dynamic table", "0000 80", errDynamic},
		{"a name of the dynamic table", "0000 400161", errDynamic},
		{"a name of the dynamic table, never indexed", "0000 600161", errDynamic},
		{"an index after the base", "0000 10", errDynamic},
		{"a name after the base", "0000 000161", errDynamic},
		{"a name after the base, never indexed", "0000 080161", errDynamic},
		{"an index beyond the table", "0000 ff24", errIndex},
		{"a name beyond the table", "0000 5f540161", errIndex},
		{"an index far beyond it", "0000 ffc0ffffffffffffff3f", errIndex},
		{"an index that is too large", "0000 ffffffffffffffffffff01", errInteger},
		{"an index without its end", "0000 ff", errShort},
		{"a name without its end", "0000 5f", errShort},
		{"no value", "0000 51", errShort},
		{"a value that is cut", "0000 510261", errShort},
		{"a length without its end", "0000 517f", errShort},
		{"a length that is too large", "0000 517fffffffffffffffffff7f", errInteger},
		{"a length far beyond the end", "0000 517f80ffffffffffffff3f", errShort},
		{"a literal name that is cut", "0000 2361", errShort},
		{"a literal name without a value", "0000 2161", errShort},
		{"Huffman padding of zeros", "0000 518100", errHuffman},
		{"Huffman padding of 8 bits", "0000 51821fff", errHuffman},
		{"Huffman EOS", "0000 5184ffffffff", errHuffman},
		{"a name with EOS", "0000 2cffffffff 00", errHuffman},
	} {
		var f pack.Fields
		if err := Decode(unhex(test.section), &f, roomy); err != test.want {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
		// quic-go's decoder does not judge the sign of the base.
		if _, err := oracle(unhex(test.section)); err == nil && test.want != errBase {
			t.Errorf("%s: quic-go takes it", test.name)
		}
	}
}

// oracle is what quic-go makes of a section.
func oracle(b []byte) (out []string, _ error) {
	next := qpack.NewDecoder().Decode(b)
	for {
		h, err := next()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		if !pack.Strict(pack.LookupWire([]byte(h.Name))) {
			h.Value = strings.Trim(h.Value, " \t") // ADR 46
		}
		out = append(out, h.Name+": "+h.Value)
	}
}

// Every field of the static table is what it is in quic-go's.
func TestStatic(t *testing.T) {
	t.Parallel()
	for i := range static {
		b := appendIndexed(AppendPrefix(nil), uint8(i))
		var f pack.Fields
		err := Decode(b, &f, roomy)
		want, oracleErr := oracle(b)
		if err != nil || oracleErr != nil || !slices.Equal(lines(&f), want) || f.Malformed {
			t.Errorf("%d: %q, want %q (%v, %v)", i, lines(&f), want, err, oracleErr)
		}
	}
}

func TestDecodeMalformed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, value string
		bad         bool
	}{
		{"a", "b", false},
		{"a", " b c\t", false},
		{"", "b", true},
		{"A", "b", true},
		{"a b", "c", true},
		{":protocol", "websocket", false},
		{":path", " /", true},
		{":other", "c", true},
		{"a", "b\r\nc: d", true},
		{"a", "\x00", true},
		{"user-agent", "\x7f", true},
		{"host", " a", true},
		{"content-length", "1 ", true},
		{"connection", "close", true},
		{"keep-alive", "1", true},
		{"proxy-connection", "1", true},
		{"upgrade", "h2c", true},
		{"transfer-encoding", "chunked", true},
		{"te", "trailers", false}, // the bridge knows which
	} {
		section := pack.AppendText(AppendPrefix(nil), 0x20, 3, test.name)
		section = pack.AppendText(section, 0, 7, test.value)
		var f pack.Fields
		if err := Decode(section, &f, roomy); err != nil || f.Malformed != test.bad {
			t.Errorf("%q %q: %v, %v", test.name, test.value, f.Malformed, err)
		}
		// What follows is not decoded, and so is no error of the connection.
		if err := Decode(append(section, 0x80), &f, roomy); (err == nil) != test.bad {
			t.Errorf("%q %q, and a reference to nothing: %v", test.name, test.value, err)
		}
		id := pack.LookupWire([]byte(test.name))
		if id == 0 {
			continue
		}
		section = pack.AppendText(appendReference(AppendPrefix(nil), 0, id), 0, 7, test.value)
		if err := Decode(section, &f, roomy); err != nil || f.Malformed != test.bad {
			t.Errorf("%q %q by reference: %v, %v", test.name, test.value, f.Malformed, err)
		}
	}
}

// Beyond the limits nothing is kept, and nothing decoded.
func TestDecodeLimits(t *testing.T) {
	t.Parallel()
	var f pack.Fields
	ab := "\x21a\x01b" // 34 as the limit counts
	for _, test := range []struct {
		section string
		lim     pack.Limits
		list    int
		large   bool
	}{
		{"\xd1", pack.Limits{Fields: 10, Bytes: 41}, 0, true}, // ":method: GET"
		{"\xd1", pack.Limits{Fields: 10, Bytes: 42}, 1, false},
		{"\xd1" + ab, pack.Limits{Fields: 10, Bytes: 75}, 1, true},
		{"\xd1" + ab, pack.Limits{Fields: 10, Bytes: 76}, 2, false},
		{"\xd1" + ab, pack.Limits{Fields: 1, Bytes: 76}, 1, true},
		{"\x51\x01/", pack.Limits{Fields: 10, Bytes: 37}, 0, true},
		{"\x51\x01/", pack.Limits{Fields: 10, Bytes: 38}, 1, false},
		{strings.Repeat(ab, 10), pack.Limits{Fields: 10, Bytes: 340}, 10, false},
		{strings.Repeat(ab, 100) + "\x80", pack.Limits{Fields: 10, Bytes: 1 << 20}, 10, true},
		// Two bytes stand for 76: the content security policy of the table.
		{strings.Repeat("\xff\x16", 60_000), pack.Limits{Fields: 1 << 20, Bytes: 100_000}, 925, true},
		{"\x21a" + string(pack.AppendText(nil, 0, 7, strings.Repeat("0", 1<<20))), pack.Limits{Fields: 10, Bytes: 1000}, 0, true},
	} {
		err := Decode([]byte("\x00\x00"+test.section), &f, test.lim)
		if err != nil || len(f.List) != test.list || f.TooLarge != test.large || f.Malformed {
			t.Errorf("%.20q: %d fields, %v, %v", test.section, len(f.List), f.TooLarge, err)
		}
		if !f.TooLarge && f.Size() > test.lim.Bytes || len(f.Bytes) > test.lim.Bytes {
			t.Errorf("%.20q: %d bytes, counted as %d", test.section, len(f.Bytes), f.Size())
		}
	}
}

// FuzzDecode: a section is what it is to quic-go's decoder.
func FuzzDecode(f *testing.F) {
	f.Add(unhex("0000510b2f696e6465782e68746d6c"))
	f.Add(unhex("0000 2f0125a849e95ba97d7f 8925a849e95bb8e8b4bf"))
	f.Add(unhex("0000 d1 d7 ff16 7f450161 2161 03206220"))
	f.Add(unhex("0381 10 11"))
	var out bytes.Buffer
	enc := qpack.NewEncoder(&out)
	for _, h := range browser {
		enc.WriteField(qpack.HeaderField{Name: h[0], Value: h[1]})
	}
	f.Add(out.Bytes())
	f.Fuzz(func(t *testing.T, section []byte) {
		var fields pack.Fields
		err := Decode(section, &fields, roomy)
		if e := (*ConnError)(nil); err != nil && (!errors.As(err, &e) || e.Code != QPACKDecompressionFailed) {
			t.Fatalf("%x: %v", section, err)
		}
		got := lines(&fields)
		want, oracleErr := oracle(section)
		switch {
		case err == errBase || len(section) > 1 && section[1] != 0:
			return // quic-go takes the sign, and no base but 0
		case err == errInteger:
			return // quic-go reads longer ones
		case fields.Malformed:
			if len(got) > len(want) || !slices.Equal(got, want[:len(got)]) {
				t.Fatalf("%x: %q, quic-go: %q", section, got, want)
			}
			return
		}
		if (err == nil) != (oracleErr == nil) || err == nil && !slices.Equal(got, want) {
			t.Fatalf("%x: %q, %v, quic-go: %q, %v", section, got, err, want, oracleErr)
		}
		// Within limits that are too small for it, it is a part of the same.
		lim := pack.Limits{Fields: 3, Bytes: 100}
		if err := Decode(section, &fields, lim); err == nil && (len(fields.List) > 3 || len(fields.Bytes) > 100 ||
			!slices.Equal(lines(&fields), want[:len(fields.List)])) {
			t.Fatalf("%x within limits: %q", section, lines(&fields))
		}
	})
}

var browser = [][2]string{
	{":method", "GET"}, {":authority", "www.example.com"}, {":scheme", "https"}, {":path", "/some/path?with=a&query=1"},
	{"user-agent", "Mozilla/5.0 (X11; Linux x86_64; rv:142.0) Gecko/20100101 Firefox/142.0"},
	{"accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}, {"accept-language", "en-US,en;q=0.5"},
	{"accept-encoding", "gzip, deflate, br, zstd"}, {"cookie", "session=0123456789abcdef"}, {"sec-fetch-mode", "navigate"},
	{"upgrade-insecure-requests", "1"}, {"origin", "https://www.example.com"}, {"priority", "u=0, i"},
}

// request is that of a browser, as quic-go encodes it.
func request() []byte {
	var out bytes.Buffer
	enc := qpack.NewEncoder(&out)
	for _, h := range browser {
		enc.WriteField(qpack.HeaderField{Name: h[0], Value: h[1]})
	}
	return out.Bytes()
}

func TestDecodeAllocs(t *testing.T) {
	section := request()
	var f pack.Fields
	if err := Decode(section, &f, roomy); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, h := range browser {
		want = append(want, h[0]+": "+h[1])
	}
	if got := lines(&f); !slices.Equal(got, want) {
		t.Fatalf("%q, want %q", got, want)
	}
	if n := testing.AllocsPerRun(100, func() { Decode(section, &f, roomy) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkDecode(b *testing.B) {
	section := request()
	b.Run("own", func(b *testing.B) {
		var f pack.Fields
		for b.Loop() {
			Decode(section, &f, roomy)
		}
	})
	b.Run("quic-go", func(b *testing.B) {
		b.ReportAllocs()
		d := qpack.NewDecoder()
		for b.Loop() {
			for next := d.Decode(section); ; {
				if _, err := next(); err != nil {
					break
				}
			}
		}
	})
}
