package http1

import (
	"fmt"
	"strings"
	"testing"
)

// responses are all that is parsed from the bytes after one request: interim heads,
// the final one, and its body.
type responses struct {
	heads    []string // describeResponse of each
	fields   []string
	body     string
	trailers string
	used     int   // bytes
	closed   error // what Body.Closed returns at the end of the bytes
	reusable bool
	err      error
}

// readResponses reads growing parts of b, cut at the given places and at the end.
func readResponses(b []byte, want Expected, lim *Limits, cuts ...int) (got responses) {
	var r Response
	var p Progress
	var d *Body
	var fields []Field
	for _, k := range append(cuts, len(b)) {
		part := append(make([]byte, 0, k), b[:k]...)
		for d == nil {
			rest := part[got.used:]
			n, err := r.Parse(rest, &want, &p, lim)
			if err != nil {
				got.err = err
				return got
			}
			if n == 0 {
				break
			}
			got.heads = append(got.heads, describeResponse(rest, &r))
			got.fields = append(got.fields, describeFields(rest, r.Fields))
			got.used += n
			if !r.Interim() {
				body := r.Body()
				d = &body
			}
		}
		if d == nil {
			continue
		}
		if !d.InTrailer() {
			src := part[got.used:]
			n, used, err := d.Decode(src, src) // in place
			got.body += string(src[:n])
			got.used += used
			if err != nil {
				got.err = err
				return got
			}
		}
		if d.InTrailer() {
			n, out, err := d.Trailer(part[got.used:], fields, &p, lim)
			if err != nil {
				got.err = err
				return got
			}
			got.trailers = describeFields(part[got.used:], out[:len(out):len(out)])
			if n == 0 {
				got.trailers = ""
			}
			got.used += n
		}
	}
	if d == nil {
		return got
	}
	got.reusable = d.Reusable(b[got.used:])
	got.closed = d.Closed()
	return got
}

// checkResponse reads b however it is split, unless that would take long.
func checkResponse(t *testing.T, b string, want Expected, lim *Limits) responses {
	t.Helper()
	if len(b) > 600 {
		return readResponses([]byte(b), want, lim)
	}
	return sameHoweverSplit(t, []byte(b), func(b []byte, cuts ...int) responses {
		return readResponses(b, want, lim, cuts...)
	})
}

// describeResponse renders a head in one line: status line, what the fields mean.
func describeResponse(b []byte, r *Response) string {
	framing := [...]string{"none", "length", "chunked", "until-close", "tunnel"}[r.Framing]
	s := fmt.Sprintf("1.%d %d %q %s", r.Minor, r.Status, r.Reason.Bytes(b), framing)
	if r.ContentLength >= 0 {
		s += fmt.Sprintf(" len=%d", r.ContentLength)
	}
	if r.IdleSeconds >= 0 {
		s += fmt.Sprintf(" idle=%d", r.IdleSeconds)
	}
	for _, f := range []struct {
		on   bool
		name string
	}{
		{r.KeepAlive, "keep"}, {r.Upgrade, "upgrade"}, {r.HasTrailer, "trailer"},
		{r.Interim(), "interim"},
	} {
		if f.on {
			s += " " + f.name
		}
	}
	return s
}

var (
	anyGET  = Expected{}
	aHEAD   = Expected{Head: true}
	connect = Expected{Connect: true}
	upgrade = Expected{Upgrade: []byte("foo/2, WebSocket")}
)

const (
	ok        = "HTTP/1.1 200 OK\r\n"
	cl0       = "Content-Length: 0\r\n"
	cl5       = "Content-Length: 5\r\n"
	te        = "Transfer-Encoding: chunked\r\n"
	switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n"
)

func TestResponseHeads(t *testing.T) {
	for _, c := range []struct {
		in   string
		req  Expected
		want string
		why  string
	}{
		// Status line.
		{ok + cl0 + "\r\n", anyGET, `1.1 200 "OK" length len=0 keep`, "the least"},
		{"HTTP/1.1 200 \r\n" + cl0 + "\r\n", anyGET, `1.1 200 "" length len=0 keep`, "no reason"},
		{"HTTP/1.1 200\r\n" + cl0 + "\r\n", anyGET, `1.1 200 "" length len=0 keep`, "no reason and no SP"},
		{"HTTP/1.1 404 Not  \tFound \x80\xff \r\n" + cl0 + "\r\n", anyGET, `1.1 404 "Not  \tFound \x80\xff " length len=0 keep`, "HTAB, SP, obs-text"},
		{"HTTP/1.1 200  \r\n" + cl0 + "\r\n", anyGET, `1.1 200 " " length len=0 keep`, "a reason of one SP"},
		{"HTTP/1.1 200 HTTP/1.1 500 x\r\n" + cl0 + "\r\n", anyGET, `1.1 200 "HTTP/1.1 500 x" length len=0 keep`, "a reason that looks like a status line"},
		{"HTTP/1.1 599 x\r\n" + cl0 + "\r\n", anyGET, `1.1 599 "x" length len=0 keep`, "the largest"},
		{"HTTP/1.1 299 x\r\n" + cl0 + "\r\n", anyGET, `1.1 299 "x" length len=0 keep`, "unknown"},
		{"HTTP/1.0 200 OK\r\n" + cl0 + "\r\n", anyGET, `1.0 200 "OK" length len=0`, "1.0"},
		// Body framing, RFC 9112 section 6.3.
		{ok + "\r\n", anyGET, `1.1 200 "OK" until-close`, "item 8"},
		{ok + "Connection: keep-alive\r\n\r\n", anyGET, `1.1 200 "OK" until-close`, "item 8, whatever Connection is"},
		{"HTTP/1.0 200 OK\r\n\r\n", anyGET, `1.0 200 "OK" until-close`, "item 8"},
		{ok + cl5 + "\r\nhello", anyGET, `1.1 200 "OK" length len=5 keep`, "item 6"},
		{ok + "Content-Length: 9223372036854775807\r\n\r\n", anyGET, `1.1 200 "OK" length len=9223372036854775807 keep`, "largest"},
		{ok + te + "\r\n0\r\n\r\n", anyGET, `1.1 200 "OK" chunked keep`, "item 4"},
		{ok + "transfer-encoding: , CHUNKED,\r\n\r\n0\r\n\r\n", anyGET, `1.1 200 "OK" chunked keep`, "any case, empty elements"},
		{ok + cl5 + "\r\n", aHEAD, `1.1 200 "OK" none len=5 keep`, "item 1: HEAD"},
		{ok + te + "\r\n", aHEAD, `1.1 200 "OK" none keep`, "item 1: HEAD"},
		{ok + "\r\n", aHEAD, `1.1 200 "OK" none keep`, "item 1: HEAD without a length"},
		{"HTTP/1.1 304 x\r\n" + cl5 + "\r\n", anyGET, `1.1 304 "x" none len=5 keep`, "item 1: 304"},
		{"HTTP/1.1 304 x\r\n" + te + "\r\n", anyGET, `1.1 304 "x" none keep`, "item 1: 304"},
		{"HTTP/1.1 204 x\r\n\r\n", anyGET, `1.1 204 "x" none keep`, "item 1: 204"},
		{"HTTP/1.1 204 x\r\n" + cl0 + "\r\n", anyGET, `1.1 204 "x" none len=0 keep`, "item 1: 204, forbidden but in agreement"},
		{"HTTP/1.1 204 x\r\n" + cl5 + "\r\n", anyGET, `1.1 204 "x" none len=5`, "item 1: 204 that announces a body is the last"},
		{"HTTP/1.1 204 x\r\n" + te + "\r\n", anyGET, `1.1 204 "x" none`, "item 1: 204 that announces a body is the last"},
		{"HTTP/1.1 205 x\r\n" + cl0 + "\r\n", anyGET, `1.1 205 "x" length len=0 keep`, "205 is framed by its fields"},
		{ok + cl5 + "\r\n", connect, `1.1 200 "OK" tunnel len=5`, "item 2"},
		{"HTTP/1.1 204 x\r\n\r\n", connect, `1.1 204 "x" tunnel`, "item 2: any 2xx"},
		{"HTTP/1.1 407 x\r\n" + cl5 + "\r\n", connect, `1.1 407 "x" length len=5 keep`, "CONNECT refused"},
		{"HTTP/1.1 300 x\r\n\r\n", connect, `1.1 300 "x" until-close`, "CONNECT refused"},
		// Upgrade.
		{switching + "Upgrade: websocket\r\n\r\n", upgrade, `1.1 101 "Switching Protocols" tunnel upgrade`, "asked for, in another case"},
		{switching + "Upgrade: FOO/2, websocket\r\n\r\n", upgrade, `1.1 101 "Switching Protocols" tunnel upgrade`, "two layers"},
		{switching + "Upgrade:\r\nUpgrade: ,websocket\r\n\r\n", upgrade, `1.1 101 "Switching Protocols" tunnel upgrade`, "fields combine"},
		{"HTTP/1.1 426 x\r\nConnection: upgrade\r\nUpgrade: h2c\r\n" + cl0 + "\r\n", anyGET, `1.1 426 "x" length len=0 keep upgrade`, "an offer, no switch"},
		// Persistence.
		{ok + cl0 + "Connection: close\r\n\r\n", anyGET, `1.1 200 "OK" length len=0`, "close"},
		{ok + cl0 + "Connection: keep-alive\r\nConnection: x, CLOSE\r\n\r\n", anyGET, `1.1 200 "OK" length len=0`, "close wins"},
		{"HTTP/1.0 200 OK\r\n" + cl0 + "Connection: Keep-Alive\r\n\r\n", anyGET, `1.0 200 "OK" length len=0 keep`, "1.0 offers"},
		{"HTTP/1.0 200 OK\r\n" + cl0 + "Connection: Keep-Alive, close\r\n\r\n", anyGET, `1.0 200 "OK" length len=0`, "close wins in 1.0"},
		{ok + cl0 + "Keep-Alive: timeout=5\r\n\r\n", anyGET, `1.1 200 "OK" length len=0 idle=5 keep`, "as Node sends it"},
		{ok + cl0 + "Keep-Alive: max=100, TimeOut=72\r\n\r\n", anyGET, `1.1 200 "OK" length len=0 idle=72 keep`, "any order, any case"},
		{ok + cl0 + "Keep-Alive: timeout=9\r\nKeep-Alive: timeout=5, timeout=7\r\n\r\n", anyGET, `1.1 200 "OK" length len=0 idle=5 keep`, "the smallest"},
		{ok + cl0 + "Keep-Alive: timeout=0\r\n\r\n", anyGET, `1.1 200 "OK" length len=0 idle=0 keep`, "zero is not absent"},
		{ok + cl0 + "Keep-Alive: timeout=99999999999\r\n\r\n", anyGET, `1.1 200 "OK" length len=0 idle=2147483647 keep`, "the largest"},
		{ok + cl0 + "Keep-Alive: timeout, timeout=, timeout=-1, timeout=1.5, timeout=99999999999999999999, xtimeout=3\r\n\r\n", anyGET,
			`1.1 200 "OK" length len=0 keep`, "malformed"},
		// Trailer.
		{ok + te + "Trailer: X-Sum\r\n\r\n0\r\n\r\n", anyGET, `1.1 200 "OK" chunked keep trailer`, "announced"},
		{ok + cl0 + "Trailer: Host\r\n\r\n", anyGET, `1.1 200 "OK" length len=0 keep trailer`, "without chunked it announces nothing"},
	} {
		got := checkResponse(t, c.in, c.req, nil)
		if got.err != nil || len(got.heads) != 1 || got.heads[0] != c.want {
			t.Errorf("%s: %q:\n got %q, %v\nwant %s", c.why, c.in, got.heads, got.err, c.want)
		}
	}
}

func TestResponseInterims(t *testing.T) {
	hundred := "HTTP/1.1 100 Continue\r\n\r\n"
	hints := "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
	last := ok + cl5 + "\r\nhello"
	got := checkResponse(t, hundred+hints+hundred+last, anyGET, nil)
	if len(got.heads) != 4 || got.fields[1] != "Link=</a>" || got.body != "hello" || !got.reusable || got.err != nil {
		t.Errorf("got %+v", got)
	}
	if got = checkResponse(t, strings.Repeat(hints, MaxInterims)+last, anyGET, nil); got.body != "hello" || got.err != nil {
		t.Errorf("as many as may be: got %+v", got)
	}
	if got = checkResponse(t, strings.Repeat(hints, MaxInterims+1)+last, anyGET, nil); got.err != errManyInterims {
		t.Errorf("one more: got %+v", got)
	}
	// None of them closes or ends anything.
	got = checkResponse(t, "HTTP/1.0 199 x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"+ok+"\r\n", aHEAD, nil)
	if len(got.heads) != 2 || got.heads[0] != `1.0 199 "x" none len=0 interim` || !got.reusable || got.err != nil {
		t.Errorf("1.0: got %+v", got)
	}
	got = checkResponse(t, hundred+switching+"Upgrade: websocket\r\n\r\n\x81\x00", upgrade, nil)
	if len(got.heads) != 2 || got.body != "\x81\x00" || got.reusable || got.closed != nil {
		t.Errorf("101 after 100: got %+v", got)
	}
}

func TestResponseRefuse(t *testing.T) {
	for _, c := range []struct {
		in   string
		want *Error
		why  string
	}{
		// First byte.
		{"\x15\x03\x01\x00\x02\x02\x46", errNotResponse, "TLS alert, no LF in it"},
		{"SSH-2.0-x", errNotResponse, "another protocol"},
		{" HTTP/1.1 200 OK\r\n", errNotResponse, "leading SP"},
		{"\r\nHTTP/1.1 200 OK\r\n", errNotResponse, "an empty line before is for requests"},
		{"\n", errNotResponse, "bare LF"},
		{"h", errNotResponse, "lower case"},
		{"<html>", errNotResponse, "HTTP/0.9"},
		// Status line.
		{"HTTP/1.1\r\n", errStatusLine, "version alone"},
		{"HTTP/1.1 \r\n", errStatusLine, "no status"},
		{"HTTP/1.1 20\r\n", errStatusLine, "two digits"},
		{"HTTP/1.1 20 OK\r\n", errStatusLine, "two digits"},
		{"HTTP/1.1 2000 OK\r\n", errStatusLine, "four digits"},
		{"HTTP/1.1 200OK\r\n", errStatusLine, "no SP"},
		{"HTTP/1.1 200\tOK\r\n", errStatusLine, "HTAB"},
		{"HTTP/1.1\t200 OK\r\n", errStatusLine, "HTAB"},
		{"HTTP/1.1  200 OK\r\n", errStatusLine, "two SP"},
		{"HTTP/1.1 +20 OK\r\n", errStatusLine, "sign"},
		{"HTTP/1.1 2x0 OK\r\n", errStatusLine, "letter"},
		{"HTTP/1.1 099 x\r\n", errStatus, "below 100"},
		{"HTTP/1.1 000 x\r\n", errStatus, "below 100"},
		{"HTTP/1.1 600 x\r\n", errStatus, "above 599"},
		{"HTTP/1.1 999 x\r\n", errStatus, "above 599"},
		{"HTTP/1.2 200 OK\r\n", errMajor, "no such version"},
		{"HTTP/2.0 200 OK\r\n", errMajor, "newer"},
		{"HTTP/0.9 200 OK\r\n", errMajor, "older"},
		{"HTTP/1.10 200 OK\r\n", errStatusLine, "two digits"},
		{"HTTP/11.1 200 OK\r\n", errVersion, "two digits"},
		{"HTTP/1,1 200 OK\r\n", errVersion, "comma"},
		{"HTTP/a.1 200 OK\r\n", errVersion, "letter"},
		{"HTTPS/1.1 200 OK\r\n", errVersion, "name"},
		{"Http/1.1 200 OK\r\n", errVersion, "case"},
		{"HTTP/1.1 200 O\x00K\r\n", errReason, "NUL"},
		{"HTTP/1.1 200 OK\x7f\r\n", errReason, "DEL"},
		{"HTTP/1.1 200 \x1b[31m\r\n", errReason, "control"},
		{"HTTP/1.1 200 O\rK\r\n", errBareCR, "bare CR"},
		{"HTTP/1.1 200 OK\r\r\n", errBareCR, "two CR"},
		{"HTTP/1.1 200 OK\n", errBareLF, "bare LF"},
		{"HTTP/1.1 200\n", errBareLF, "bare LF after the status"},
		{"HTTP/1.1 200\rX\n", errBareCR, "bare CR after the status"},
		// Field lines, by the parser of requests.
		{ok + " A: b\r\n", errFold, "space after the status line"},
		{ok + "A: b\r\n c\r\n", errFold, "obs-fold"},
		{ok + "A : b\r\n", errSpaceColon, "space before the colon"},
		{ok + ": b\r\n", errFieldName, "empty name"},
		{ok + "A: b\x00\r\n", errFieldValue, "NUL"},
		{ok + "A: b\rc\r\n", errBareCR, "bare CR"},
		{ok + "A: b\n", errBareLF, "bare LF"},
		{ok + "\n", errBareLF, "bare LF for the empty line"},
		{ok + "\rX\n", errBareCR, "bare CR for the empty line"},
		// Content-Length.
		{ok + "Content-Length:\r\n\r\n", errLength, "empty"},
		{ok + "Content-Length: +5\r\n\r\n", errLength, "sign"},
		{ok + "Content-Length: 5, 5\r\n\r\n", errLength, "list, equal"},
		{ok + "Content-Length: 5, 6\r\n\r\n", errLength, "list, different"},
		{ok + "Content-Length: 9223372036854775808\r\n\r\n", errLength, "one too many for int64"},
		{ok + cl5 + cl5 + "\r\n", errManyLengths, "two, equal"},
		{ok + cl5 + cl0 + "\r\n", errManyLengths, "two, different"},
		{"HTTP/1.1 304 x\r\n" + cl5 + cl0 + "\r\n", errManyLengths, "also where there is no body"},
		{"HTTP/1.1 204 x\r\nContent-Length: x\r\n\r\n", errLength, "also where there is no body"},
		// Transfer-Encoding.
		{ok + te + cl5 + "\r\n", errLengthAndCoding, "both"},
		{ok + te + cl0 + "\r\n", errLengthAndCoding, "both, even zero"},
		{"HTTP/1.1 304 x\r\n" + cl5 + te + "\r\n", errLengthAndCoding, "also where there is no body"},
		{"HTTP/1.0 200 OK\r\n" + te + "\r\n", errCodingVersion, "1.0"},
		{ok + "Transfer-Encoding: gzip\r\n\r\n", errUnknownCoding, "RFC 9112 6.3 item 4 would read until close"},
		{ok + "Transfer-Encoding: gzip, chunked\r\n\r\n", errUnknownCoding, "not asked for"},
		{ok + "Transfer-Encoding: identity\r\n\r\n", errUnknownCoding, "no longer a coding"},
		{ok + "Transfer-Encoding: chunked, gzip\r\n\r\n", errChunkedNotFinal, "not final"},
		{ok + te + te + "\r\n", errChunkedNotFinal, "twice"},
		{ok + "Transfer-Encoding:\r\n\r\n", errChunkedNotFinal, "no coding at all"},
		{ok + "Transfer-Encoding: chunked;a=b\r\n\r\n", errChunkedParameter, "parameter"},
		{ok + "Transfer-Encoding: xchunked\r\n\r\n", errUnknownCoding, "unknown"},
		{ok + "Transfer-Encoding: \"chunked\"\r\n\r\n", errCoding, "quoted"},
		{ok + te + "Trailer: a, content-length\r\n\r\n", errTrailerName, "framing in a trailer"},
		// Interim responses, and 101 that was not asked for.
		{"HTTP/1.1 100 x\r\n" + cl5 + "\r\n", errInterimBody, "length"},
		{"HTTP/1.1 103 x\r\n" + te + "\r\n", errInterimBody, "chunked"},
		{switching + "Upgrade: websocket\r\n\r\n", errSwitchUnasked, "not asked for"},
	} {
		got := checkResponse(t, c.in, anyGET, nil)
		e := asError(t, got.err)
		if e != c.want.inResponse() || e.Status != 502 {
			t.Errorf("%s: %q: got %+v, want %v", c.why, c.in, got, c.want)
		}
	}
	for _, c := range []struct {
		in   string
		want *Error
		why  string
	}{
		{switching + "Upgrade: foo/3\r\n\r\n", errSwitchUnasked, "another version"},
		{switching + "Upgrade: foo\r\n\r\n", errSwitchUnasked, "part of the name"},
		{switching + "Upgrade: websocket, h2c\r\n\r\n", errSwitchUnasked, "one of two"},
		{switching + "Upgrade: ,\r\n\r\n", errSwitchMalformed, "no protocol"},
		{switching + "Upgrade: " + strings.Repeat("websocket,", 9) + "\r\n\r\n", errSwitchMalformed, "too many layers"},
		{switching + "\r\n", errSwitchMalformed, "no Upgrade"},
		{"HTTP/1.1 101 x\r\nUpgrade: websocket\r\n\r\n", errSwitchMalformed, "not a connection option"},
		{"HTTP/1.0 101 x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n", errSwitchMalformed, "1.0"},
		{switching + "Upgrade: websocket\r\n" + cl5 + "\r\n", errInterimBody, "length"},
		{switching + "Upgrade: websocket\r\n" + te + "\r\n", errInterimBody, "chunked"},
	} {
		if got := checkResponse(t, c.in, upgrade, nil); got.err != c.want {
			t.Errorf("%s: %q: got %+v, want %v", c.why, c.in, got, c.want)
		}
	}
}

// Every error that a response can cause has its own value with 502.
func TestResponseErrors(t *testing.T) {
	for e, r := range inResponses {
		if r.Status != 502 || r.Reason != e.Reason || r.inResponse() != r {
			t.Errorf("%v: %+v", e, r)
		}
	}
}

func TestResponseNeedMore(t *testing.T) {
	for _, c := range []struct{ in, why string }{
		{"", "nothing"},
		{"H", "part of a version"},
		{"HX", "a line is judged when it is complete"},
		{"HTTP/1.1 200 OK", "no line end"},
		{"HTTP/1.1 200 OK\r", "half a line end"},
		{"HTTP/1.1 999 \x00", "a line is judged when it is complete"},
		{ok, "no fields yet"},
		{ok + cl5 + cl5 + te, "fields are judged at the end"},
		{ok + "\r", "half an empty line"},
	} {
		if got := checkResponse(t, c.in, anyGET, nil); len(got.heads) > 0 || got.err != nil {
			t.Errorf("%s: %q: got %+v", c.why, c.in, got)
		}
	}
}

func TestResponseLimits(t *testing.T) {
	pad := func(n int) string { return ok + "A: " + strings.Repeat("x", n-len(ok)-7) + "\r\n\r\n" }
	fields := func(n int) string { return ok + strings.Repeat("A: b\r\n", n) + "\r\n" }
	for _, c := range []struct {
		in   string
		lim  Limits
		want *Error
		why  string
	}{
		{pad(100), Limits{100, 5}, nil, "exactly the limit"},
		{pad(101), Limits{100, 5}, errHeadTooLong, "one more"},
		{pad(101)[:100], Limits{100, 5}, errHeadTooLong, "the rest need not come"},
		{"HTTP/1.1 200 " + strings.Repeat("x", 100), Limits{100, 5}, errStatusTooLong, "a reason without end"},
		{"HTTP/1.1 999 " + strings.Repeat("x", 100), Limits{100, 5}, errStatusTooLong, "length goes before what an endless line holds"},
		{fields(5), Limits{1000, 5}, nil, "exactly the limit"},
		{fields(6), Limits{1000, 5}, errTooManyFields, "one more"},
		{strings.TrimSuffix(fields(6), "\r\n"), Limits{1000, 5}, errTooManyFields, "the empty line need not come"},
		{pad(64 << 10), Limits{}, nil, "default, exactly the limit"},
		{pad(64<<10 + 1), Limits{}, errHeadTooLong, "default, one more"},
		{fields(128), Limits{}, nil, "default, exactly the limit"},
		{fields(129), Limits{}, errTooManyFields, "default, one more"},
	} {
		got := checkResponse(t, c.in, anyGET, &c.lim)
		if e := asError(t, got.err); c.want == nil && (e != nil || got.used != len(c.in)) || c.want != nil && e != c.want.inResponse() {
			t.Errorf("%s: got %+v, want %v", c.why, got, c.want)
		}
	}
}

// A Response is reused; nothing of the last head may show in the next.
func TestResponseReuse(t *testing.T) {
	heads := []string{
		ok + te + "Connection: close\r\nTrailer: x\r\nKeep-Alive: timeout=5\r\n\r\n",
		"HTTP/1.0 500 Oh\r\n" + cl5 + "Connection: keep-alive, upgrade\r\nUpgrade: x\r\n\r\n",
		"HTTP/1.1 304\r\n\r\n",
	}
	var r, fresh Response
	for _, a := range heads {
		for _, b := range heads {
			r.Parse([]byte(a), &Expected{}, nil, nil)
			r.Parse([]byte(b), &Expected{}, nil, nil)
			fresh = Response{}
			fresh.Parse([]byte(b), &Expected{}, nil, nil)
			if got, want := describeResponse([]byte(b), &r), describeResponse([]byte(b), &fresh); got != want || len(r.Fields) != len(fresh.Fields) {
				t.Errorf("after %q: %s, want %s", a, got, want)
			}
		}
	}
}
