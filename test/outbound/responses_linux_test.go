package outbound

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/chert-http/chert/internal/reason"
	"github.com/chert-http/chert/internal/testing/servertest"
)

const get = "GET /a?b HTTP/1.1\r\nHost: h\r\n\r\n"

var date = regexp.MustCompile(`Date: [^\r]*\r\n`)

// TestResponses is what a client gets of what a server sends.
func TestResponses(t *testing.T) {
	t.Parallel()
	const instead = "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 8\r\n" +
		"Content-Type: text/plain; charset=utf-8\r\nDate\r\n\r\ninstead\n"
	for _, tt := range []struct {
		name   string
		ask    string // get if ""
		answer string
		closes bool // the server closes after it
		want   string
		cut    bool // the client's connection ends with it
		why    reason.Code
	}{
		{name: "length", answer: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: y\r\n\r\nhello",
			want: "HTTP/1.1 200 OK\r\nX: y\r\nDate\r\nContent-Length: 5\r\nVia: 1.1 test\r\n\r\nhello"},
		{name: "no bytes", answer: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
			want: "HTTP/1.1 200 OK\r\nDate\r\nContent-Length: 0\r\nVia: 1.1 test\r\n\r\n"},
		{name: "its date", answer: "HTTP/1.1 200 OK\r\nDate: now\r\nContent-Length: 0\r\n\r\n",
			want: "HTTP/1.1 200 OK\r\nDate\r\nContent-Length: 0\r\nVia: 1.1 test\r\n\r\n"},
		{name: "chunked", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n",
			want: "HTTP/1.1 200 OK\r\nDate\r\nTransfer-Encoding: chunked\r\nVia: 1.1 test\r\n\r\n5\r\nhello\r\n0\r\n\r\n"},
		{name: "chunked with a trailer", ask: "GET / HTTP/1.1\r\nHost: h\r\nTE: trailers\r\nConnection: TE\r\n\r\n",
			answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n",
			want:   "HTTP/1.1 200 OK\r\nDate\r\nTransfer-Encoding: chunked\r\nVia: 1.1 test\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n"},
		{name: "up to the end", answer: "HTTP/1.1 200 OK\r\n\r\nhello", closes: true,
			want: "HTTP/1.1 200 OK\r\nDate\r\nTransfer-Encoding: chunked\r\nVia: 1.1 test\r\n\r\n5\r\nhello\r\n0\r\n\r\n"},
		{name: "1.0 up to the end", answer: "HTTP/1.0 200 OK\r\n\r\nhello", closes: true,
			want: "HTTP/1.1 200 OK\r\nDate\r\nTransfer-Encoding: chunked\r\nVia: 1.0 test\r\n\r\n5\r\nhello\r\n0\r\n\r\n"},
		{name: "204", answer: "HTTP/1.1 204 No Content\r\n\r\n",
			want: "HTTP/1.1 204 No Content\r\nDate\r\nVia: 1.1 test\r\n\r\n"},
		{name: "304 with a length", answer: "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n",
			want: "HTTP/1.1 304 Not Modified\r\nDate\r\nContent-Length: 7\r\nVia: 1.1 test\r\n\r\n"},
		{name: "HEAD", ask: "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n", answer: "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n",
			want: "HTTP/1.1 200 OK\r\nDate\r\nContent-Length: 7\r\nVia: 1.1 test\r\n\r\n"},
		{name: "interim", answer: "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
			want: "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nVia: 1.1 test\r\n\r\n" +
				"HTTP/1.1 200 OK\r\nDate\r\nContent-Length: 0\r\nVia: 1.1 test\r\n\r\n"},
		{name: "hop by hop", answer: "HTTP/1.1 200 OK\r\nConnection: X, keep-alive\r\nKeep-Alive: timeout=9\r\nX: y\r\nContent-Length: 0\r\n\r\n",
			want: "HTTP/1.1 200 OK\r\nDate\r\nContent-Length: 0\r\nVia: 1.1 test\r\n\r\n"},
		{name: "connection close", answer: "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
			want: "HTTP/1.1 200 OK\r\nDate\r\nContent-Length: 0\r\nVia: 1.1 test\r\n\r\n"},

		{name: "cut length", answer: "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello", closes: true, cut: true, why: reason.Truncated,
			want: "HTTP/1.1 200 OK\r\nDate\r\nContent-Length: 6\r\nVia: 1.1 test\r\n\r\nhello"},
		{name: "cut chunks", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", closes: true, cut: true, why: reason.Truncated,
			want: "HTTP/1.1 200 OK\r\nDate\r\nTransfer-Encoding: chunked\r\nVia: 1.1 test\r\n\r\n5\r\nhello\r\n"},
		{name: "bad trailer", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX Y: z\r\n\r\n", cut: true, why: reason.Malformed,
			want: "HTTP/1.1 200 OK\r\nDate\r\nTransfer-Encoding: chunked\r\nVia: 1.1 test\r\n\r\n5\r\nhello\r\n"},
		{name: "large trailer", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: " + strings.Repeat("x", 70_000), cut: true, why: reason.HeadTooLarge,
			want: "HTTP/1.1 200 OK\r\nDate\r\nTransfer-Encoding: chunked\r\nVia: 1.1 test\r\n\r\n5\r\nhello\r\n"},
		{name: "bad chunk", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nx\r\n", cut: true, why: reason.BadFraming,
			want: "HTTP/1.1 200 OK\r\nDate\r\nTransfer-Encoding: chunked\r\nVia: 1.1 test\r\n\r\n5\r\nhello\r\n"},

		{name: "nothing", answer: "", closes: true, want: instead, why: reason.Closed},
		{name: "part of a head", answer: "HTTP/1.1 200 OK\r\nX:", closes: true, want: instead, why: reason.Closed},
		{name: "no HTTP", answer: "SSH-2.0-x\r\n", want: instead, why: reason.Malformed},
		{name: "both framings", answer: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
			want: instead, why: reason.BadFraming},
		{name: "two lengths", answer: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 1\r\n\r\n", want: instead, why: reason.BadFraming},
		{name: "unasked upgrade", answer: "HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", want: instead, why: reason.BadUpgrade},
		{name: "folded", answer: "HTTP/1.1 200 OK\r\nA: b\r\n c\r\nContent-Length: 0\r\n\r\n", want: instead, why: reason.Malformed},
		{name: "many interims", answer: strings.Repeat("HTTP/1.1 103 E\r\n\r\n", 17), why: reason.ManyInterim,
			want: strings.Repeat("HTTP/1.1 103 E\r\nVia: 1.1 test\r\n\r\n", 16) + instead},
		{name: "long head", answer: "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("a", 2<<20) + "\r\n\r\n", want: instead, why: reason.HeadTooLarge},
	} {
		for _, slowly := range []bool{false, true} {
			if slowly && len(tt.answer) > 1<<16 {
				continue
			}
			t.Run(fmt.Sprintf("%s slowly=%v", tt.name, slowly), func(t *testing.T) {
				t.Parallel()
				u := start(t, func(c *servertest.Client, n int) {
					if _, ok := headOf(c); !ok {
						return
					}
					if slowly {
						for i := range len(tt.answer) {
							if _, err := c.Conn.Write([]byte(tt.answer[i : i+1])); err != nil {
								return
							}
						}
					} else if _, err := c.Conn.Write([]byte(tt.answer)); err != nil {
						return
					}
					if !tt.closes {
						c.R.ReadByte() // until the other side closes
					}
				})
				g := gatewayTo(t, terms(), u.addr())
				g.again = false // or Closed is tried again
				s := g.serve(t)
				ask := tt.ask
				if ask == "" {
					ask = get
				}
				c := s.Dial()
				if !tt.cut { // a refusal shows where the response ends
					ask += "BAD\r\n\r\n"
				}
				c.Send(ask)
				got := date.ReplaceAllString(c.UpToEnd(), "Date\r\n")
				if !tt.cut {
					var refused bool
					if got, _, refused = strings.Cut(got, "HTTP/1.1 400 "); !refused {
						t.Errorf("the connection cannot be used after %q", got)
					}
				}
				want := tt.want
				if slowly {
					got, want = dechunk(got), dechunk(want)
				}
				if got != want {
					t.Errorf("got\n%q, want\n%q", got, want)
				}
				if done := g.ended(1); done[0] != tt.why {
					t.Errorf("ended by %v, want %v", done[0], tt.why)
				}
			})
		}
	}
}

var chunk = regexp.MustCompile(`(?m)\b[0-9a-f]+\r\n([^\r]+)(\r\n|$)`)

// dechunk joins chunks, however many there are.
func dechunk(s string) string {
	head, body, _ := strings.Cut(s, "Transfer-Encoding: chunked")
	if body == "" {
		return s
	}
	fields, body, _ := strings.Cut(body, "\r\n\r\n")
	return head + fields + " // " + chunk.ReplaceAllString(body, "$1")
}
