package http1

import (
	"strings"
	"testing"
)

type trailerAnswer struct {
	n      int
	fields string
	err    error
}

func parseTrailerGrowing(b []byte, lim *Limits, cuts ...int) trailerAnswer {
	var p Progress
	var fields []Field
	for _, k := range append(cuts, len(b)) {
		n, out, err := ParseTrailer(append(make([]byte, 0, k), b[:k]...), fields, &p, lim)
		if n > 0 {
			return trailerAnswer{n, describeFields(b, out), err}
		}
		if err != nil {
			return trailerAnswer{err: err}
		}
		fields = out
	}
	return trailerAnswer{}
}

func checkTrailerSplits(t *testing.T, b []byte, lim *Limits) trailerAnswer {
	t.Helper()
	return sameHoweverSplit(t, b, func(b []byte, cuts ...int) trailerAnswer { return parseTrailerGrowing(b, lim, cuts...) })
}

func TestParseTrailer(t *testing.T) {
	for _, c := range []struct {
		in   string
		n    int
		want string
		err  *Error
		why  string
	}{
		{"", 0, "", nil, "nothing yet"},
		{"\r", 0, "", nil, "half an empty line"},
		{"\r\n", 2, "", nil, "no trailers"},
		{"\r\nGET /", 2, "", nil, "what follows is left"},
		{"X-Sum: 1\r\n", 0, "", nil, "no empty line yet"},
		{"X-Sum: 1\r\n\r\nGET", 12, "X-Sum=1", nil, "one"},
		{"A: 1\r\nb:2\r\nA: 3\r\n\r\n", 19, "A=1|b=2|A=3", nil, "several"},
		{"Content-Type: x\r\n\r\n", 19, "Content-Type=x", nil, "makes no sense but is harmless"},
		{"\n", 0, "", errBareLF, "bare LF"},
		{"\rx\n", 0, "", errBareCR, "bare CR"},
		{" A: b\r\n", 0, "", errFold, "obs-fold"},
		{"A : b\r\n", 0, "", errSpaceColon, "space before the colon"},
		{"A: b\x00\r\n", 0, "", errFieldValue, "NUL"},
		{"A\r\n", 0, "", errFieldName, "no colon"},
		{"A: b\n", 0, "", errBareLF, "bare LF"},
		{"Content-Length: 1\r\n\r\n", 0, "", errTrailerName, "framing"},
		{"A: b\r\ntransfer-encoding: chunked\r\n\r\n", 0, "", errTrailerName, "framing"},
		{"Host: b\r\n\r\n", 0, "", errTrailerName, "routing"},
		{"Connection: close\r\n\r\n", 0, "", errTrailerName, "connection"},
		{"Trailer: x\r\n\r\n", 0, "", errTrailerName, "about trailers"},
		{"Upgrade: x\r\n\r\n", 0, "", errTrailerName, "connection"},
		{"Expect: 100-continue\r\n\r\n", 0, "", errTrailerName, "too late"},
		{"A: 1\r\nB: 2\r\nC: 3\r\nD: 4\r\n\r\n", 0, "", errTooManyFields, "four of three fields"},
		{"A: 1\r\nB: 2\r\nC: 3\r\nD: 4\r\n", 0, "", errTooManyFields, "the empty line need not come"},
		{"A: " + strings.Repeat("x", 100), 0, "", errHeadTooLong, "line without end"},
		{strings.Repeat("x", 100), 0, "", errHeadTooLong, "first line too; no 414 here"},
	} {
		a := checkTrailerSplits(t, []byte(c.in), &Limits{HeadBytes: 60, Fields: 3})
		if a.n != c.n || a.fields != c.want || asError(t, a.err) != c.err {
			t.Errorf("%s: %q: got %+v", c.why, c.in, a)
		}
	}
}

func TestParseTrailerReusesFields(t *testing.T) {
	fields := make([]Field, 2, 8)
	in := []byte("A: 1\r\n\r\n")
	_, out, _ := ParseTrailer(in, fields, nil, nil)
	if len(out) != 1 || &out[0] != &fields[0] {
		t.Error("the array passed in is not used")
	}
}
