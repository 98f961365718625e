package http3

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quic-go/qpack"

	"github.com/chert-http/chert/internal/pack"
)

// How fields are encoded: whole, by name, or as literals.
func TestAppend(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		got  []byte
		want string
	}{
		{"RFC 9204 B.1, in Huffman's code", AppendKnown(AppendPrefix(nil), pack.IDPath, "/index.html"), "0000 51 8860d5485f2bce9a68"},
		{"prefix", AppendPrefix(nil), "0000"},
		{"status of one byte", AppendStatus(nil, 200), "d9"},
		{"status of two", AppendStatus(nil, 500), "ff08"},
		{"another status", AppendStatus(nil, 418), "5f09 03 343138"},
		{"whole", AppendField(nil, "Vary", "accept-encoding"), "fb"},
		{"whole, without a value", AppendField(nil, "Date", ""), "c6"},
		{"whole, second of its name", AppendField(nil, "X-Frame-Options", "sameorigin"), "ff23"},
		{"by name", AppendField(nil, "Age", "1"), "52 0131"},
		{"by a name of more bytes", AppendField(nil, "Server", "a"), "5f4d 0161"},
		{"never indexed", AppendField(nil, "Set-Cookie", "a"), "7e 0161"},
		{"never indexed, of more bytes", AppendField(nil, "Authorization", "a"), "7f45 0161"},
		{"literal", AppendField(nil, "q", "a"), "2171 0161"},
		{"literal name that HPACK has", AppendField(nil, "Via", "1"), fmt.Sprintf("%x", append(pack.AppendText(nil, 0x20, 3, "via"), 1, '1'))},
		{"number", AppendInt(nil, pack.IDContentLength, 13), "54 023133"},
		{"0", AppendInt(nil, pack.IDContentLength, 0), "c4"},
		{"0 by name", AppendInt(nil, pack.IDRange, 0), "5f28 0130"},
		{"number of another field", AppendInt(nil, pack.IDRetryAfter, 5), fmt.Sprintf("%x", append(pack.AppendText(nil, 0x20, 3, "retry-after"), 1, '5'))},
		{"type that is whole", AppendType(nil, "text/css"), "f3"},
		{"pseudo-field without the table", AppendKnown(nil, pack.IDProtocol, "a"), fmt.Sprintf("%x", append(pack.AppendText(nil, 0x20, 3, ":protocol"), 1, 'a'))},
		{"a name that is none", AppendField(nil, "a b", "c"), ""},
		{"a value that is none", AppendField(nil, "Age", "1\r\nb: c"), ""},
	} {
		if !bytes.Equal(test.got, unhex(test.want)) {
			t.Errorf("%s: %x, want %s", test.name, test.got, test.want)
		}
	}
}

// What the encoder writes quic-go reads, and Decode.
func TestEncode(t *testing.T) {
	t.Parallel()
	b := AppendPrefix(nil)
	var want []string
	for status := 100; status < 1000; status++ {
		b = AppendStatus(b, status)
		want = append(want, fmt.Sprint(":status: ", status))
	}
	for _, f := range [][2]string{
		{"Content-Type", "text/plain; charset=utf-8"}, {"X-Thing", "1"}, {"ETag", `"a"`}, {"Etag", `"a"`}, {"Set-Cookie", "a=b"},
		{"Www-Authenticate", "Basic"}, {"x-lower", strings.Repeat("é", 400)}, {"A", ""}, {"Vary", "Origin"}, {"vary", "origin"},
		{"Vary", " Origin\t"}, {"A", " "}, {strings.Repeat("Long-", 60), "a"}, {"Access-Control-Allow-Credentials", "true"},
	} {
		b = AppendField(b, f[0], f[1])
		want = append(want, strings.ToLower(f[0])+": "+strings.Trim(f[1], " \t"))
	}
	for id := pack.NameID(1); id < pack.NameIDs; id++ {
		if id.Name() == "" || id == pack.IDTransferEncoding {
			continue
		}
		b = AppendInt(AppendKnown(AppendKnown(b, id, ""), id, "value"), id, 1<<40)
		for _, v := range []string{"", "value", fmt.Sprint(1 << 40)} {
			want = append(want, id.Name()+": "+v)
		}
	}
	have := len(b)
	for _, f := range [][2]string{{"A", "b\r\nc: d"}, {"A b", "c"}, {"", "c"}, {"Ä", "c"}, {"Vary", "\x00"}, {"a:", "b"}} {
		if b = AppendField(b, f[0], f[1]); len(b) != have {
			t.Errorf("%q is sent", f)
		}
	}
	if got, err := oracle(b); err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, want %q (%v)", got, want, err)
	}
	var f pack.Fields
	if err := Decode(b, &f, roomy); err != nil || !slices.Equal(lines(&f), want) {
		t.Errorf("%q, want %q (%v)", lines(&f), want, err)
	}
}

// FuzzEncode: what is encoded is decoded, here and by quic-go.
func FuzzEncode(f *testing.F) {
	f.Add("Content-Type", "text/plain; charset=utf-8")
	f.Add("X-Frame-Options", "sameorigin")
	f.Add("x-a", " b\t")
	f.Add("Set-Cookie", "a=b")
	f.Fuzz(func(t *testing.T, name, value string) {
		b := AppendField(AppendPrefix(nil), name, value)
		sent, ok := pack.SentValue(value)
		var want []string
		if ok && pack.ValidName(name) {
			want = []string{strings.ToLower(name) + ": " + sent}
		}
		var fields pack.Fields
		err := Decode(b, &fields, roomy)
		// What must not be in a message is not for a codec to say of an application's fields.
		if fields.Malformed {
			return
		}
		if got := lines(&fields); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%q: %q is %q, want %q (%v)", name, value, got, want, err)
		}
		if got, err := oracle(b); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%q: %q is %q to quic-go, want %q (%v)", name, value, got, want, err)
		}
	})
}

var answer = [][2]string{
	{"Content-Type", "text/plain; charset=utf-8"}, {"Date", "Mon, 21 Oct 2013 20:13:21 GMT"}, {"X-Content-Type-Options", "nosniff"},
	{"Cache-Control", "no-store"}, {"X-Request-Id", "0123456789abcdef"},
}

func TestEncodeAllocs(t *testing.T) {
	b := make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(100, func() {
		b = AppendInt(AppendStatus(AppendPrefix(b[:0]), 200), pack.IDContentLength, 13)
		for _, h := range answer {
			b = AppendField(b, h[0], h[1])
		}
		b = AppendType(AppendStatus(b, 418), "text/html")
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkEncode(b *testing.B) {
	b.Run("own", func(b *testing.B) {
		var out []byte
		for b.Loop() {
			out = AppendStatus(AppendPrefix(out[:0]), 200)
			for _, h := range answer {
				out = AppendField(out, h[0], h[1])
			}
		}
		b.ReportMetric(float64(len(out)), "bytes")
	})
	b.Run("quic-go", func(b *testing.B) {
		var out bytes.Buffer
		for b.Loop() {
			out.Reset()
			enc := qpack.NewEncoder(&out)
			enc.WriteField(qpack.HeaderField{Name: ":status", Value: "200"})
			for _, h := range answer {
				enc.WriteField(qpack.HeaderField{Name: strings.ToLower(h[0]), Value: h[1]})
			}
		}
		b.ReportMetric(float64(out.Len()), "bytes")
	})
}
