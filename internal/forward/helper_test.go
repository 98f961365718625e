package forward

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/chert-http/chert/internal/http1"
)

// send parses a request's head as the server does and returns what is sent of it.
func send(t *testing.T, in string, o Request) (string, Sent, *http1.Error) {
	t.Helper()
	var r http1.Request
	n, err := r.Parse([]byte(in), nil, nil)
	if n == 0 {
		t.Fatalf("%q is no request: %v", in, err)
	}
	const before = "what was in the buffer"
	out, sent, err := AppendRequest([]byte(before), []byte(in), &r, &o)
	rest, ok := strings.CutPrefix(string(out), before)
	if !ok {
		t.Fatalf("%q: the buffer began with %q", in, out)
	}
	if err != nil && rest != "" {
		t.Fatalf("%q: refused, but %q was written", in, rest)
	}
	return rest, sent, asError(t, err)
}

// sendBack is send for a response to req.
func sendBack(t *testing.T, in string, req http1.Expected, o Response) (string, http1.Framing, *http1.Error) {
	t.Helper()
	var r http1.Response
	n, err := r.Parse([]byte(in), &req, nil, nil)
	if n == 0 {
		t.Fatalf("%q is no response: %v", in, err)
	}
	out, framing, err := AppendResponse(nil, []byte(in), &r, &o)
	if err != nil && len(out) > 0 {
		t.Fatalf("%q: refused, but %q was written", in, out)
	}
	return string(out), framing, asError(t, err)
}

func asError(t *testing.T, err error) *http1.Error {
	t.Helper()
	if err == nil {
		return nil
	}
	var e *http1.Error
	if !errors.As(err, &e) || e.Status < 400 || e.Reason == "" {
		t.Fatalf("not a proper *http1.Error: %#v", err)
	}
	return e
}

// lines renders a head with '|' for the line ends within it.
func lines(head string) string {
	head = strings.TrimSuffix(head, "\r\n\r\n")
	return strings.ReplaceAll(head, "\r\n", "|")
}

func manyOptions(n int) string {
	s := "Connection: close"
	for i := range n {
		s += fmt.Sprintf(", x%d", i)
	}
	return s + "\r\n"
}
