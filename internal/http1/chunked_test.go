package http1

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/http/httputil"
	"strings"
	"testing"
)

// decodeIn decodes b given in the parts that cut makes of what is left (it
// returns the length of the next part), each where it is. n is where decoding
// ended.
func decodeIn(b []byte, cut func(left int) int) (data []byte, n int, done bool, err error) {
	var c Chunked
	b = bytes.Clone(b)
	for n < len(b) && !done {
		part := b[n : n+cut(len(b)-n)]
		k, used, d, err := c.Decode(part, part)
		data = append(data, part[:k]...)
		n += used
		if err != nil || used < len(part) && !d {
			return data, n, false, err
		}
		done = d
	}
	return data, n, done, nil
}

// decodeInto decodes b whole into buffers whose sizes room returns.
func decodeInto(b []byte, room func() int) (data []byte, n int, done bool, err error) {
	var c Chunked
	for n < len(b) && !done && err == nil {
		var k, used int
		dst := make([]byte, room())
		k, used, done, err = c.Decode(dst, b[n:])
		data = append(data, dst[:k]...)
		n += used
	}
	return data, n, done, err
}

func all(left int) int { return left }
func one(int) int      { return 1 }

// checkChunked requires the same answer to b whole, byte by byte and in two
// parts, and returns it.
func checkChunked(t *testing.T, b []byte) (data []byte, n int, done bool, err error) {
	t.Helper()
	data, n, done, err = decodeIn(b, all)
	compare := func(how string, i int, cut func(int) int) {
		d2, n2, done2, err2 := decodeIn(b, cut)
		if !bytes.Equal(d2, data) || n2 != n || done2 != done || err2 != err {
			t.Errorf("%s\n%s %d: %q, %d, %v, %v\nwhole: %q, %d, %v, %v", show(b), how, i, d2, n2, done2, err2, data, n, done, err)
		}
	}
	compare("byte by byte", 0, one)
	for room := 1; room < 5; room++ {
		d2, n2, done2, err2 := decodeInto(b, func() int { return room })
		if !bytes.Equal(d2, data) || n2 != n || done2 != done || err2 != err {
			t.Errorf("%s\ninto %d: %q, %d, %v, %v\nwhole: %q, %d, %v, %v", show(b), room, d2, n2, done2, err2, data, n, done, err)
		}
	}
	for i := 1; i < len(b); i++ {
		compare("split at", i, func(left int) int {
			if left == len(b) {
				return i
			}
			return left
		})
	}
	return data, n, done, err
}

func TestChunked(t *testing.T) {
	for _, c := range []struct{ in, want, why string }{
		{"0\r\n", "", "no data"},
		{"0000000000000000\r\n", "", "sixteen zeros"},
		{"5\r\nhello\r\n0\r\n", "hello", "one chunk"},
		{"5\r\nhello\r\n6\r\n world\r\n0\r\n", "hello world", "two chunks"},
		{"000a\r\n0123456789\r\n0\r\n", "0123456789", "leading zeros"},
		{"A\r\n0123456789\r\n00\r\n", "0123456789", "upper case"},
		{"4\r\n\r\n\r\n\r\n0\r\n", "\r\n\r\n", "line ends in the data"},
		{"1;a\r\nx\r\n0;b=c\r\n", "x", "extensions"},
		{"1;a;b=c;d=\"e\"\r\nx\r\n0\r\n", "x", "several"},
		{"1 \t; a \t=\t b ; c = \"d\" ;e\r\nx\r\n0\r\n", "x", "BWS everywhere it may be"},
		{"1;a=\"\"\r\nx\r\n0\r\n", "x", "empty quoted string"},
		{"1;a=\"\t !#;=[]~\x80\xff\"\r\nx\r\n0\r\n", "x", "every qdtext"},
		{"1;a=\"\\\"\\\\\\x\\ \\\t\\\x80\"\r\nx\r\n0\r\n", "x", "quoted pairs"},
		{"1;" + strings.Repeat("a", 4096-4) + "\r\nx\r\n0\r\n", "x", "longest line"},
	} {
		for _, rest := range []string{"", "\r\n", "A: b\r\n\r\nGET /"} {
			data, n, done, err := checkChunked(t, []byte(c.in+rest))
			if string(data) != c.want || n != len(c.in) || !done || err != nil {
				t.Errorf("%s: %s: got %q, %d, %v, %v", c.why, show([]byte(c.in)), data, n, done, err)
			}
		}
		for i := range c.in {
			if _, n, done, err := decodeIn([]byte(c.in[:i]), all); n != i || done || err != nil {
				t.Errorf("%s: first %d bytes of %s: got %d, %v, %v, want need more", c.why, i, show([]byte(c.in)), n, done, err)
			}
		}
	}
}

func TestChunkedRefuse(t *testing.T) {
	for _, c := range []struct {
		in   string
		want *Error
		why  string
	}{
		{"\r\n", errChunkSize, "no size"},
		{";a\r\n", errChunkSize, "no size, extension"},
		{" 1\r\n", errChunkSize, "space before"},
		{"+1\r\n", errChunkSize, "sign"},
		{"-1\r\n", errChunkSize, "sign"},
		{"0x1\r\n", errChunkSize, "prefix"},
		{"1_0\r\n", errChunkSize, "underscore"},
		{"g\r\n", errChunkSize, "not a digit"},
		{"1\x00\r\n", errChunkSize, "NUL"},
		{"1\n", errChunkSize, "bare LF"},
		{"1\rx", errBareCR, "bare CR"},
		{"1\r\r\n", errBareCR, "two CR"},
		{"1 \r\n", errChunkExt, "space after it"},
		{"1 2\r\n", errChunkExt, "two sizes"},
		{"1 \n", errChunkExt, "bare LF after space"},
		{"8000000000000000\r\n", errChunkTooLarge, "one too many for int64"},
		{"ffffffffffffffff\r\n", errChunkTooLarge, "overflow"},
		{"10000000000000001\r\n", errChunkTooLarge, "wraps uint64"},
		{"00000000000000001\r\n", errChunkTooLarge, "seventeen digits"},
		{"1;\r\n", errChunkExt, "no name"},
		{"1;;a\r\n", errChunkExt, "no name"},
		{"1;=a\r\n", errChunkExt, "no name"},
		{"1;a \r\n", errChunkExt, "space after the name"},
		{"1;a b\r\n", errChunkExt, "two names"},
		{"1;a=\r\n", errChunkExt, "no value"},
		{"1;a=;b\r\n", errChunkExt, "no value"},
		{"1;a==b\r\n", errChunkExt, "two equals signs"},
		{"1;a=b=c\r\n", errChunkExt, "two values"},
		{"1;a=b \r\n", errChunkExt, "space after the value"},
		{"1;a=b c\r\n", errChunkExt, "two values"},
		{"1;a=b\"c\"\r\n", errChunkExt, "quote within a token"},
		{"1;\"a\"\r\n", errChunkExt, "quoted name"},
		{"1;a=\"b\"c\r\n", errChunkExt, "after the quote"},
		{"1;a=\"b\" \r\n", errChunkExt, "space after the quote"},
		{"1;a=\"b\r\n", errChunkExt, "quote does not end"},
		{"1;a=\"b\n\"\r\n", errChunkExt, "LF in quotes"},
		{"1;a=\"\\\r\"\r\n", errChunkExt, "CR in a quoted pair"},
		{"1;a=\"\x7f\"\r\n", errChunkExt, "DEL in quotes"},
		{"1;a\n", errChunkExt, "bare LF after the name"},
		{"1;a=b\n", errChunkExt, "bare LF after the value"},
		{"1;a(\r\n", errChunkExt, "not a tchar"},
		{"1;a\x80\r\n", errChunkExt, "not a tchar"},
		{"1\r\nxy", errChunkEnd, "data longer than its size"},
		{"1\r\nx\n", errChunkEnd, "bare LF after the data"},
		{"1\r\nx\rx", errChunkEnd, "bare CR after the data"},
		{"1\r\nx0\r\n", errChunkEnd, "nothing after the data"},
		{"1;" + strings.Repeat("a", 4097-4) + "\r\n", ErrChunkLine, "line one byte too long"},
		{strings.Repeat("1;"+strings.Repeat("a", 2000)+"\r\nx\r\n", 9), errChunkExcess, "long extensions on small chunks"},
		{strings.Repeat("1;"+strings.Repeat("a", 20)+"\r\nx\r\n", 3000), errChunkExcess, "short extensions on very many small chunks"},
	} {
		check := checkChunked
		if len(c.in) > 5000 {
			check = func(_ *testing.T, b []byte) ([]byte, int, bool, error) { return decodeIn(b, all) }
		}
		_, _, _, err := check(t, []byte(c.in))
		if got := asError(t, err); got != c.want {
			t.Errorf("%s: %s: got %v, want %v", c.why, show([]byte(c.in)), err, c.want)
		}
	}
}

func TestChunkedAllowsSmallChunks(t *testing.T) {
	for _, chunk := range []string{"1\r\nx\r\n", "1;a=bcdefgh\r\nx\r\n"} {
		in := strings.Repeat(chunk, 100000) + "0\r\n"
		data, n, done, err := decodeIn([]byte(in), all)
		if len(data) != 100000 || n != len(in) || !done || err != nil {
			t.Errorf("%q many times: got %d bytes, %d, %v, %v", chunk, len(data), n, done, err)
		}
	}
}

// A chunk as large as can be announced is decoded without its being there.
func TestChunkedHuge(t *testing.T) {
	var c Chunked
	if n, used, _, err := c.Decode(nil, []byte("7fffffffffffffff\r\n")); n != 0 || used != 18 || err != nil {
		t.Fatal(n, used, err)
	}
	dst := make([]byte, 10)
	for i := range 3 {
		if left := c.Left(); left != 1<<63-1-uint64(3*i) {
			t.Errorf("%x are left", left)
		}
		n, used, done, err := c.Decode(dst, []byte("abc"))
		if string(dst[:n]) != "abc" || used != 3 || done || err != nil {
			t.Fatalf("got %q, %d, %v, %v", dst[:n], used, done, err)
		}
	}
}

// What does not fit stays, and framing is read without room for data.
func TestChunkedFull(t *testing.T) {
	in := "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
	var c Chunked
	dst := make([]byte, 2)
	at := 0
	for _, want := range []struct {
		room, n, used int
		left          uint64
		done          bool
		why           string
	}{
		{0, 0, 3, 3, false, "up to the data"},
		{0, 0, 0, 3, false, "no further"},
		{2, 2, 2, 1, false, "part of a chunk"},
		{2, 2, 7, 1, false, "the rest and part of another"},
		{1, 1, 6, 0, true, "the rest and the end"},
		{2, 0, 0, 0, true, "nothing after the end"},
	} {
		n, used, done, err := c.Decode(dst[:want.room], []byte(in[at:]))
		if n != want.n || used != want.used || done != want.done || err != nil || c.Left() != want.left {
			t.Errorf("%s: %d, %d, %v, %v, %d left; want %+v", want.why, n, used, done, err, c.Left(), want)
		}
		at += used
	}
}

// encodeChunks writes data as net/http would if pieces of random size were
// flushed, with chert's encoder.
func encodeChunks(data []byte, rnd *rand.Rand) []byte {
	var out []byte
	for len(data) > 0 {
		k := 1 + rnd.IntN(min(len(data), 1+rnd.IntN(3000)))
		out = AppendChunkSize(out, k)
		out = append(out, data[:k]...)
		out = append(out, "\r\n"...)
		data = data[k:]
	}
	return AppendChunkSize(out, 0)
}

func TestChunkedRoundTrip(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	random := func(left int) int { return 1 + rnd.IntN(min(left, 700)) }
	for range 200 {
		data := make([]byte, rnd.IntN(10000))
		for i := range data {
			data[i] = byte(rnd.Uint32())
		}
		wire := encodeChunks(data, rnd)
		got, n, done, err := decodeIn(wire, random)
		if !bytes.Equal(got, data) || n != len(wire) || !done || err != nil {
			t.Fatalf("own encoder: %d, %v, %v", n, done, err)
		}
		got, err = io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(wire)))
		if !bytes.Equal(got, data) || err != nil {
			t.Fatalf("net/http's decoder: %v", err)
		}
		var buf bytes.Buffer
		w := httputil.NewChunkedWriter(&buf)
		for rest := data; len(rest) > 0; {
			k := random(len(rest))
			w.Write(rest[:k])
			rest = rest[k:]
		}
		w.Close()
		got, n, done, err = decodeIn(buf.Bytes(), random)
		if !bytes.Equal(got, data) || n != buf.Len() || !done || err != nil {
			t.Fatalf("net/http's encoder: %d, %v, %v", n, done, err)
		}
	}
}
