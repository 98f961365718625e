package http1

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// stricter has the refusals that http.ReadRequest need not share, each with the
// input it is for. Where ReadRequest accepts what chert refuses for any other
// reason, one of the two is wrong.
var stricter = map[*Error]func(in []byte) bool{
	// net/http takes a single LF for a line end.
	errVersion: bareLF,
	errBareLF:  bareLF,
	// net/http joins folded lines, and keeps a name with a space in it until
	// its server looks at names.
	errFold:       always,
	errSpaceColon: always,
	// net/http's server answers 505, ReadRequest does not care.
	errMajor: always,
	// net/http puts http:// before a CONNECT target, so an empty one parses.
	errTarget: func(in []byte) bool { return bytes.Contains(in, []byte("CONNECT  ")) },
	// net/http has no opinion on which method may have which form, takes a
	// CONNECT without a port and an opaque, empty or user@ authority.
	errTargetForm: always,
	// net/http's server checks these, more leniently: bytes only, and no Host
	// needed for CONNECT.
	errNoHost: always,
	errHost:   always,
	// net/http merges equal values, drops Content-Length where there is
	// Transfer-Encoding, and ignores Transfer-Encoding in 1.0.
	errManyLengths:     always,
	errLengthAndCoding: always,
	errCodingVersion:   always,
	// net/http bars only Transfer-Encoding, Content-Length and Trailer.
	errTrailerName: always,
	// ReadRequest has no limits.
	errTargetTooLong: always,
	errHeadTooLong:   always,
	errTooManyFields: always,
}

func always([]byte) bool { return true }

func bareLF(in []byte) bool {
	for i, c := range in {
		if c == '\n' && (i == 0 || in[i-1] != '\r') {
			return true
		}
	}
	return false
}

func FuzzRequest(f *testing.F) {
	for _, s := range requestSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var r Request
		n, err := r.Parse(in, nil, nil)
		if n == 0 && err == nil {
			return
		}
		// ReadRequest does not skip empty lines; net/http's server does.
		crlf := []byte("\r\n")
		skipped := len(in) - len(bytes.TrimPrefix(bytes.TrimPrefix(in, crlf), crlf))
		rd := bytes.NewReader(in[skipped:])
		br := bufio.NewReader(rd)
		req, oracle := http.ReadRequest(br)
		if err != nil {
			e := asError(t, err)
			if ok := stricter[e]; oracle == nil && (ok == nil || !ok(in)) {
				t.Errorf("%q: refused (%v), but not by net/http", in, e)
			}
			return
		}
		if oracle != nil {
			if !laxer(in, &r, oracle) {
				t.Errorf("%q: accepted, but net/http says: %v", in, oracle)
			}
			return
		}
		if r.Preface {
			return // net/http's parser takes anything with that version
		}
		if used := len(in) - rd.Len() - br.Buffered(); used != n {
			t.Errorf("%q: read %d bytes, net/http %d", in, n, used)
		}
		compareRequests(t, in, &r, req)
	})
}

// laxer reports whether net/http's refusal is one that chert does not share.
func laxer(in []byte, r *Request, oracle error) bool {
	// The codec does not check what a path, a query or an escaped host consists
	// of: its caller does, by net/url.
	var bad *url.Error
	if errors.As(oracle, &bad) {
		return true
	}
	// net/http accepts Transfer-Encoding only as one field with one element.
	// Empty elements and fields change nothing (RFC 9110 section 5.6.1.2).
	return r.Chunked && emptyCodings(in, r.Fields, oracle)
}

// emptyCodings reports whether net/http refuses a Transfer-Encoding for its empty
// elements.
func emptyCodings(in []byte, fields []Field, oracle error) bool {
	if !strings.Contains(oracle.Error(), "transfer encoding") {
		return false
	}
	var te []string
	for _, f := range fields {
		if f.ID == FieldTransferEncoding {
			te = append(te, string(f.Value.Bytes(in)))
		}
	}
	return strings.ToLower(strings.Trim(strings.Join(te, ","), ", \t")) == "chunked" && (len(te) > 1 || len(te[0]) > 7)
}

func compareRequests(t *testing.T, in []byte, r *Request, req *http.Request) {
	t.Helper()
	if got := string(r.Method.Bytes(in)); got != req.Method {
		t.Errorf("%q: method %q, net/http %q", in, got, req.Method)
	}
	if got := string(r.Target.Bytes(in)); got != req.RequestURI {
		t.Errorf("%q: target %q, net/http %q", in, got, req.RequestURI)
	}
	if req.ProtoMajor != 1 || req.ProtoMinor != int(r.Minor) {
		t.Errorf("%q: minor %d, net/http %s", in, r.Minor, req.Proto)
	}
	length := r.ContentLength
	if length < 0 && !r.Chunked {
		length = 0 // net/http: no body is length 0
	}
	if length != req.ContentLength {
		t.Errorf("%q: length %d, net/http %d", in, length, req.ContentLength)
	}
	if r.Chunked != (len(req.TransferEncoding) == 1) {
		t.Errorf("%q: chunked %v, net/http %v", in, r.Chunked, req.TransferEncoding)
	}
	if r.KeepAlive == req.Close && (r.KeepAlive || !amongWords(req.Header)) {
		t.Errorf("%q: keep-alive %v, net/http close %v", in, r.KeepAlive, req.Close)
	}
	if got := string(r.Host.Bytes(in)); req.URL.Host == "" && got != req.Host {
		t.Errorf("%q: host %q, net/http %q", in, got, req.Host)
	}
	header := headerOf(in, r.Fields, r.Chunked)
	delete(header, "Host")
	if !reflect.DeepEqual(header, req.Header) {
		t.Errorf("%q:\nfields %q\nnet/http %q", in, header, req.Header)
	}
}

// amongWords reports whether Connection has an element of several words. ReadRequest and
// ReadResponse do not take "close" among other words for the option; the rest of net/http
// does, and so does chert. See closeAmong.
func amongWords(h http.Header) bool {
	return slices.ContainsFunc(h["Connection"], func(v string) bool { return strings.ContainsAny(v, " \t") })
}

// headerOf returns the fields of a head as net/http leaves them.
func headerOf(b []byte, fields []Field, chunked bool) http.Header {
	header := http.Header{}
	for _, f := range fields {
		if f.ID == FieldTransferEncoding || f.ID == FieldTrailer && chunked {
			continue
		}
		name := CanonicalName(f.Name.Bytes(b), f.ID)
		header[name] = append(header[name], string(f.Value.Bytes(b)))
	}
	if p := header["Pragma"]; len(p) > 0 && p[0] == "no-cache" && header["Cache-Control"] == nil {
		header["Cache-Control"] = []string{"no-cache"}
	}
	return header
}

// cutsFrom makes increasing places to cut out of arbitrary bytes.
func cutsFrom(seed []byte, n int) []int {
	var cuts []int
	at := 0
	for _, c := range seed {
		if at += int(c); at >= n {
			break
		}
		cuts = append(cuts, at)
	}
	return cuts
}

func FuzzRequestSplit(f *testing.F) {
	for _, s := range requestSeeds {
		for _, cuts := range []string{"\x01\x01\x01\x01\x01\x01", "\x05\x0b\x02\x03", "\x10\x10\x10\x10"} {
			f.Add([]byte(s), []byte(cuts), uint8(0), uint8(0))
			f.Add([]byte(s), []byte(cuts), uint8(40), uint8(2))
		}
	}
	f.Fuzz(func(t *testing.T, in, cuts []byte, headBytes, fields uint8) {
		lim := &Limits{HeadBytes: int(headBytes), Fields: int(fields)}
		whole := parseOnce(in, nil, lim)
		if got := parseGrowing(in, lim, cutsFrom(cuts, len(in))...); !reflect.DeepEqual(got, whole) {
			t.Errorf("%q cut at %v: %+v\nwhole: %+v", in, cutsFrom(cuts, len(in)), got, whole)
		}
		wholeTrailer := parseTrailerGrowing(in, lim)
		if got := parseTrailerGrowing(in, lim, cutsFrom(cuts, len(in))...); got != wholeTrailer {
			t.Errorf("trailer %q cut at %v: %+v\nwhole: %+v", in, cutsFrom(cuts, len(in)), got, wholeTrailer)
		}
	})
}

func FuzzChunked(f *testing.F) {
	for _, s := range []string{
		"0\r\n\r\n", "5\r\nhello\r\n0\r\n", "1;a=b;c=\"d\\\"\"\r\nx\r\nA\r\n0123456789\r\n0;e\r\nX: y\r\n\r\n",
		"1 ;a\r\nx\r\n0\r\n", "1 \r\nx\r\n0\r\n", "ffffffffffffffff\r\n", "00000000000000001\r\nx", "1\nx\n0\n", "1;\r\nx\r\n0\r\n",
		"1;a=\"\n\"\r\nx\r\n0\r\n", "0x1\r\nx\r\n0\r\n", "+1\r\nx\r\n0\r\n", "2\r\nxy0\r\n", "1;a\rb\r\nx\r\n0\r\n",
		strings.Repeat("1;aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\nx\r\n", 1000) + "0\r\n",
	} {
		f.Add([]byte(s), []byte("\x01\x02\x03\x01\x01"))
	}
	f.Fuzz(func(t *testing.T, in, cuts []byte) {
		data, n, done, err := decodeIn(in, all)
		i := 0
		d2, n2, done2, err2 := decodeIn(in, func(left int) int {
			if i++; i > len(cuts) || cuts[i-1] == 0 {
				return left
			}
			return min(left, int(cuts[i-1]))
		})
		if !bytes.Equal(data, d2) || n != n2 || done != done2 || err != err2 {
			t.Fatalf("%q cut by %v: %q, %d, %v, %v\nwhole: %q, %d, %v, %v", in, cuts, d2, n2, done2, err2, data, n, done, err)
		}
		i = 0
		d2, n2, done2, err2 = decodeInto(in, func() int {
			if i++; i > len(cuts) {
				return len(in)
			}
			return int(cuts[i-1])
		})
		if !bytes.Equal(data, d2) || n != n2 || done != done2 || err != err2 {
			t.Fatalf("%q into %v: %q, %d, %v, %v\nwhole: %q, %d, %v, %v", in, cuts, d2, n2, done2, err2, data, n, done, err)
		}
		rd := bytes.NewReader(in)
		br := bufio.NewReader(rd)
		want, oracle := io.ReadAll(httputil.NewChunkedReader(br))
		used := len(in) - rd.Len() - br.Buffered()
		switch {
		case err != nil:
			// net/http skips extensions without checks, and space after a size.
			if e := asError(t, err); oracle == nil && e != errChunkExt {
				t.Errorf("%q: refused (%v), but not by net/http", in, e)
			}
		case oracle != nil && done:
			// RFC 9112 section 7.1.1 allows space before ";", net/http does not.
			if !bytes.Contains(in, []byte(" ;")) && !bytes.Contains(in, []byte("\t;")) {
				t.Errorf("%q: accepted, but net/http says: %v", in, oracle)
			}
		case done && (!bytes.Equal(data, want) || n != used):
			t.Errorf("%q: %q after %d bytes, net/http %q after %d", in, data, n, want, used)
		case !done && oracle == nil:
			t.Errorf("%q: incomplete, but net/http says complete", in)
		case !done && oracle == io.ErrUnexpectedEOF && !bytes.Equal(data, want):
			t.Errorf("%q: %q so far, net/http %q", in, data, want)
		}
	})
}

var requestSeeds = []string{
	browserGET,
	"\r\nGET / HTTP/1.0\r\n\r\n",
	"PUT /a?b#c HTTP/1.1\r\nHost: [::1]:80\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello",
	"POST http://a/b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n0\r\nX-Sum: 1\r\n\r\n",
	"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\nConnection: close, upgrade\r\nUpgrade: x\r\n\r\n",
	"OPTIONS * HTTP/1.1\r\nHost:\r\nPragma: no-cache\r\n\r\n",
	"PRI * HTTP/2.0\r\n\r\n",
	"GET / HTTP/1.1\nHost: a\n\n",
	"GET / HTTP/1.1\r\nHost: a\r\nA: b\r\n c\r\n\r\n",
	"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nA: b\rc\x00\x7f\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nA:\tb\xff\r\n\r\n",
	"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
	"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\nTransfer-Encoding: chunked\r\n\r\n",
	"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\nTransfer-Encoding: gzip, chunked;q=1,\r\n\r\n",
	"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: ,chunked\r\nTrailer: a, Content-Length\r\n\r\n",
	"GET http://u@a:b/%zz HTTP/1.9\r\nHost: a@b\r\n\r\n",
}
