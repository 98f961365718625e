package http1

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// stricterResponse is stricter for what http.ReadResponse and the body it returns need
// not refuse.
var stricterResponse = func() map[*Error]func([]byte) bool {
	m := map[*Error]func([]byte) bool{
		// net/http cuts the line at spaces and takes any number of three digits.
		errStatusLine: always,
		errStatus:     always,
		errReason:     always,
		// net/http takes a single LF for a line end, and a CR in the status line.
		errVersion: bareLF,
		errBareLF:  bareLF,
		errBareCR: func(in []byte) bool {
			for line := range bytes.Lines(in) {
				if bytes.HasPrefix(line, []byte("HTTP/")) && bytes.Contains(bytes.TrimSuffix(line, []byte("\r\n")), []byte("\r")) {
					return true
				}
			}
			return false
		},
		// net/http joins folded lines, and keeps a name with a space in it.
		errFold:       always,
		errSpaceColon: always,
		// ReadResponse leaves other versions to the Transport.
		errMajor: always,
		// net/http merges equal values, reads a list, drops Content-Length where there is
		// Transfer-Encoding, ignores Transfer-Encoding in 1.0, and looks at no
		// Content-Length where there is no body.
		errLength:          always,
		errManyLengths:     always,
		errLengthAndCoding: always,
		errCodingVersion:   always,
		// net/http bars only Transfer-Encoding, Content-Length and Trailer.
		errTrailerName: always,
		// net/http skips extensions without checks.
		errChunkExt: always,
		// ReadResponse has no limits.
		errHeadTooLong:   always,
		errStatusTooLong: always,
		errTooManyFields: always,
		// The Transport and ReverseProxy check some of it.
		errInterimBody:     always,
		errManyInterims:    always,
		errSwitchUnasked:   always,
		errSwitchMalformed: always,
	}
	for e, ok := range m {
		m[e.inResponse()] = ok
	}
	return m
}()

var responseSeeds = []string{
	"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n5;a=\"b\"\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n",
	"HTTP/1.0 200\r\nConnection: keep-alive, x\r\nKeep-Alive: timeout=5, max=9\r\n\r\nhello",
	"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
	"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x00",
	"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\nPragma: no-cache\r\n\r\nhello",
	"HTTP/1.1 204 x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\nContent-Length: 5\r\n\r\nhello",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: ,chunked\r\nContent-Length: 1\r\n\r\n",
	"HTTP/1.1 200 OK\r\nA: b\r\n c\r\nD : e\r\n\r\n",
	"HTTP/1.1 200 OK\nA: b\n\n",
	"HTTP/1.1  200\tOK\r\n\r\n",
	"HTTP/1.1 999 \x00\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1 ;a\r\nx\r\n0\r\nContent-Length: 1\r\n\r\nHTTP/1.1",
	"HTTP/1.1 103 x\r\nContent-Length: 38\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
}

// Where chert accepts, net/http does, and they agree on the status, the fields, the
// body, its trailers and whether it is whole. CONNECT is left out: net/http reads a body
// after its 2xx.
func FuzzResponse(f *testing.F) {
	for _, s := range responseSeeds {
		for kind := range uint8(3) {
			f.Add([]byte(s), kind)
		}
	}
	f.Fuzz(func(t *testing.T, in []byte, kind uint8) {
		want := [...]Expected{{}, {Head: true}, {Upgrade: []byte("websocket")}}[kind%3]
		req := &http.Request{Method: [...]string{"GET", "HEAD", "GET"}[kind%3]}
		rd := bytes.NewReader(in)
		br := bufio.NewReader(rd)
		rest := in
		for {
			var r Response
			n, err := r.Parse(rest, &want, nil, nil)
			if n == 0 && err == nil {
				return
			}
			resp, oracle := http.ReadResponse(br, req)
			switch {
			case err != nil:
				e := asError(t, err)
				if ok := stricterResponse[e]; oracle == nil && (ok == nil || !ok(in)) {
					t.Errorf("%q: refused (%v), but not by net/http", in, e)
				}
				return
			case oracle != nil:
				if !r.Chunked || !emptyCodings(rest, r.Fields, oracle) {
					t.Errorf("%q: accepted, but net/http says: %v", in, oracle)
				}
				return
			}
			compareResponses(t, rest, &r, resp)
			if rest = rest[n:]; r.Framing == FramingTunnel {
				return
			}
			if r.Interim() {
				continue
			}
			compareBodies(t, rest, r.Body(), resp, func() int { return rd.Len() + br.Buffered() })
			return
		}
	})
}

func compareResponses(t *testing.T, in []byte, r *Response, resp *http.Response) {
	t.Helper()
	if got := fmt.Sprintf("%d %s", r.Status, r.Reason.Bytes(in)); r.Status != resp.StatusCode ||
		strings.TrimRight(got, " ") != strings.TrimRight(resp.Status, " ") {
		t.Errorf("%q: status %q, net/http %q", in, got, resp.Status)
	}
	if resp.ProtoMajor != 1 || resp.ProtoMinor != int(r.Minor) {
		t.Errorf("%q: minor %d, net/http %s", in, r.Minor, resp.Proto)
	}
	switch length := resp.ContentLength; {
	case r.Framing == FramingLength && length != r.ContentLength,
		(r.Framing == FramingChunked || r.Framing == FramingClose) && length != -1,
		r.Framing == FramingNone && length > 0 && length != r.ContentLength:
		t.Errorf("%q: framing %d, length %d, net/http %d", in, r.Framing, r.ContentLength, length)
	}
	if got := len(resp.TransferEncoding) == 1; got != r.Chunked && r.Framing != FramingNone {
		t.Errorf("%q: chunked %v, net/http %v", in, r.Chunked, got)
	}
	// chert closes where it is in doubt.
	if r.KeepAlive && resp.Close {
		t.Errorf("%q: keep-alive, net/http closes", in)
	}
	if !r.KeepAlive && !resp.Close && r.Framing != FramingTunnel && !amongWords(resp.Header) &&
		(r.Status != 204 || r.ContentLength <= 0 && !r.Chunked) {
		t.Errorf("%q: close, net/http keeps the connection", in)
	}
	if header := headerOf(in, r.Fields, r.Chunked); !reflect.DeepEqual(header, resp.Header) {
		t.Errorf("%q:\nfields %q\nnet/http %q", in, header, resp.Header)
	}
}

// compareBodies compares the body at the start of in. left is how many bytes net/http has
// not read.
func compareBodies(t *testing.T, in []byte, d Body, resp *http.Response, left func() int) {
	t.Helper()
	body, oracle := io.ReadAll(resp.Body)
	got := make([]byte, len(in))
	n, used, err := d.Decode(got, in)
	got = got[:n]
	var trailer http.Header
	if err == nil && d.InTrailer() {
		var fields []Field
		if n, fields, err = d.Trailer(in[used:], nil, nil, nil); n > 0 {
			trailer = headerOf(in[used:], fields, false)
			if _, ok := trailer["Pragma"]; ok {
				trailer = nil // headerOf adds to it, which is for heads
			}
			used += n
		}
	}
	closed := d.Closed()
	switch {
	case err != nil:
		if ok := stricterResponse[asError(t, err)]; oracle == nil && (ok == nil || !ok(in)) {
			t.Errorf("%q: refused (%v), but not by net/http", in, err)
		}
	case closed == nil && oracle != nil:
		// RFC 9112 section 7.1.1 allows space before ";", net/http does not.
		if !bytes.Contains(in, []byte(" ;")) && !bytes.Contains(in, []byte("\t;")) {
			t.Errorf("%q: complete, but net/http says: %v", in, oracle)
		}
	case closed == nil && !bytes.Equal(got, body):
		t.Errorf("%q: body %q, net/http %q", in, got, body)
	case closed == nil && len(in)-used != left():
		t.Errorf("%q: %d bytes are left, net/http leaves %d", in, len(in)-used, left())
	case closed == nil && trailer != nil && !sameTrailer(trailer, resp.Trailer):
		t.Errorf("%q: trailers %q, net/http %q", in, trailer, resp.Trailer)
	case closed != nil && oracle == nil:
		t.Errorf("%q: truncated, but net/http says complete: %q", in, body)
	case closed != nil && errors.Is(oracle, io.ErrUnexpectedEOF) && !bytes.Equal(got, body):
		t.Errorf("%q: %q so far, net/http %q", in, got, body)
	}
}

// sameTrailer ignores fields that were announced and did not come: net/http has them with
// no values.
func sameTrailer(got, want http.Header) bool {
	for name, values := range want {
		if len(values) > 0 && !reflect.DeepEqual(got[name], values) {
			return false
		}
	}
	for name := range got {
		if len(want[name]) == 0 {
			return false
		}
	}
	return true
}

func FuzzResponseSplit(f *testing.F) {
	for _, s := range responseSeeds {
		for _, cuts := range []string{"\x01\x01\x01\x01\x01\x01", "\x05\x0b\x02\x03", "\x10\x10\x10\x10"} {
			f.Add([]byte(s), []byte(cuts), uint8(0), uint8(0), uint8(0))
			f.Add([]byte(s), []byte(cuts), uint8(1), uint8(40), uint8(2))
		}
	}
	f.Fuzz(func(t *testing.T, in, cuts []byte, kind, headBytes, fields uint8) {
		want := [...]Expected{{}, {Head: true}, {Upgrade: []byte("websocket")}, {Connect: true}}[kind%4]
		lim := &Limits{HeadBytes: int(headBytes), Fields: int(fields)}
		whole := readResponses(in, want, lim)
		if got := readResponses(in, want, lim, cutsFrom(cuts, len(in))...); !reflect.DeepEqual(got, whole) {
			t.Errorf("%q cut at %v: %+v\nwhole: %+v", in, cutsFrom(cuts, len(in)), got, whole)
		}
	})
}
