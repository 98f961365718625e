package netdiff

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chert-http/chert/test/internal/unlike"
)

func TestDiffHeaders(t *testing.T) { diffRun(t, diffHeads) }

// numbered returns n fields with different names.
func numbered(n int) (fields []string) {
	for i := range n {
		fields = append(fields, fmt.Sprintf("X-%d: %d", i, i))
	}
	return fields
}

// activeAgain are the states of a connection whose second request is refused.
// With net/http it becomes active only if the server had to read more for it.
const activeAgain = "new active idle active closed"

var diffHeads = []diffCase{
	{name: "names in any case", send: rawHead("GET / HTTP/1.1", "hOST: h", "accept: */*", "x-request-ID: 1", "ETAG: e", "www-Authenticate: w", "dnt: 1")},
	{name: "odd names", send: ask("GET /", "x!y#z: 1", "_under_score: 2", "1st: 3", "a--b: 4", "-x: 5", "x-: 6", "|~^: 7")},
	{name: "a name of one letter", send: ask("GET /", "a: 1", "B: 2")},
	{name: "a long name", send: ask("GET /", strings.Repeat("long-", 100)+"name: v")},
	{name: "duplicates", send: ask("GET /", "A: 1", "B: 2", "a: 3", "A: 2")},
	{name: "cookies are not joined", send: ask("GET /", "Cookie: a=1", "Cookie: b=2; c=3")},
	{name: "empty values", send: ask("GET /", "A:", "B: ", "C:\t \t")},
	{name: "no space after the colon", send: ask("GET /", "A:1", "B:2")},
	{name: "space around a value", send: ask("GET /", "A: \t  x\t y \t", "B:  z  ")},
	{name: "colons in a value", send: ask("GET /", "A: :b:c:", "B: http://x:1/")},
	{name: "any byte that is no control", send: ask("GET /", "A: \x80\xff\u00e9\u65e5", "B: ~!@#$%^&*()\"\\")},
	{name: "a tab in a value", send: ask("GET /", "A: a\tb")},
	{name: "a long value", send: ask("GET /", "A: "+strings.Repeat("v", 9000))},
	{name: "Host is not in Header", send: rawHead("GET / HTTP/1.1", "A: 1", "Host: example.com", "B: 2")},
	{name: "Host with a port", send: rawHead("GET / HTTP/1.1", "Host: example.com:8080")},
	{name: "Host in capitals", send: rawHead("GET / HTTP/1.1", "Host: EXAMPLE.com")},
	{name: "Host with an empty port", send: rawHead("GET / HTTP/1.1", "Host: h:")},
	{name: "an empty Host", send: rawHead("GET / HTTP/1.1", "Host:")},
	{name: "Host, IPv6", send: rawHead("GET / HTTP/1.1", "Host: [::1]:80")},
	{name: "Host with an underscore", send: rawHead("GET / HTTP/1.1", "Host: a_b.c-d~e")},
	{name: "Host with sub-delims", send: rawHead("GET / HTTP/1.1", "Host: a!b$c&d'e(f)g*h+i,j;k=l")},
	{name: "Host with an encoded letter", send: rawHead("GET / HTTP/1.1", "Host: a%41")},
	{name: "an empty Host in 1.0", send: ask10("GET /", "Host:")},
	{name: "Pragma becomes Cache-Control", send: ask("GET /", "Pragma: no-cache")},
	{name: "Pragma beside Cache-Control", send: ask("GET /", "Pragma: no-cache", "Cache-Control: max-age=1")},
	{name: "Pragma in another case", send: ask("GET /", "Pragma: No-Cache")},
	{name: "Pragma not first", send: ask("GET /", "Pragma: x", "Pragma: no-cache")},
	{name: "Trailer without chunks", send: ask("GET /", "Trailer: A")},
	{name: "Upgrade is left in", send: ask("GET /", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: k")},
	{name: "an upgrade to h2c", send: ask("GET /", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA")},
	{name: "fields of a proxy", send: ask("GET /", "Via: 1.1 p", "X-Forwarded-For: 1.2.3.4", "Forwarded: for=1.2.3.4", "TE: trailers", "Proxy-Connection: keep-alive", "Keep-Alive: timeout=5")},
	{name: "as many fields as are allowed", send: ask("GET /", numbered(127)...)},

	{name: "no Host", send: rawHead("GET / HTTP/1.1"), unlike: otherWords(400, "missing Host")},
	{name: "no Host but an absolute target", send: rawHead("GET http://other/ HTTP/1.1"), unlike: otherWords(400, "missing Host")},
	{name: "two Hosts", send: ask("GET /", "Host: h"), unlike: otherWords(400, "more than one Host")},
	{name: "two Hosts in 1.0", send: ask10("GET /", "Host: h", "Host: i"), unlike: otherWords(400, "more than one Host")},
	{name: "Host with a space", send: rawHead("GET / HTTP/1.1", "Host: a b"), unlike: otherWords(400, "malformed Host")},
	{name: "Host with a path", send: rawHead("GET / HTTP/1.1", "Host: a/b"), unlike: otherWords(400, "malformed Host")},
	{name: "Host with userinfo", send: rawHead("GET / HTTP/1.1", "Host: u@h"), unlike: otherWords(400, "malformed Host")},
	{name: "Host with raw UTF-8", send: rawHead("GET / HTTP/1.1", "Host: \u00e9"), unlike: otherWords(400, "malformed Host")},
	{name: "Host with a question mark", send: rawHead("GET / HTTP/1.1", "Host: h?"), unlike: otherWords(400, "malformed Host")},
	{name: "a space before the colon", send: ask("GET /", "A : 1"), unlike: otherWords(400, "whitespace before the colon")},
	{name: "a tab before the colon", send: ask("GET /", "A\t: 1"), unlike: otherWords(400, "whitespace before the colon")},
	{name: "a space in a name", send: ask("GET /", "A B: 1"), unlike: otherWords(400, "whitespace before the colon")},
	{name: "no name", send: ask("GET /", ": 1"), unlike: otherWords(400, "malformed field name")},
	{name: "no colon", send: ask("GET /", "A"), unlike: otherWords(400, "malformed field name")},
	{name: "brackets in a name", send: ask("GET /", "A(b): 1"), unlike: otherWords(400, "malformed field name")},
	{name: "UTF-8 in a name", send: ask("GET /", "\u00e9: 1"), unlike: otherWords(400, "malformed field name")},
	{name: "NUL in a name", send: ask("GET /", "A\x00: 1"), unlike: otherWords(400, "malformed field name")},
	{name: "NUL in a value", send: ask("GET /", "A: \x00"), unlike: otherWords(400, "control byte in a field value")},
	{name: "a control in a value", send: ask("GET /", "A: a\x08b"), unlike: otherWords(400, "control byte in a field value")},
	{name: "DEL in a value", send: ask("GET /", "A: \x7f"), unlike: otherWords(400, "control byte in a field value")},
	{name: "CR in a value", send: ask("GET /", "A: a\rB: b"), unlike: otherWords(400, "CR without LF")},
	{name: "two CRs after a value", send: ask("GET /", "A: a\r"), unlike: otherWords(400, "CR without LF")},
	{name: "folded first field", send: rawHead("GET / HTTP/1.1", " Host: h"), unlike: otherWords(400, "folded field line")},
	{name: "cut in a field", do: say("GET / HTTP/1.1\r\nHost: h\r\nA: ").halfClose(), unlike: otherWords(400, "the request ends before its head does")},
	{name: "cut before the empty line", do: say("GET / HTTP/1.1\r\nHost: h\r\n").halfClose(), unlike: otherWords(400, "the request ends before its head does")},
	{name: "cut in the empty line", do: say("GET / HTTP/1.1\r\nHost: h\r\n\r").halfClose(), unlike: otherWords(400, "the request ends before its head does")},
	{name: "cut in the second request", do: say(ask("GET /") + "GET / HTTP/1.1\r\nHost").halfClose(), unlike: &unlikeness{id: unlike.RefusalText, sight: sight{
		wire: plainAnswer("hello") + refusalOf(400, "the request ends before its head does"), states: activeAgain}}},

	{name: "no Host for CONNECT", send: rawHead("CONNECT other:443 HTTP/1.1")},
	{name: "no Host for CONNECT of a path", send: rawHead("CONNECT / HTTP/1.1")},
	{name: "Host with a bad port", send: rawHead("GET / HTTP/1.1", "Host: h:80a"), unlike: refused(unlike.Host, 400, "malformed Host")},
	{name: "Host, IPv6 without brackets", send: rawHead("GET / HTTP/1.1", "Host: ::1")},
	{name: "Host, IPv6 without brackets but with a port", send: rawHead("GET / HTTP/1.1", "Host: 2001:db8::1:8080")},
	{name: "Host with two ports", send: rawHead("GET / HTTP/1.1", "Host: h:80:81"), unlike: refused(unlike.Host, 400, "malformed Host")},
	{name: "Host with an open bracket", send: rawHead("GET / HTTP/1.1", "Host: [::1"), unlike: refused(unlike.Host, 400, "malformed Host")},
	{name: "Host with a cut encoding", send: rawHead("GET / HTTP/1.1", "Host: h%4"), unlike: refused(unlike.Host, 400, "malformed Host")},
	{name: "bare LF after a field", send: "GET / HTTP/1.1\r\nHost: h\nA: b\r\n\r\n", unlike: refused(unlike.BareLF, 400, "LF without CR")},
	{name: "bare LF as the empty line", send: "GET / HTTP/1.1\r\nHost: h\r\n\n", unlike: refused(unlike.BareLF, 400, "LF without CR")},
	{name: "nothing but bare LFs", send: "GET / HTTP/1.1\nHost: h\n\n", unlike: refused(unlike.BareLF, 400, "malformed HTTP version")},
	{name: "folded field", send: ask("GET /", "A: a", " b"), unlike: refused(unlike.ObsFold, 400, "folded field line")},
	{name: "folded by a tab", send: ask("GET /", "A: a", "\tb"), unlike: refused(unlike.ObsFold, 400, "folded field line")},
	{name: "folded to nothing", send: ask("GET /", "A: a", " "), unlike: refused(unlike.ObsFold, 400, "folded field line")},
	{name: "more fields than are allowed", send: ask("GET /", numbered(128)...), unlike: refused(unlike.HeadLimits, 431, "too many fields")},
}
