package http1

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// answer is all that Parse says.
type answer struct {
	n   int
	err error
	req Request // zero unless n > 0
}

func parseOnce(b []byte, p *Progress, lim *Limits) answer {
	var r Request
	n, err := r.Parse(b, p, lim)
	if n == 0 {
		return answer{err: err}
	}
	return answer{n, err, r}
}

// parseGrowing gives Parse growing parts of b, cut at the given places and at
// the end, with one Progress, until it answers.
func parseGrowing(b []byte, lim *Limits, cuts ...int) answer {
	var p Progress
	for _, k := range append(cuts, len(b)) {
		// A copy without spare capacity: what came before may have moved.
		part := append(make([]byte, 0, k), b[:k]...)
		if a := parseOnce(part, &p, lim); a.n > 0 || a.err != nil {
			if p != (Progress{}) {
				panic("Progress not reset with the answer")
			}
			return a
		}
	}
	return answer{}
}

// checkSplits is sameHoweverSplit for a request head.
func checkSplits(t *testing.T, b []byte, lim *Limits) answer {
	t.Helper()
	return sameHoweverSplit(t, b, func(b []byte, cuts ...int) answer { return parseGrowing(b, lim, cuts...) })
}

// sameHoweverSplit requires the same result of parse for b whole, byte by byte and in
// two parts, and returns it.
func sameHoweverSplit[T any](t *testing.T, b []byte, parse func(b []byte, cuts ...int) T) T {
	t.Helper()
	whole := parse(b)
	cuts := make([]int, len(b))
	for i := range cuts {
		cuts[i] = i
		if got := parse(b, i); !reflect.DeepEqual(got, whole) {
			t.Errorf("%s\nsplit at %d: %+v\nwhole: %+v", show(b), i, got, whole)
		}
	}
	if got := parse(b, cuts...); !reflect.DeepEqual(got, whole) {
		t.Errorf("%s\nbyte by byte: %+v\nwhole: %+v", show(b), got, whole)
	}
	return whole
}

func show(b []byte) string {
	if len(b) > 300 {
		return fmt.Sprintf("%q... (%d bytes)", b[:300], len(b))
	}
	return fmt.Sprintf("%q", b)
}

// describe renders a request in one line: request line, what the fields mean,
// then the fields.
func describe(b []byte, r *Request) string {
	form := [...]string{"origin", "absolute", "authority", "asterisk"}[r.Form]
	s := fmt.Sprintf("%s %s %s 1.%d", r.Method.Bytes(b), r.Target.Bytes(b), form, r.Minor)
	if r.HasHost {
		s += fmt.Sprintf(" host=%s", r.Host.Bytes(b))
	}
	if r.ContentLength >= 0 {
		s += fmt.Sprintf(" len=%d", r.ContentLength)
	}
	for _, f := range []struct {
		on   bool
		name string
	}{
		{r.Chunked, "chunked"}, {r.KeepAlive, "keep"}, {r.ExpectContinue, "continue"},
		{r.ExpectOther, "expect-other"}, {r.Upgrade, "upgrade"}, {r.HasTrailer, "trailer"},
	} {
		if f.on {
			s += " " + f.name
		}
	}
	return s
}

func describeFields(b []byte, fields []Field) string {
	var s []string
	for _, f := range fields {
		s = append(s, fmt.Sprintf("%s=%s", f.Name.Bytes(b), f.Value.Bytes(b)))
	}
	return strings.Join(s, "|")
}

func asError(t *testing.T, err error) *Error {
	t.Helper()
	if err == nil {
		return nil
	}
	var e *Error
	if !errors.As(err, &e) || e.Status < 400 || e.Reason == "" {
		t.Fatalf("not a proper *Error: %#v", err)
	}
	return e
}
