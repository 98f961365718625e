package http1

import (
	"strings"
	"testing"
)

func TestBody(t *testing.T) {
	chunked := ok + te + "\r\n"
	for _, c := range []struct {
		in       string
		req      Expected
		body     string
		trailers string
		rest     string // not read
		closed   error
		reusable bool
		err      *Error
		why      string
	}{
		// Complete.
		{in: ok + cl5 + "\r\nhello", body: "hello", reusable: true, why: "length"},
		{in: ok + cl0 + "\r\n", reusable: true, why: "length 0"},
		{in: chunked + "5\r\nhello\r\n0\r\n\r\n", body: "hello", reusable: true, why: "chunked"},
		{in: chunked + "5;a=\"b\"\r\nhello\r\n1\r\n!\r\n0;x\r\n\r\n", body: "hello!", reusable: true, why: "extensions"},
		{in: chunked + "1\r\nx\r\n0\r\nX-Sum: 1\r\nServer-Timing: a\r\n\r\n", body: "x", trailers: "X-Sum=1|Server-Timing=a", reusable: true, why: "trailers"},
		{in: ok + "\r\nhello", body: "hello", why: "until close"},
		{in: ok + "\r\n", why: "until close, empty"},
		{in: ok + te + "\r\n", req: aHEAD, reusable: true, why: "HEAD"},
		{in: "HTTP/1.1 304 x\r\n" + cl5 + "\r\n", reusable: true, why: "304"},
		{in: ok + cl5 + "\r\nhello", req: connect, body: "hello", why: "tunnel"},
		{in: ok + cl5 + "Connection: close\r\n\r\nhello", body: "hello", why: "complete, but the last"},
		{in: "HTTP/1.0 200 OK\r\n" + cl5 + "\r\nhello", body: "hello", why: "complete, but the last"},
		// Bytes after the end.
		{in: ok + cl5 + "\r\nhello!", body: "hello", rest: "!", why: "longer than its length"},
		{in: ok + cl0 + "\r\nHTTP/1.1 200 OK\r\n", rest: "HTTP/1.1 200 OK\r\n", why: "a response that nothing asked for"},
		{in: chunked + "0\r\n\r\n\r\n", rest: "\r\n", why: "an empty line is extra too"},
		{in: "HTTP/1.1 304 x\r\n" + cl5 + "\r\nhello", rest: "hello", why: "304 with a body"},
		{in: ok + cl5 + "\r\nhello", req: aHEAD, rest: "hello", why: "HEAD with a body"},
		// Truncated.
		{in: ok + cl5 + "\r\nhell", body: "hell", closed: ErrTruncated, why: "shorter than its length"},
		{in: ok + cl5 + "\r\n", closed: ErrTruncated, why: "shorter than its length"},
		{in: chunked, closed: ErrTruncated, why: "no chunk"},
		{in: chunked + "5\r\nhel", body: "hel", closed: ErrTruncated, why: "in a chunk"},
		{in: chunked + "5\r\nhello\r\n", body: "hello", closed: ErrTruncated, why: "between chunks"},
		{in: chunked + "5\r\nhello\r\n0\r\n", body: "hello", closed: ErrTruncated, why: "before the trailer section"},
		{in: chunked + "0\r\nA: b\r\n", closed: ErrTruncated, why: "in the trailer section"},
		{in: chunked + "0\r\n\r", closed: ErrTruncated, why: "in the last line end"},
		// Malformed.
		{in: chunked + "x\r\n", err: errChunkSize, why: "size"},
		{in: chunked + "-1\r\n", err: errChunkSize, why: "sign"},
		{in: chunked + "5\nhello", err: errChunkSize, why: "bare LF"},
		{in: chunked + "5\r\nhelloX\r\n", body: "hello", err: errChunkEnd, why: "end of data"},
		{in: chunked + "11111111111111111\r\n", err: errChunkTooLarge, why: "overflow"},
		{in: chunked + "1;a=\x00\r\n", err: errChunkExt, why: "extension"},
		{in: chunked + "1;" + strings.Repeat("a", 4096) + "\r\n", err: ErrChunkLine, why: "extension too long"},
		{in: chunked + "0\r\nContent-Length: 5\r\n\r\n", err: errTrailerName, why: "framing in a trailer"},
		{in: chunked + "0\r\nTransfer-Encoding: chunked\r\n\r\n", err: errTrailerName, why: "framing in a trailer"},
		{in: chunked + "0\r\nA: b\r\n c\r\n\r\n", err: errFold, why: "folded trailer"},
		{in: chunked + "0\r\nA: b\n\n", err: errBareLF, why: "bare LF in a trailer"},
		{in: chunked + "0\r\n" + strings.Repeat("A: b\r\n", 129), err: errTooManyFields, why: "too many trailers"},
	} {
		got := checkResponse(t, c.in, c.req, nil)
		if c.err != nil {
			if e := asError(t, got.err); e != c.err.inResponse() || got.body != c.body {
				t.Errorf("%s: %q: got %+v, want %v", c.why, show([]byte(c.in)), got, c.err)
			}
			continue
		}
		if got.err != nil || got.body != c.body || got.trailers != c.trailers || c.closed == nil && c.in[got.used:] != c.rest ||
			got.closed != c.closed || got.reusable != c.reusable {
			t.Errorf("%s: %q: got %+v", c.why, c.in, got)
		}
	}
}

// A destination that is smaller than the body takes it in parts.
func TestBodyIntoSmall(t *testing.T) {
	for _, in := range []string{ok + cl5 + "\r\nhello", ok + te + "\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", ok + "\r\nhello"} {
		var r Response
		n, _ := r.Parse([]byte(in), &Expected{}, nil, nil)
		d := r.Body()
		var got string
		for src := []byte(in[n:]); len(got) < 5; {
			var dst [2]byte
			k, used, err := d.Decode(dst[:], src)
			if k == 0 && used == 0 || err != nil {
				t.Fatalf("%q: %d, %d, %v after %q", in, k, used, err, got)
			}
			got, src = got+string(dst[:k]), src[used:]
		}
		if got != "hello" {
			t.Errorf("%q: got %q", in, got)
		}
	}
}

// After malformed bytes the body neither continues nor ends.
func TestBodyAfterError(t *testing.T) {
	var r Response
	in := []byte(ok + te + "\r\nx\r\n")
	n, _ := r.Parse(in, &Expected{}, nil, nil)
	d := r.Body()
	if _, _, err := d.Decode(in[n:], in[n:]); err == nil {
		t.Fatal("no error")
	}
	good := []byte("0\r\n\r\n")
	k, used, err := d.Decode(good, good)
	if want := errChunkSize.inResponse(); k != 0 || used != 0 || err != want || d.Done() || d.Closed() != want || d.Reusable(nil) {
		t.Errorf("got %d, %d, %v, %+v", k, used, err, d)
	}
}
