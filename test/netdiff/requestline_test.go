package netdiff

import (
	"strings"
	"testing"

	"github.com/chert-http/chert/test/internal/unlike"
)

func TestDiffRequestLine(t *testing.T) { diffRun(t, diffRequestLines) }

const hostH = "Host: h"

var diffRequestLines = []diffCase{
	{name: "the shortest", send: ask("GET /")},
	{name: "a query", send: ask("GET /?a=b&c")},
	{name: "an empty query", send: ask("GET /?")},
	{name: "question marks in the query", send: ask("GET /?a?b?")},
	{name: "a query that is not decoded", send: ask("GET /?a=%zz;b")},
	{name: "encoded slash", send: ask("GET /a%2Fb")},
	{name: "encoded letter", send: ask("GET /%71uiet")},
	{name: "encoded twice", send: ask("GET /a%252Fb")},
	{name: "encoded NUL", send: ask("GET /a%00b")},
	{name: "raw UTF-8", send: ask("GET /\u00e9")},
	{name: "raw bytes that are not UTF-8", send: ask("GET /\xe4\xff")},
	{name: "bytes that RFC 3986 does not have", send: ask("GET /|^`\"<>{}\\[]")},
	{name: "a fragment", send: ask("GET /#b")},
	{name: "dot segments", send: ask("GET /a/../quiet")},
	{name: "two slashes", send: ask("GET //a//b")},
	{name: "nothing but slashes", send: ask("GET ///")},
	{name: "a URL as a path", send: ask("GET /http://x/")},
	{name: "absolute", send: ask("GET http://other/quiet?q")},
	{name: "absolute without a path", send: ask("GET http://other")},
	{name: "absolute with a query and no path", send: ask("GET http://other?q")},
	{name: "absolute with a port", send: ask("GET http://other:81/")},
	{name: "absolute with an empty port", send: ask("GET http://other:/")},
	{name: "absolute, IPv6", send: ask("GET http://[::1]:81/")},
	{name: "absolute, IPv6 with a zone", send: ask("GET http://[fe80::1%25en0]/")},
	{name: "absolute, another scheme", send: ask("GET ftp://other/")},
	{name: "absolute, scheme in capitals", send: ask("GET HTTPS://Other/")},
	{name: "absolute, encoded host", send: ask("GET http://a%41b/"), unlike: otherWords(400, "the request target is not a URL")},
	{name: "absolute, sub-delims in the host", send: ask("GET http://a!b(c)/")},
	{name: "absolute in 1.0 without Host", send: ask10("GET http://other/")},
	{name: "long target", send: ask("GET /" + strings.Repeat("long/", 700))},
	{name: "1.0", send: ask10("GET /")},
	{name: "1.0 with Host", send: ask10("GET /", hostH)},
	{name: "a minor version of the future", send: rawHead("GET / HTTP/1.2", hostH)},
	{name: "the last minor version", send: rawHead("GET / HTTP/1.9", hostH)},

	{name: "a minor version of the future without Host", send: rawHead("GET / HTTP/1.3"), unlike: otherWords(400, "missing Host")},
	{name: "no target", send: rawHead("GET HTTP/1.1", hostH), unlike: otherWords(400, "malformed request target")},
	{name: "no version", send: rawHead("GET /", hostH), unlike: otherWords(400, "malformed request target")},
	{name: "a method alone", send: rawHead("GET", hostH), unlike: otherWords(400, "malformed method")},
	{name: "two spaces after the method", send: rawHead("GET  / HTTP/1.1", hostH), unlike: otherWords(400, "malformed request target")},
	{name: "two spaces before the version", send: rawHead("GET /  HTTP/1.1", hostH), unlike: otherWords(400, "malformed HTTP version")},
	{name: "a space after the version", send: rawHead("GET / HTTP/1.1 ", hostH), unlike: otherWords(400, "malformed HTTP version")},
	{name: "a space in the target", send: ask("GET /a b"), unlike: otherWords(400, "malformed HTTP version")},
	{name: "tabs for spaces", send: rawHead("GET\t/\tHTTP/1.1", hostH), unlike: otherWords(400, "malformed method")},
	{name: "a space first", send: rawHead(" GET / HTTP/1.1", hostH), unlike: otherWords(400, "not an HTTP request")},
	{name: "a method that is no token", send: ask("G@T /"), unlike: otherWords(400, "malformed method")},
	{name: "a method in brackets", send: ask("(GET) /"), unlike: otherWords(400, "not an HTTP request")},
	{name: "version in lower case", send: rawHead("GET / http/1.1", hostH), unlike: otherWords(400, "malformed HTTP version")},
	{name: "version without a minor", send: rawHead("GET / HTTP/1", hostH), unlike: otherWords(400, "malformed HTTP version")},
	{name: "version with two digits", send: rawHead("GET / HTTP/1.10", hostH), unlike: otherWords(400, "malformed HTTP version")},
	{name: "version with a leading zero", send: rawHead("GET / HTTP/01.1", hostH), unlike: otherWords(400, "malformed HTTP version")},
	{name: "version of letters", send: rawHead("GET / HTTP/a.b", hostH), unlike: otherWords(400, "malformed HTTP version")},
	{name: "another protocol's version", send: rawHead("OPTIONS * RTSP/1.0", hostH), unlike: otherWords(400, "malformed HTTP version")},
	{name: "version 0.9", send: rawHead("GET / HTTP/0.9", hostH), unlike: otherWords(505, "unsupported HTTP version")},
	{name: "version 2.0", send: rawHead("GET / HTTP/2.0", hostH), unlike: otherWords(505, "unsupported HTTP version")},
	{name: "version 3.0", send: rawHead("GET / HTTP/3.0", hostH), unlike: otherWords(505, "unsupported HTTP version")},
	{name: "a control in the target", send: ask("GET /\x01"), unlike: otherWords(400, "malformed request target")},
	{name: "NUL in the target", send: ask("GET /\x00"), unlike: otherWords(400, "malformed request target")},
	{name: "DEL in the target", send: ask("GET /\x7f"), unlike: otherWords(400, "malformed request target")},
	{name: "CR in the target", send: ask("GET /\r"), unlike: otherWords(400, "malformed request target")},
	{name: "malformed encoding", send: ask("GET /a%zz"), unlike: otherWords(400, "the request target is not a URL")},
	{name: "cut encoding", send: ask("GET /a%"), unlike: otherWords(400, "the request target is not a URL")},
	{name: "neither path nor URL", send: ask("GET a"), unlike: otherWords(400, "request target has the wrong form for the method")},
	{name: "a query alone", send: ask("GET ?a"), unlike: otherWords(400, "request target has the wrong form for the method")},
	{name: "absolute with a bad port", send: ask("GET http://other:a/"), unlike: otherWords(400, "request target has the wrong form for the method")},
	{name: "absolute with a space in the host", send: ask("GET http://ot%20her/"), unlike: otherWords(400, "the request target is not a URL")},
	{name: "absolute with an open bracket", send: ask("GET http://[::1/"), unlike: otherWords(400, "request target has the wrong form for the method")},
	{name: "three empty lines first", send: "\r\n\r\n\r\n" + ask("GET /"), unlike: otherWords(400, "not an HTTP request")},
	{name: "three empty lines after a POST", send: post("/read", "abc") + "\r\n\r\n\r\n" + ask("GET /"), n: 2, unlike: like(unlike.RefusalText, sight{
		wire: plainAnswer("read 3 true") + refusalOf(400, "not an HTTP request"), states: activeAgain})},
	{name: "a LF first", send: "\n" + ask("GET /"), unlike: otherWords(400, "not an HTTP request")},
	{name: "a CR first", send: "\r" + ask("GET /"), unlike: otherWords(400, "CR without LF")},
	{name: "another protocol's greeting", send: "SSH-2.0-client\r\n", unlike: otherWords(400, "malformed method")},
	{name: "a TLS client", do: say("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03").halfClose(), unlike: otherWords(400, "not an HTTP request")},
	{name: "cut in the method", do: say("GE").halfClose(), unlike: otherWords(400, "the request ends before its head does")},
	{name: "cut in the version", do: say("GET / HT").halfClose(), unlike: otherWords(400, "the request ends before its head does")},
	{name: "cut after the line", do: say("GET / HTTP/1.1\r\n").halfClose(), unlike: otherWords(400, "the request ends before its head does")},
	{name: "nothing but an end", do: diffScript{}.halfClose()},

	{name: "an empty line first", send: "\r\n" + ask("GET /"), unlike: like(unlike.EmptyLineFirst, sight{
		wire: plainAnswer("hello"), end: "kept", handler: getNote, states: activeAgain})},
	{name: "two empty lines first", send: "\r\n\r\n" + ask("GET /"), unlike: like(unlike.EmptyLineFirst, sight{
		wire: plainAnswer("hello"), end: "kept", handler: getNote, states: activeAgain})},
	{name: "an empty line after a GET", send: ask("GET /") + "\r\n" + ask("GET /quiet"), n: 2, unlike: like(unlike.EmptyLineFirst, sight{
		wire: plainAnswer("hello") + "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", end: "kept", handler: getNote + "\n" + `GET "/quiet" HTTP/1.1 host="h"`, states: "new active idle active idle active closed"})},
	{name: "an empty line after a POST", send: post("/read", "abc") + "\r\n" + ask("GET /"), n: 2},
	{name: "two empty lines after a POST", send: post("/read", "abc") + "\r\n\r\n" + ask("GET /"), n: 2},
	{name: "a LF after a POST", send: post("/read", "abc") + "\n" + ask("GET /"), n: 2, unlike: like(unlike.EmptyLineFirst, sight{
		wire: plainAnswer("read 3 true") + refusalOf(400, "not an HTTP request"), end: "fin", handler: postedABC, states: activeAgain})},

	{name: "bare LF after the line", send: "GET / HTTP/1.1\nHost: h\r\n\r\n", unlike: refused(unlike.BareLF, 400, "malformed HTTP version")},
	{name: "GET of the asterisk", send: ask("GET *")},
	{name: "authority without CONNECT", send: ask("GET other:80"), unlike: refused(unlike.TargetForm, 400, "request target has the wrong form for the method")},
	{name: "a scheme without an authority", send: ask("GET http:other"), unlike: refused(unlike.TargetForm, 400, "request target has the wrong form for the method")},
	{name: "a scheme with a path alone", send: ask("GET mailto:/a"), unlike: refused(unlike.TargetForm, 400, "request target has the wrong form for the method")},
	{name: "absolute with an empty host", send: ask("GET http:///"), unlike: refused(unlike.TargetForm, 400, "request target has the wrong form for the method")},
	{name: "absolute with an empty host and a port", send: ask("GET http://:80/"), unlike: refused(unlike.TargetForm, 400, "request target has the wrong form for the method")},
	{name: "absolute with userinfo", send: ask("GET http://user@other/"), unlike: refused(unlike.TargetForm, 400, "request target has the wrong form for the method")},
	{name: "absolute with a password", send: ask("GET http://user:pw@other/"), unlike: refused(unlike.TargetForm, 400, "request target has the wrong form for the method")},
	{name: "absolute with raw UTF-8 in the host", send: ask("GET http://\u00e9/"), unlike: refused(unlike.TargetForm, 400, "request target has the wrong form for the method")},
	{name: "the preface of HTTP/2", send: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
	{name: "the preface of HTTP/2 with fields", send: rawHead("PRI * HTTP/2.0", hostH), unlike: refused(unlike.HTTP2Preface, 505, "unsupported HTTP version")},
	{name: "the preface of HTTP/2 with a path", send: "PRI / HTTP/2.0\r\n\r\n", unlike: otherWords(505, "unsupported HTTP version")},
	{name: "another method with HTTP/2", send: "GET * HTTP/2.0\r\n\r\n", unlike: otherWords(505, "unsupported HTTP version")},
	{name: "PRI in 1.1", send: ask("PRI *")},
	{name: "the call of net/rpc", send: "CONNECT /quiet HTTP/1.0\n\n"},
	{name: "the call of net/rpc in CRLFs", send: "CONNECT /quiet HTTP/1.0\r\n\r\n"},
	{name: "the call of net/rpc in 1.1", send: "CONNECT /quiet HTTP/1.1\n\n", unlike: refused(unlike.BareLF, 400, "malformed HTTP version")},
	{name: "the call of net/rpc with a field", send: "CONNECT /quiet HTTP/1.0\nA: 1\n\n", unlike: refused(unlike.BareLF, 400, "malformed HTTP version")},
}

const postedABC = `POST "/read" HTTP/1.1 host="h" header=map["Content-Length":["3"]] length=3 body` + "\n" + `body "abc" ok, then 0 "EOF" [EOF]`
