package engines

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func reader(s string) io.Reader {
	if s == "" {
		return nil
	}
	return strings.NewReader(s)
}

// Same sends each request, a head with an empty line and perhaps a body, to
// every engine and fails where chert's response differs from net/http's:
// protocol, status, fields, framing, body, trailer, and whether the connection
// is kept. Values of the fields in varying are not compared.
func Same(t *testing.T, handler func() http.Handler, varying []string, requests ...string) {
	t.Helper()
	varying = append(varying, "Date")
	want := answers(t, NetHTTP, handler(), varying, requests)
	for _, e := range all {
		if e == NetHTTP {
			continue
		}
		t.Run(e.name, func(t *testing.T) {
			for i, got := range answers(t, e, handler(), varying, requests) {
				if got != want[i] {
					t.Errorf("to %q\n--- %s\n%s\n--- net/http\n%s", requests[i], e.name, got, want[i])
				}
			}
		})
	}
}

func answers(t *testing.T, e Engine, h http.Handler, varying, requests []string) (all []string) {
	t.Helper()
	s := e.Start(t, h)
	for _, r := range requests {
		all = append(all, s.answer(t, r, varying))
	}
	s.Close()
	return all
}

// answer describes the response to a request.
func (s *Server) answer(t *testing.T, request string, varying []string) string {
	t.Helper()
	c := s.Dial(t)
	defer c.Close()
	if _, err := io.WriteString(c, strings.ReplaceAll(request, "\n", "\r\n")); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(c)
	method, _, _ := strings.Cut(request, " ")
	res, err := http.ReadResponse(r, &http.Request{Method: method})
	if err != nil {
		return fmt.Sprintf("no response: %v", err)
	}
	body, err := io.ReadAll(res.Body)
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", res.Proto, res.Status)
	describe(&b, "", res.Header, varying)
	fmt.Fprintf(&b, "length %d, coding %v, close %v, body error %v, body %d bytes\n%.2000q\n",
		res.ContentLength, res.TransferEncoding, res.Close, err, len(body), body)
	describe(&b, "trailer ", res.Trailer, varying)
	if res.Close {
		rest, err := io.ReadAll(r)
		fmt.Fprintf(&b, "then %q, %v\n", rest, err)
	}
	return b.String()
}

func describe(b *strings.Builder, prefix string, h http.Header, varying []string) {
	var lines []string
	for name, values := range h {
		if slices.Contains(varying, name) {
			values = []string{"(varies)"}
		}
		lines = append(lines, fmt.Sprintf("%s%s: %s\n", prefix, name, strings.Join(values, " | ")))
	}
	slices.Sort(lines)
	b.WriteString(strings.Join(lines, ""))
}
