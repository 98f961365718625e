//go:build linux || darwin

package fuzz

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/chert-http/chert/test/internal/unlike"

	"github.com/chert-http/chert/internal/testing/servertest"
)

// This file makes exchanges from a fuzzer's bytes. The bytes are decisions:
// each production of the grammar uses the next one to choose among its
// alternatives, and when none are left the first alternative, the plainest, is
// chosen. So every input is a legal script, and a mutation moves through the
// grammar. The grammar knows what it has made: that distinguishes intended
// differences from others.

// tape has the remaining decisions.
type tape struct{ rest []byte }

// pick chooses one of n alternatives.
func (t *tape) pick(n int) int {
	if len(t.rest) == 0 {
		return 0
	}
	v := int(t.rest[0])
	t.rest = t.rest[1:]
	return v % n
}

// among chooses one of the alternatives.
func among[T any](t *tape, from []T) T { return from[t.pick(len(from))] }

// part is a piece of a request with its properties.
type part struct {
	text string
	// strict is the status with which chert refuses a request for this piece; 0
	// if it does not. Where net/http serves such a request, or sends another
	// status, unlike is the difference.
	strict int
	unlike *unlike.Difference
}

// plain makes parts that both serve.
func plain(text ...string) (all []part) {
	for _, s := range text {
		all = append(all, part{text: s})
	}
	return all
}

// wrong makes parts that both refuse with the same status.
func wrong(status int, text ...string) (all []part) { return stricter(status, nil, text...) }

// stricter makes parts that chert refuses and net/http does not, or
// differently.
func stricter(status int, why *unlike.Difference, text ...string) (all []part) {
	for _, s := range text {
		all = append(all, part{s, status, why})
	}
	return all
}

// body is how a request's content is framed.
type body struct {
	fields []part // Content-Length and Transfer-Encoding
	bytes  string
	// sound: the bytes are what the fields announce, so that a server that has
	// them all does not wait for more.
	sound bool
	// swallows is how many bytes of the next request belong to this one's
	// content; short: it is never complete.
	swallows int
	short    bool
	chunked  bool
	// strict: chert treats the chunked coding as malformed, net/http does not.
	strict bool
	unlike *unlike.Difference
	// looser: net/http treats it as malformed, chert does not.
	looser bool
}

// request is one request and what the handler does with it.
type request struct {
	lead                          part // bytes before the request line
	method, target, version, host part
	fields                        []part
	body                          body
	program                       []string // of operations
	head                          string   // as it is sent
}

// client is how the client behaves.
type client struct {
	split  int    // see splits
	sizes  []int  // for splitSizes
	inTurn bool   // it reads the responses between the requests
	cut    int    // it sends only so many bytes; -1 for all
	cutAt  string // the place of the cut
}

// script is an exchange.
type script struct {
	requests []*request
	client   client
}

const (
	splitNowhere = iota
	splitRequests
	splitHeads // between head and content
	splitLines // between CR and LF
	splitBytes
	splitSizes
	splits
)

var methods = slices.Concat(
	plain("GET", "POST", "HEAD", "PUT", "OPTIONS", "CONNECT", "DELETE", "get", "M-SEARCH", "x!#$%&'*+-.^_`|~0", "PRI", "TRACE"),
	wrong(400, "G(T", "GET\t", "", "G\x80T"),
)

// usual is how many methods at the beginning of the list are common.
const usual = 8

// leads may come between two requests. See script.strict.
var leads = plain("", "\r\n", "\r\n\r\n", "\n", "X", " ", "\x00")

var versions = slices.Concat(
	plain("HTTP/1.1", "HTTP/1.0", "HTTP/1.2", "HTTP/1.9"),
	stricter(505, unlike.RefusalOrder, "HTTP/2.0", "HTTP/0.9"),
	wrong(400, "http/1.1", "HTTP/1.10", "HTTP/1", "HTTP/11", "HTTP/1.1 ", "HTTP/+.1", "", " HTTP/1.1", "HTTP/1,1"),
)

// requestTargets are classified for methods other than CONNECT here; see
// script.strict.
var requestTargets = slices.Concat(
	plain("/", "/a/b?c=d&e=%20f", "/?", "/%41%2f%c3%a9", "//x//y/../z/.", "/a;b=c,d@e:f", "/\xc3\xa9\xff", "/\"<>\\^`{|}", "/a#b",
		"/?%zz", "/+~!*'()[]", "/rpc", "/"+strings.Repeat("p", 3000)),
	plain("http://a.b:80/c?d", "http://A.B", "HTTPS://a/", "http://a?q", "http://[::1]:8/", "http://a_b,c/", "http://a#b"),
	plain("*"),
	stricter(400, unlike.TargetForm, "a.b:80", "a.b:443", "[::1]:8", "a.b:", "a.b:0", "a.b:99999", "a.b", "mailto:a", "http:/a", "http:a"),
	stricter(400, unlike.TargetForm, "http://u:p@a/", "http://u@a", "u@a:80"),
	stricter(400, unlike.TargetForm, "http:///p", "http://?q", "http://:80/", "http://a:b:c/", "http://a\"b/"),
	wrong(400, "/%zz", "/%4", "x/y", "?q", "", "/a b", "/\x7f", "/\x01", "http://a:x/", "http://a b/", "http://a%zz/", "1http://a/", "http://[::1/"),
	plain("ws+x://a:/p", "http://a%20b/"),
	stricter(414, unlike.HeadLimits, "/"+strings.Repeat("p", 20000)),
)

// authorities are the valid targets of CONNECT.
var authorities = []string{"a.b:80", "a.b:443", "[::1]:8"}

var hosts = slices.Concat(
	plain("Host: h\r\n", "Host: h:80\r\n", "host:a.b\r\n", "HOST:\t [::1]:80 \t\r\n", "Host:\r\n", "",
		"Host: a_b~!$&'()*+,;=\r\n", "Host: h:\r\n", "Host: [fe80::1%25e]\r\n", "Host: a%41\r\n", "Host: ::1\r\n"),
	stricter(400, unlike.Host,
		"Host: h:x\r\n", "Host: a%zz\r\n", "Host: a:b:c\r\n", "Host: [::1\r\n", "Host: [::1]x\r\n", "Host: []\r\n"),
	wrong(400, "Host: u@h\r\n", "Host: h/p\r\n", "Host: a b\r\n", "Host: \xc3\xa9\r\n", "Host: h\r\nHost: h\r\n", "Host: h\r\nHost: i\r\n"),
)

var fields = slices.Concat(
	plain("X-A: b\r\n"),
	plain("Connection: close\r\n", "Connection: keep-alive\r\n", "connection:CLOSE\r\n", "Connection: Keep-Alive\r\n",
		"Connection: x, close ,y\r\n", "Connection: x,\tkeep-alive\r\n", "Connection: keep-alive, close\r\n",
		"Connection: x\r\nConnection: close\r\n", "Connection: x\r\nConnection: keep-alive\r\n", "Connection:\r\n", "Connection: ,,close,\r\n",
		"Connection: x close\r\n", "Connection: close x\r\n", "Connection: x keep-alive\r\n", "Connection: keep-alive x\r\n",
		"Connection: closed\r\n", "Connection: x\r\nConnection: y close\r\n", "Connection: \"close\"\r\n", "Connection: close;a=b\r\n",
		"Connection: Upgrade\r\nUpgrade: x\r\n", "Proxy-Connection: close\r\n", "Keep-Alive: timeout=5\r\n"),
	plain("Expect: 100-continue\r\n", "expect:100-Continue\r\n", "Expect:\r\n", "Expect: 100-continue,100-continue\r\n",
		"Expect: 100-continue\r\nExpect: 100-continue\r\n"),
	plain("Trailer: X-T\r\n", "trailer: x-t , X-U,\r\nTrailer: X-V\r\n", "Trailer:\r\n", "Trailer: a b\r\n"),
	plain(barredTrailers...),
	plain("Cookie: a=b\r\ncookie: c=d\r\n", "Pragma: no-cache\r\n", "Pragma: no-cache\r\nCache-Control: x\r\n", "Pragma: x\r\n",
		"Upgrade: h2c\r\n", "Date: now\r\n", "Content-Type: a/b\r\n", "TE: trailers\r\n", "Content-Encoding: gzip\r\n",
		"x-lower-CASE: 1\r\nX-LOWER-case: 2\r\n", "X-Empty:\r\n", "X-Space: \t a  b \t \r\n", "X-Obs: \x80\xff\r\n", "!#$%&'*+.^_`|~1: x\r\n",
		"X-Quote: \"a\\\"b, c\"\r\n", "X-Long: "+strings.Repeat("v", 3000)+"\r\n", strings.Repeat("N", 3000)+": v\r\n",
		strings.Repeat("X-Many: v\r\n", 60), "Range: bytes=0-1\r\n", "If-None-Match: *\r\n", "X-Wide: "+strings.Repeat("v", 300)+"\r\n"),
)

// barredTrailers announce fields that must not be in trailers, which matters if
// there are any.
var barredTrailers = []string{"Trailer: Content-Length\r\n", "Trailer: X-T, Host\r\n", "Trailer: transfer-encoding\r\n"}

// wrongFields end a connection.
var wrongFields = slices.Concat(
	wrong(400, "X-A : b\r\n", "X A: b\r\n", "X-A\t: b\r\n", ": b\r\n", "X-A\r\n", "X-\x80: b\r\n", "X@A: b\r\n", "X-A: \x00\r\n",
		"X-A: \x7f\r\n", "X-A: a\rb\r\n", "X-A: a\r\r\n"),
	stricter(400, unlike.ObsFold, "X-A: a\r\n b\r\n", "X-A:\r\n\tb\r\n", " X-A: b\r\n"),
	stricter(400, unlike.BareLF, "X-A: a\nX-B: b\r\n", "X-A: a\n"),
	stricter(431, unlike.HeadLimits, strings.Repeat("X-Many: v\r\n", 200)),
	wrong(417, "Expect: more\r\n"),
	stricter(417, unlike.ExpectList,
		"Expect: 100-continue, more\r\n", "Expect: more 100-continue\r\n", "Expect: 100-continue\r\nExpect: more\r\n", "Expect:\r\nExpect: more\r\n"),
	wrong(431, "X-Huge: "+strings.Repeat("v", 20000)+"\r\n"),
)

// content returns a body of n bytes that resemble no request.
func content(n int) string { return string(servertest.Pattern(n)) }

var lengths = []int{5, 1, 100, 3000, 5000, 17}

func lengthField(v string) string { return "Content-Length: " + v + "\r\n" }

func lengthOf(n int) []part { return plain(lengthField(strconv.Itoa(n))) }

var chunkedField = plain("Transfer-Encoding: chunked\r\n", "transfer-encoding:\tCHUNKED \r\n")

// lengthFields are for a body of five bytes.
var lengthFields = slices.Concat(
	plain(lengthField("005"), "content-length: \t5 \r\n"),
	stricter(400, unlike.Framing, lengthField("5")+lengthField("5")),
	wrong(400, lengthField("5")+lengthField("6"), lengthField("5, 5"), lengthField("+5"), lengthField("-5"), lengthField("5x"), lengthField("0x5"),
		lengthField(""), lengthField("5 5"), lengthField("\"5\""), lengthField("5."), lengthField("99999999999999999999")),
)

var codings = slices.Concat(
	wrong(501, "Transfer-Encoding: gzip, chunked\r\n", "Transfer-Encoding: identity\r\n", "Transfer-Encoding: xchunked\r\n"),
	stricter(400, unlike.RefusalStatus, "Transfer-Encoding: chunked, chunked\r\n", "Transfer-Encoding: chunked, gzip\r\n", "Transfer-Encoding:\r\n",
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
	stricter(400, unlike.RefusalStatus, "Transfer-Encoding: chunked;a=b\r\n"),
	wrong(501, "Transfer-Encoding: \"chunked\"\r\n"),
	wrong(400, "Transfer-Encoding: \x0bchunked\r\n"),
	plain(emptyElements...),
)

// emptyElements are lists of codings with elements that must be ignored.
var emptyElements = []string{"Transfer-Encoding: chunked,\r\n", "Transfer-Encoding: ,chunked\r\n"}

var bothLengths = stricter(400, unlike.Framing,
	lengthField("5")+"Transfer-Encoding: chunked\r\n", "Transfer-Encoding: chunked\r\n"+lengthField("0"), lengthField("99")+"Transfer-Encoding: chunked\r\n")

// pickBody chooses how a request's content is framed, well formed or nearly so.
func pickBody(t *tape) (b body) {
	switch t.pick(6) {
	case 1, 2:
		n := among(t, lengths)
		return body{fields: lengthOf(n), bytes: content(n), sound: true}
	case 3, 4:
		b = pickChunks(t)
		b.fields = []part{among(t, chunkedField)}
		return b
	case 5:
		return body{fields: lengthOf(0), sound: true}
	}
	return body{sound: true}
}

// pickFraming makes a content with unusual fields.
func pickFraming(t *tape) (b body) {
	switch t.pick(3) {
	case 1:
		b = pickChunks(t)
		b.fields = []part{among(t, codings)}
	case 2:
		b = pickChunks(t)
		b.fields = []part{among(t, bothLengths)}
	default:
		b = body{bytes: content(5), sound: true, fields: []part{among(t, lengthFields)}}
	}
	return b
}

// pickShort makes a content that is shorter than announced.
func pickShort(t *tape) body {
	n := among(t, lengths)
	b := body{bytes: content(n), swallows: 1 + t.pick(2)}
	if b.short = t.pick(2) == 1; b.short {
		b.swallows = 1 << 20
	}
	b.fields = lengthOf(n + b.swallows)
	return b
}

// pickLarge makes a content around the size that is drained; not at the limit
// itself, where the two differ by a byte.
func pickLarge(t *tape) body {
	n := among(t, []int{5000, 30000, maxDrained - 1000, maxDrained + 1000, 300000})
	if t.pick(2) == 0 {
		return body{fields: lengthOf(n), bytes: content(n), sound: true}
	}
	return body{fields: chunkedField[:1], bytes: servertest.Chunks(content(n), 10000), sound: true, chunked: true}
}

// maxDrained is how much of an unread body either server reads to keep the
// connection.
const maxDrained = 256 << 10

// extensions are what may come between a chunk's size and its CRLF.
var extensions = plain("", ";a=b", ";a", ";a=\"b;\\\"c\"", spacedExtension, ";a="+strings.Repeat("v", 500))

// spacedExtension is valid by RFC 9112 section 7.1.1; net/http accepts no space
// between the size and the semicolon.
const spacedExtension = " ; a = b;c"

// oddExtensions are malformed.
var oddExtensions = stricter(400, unlike.ChunkExtensions, " ", ";", ";a=", ";a=\"b", ";a b", ";a\x01", ";\xff", ";a=b ")

// trailers come after the last chunk.
var trailers = plain("\r\n", "X-T: v\r\n\r\n", "x-t:1\r\nX-T: 2 \r\nX-U:\r\n\r\n", "X-T: "+strings.Repeat("v", 500)+"\r\n\r\n", longTrailer)

// oddTrailers are malformed.
var oddTrailers = slices.Concat(
	stricter(400, unlike.Trailers, "Content-Length: 3\r\n\r\n", "Host: x\r\n\r\n"),
	stricter(400, unlike.Trailers, "X-T: a\r\n b\r\n\r\n", "X-T : a\r\n\r\n", "X T: a\r\n\r\n", "X-T: a\r\n"),
	stricter(400, unlike.BareLF, "X-T: a\nX-U: b\r\n\r\n", "\n"),
	plain("X-T\r\n\r\n", " X-T: a\r\n\r\n", "X-T: \x00\r\n\r\n", "X@T: a\r\n\r\n", ": a\r\n\r\n"),
)

// longTrailer is longer than net/http's buffer, which must hold a trailer
// section whole.
var longTrailer = "X-T: " + strings.Repeat("v", 6000) + "\r\n\r\n"

// pickChunks makes a chunked body that is well formed, or nearly so.
func pickChunks(t *tape) body {
	b := body{sound: true, chunked: true}
	var s strings.Builder
	add := func(p part) string {
		if p.strict != 0 && !b.strict {
			b.strict, b.unlike = true, p.unlike
		}
		b.looser = b.looser || p.text == spacedExtension || p.text == longTrailer
		return p.text
	}
	// One decision selects what is unusual, if anything.
	odd := t.pick(16)
	extension := func() string {
		if odd == 1 {
			odd = 0
			return add(among(t, oddExtensions))
		}
		return add(among(t, extensions))
	}
	for range t.pick(4) {
		n := among(t, []int{5, 1, 10, 300, 2500})
		size := among(t, []string{"%x", "%X", "00%x"})
		fmt.Fprintf(&s, size+"%s\r\n%s\r\n", n, extension(), content(n))
	}
	fmt.Fprintf(&s, "%s%s\r\n", among(t, []string{"0", "000"}), extension())
	if odd == 2 {
		p := among(t, oddTrailers)
		s.WriteString(add(p))
		b.sound = p.strict != 0 && strings.HasSuffix(p.text, "\r\n\r\n") // otherwise no server knows where it ends
	} else {
		s.WriteString(add(among(t, trailers)))
	}
	b.bytes = s.String()
	return b
}

// pickBrokenChunks makes a chunked body that neither server can continue to
// read.
func pickBrokenChunks(t *tape) body {
	b := body{chunked: true, fields: chunkedField[:1]}
	b.bytes = "5\r\nhello\r\n"[:among(t, []int{10, 0})] + among(t, []string{
		"\r\n", "g\r\n", "+5\r\nhello\r\n0\r\n\r\n", "-1\r\n", "0x5\r\nhello\r\n0\r\n\r\n", " 5\r\nhello\r\n0\r\n\r\n",
		"5\nhello\r\n0\r\n\r\n", "5\r\nhelloX\r\n0\r\n\r\n", "5\r\nhello\n0\r\n\r\n", "5\r\nhell\r\n0\r\n\r\n", "00000000000000005\r\nhello\r\n0\r\n\r\n",
		"5\r\r\nhello\r\n0\r\n\r\n", "5;a\rb\r\nhello\r\n0\r\n\r\n", "5;" + strings.Repeat("a", 5000) + "\r\nhello\r\n0\r\n\r\n",
		"7fffffffffffffff\r\nhello", "ffff\r\nhello", "\xff\r\n", "5,5\r\nhello\r\n0\r\n\r\n", "0\n\n", strings.Repeat("1;"+strings.Repeat("a", 2000)+"\r\nx\r\n", 20) + "0\r\n\r\n",
	})
	if t.pick(8) == 1 {
		// More than int64 holds, which net/http only finds out at the end.
		b.bytes, b.strict, b.unlike = "8000000000000000\r\nhello", true, unlike.ChunkSize
	}
	return b
}

// operations are what a handler may do. Sizes are near those at which buffers
// are flushed. TOTAL stands for all bytes that the program writes.
var operations = []string{
	"write 5", "readall", "read 5", "flush", "head 200", "string 5", "close",
	"write 0", "write 1", "write 2047", "write 2048", "write 2049", "write 3000", "write 5000", "write 40000",
	"raw <html><p>", "raw \\x00\\x01\\x02", "raw %PDF-1", "raw \\x20\\n", "raw \\xef\\xbb\\xbf",
	"string 0", "string 2048", "string 2049", "string 5000", "from 0", "from 5", "from 511", "from 512", "from 2500", "from 40000",
	"file 0", "file 5", "file 600", "file 5000", "file 40000", "whole", "tail 600",
	"read 0", "read 1", "read 100", "read 5000", "read 300000", "limit 3", "watch", "full", "deadline", "late",
	"head 100", "head 102", "head 103", "head 101", "head 199", "head 201", "head 204", "head 205", "head 304", "head 404", "head 417", "head 500", "head 599", "head 999",
	"set Content-Length TOTAL", "set Content-Length TOTAL-3", "set Content-Length TOTAL+3", "set Content-Length 0", "set Content-Length x", "set Content-Length -1", "set Content-Length +5", "set Content-Length ",
	"add Content-Length 5", "put content-length 5",
	"set Transfer-Encoding chunked", "set Transfer-Encoding identity", "set Transfer-Encoding gzip", "add Transfer-Encoding chunked", "set Transfer-Encoding ",
	"set Connection close", "set Connection keep-alive", "set Connection Close", "set Connection x, close", "set Connection Upgrade", "add Connection x", "set Upgrade x", "nil Connection", "set Connection ",
	"set Trailer X-Tail", "set Trailer X-Tail, x-more,,", "add Trailer Content-Length, X-Tail", "set X-Tail t", "add X-Tail u", "put Trailer:X-Late l", "put Trailer:bad\\x20name l", "put Trailer:X-Tail p", "nil Trailer", "set Trailer ",
	"nil Date", "set Date never", "nil Content-Type", "nil Content-Length", "nil Transfer-Encoding", "set Content-Type a/b", "set Content-Type ", "set Content-Encoding gzip", "set Content-Encoding ",
	"set X-A b", "add X-A c", "put x-a raw", "put bad\\x20name x", "put X-Fold a\\r\\nB: c", "put X-Ctl a\\x7fb", "put X-Sp \\t s\\x20\\t", "nil X-A", "clear",
}

// endings are operations after which nothing is as before.
var endings = []string{"abort", "panic", "exit", "hijack say", "hijack rest", "hijack close", "hijack twice", "head 0", "head 99", "head 1000"}

// themes are operations that only mean something together. The first half comes
// before a program, the second after it.
var themes = [][2][]string{
	{{"set Trailer X-Tail"}, {"set X-Tail t"}},
	{{"set Trailer X-Tail, x-more", "put Trailer:X-Late l", "set X-Tail head"}, {"flush", "add X-Tail tail", "set X-More m"}},
	{{"flush"}, {"put Trailer:X-Late l"}},
	{{"set Content-Length TOTAL"}, nil},
	{{"set Content-Length TOTAL-3"}, nil},
	{{"set Content-Length TOTAL+3"}, {"flush"}},
	{{"set Connection Upgrade", "set Upgrade x", "head 101"}, nil},
	{{"readall"}, nil},
	{nil, {"readall"}},
	{{"flush", "full"}, {"readall"}},
}

func pickProgram(t *tape) []string {
	ops := make([]string, 0, 8)
	for range t.pick(8) {
		ops = append(ops, among(t, operations))
	}
	if theme := t.pick(2 * len(themes)); theme >= len(themes) {
		around := themes[theme-len(themes)]
		ops = slices.Concat(around[0], ops, around[1])
	}
	if t.pick(8) == 7 {
		ops = slices.Insert(ops, t.pick(len(ops)+1), among(t, endings))
	}
	total := 0
	for _, op := range ops {
		total += written(op)
	}
	for i, op := range ops {
		for _, d := range []int{-3, 3, 0} {
			name := "TOTAL"
			if d != 0 {
				name = fmt.Sprintf("TOTAL%+d", d)
			}
			op = strings.ReplaceAll(op, name, strconv.Itoa(max(total+d, 0)))
		}
		ops[i] = op
	}
	return ops
}

// fileSize is the size of the file that "whole" sends.
const fileSize = 40000

// written returns how many bytes of body an operation writes.
func written(op string) int {
	verb, arg, _ := strings.Cut(op, " ")
	n, _ := strconv.Atoi(arg)
	switch verb {
	case "write", "string", "from", "file", "tail":
		return n
	case "raw":
		return len(unescape(arg))
	case "whole":
		return fileSize
	}
	return 0
}

func pickRequest(t *tape) *request {
	r := &request{target: requestTargets[0], version: versions[0], host: hosts[0]}
	r.method = among(t, methods[:usual])
	// One decision selects what is unusual about the request, if anything, so
	// that most of a connection is served.
	odd := t.pick(24)
	switch odd {
	case 1:
		r.method = among(t, methods)
	case 2:
		r.lead = among(t, leads)
	case 3:
		r.version = among(t, versions)
	case 4:
		r.host = among(t, hosts)
	case 5:
		r.target = among(t, requestTargets)
	case 6:
		r.method, r.target = among(t, methods), among(t, requestTargets)
	case 7:
		r.version, r.host = among(t, versions), among(t, hosts)
	case 8, 9, 10:
		r.version = versions[1]
	}
	for range t.pick(4) {
		r.fields = append(r.fields, among(t, fields))
	}
	if odd == 11 {
		r.fields = slices.Insert(r.fields, t.pick(len(r.fields)+1), among(t, wrongFields))
	}
	switch odd {
	case 12:
		r.body = pickFraming(t)
	case 13:
		r.body = pickShort(t)
	case 14:
		r.body = pickBrokenChunks(t)
	case 15:
		r.body = pickLarge(t)
	default:
		r.body = pickBody(t)
	}
	r.program = pickProgram(t)
	return r
}

// makeScript makes the exchange that data selects.
func makeScript(data []byte) *script {
	t := &tape{data}
	s := &script{}
	c := &s.client
	c.split, c.inTurn = t.pick(splits), t.pick(2) == 1
	if c.split == splitSizes {
		for range 6 {
			c.sizes = append(c.sizes, 1+t.pick(64)*t.pick(64))
		}
	}
	cut, whole := t.pick(8), 0
	for range 1 + t.pick(6) {
		s.requests = append(s.requests, pickRequest(t))
	}
	// The last request shows whether the connection was kept, and ends it.
	s.requests = append(s.requests, &request{
		method: part{text: "GET"}, target: part{text: "/last"}, version: part{text: "HTTP/1.1"},
		host: part{text: "Host: h\r\nConnection: close\r\n"}, body: body{sound: true},
	})
	for i, r := range s.requests {
		r.render(i)
		whole += len(r.head) + len(r.body.bytes)
	}
	c.cut = -1
	if cut == 7 {
		s.pickCut(t, whole)
	}
	return s
}

// pickCut chooses where the client stops sending.
func (s *script) pickCut(t *tape, whole int) {
	at := 0
	i := t.pick(len(s.requests))
	for _, r := range s.requests[:i] {
		at += len(r.head) + len(r.body.bytes)
	}
	r := s.requests[i]
	switch t.pick(4) {
	case 0:
		s.client.cutAt = fmt.Sprintf("before request %d", i)
	case 1:
		at += min(1+t.pick(8), len(r.head))
		s.client.cutAt = fmt.Sprintf("at the beginning of request %d", i)
	case 2:
		at += len(r.head) * (1 + t.pick(8)) / 8
		s.client.cutAt = fmt.Sprintf("in the head of request %d", i)
	case 3:
		at += len(r.head) + len(r.body.bytes)*t.pick(8)/8
		s.client.cutAt = fmt.Sprintf("in the body of request %d", i)
	}
	s.client.cut = min(at, whole)
}

func (r *request) render(i int) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s %s %s\r\n", r.lead.text, r.method.text, r.target.text, r.version.text)
	// First, so that no other field can be folded into it.
	fmt.Fprintf(&b, "Do: %d %s\r\n", i, strings.Join(r.program, ";"))
	b.WriteString(r.host.text)
	for _, f := range r.fields {
		b.WriteString(f.text)
	}
	for _, f := range r.body.fields {
		b.WriteString(f.text)
	}
	b.WriteString("\r\n")
	r.head = b.String()
}

// bytes returns what the client sends, request by request.
func (s *script) bytes() (pieces []string) {
	left := s.client.cut
	for _, r := range s.requests {
		p := r.head + r.body.bytes
		if s.client.cut >= 0 {
			p = p[:min(left, len(p))]
			left -= len(p)
		}
		pieces = append(pieces, p)
	}
	return pieces
}

// has reports whether one of the request's fields is name, which ends in a
// colon.
func (r *request) has(name string) bool {
	for _, line := range strings.Split(r.head, "\r\n") {
		if len(line) >= len(name) && strings.EqualFold(line[:len(name)], name) {
			return true
		}
	}
	return false
}

// does reports whether the handler's program has an operation that begins so.
func (r *request) does(prefix string) bool {
	for _, op := range r.program {
		if strings.HasPrefix(op, prefix) {
			return true
		}
	}
	return false
}

// readsFrom reports whether the program has a ReadFrom of n bytes or more.
func (r *request) readsFrom(n int) bool {
	for _, op := range r.program {
		if !strings.HasPrefix(op, "write") && !strings.HasPrefix(op, "string") && written(op) >= n {
			return true
		}
	}
	return false
}

// aborts reports whether the program ends without a response.
func (r *request) aborts() bool {
	for _, op := range r.program {
		switch op {
		case "panic", "abort", "exit", "head 0", "head 99", "head 1000":
			return true
		}
	}
	return false
}

// methodThere returns the method as it arrives: bytes before it may become a
// part of it, and swallowed ones do not.
func (s *script) methodThere(i int) string {
	r := s.requests[i]
	m := r.lead.text + r.method.text
	if i > 0 {
		m = m[min(s.requests[i-1].body.swallows, len(m)):]
	}
	return strings.TrimLeft(m, "\r\n")
}

// glance returns s as a Go string, or its ends if it is long.
func glance(s string) string {
	if len(s) <= 400 {
		return strconv.Quote(s)
	}
	return fmt.Sprintf("%q ... %q (%d bytes)", s[:60], s[len(s)-60:], len(s))
}

// String is the script in readable form.
func (s *script) String() string {
	var b strings.Builder
	for i, r := range s.requests {
		fmt.Fprintf(&b, "request %d:\n", i)
		for _, line := range strings.SplitAfter(r.head, "\r\n") {
			if line != "" {
				fmt.Fprintf(&b, "\t%s +\n", glance(line))
			}
		}
		fmt.Fprintf(&b, "\t%s\n\thandler: %s\n", glance(r.body.bytes), strings.Join(r.program, "; "))
		for _, p := range s.strict(i) {
			fmt.Fprintf(&b, "\tchert may refuse it with %d: %s\n", p.strict, p.unlike)
		}
		if r.body.strict {
			fmt.Fprintf(&b, "\tchert may take the body for malformed: %s\n", r.body.unlike)
		}
	}
	fmt.Fprintf(&b, "client: split %s %v", [...]string{"nowhere", "at requests", "behind heads", "at line ends", "everywhere", "into sizes"}[s.client.split], s.client.sizes)
	if s.client.inTurn {
		b.WriteString(", reads between the requests")
	}
	if s.client.cut >= 0 {
		fmt.Fprintf(&b, ", ends %s, after %d bytes", s.client.cutAt, s.client.cut)
	}
	return b.String()
}
