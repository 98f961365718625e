package http1

import (
	"fmt"
	"strings"
	"testing"
)

func TestRefuse(t *testing.T) {
	line := "GET / HTTP/1.1\r\n"
	put := "PUT / HTTP/1.1\r\n" + h
	for _, c := range []struct {
		in   string
		want *Error
		why  string
	}{
		// First byte.
		{"\x16\x03\x01\x02\x00\x01", errFirstByte, "TLS ClientHello, no LF in it"},
		{" GET", errFirstByte, "space"},
		{"\n", errFirstByte, "bare LF before the request line"},
		{"\r\n\r\n\r\nGET", errFirstByte, "a third empty line"},
		{"\r\n\x16", errFirstByte, "after the leading CRLF too"},
		{"\rG", errBareCR, "bare CR before the request line"},
		{"\x00", errFirstByte, "NUL"},
		{"\x80", errFirstByte, "high byte"},
		// Request line.
		{"GET\r\n", errMethod, "method alone"},
		{"GET \r\n", errTarget, "no target"},
		{"GET /\r\n", errTarget, "HTTP/0.9"},
		{"GET / \r\n", errVersion, "empty version"},
		{"G(T / HTTP/1.1\r\n", errMethod, "not a token"},
		{"G\x80T / HTTP/1.1\r\n", errMethod, "not a token"},
		{"GET\t/ HTTP/1.1\r\n", errMethod, "HTAB between"},
		{"GET  / HTTP/1.1\r\n", errTarget, "two spaces"},
		{"GET /  HTTP/1.1\r\n", errVersion, "two spaces"},
		{"GET /\tHTTP/1.1\r\n", errTarget, "HTAB between"},
		{"GET /a b HTTP/1.1\r\n", errVersion, "space in the target"},
		{"GET / HTTP/1.1 \r\n", errVersion, "space after it"},
		{"GET /\x00 HTTP/1.1\r\n", errTarget, "NUL"},
		{"GET /\x7f HTTP/1.1\r\n", errTarget, "DEL"},
		{"GET /\x1f34567890 HTTP/1.1\r\n", errTarget, "control"},
		{"GET /\r/ HTTP/1.1\r\n", errTarget, "bare CR"},
		{"GET / HTTP/1.1\n", errVersion, "bare LF"},
		{"GET / HTTP/1.1\rX\n", errVersion, "bare CR"},
		{"GET / HTTP/1.1\r\r\n", errVersion, "two CR"},
		{"GET / http/1.1\r\n", errVersion, "lower case"},
		{"GET / HTTP/1\r\n", errVersion, "no minor"},
		{"GET / HTTP/1.\r\n", errVersion, "no minor"},
		{"GET / HTTP/1.10\r\n", errVersion, "two digits"},
		{"GET / HTTP/11.1\r\n", errVersion, "two digits"},
		{"GET / HTTP/01.1\r\n", errVersion, "leading zero"},
		{"GET / HTTP/1,1\r\n", errVersion, "comma"},
		{"GET / HTTP/a.1\r\n", errVersion, "letter"},
		{"GET / HTTPS/1.1\r\n", errVersion, "name"},
		{"GET / HTTP/0.9\r\n", errMajor, "older"},
		{"GET / HTTP/2.0\r\n", errMajor, "newer"},
		{"PRI * HTTP/2.0\r\nHost: a\r\n\r\n", errMajor, "the HTTP/2 preface has no fields"},
		{"CONNECT /x HTTP/1.0\nHost: a\n\n", errVersion, "net/rpc sends no fields"},
		{"CONNECT a:1 HTTP/1.0\n\n", errVersion, "nor an authority"},
		{"CONNECT /x HTTP/1.1\n\n", errVersion, "nor 1.1"},
		{"GET /x HTTP/1.0\n\n", errVersion, "nor GET"},
		{"PRI / HTTP/2.0\r\n", errMajor, "not the preface"},
		{"PRI * HTTP/2.1\r\n", errMajor, "not the preface"},
		{"GET * HTTP/2.0\r\n", errMajor, "not the preface"},
		// Target form.
		{"OPTIONS ** HTTP/1.1\r\n", errTargetForm, "not asterisk-form"},
		{"GET a HTTP/1.1\r\n", errTargetForm, "no slash"},
		{"GET a/b HTTP/1.1\r\n", errTargetForm, "no slash"},
		{"GET ?a HTTP/1.1\r\n", errTargetForm, "query only"},
		{"GET a:80 HTTP/1.1\r\n", errTargetForm, "authority-form is for CONNECT"},
		{"GET mailto:a HTTP/1.1\r\n", errTargetForm, "no authority"},
		{"GET http:/a HTTP/1.1\r\n", errTargetForm, "one slash"},
		{"GET ://a HTTP/1.1\r\n", errTargetForm, "no scheme"},
		{"GET 1a://b HTTP/1.1\r\n", errTargetForm, "scheme begins with a digit"},
		{"GET a_b://c HTTP/1.1\r\n", errTargetForm, "not a scheme byte"},
		{"GET http:///a HTTP/1.1\r\n", errTargetForm, "RFC 9110 4.2.1: empty host"},
		{"GET http://:80/ HTTP/1.1\r\n", errTargetForm, "RFC 9110 4.2.1: empty host"},
		{"GET http:// HTTP/1.1\r\n", errTargetForm, "RFC 9110 4.2.1: empty host"},
		{"GET http://u@a/ HTTP/1.1\r\n", errTargetForm, "RFC 9110 4.2.4: userinfo"},
		{"GET http://a:b/ HTTP/1.1\r\n", errTargetForm, "port"},
		{"CONNECT a HTTP/1.1\r\n", errTargetForm, "no port"},
		{"CONNECT a: HTTP/1.1\r\n", errTargetForm, "empty port"},
		{"CONNECT a:0 HTTP/1.1\r\n", errTargetForm, "port 0"},
		{"CONNECT a:65536 HTTP/1.1\r\n", errTargetForm, "port too large"},
		{"CONNECT a:99999999999999999999999 HTTP/1.1\r\n", errTargetForm, "port overflow"},
		{"CONNECT :80 HTTP/1.1\r\n", errTargetForm, "no host"},
		{"CONNECT a:80/ HTTP/1.1\r\n", errTargetForm, "path"},
		{"CONNECT http://a:80/ HTTP/1.1\r\n", errTargetForm, "absolute-form"},
		{"CONNECT * HTTP/1.1\r\n", errTargetForm, "asterisk-form"},
		// Field lines.
		{line + " A: b\r\n", errFold, "space after the request line"},
		{line + "A: b\r\n c\r\n", errFold, "obs-fold"},
		{line + "A: b\r\n\tc\r\n", errFold, "obs-fold with HTAB"},
		{line + "A : b\r\n", errSpaceColon, "space"},
		{line + "A\t: b\r\n", errSpaceColon, "HTAB"},
		{line + "A b: c\r\n", errSpaceColon, "space in the name"},
		{line + ": b\r\n", errFieldName, "empty name"},
		{line + "A\r\n", errFieldName, "no colon"},
		{line + "A\n", errFieldName, "no colon, bare LF"},
		{line + "A(: b\r\n", errFieldName, "not a tchar"},
		{line + "\x80: b\r\n", errFieldName, "high byte"},
		{line + "A\x00: b\r\n", errFieldName, "NUL"},
		{line + "A: b\x00\r\n", errFieldValue, "NUL"},
		{line + "A: b\x01c\r\n", errFieldValue, "control"},
		{line + "A: 1234567890\x0b\r\n", errFieldValue, "control after a word"},
		{line + "A: b\x7f\r\n", errFieldValue, "DEL"},
		{line + "A: b\x80\x81\x82\x83\x84\x85\x7f\r\n", errFieldValue, "DEL after high bytes"},
		{line + "A: b\rc\r\n", errBareCR, "bare CR"},
		{line + "A: b\r\r\n", errBareCR, "two CR"},
		{line + "A: b\n", errBareLF, "bare LF"},
		{line + "A:\n", errBareLF, "bare LF, no value"},
		{line + h + "\n", errBareLF, "bare LF for the empty line"},
		{line + h + "\rX\n", errBareCR, "bare CR for the empty line"},
		{line + h + "\r\r\n", errBareCR, "two CR for the empty line"},
		// Host.
		{line + "\r\n", errNoHost, "1.1 needs one"},
		{"GET http://a/ HTTP/1.1\r\n\r\n", errNoHost, "absolute-form too"},
		{line + h + h + "\r\n", errManyHosts, "two, equal"},
		{"GET / HTTP/1.0\r\n" + h + "HOST: b\r\n\r\n", errManyHosts, "1.0 too"},
		{line + "Host: a b\r\n\r\n", errHost, "space"},
		{line + "Host: a,b:1:2\r\n\r\n", errHost, "two colons"},
		{line + "Host: a/\r\n\r\n", errHost, "path"},
		{line + "Host: u@a\r\n\r\n", errHost, "userinfo"},
		{line + "Host: a:8x\r\n\r\n", errHost, "port"},
		{line + "Host: a%2\r\n\r\n", errHost, "half an escape"},
		{line + "Host: a%zz\r\n\r\n", errHost, "no escape"},
		{line + "Host: [::1\r\n\r\n", errHost, "no closing bracket"},
		{line + "Host: []\r\n\r\n", errHost, "empty literal"},
		{line + "Host: [::1]x\r\n\r\n", errHost, "after the bracket"},
		{line + "Host: a[::1]\r\n\r\n", errHost, "bracket within"},
		{line + "Host: ::1%<script>\r\n\r\n", errHost, "a zone of an address without brackets may be anything"},
		{line + "Host: ::1% a/@x\r\n\r\n", errHost, "the same"},
		{line + "Host: ::1:80:\r\n\r\n", errHost, "neither an address nor a host and a port"},
		{line + "Host: \xc3\xa9\r\n\r\n", errHost, "not ASCII"},
		{"GET http://b/ HTTP/1.1\r\nHost: a b\r\n\r\n", errHost, "judged even where the target overrides it"},
		// Content-Length.
		{put + "Content-Length:\r\n\r\n", errLength, "empty"},
		{put + "Content-Length: +1\r\n\r\n", errLength, "sign"},
		{put + "Content-Length: -1\r\n\r\n", errLength, "sign"},
		{put + "Content-Length: 1 2\r\n\r\n", errLength, "space"},
		{put + "Content-Length: 0x1\r\n\r\n", errLength, "prefix"},
		{put + "Content-Length: 1_0\r\n\r\n", errLength, "underscore"},
		{put + "Content-Length: 1, 1\r\n\r\n", errLength, "list, equal"},
		{put + "Content-Length: 1,\r\n\r\n", errLength, "list"},
		{put + "Content-Length: 9223372036854775808\r\n\r\n", errLength, "one too many for int64"},
		{put + "Content-Length: 18446744073709551617\r\n\r\n", errLength, "wraps uint64"},
		{put + "Content-Length: 92233720368547758089\r\n\r\n", errLength, "wraps int64 to 9"},
		{put + "Content-Length: 99999999999999999999999999\r\n\r\n", errLength, "overflow"},
		{put + "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", errManyLengths, "two, equal"},
		{put + "Content-Length: 1\r\ncontent-length: 2\r\n\r\n", errManyLengths, "two, different"},
		// Transfer-Encoding.
		{put + "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", errLengthAndCoding, "both"},
		{put + "Content-Length: 0\r\nTransfer-Encoding: gzip\r\n\r\n", errLengthAndCoding, "both"},
		{"PUT / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", errCodingVersion, "1.0"},
		{"PUT / HTTP/1.0\r\nTransfer-Encoding:\r\n\r\n", errCodingVersion, "1.0, even empty"},
		{put + "Transfer-Encoding:\r\n\r\n", errChunkedNotFinal, "no coding at all"},
		{put + "Transfer-Encoding: ,\r\n\r\n", errChunkedNotFinal, "no coding at all"},
		{put + "Transfer-Encoding: gzip\r\n\r\n", errUnknownCoding, "unknown"},
		{put + "Transfer-Encoding: identity\r\n\r\n", errUnknownCoding, "no longer a coding"},
		{put + "Transfer-Encoding: xchunked\r\n\r\n", errUnknownCoding, "unknown"},
		{put + "Transfer-Encoding: gzip, chunked\r\n\r\n", errUnknownCoding, "unknown before chunked"},
		{put + "Transfer-Encoding: gzip;q=1, chunked\r\n\r\n", errUnknownCoding, "unknown with a parameter"},
		{put + "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n", errUnknownCoding, "unknown before, own field"},
		{put + "Transfer-Encoding: chunked, gzip\r\n\r\n", errChunkedNotFinal, "not final"},
		{put + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n", errChunkedNotFinal, "not final, own field"},
		{put + "Transfer-Encoding: chunked, chunked\r\n\r\n", errChunkedNotFinal, "twice"},
		{put + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", errChunkedNotFinal, "twice, own field"},
		{put + "Transfer-Encoding: chunked;a=b\r\n\r\n", errChunkedParameter, "parameter"},
		{put + "Transfer-Encoding: chunked ;\r\n\r\n", errChunkedParameter, "half a parameter"},
		{put + "Transfer-Encoding: chunked x\r\n\r\n", errCoding, "two words"},
		{put + "Transfer-Encoding: \"chunked\"\r\n\r\n", errCoding, "quoted"},
		{put + "Transfer-Encoding: =chunked\r\n\r\n", errCoding, "not a token"},
		// Trailer.
		{put + "Transfer-Encoding: chunked\r\nTrailer: a, content-length\r\n\r\n", errTrailerName, "framing in a trailer"},
	} {
		a := checkSplits(t, []byte(c.in), nil)
		if got := asError(t, a.err); got != c.want {
			t.Errorf("%s: %s: got %d, %v, want %v", c.why, show([]byte(c.in)), a.n, a.err, c.want)
		}
	}
}

// No control byte is accepted anywhere in a head, but HTAB in a value, wherever
// it is in the eight bytes that are examined together.
func TestRefuseControls(t *testing.T) {
	for c := range 256 {
		for pad := range 17 {
			s := strings.Repeat("x", pad) + string([]byte{byte(c)}) + "yyyyyyyyy"
			var r Request
			in := []byte("GET /" + s + " HTTP/1.0\r\n\r\n")
			_, err := r.Parse(in, nil, nil)
			if bad := c <= ' ' || c == 0x7f; bad != (err != nil) {
				t.Fatalf("target %q: %v", s, err)
			}
			in = []byte("GET / HTTP/1.0\r\nA: " + s + "\r\n\r\n")
			_, err = r.Parse(in, nil, nil)
			if bad := c < ' ' && c != '\t' || c == 0x7f; bad != (err != nil) {
				t.Fatalf("value %q: %v", s, err)
			}
			if (err == nil) != ValidFieldValue(s) {
				t.Fatalf("ValidFieldValue(%q) disagrees with Parse", s)
			}
			in = []byte("GET / HTTP/1.0\r\nA" + s + ": b\r\n\r\n")
			_, err = r.Parse(in, nil, nil)
			if (err == nil) != (ValidFieldName("A"+s) || c == ':') {
				t.Fatalf("name %q: %v", s, err)
			}
		}
	}
}

func TestLimits(t *testing.T) {
	head := func(n int) string { // of n bytes
		s := "GET / HTTP/1.0\r\nA: \r\n\r\n"
		return strings.Replace(s, "A: ", "A: "+strings.Repeat("x", n-len(s)), 1)
	}
	fields := func(n int) string {
		s := "GET / HTTP/1.0\r\n"
		for i := range n {
			s += fmt.Sprintf("A%d: b\r\n", i)
		}
		return s + "\r\n"
	}
	long := "GET /" + strings.Repeat("x", 200) + " HTTP/1.0\r\n"
	for _, c := range []struct {
		in   string
		lim  Limits
		want *Error
		why  string
	}{
		{head(100), Limits{100, 5}, nil, "exactly the limit"},
		{head(101), Limits{100, 5}, errHeadTooLong, "one more"},
		{head(101)[:100], Limits{100, 5}, errHeadTooLong, "the rest need not come"},
		{"\r\n" + head(99), Limits{100, 5}, errHeadTooLong, "the leading CRLF counts"},
		{long, Limits{100, 5}, errTargetTooLong, "request line does not end"},
		{"\r\n" + long, Limits{100, 5}, errTargetTooLong, "request line does not end"},
		{long + "\r\n", Limits{len(long) - 1, 5}, errTargetTooLong, "its LF counts"},
		{long + "\r\n", Limits{len(long), 5}, errHeadTooLong, "request line fits, the rest does not"},
		{long + "\r\n", Limits{len(long) + 2, 5}, nil, "all fits"},
		{strings.Repeat("x", 200), Limits{100, 5}, errTargetTooLong, "a method without end"},
		{"GET / HTTP/1.0\r\n" + strings.Repeat("x", 200), Limits{100, 5}, errHeadTooLong, "a name without end"},
		{"GET \x00" + strings.Repeat("x", 200), Limits{100, 5}, errTargetTooLong, "length goes before what an endless line holds"},
		{fields(5), Limits{1000, 5}, nil, "exactly the limit"},
		{fields(6), Limits{1000, 5}, errTooManyFields, "one more"},
		{strings.TrimSuffix(fields(6), "\r\n"), Limits{1000, 5}, errTooManyFields, "the empty line need not come"},
		{"GET / HTTP/1.0\r\nA:\r\nB :\r\nC:\r\n", Limits{1000, 1}, errTooManyFields, "the limit goes before what the next line holds"},
		{"GET / HTTP/1.0\r\nA :\r\nB:\r\nC:\r\n", Limits{1000, 1}, errSpaceColon, "lines are judged in order"},
		{head(64 << 10), Limits{}, nil, "default, exactly the limit"},
		{fields(128), Limits{}, nil, "default, exactly the limit"},
		{fields(129), Limits{-1, -1}, errTooManyFields, "default, one more"},
	} {
		if len(c.in) < 4096 {
			checkSplits(t, []byte(c.in), &c.lim)
		}
		a := parseOnce([]byte(c.in), nil, &c.lim)
		if got := asError(t, a.err); got != c.want || c.want == nil && a.n != len(c.in) {
			t.Errorf("%s: got %d, %v, want %v", c.why, a.n, a.err, c.want)
		}
	}
}

// A client that sends a byte a second must not cost more by the square: all
// calls together may look at each byte only a few times. Measured by what wait
// leaves for a full parse, which examines bytes again.
func TestByteByByteIsLinear(t *testing.T) {
	fields := strings.Repeat("A: b\r\n", 100) + "B: " + strings.Repeat("x", 10000) + "\r\n"
	var request Request
	var response Response
	for _, c := range []struct {
		in    string
		first startLine
		parse func(b []byte, p *Progress) (int, error)
	}{
		{"\r\nGET / HTTP/1.1\r\n" + fields, requestStart, func(b []byte, p *Progress) (int, error) { return request.Parse(b, p, nil) }},
		{ok + fields, statusStart, func(b []byte, p *Progress) (int, error) { return response.Parse(b, &Expected{}, p, nil) }},
		{fields, noStartLine, func(b []byte, p *Progress) (int, error) {
			n, _, err := ParseTrailer(b, nil, p, nil)
			return n, err
		}},
	} {
		parses := 0
		var p Progress
		in := []byte(c.in)
		for i := 1; i <= len(in); i++ {
			before := p
			if !p.wait(in[:i], 128, c.first) {
				parses++
			}
			p = before
			if n, err := c.parse(in[:i], &p); n != 0 || err != nil {
				t.Fatal(i, n, err)
			}
		}
		if parses > maxLeading+1 {
			t.Errorf("%d of %d calls parsed from the start, want only those within the leading empty lines", parses, len(in))
		}
		if want := (Progress{scanned: uint32(len(in)), fields: 101}); p != want {
			t.Errorf("Progress = %+v, want %+v", p, want)
		}
	}
}
