package netdiff

import (
	"net/http"
	"testing"

	"github.com/chert-http/chert/test/internal/unlike"

	"github.com/chert-http/chert/internal/testing/servertest"
)

func TestDiffMethods(t *testing.T) { diffRun(t, diffMethods) }

var diffMethods = []diffCase{
	{name: "GET", send: ask("GET /")},
	{name: "HEAD", send: ask("HEAD /")},
	{name: "HEAD in 1.0", send: ask10("HEAD /")},
	{name: "HEAD in lower case has a body", send: ask("head /")},
	{name: "HEAD without a response", send: ask("HEAD /quiet")},
	{name: "HEAD of a declared length", send: ask("HEAD /length")},
	{name: "HEAD of chunks", send: ask("HEAD /flushed")},
	{name: "HEAD of something long", send: ask("HEAD /large")},
	{name: "HEAD of a 404", send: ask("HEAD /status/404")},
	{name: "HEAD with hints", send: ask("HEAD /hints")},
	{name: "HEAD with an unread body", send: ask("HEAD /unread", "Content-Length: 3") + "abc"},
	{name: "HEAD in 1.0, kept, of chunks", send: ask10("HEAD /flushed", keepAlive)},
	{name: "POST without a body", send: ask("POST /read")},
	{name: "POST in 1.0 without a length", do: say(ask10("POST /read") + "abc").halfClose()},
	{name: "PUT", send: ask("PUT /read", "Content-Length: 3") + "abc"},
	{name: "PATCH", send: ask("PATCH /read", "Content-Length: 3") + "abc"},
	{name: "DELETE", send: ask("DELETE /")},
	{name: "TRACE", send: ask("TRACE /")},
	{name: "TRACE with a body", send: ask("TRACE /read", "Content-Length: 3") + "abc"},
	{name: "a method of WebDAV", send: ask("PROPFIND /read", "Depth: 1", "Content-Length: 3") + "abc"},
	{name: "an unknown method", send: ask("FOO-BAR /")},
	{name: "a method of all tchars", send: ask("!#$%&'*+-.^_`|~09azAZ /")},
	{name: "a long method", send: ask("ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJKLMNOPQRSTUVWXYZ /")},
	{name: "OPTIONS of a path", send: ask("OPTIONS /")},
	{name: "OPTIONS of the asterisk", send: ask("OPTIONS *")},
	{name: "OPTIONS of the asterisk in 1.0", send: ask10("OPTIONS *")},
	{name: "OPTIONS of the asterisk, close", send: ask("OPTIONS *", "Connection: close")},
	{name: "OPTIONS of the asterisk with a body", send: ask("OPTIONS *", "Content-Length: 4") + "body" + ask("GET /"), n: 2},
	{name: "OPTIONS of the asterisk with chunks", send: ask("OPTIONS *", "Transfer-Encoding: chunked") + servertest.Chunks("body", 2) + ask("GET /"), n: 2},
	{name: "OPTIONS of the asterisk with a body that is long", send: ask("OPTIONS *", "Content-Length: 5000") + string(servertest.Pattern(5000)) + ask("GET /"), n: 2},
	{name: "OPTIONS of the asterisk with a body that is not sent", do: say(ask("OPTIONS *", "Content-Length: 4", "Expect: 100-continue")).hear("Continue").say("body")},
	{name: "OPTIONS of another server", send: ask("OPTIONS http://other")},
	{name: "OPTIONS in lower case of a path", send: ask("options /")},
	{name: "CONNECT", send: ask("CONNECT other:443"), h: sayHello},
	{name: "CONNECT, IPv6", send: ask("CONNECT [::1]:443"), h: sayHello},
	{name: "CONNECT of a path", send: ask("CONNECT /?q"), h: sayHello},
	{name: "CONNECT in 1.0", send: ask10("CONNECT other:443"), h: sayHello},
	{name: "CONNECT with a body", send: ask("CONNECT other:443", "Content-Length: 3") + "abc", h: diffHandlers["/read"]},
	{name: "CONNECT refused by the handler", send: ask("CONNECT other:443"), h: func(s *scene, w rw, r *http.Request) { w.WriteHeader(405) }},
	{name: "CONNECT without a port", send: ask("CONNECT other"), h: sayHello, unlike: refused(unlike.TargetForm, 400, "request target has the wrong form for the method")},
	{name: "CONNECT with an empty port", send: ask("CONNECT other:"), h: sayHello, unlike: refused(unlike.TargetForm, 400, "request target has the wrong form for the method")},
	{name: "CONNECT to port 0", send: ask("CONNECT other:0"), h: sayHello, unlike: refused(unlike.TargetForm, 400, "request target has the wrong form for the method")},
	{name: "CONNECT to a port too large", send: ask("CONNECT other:65536"), h: sayHello, unlike: refused(unlike.TargetForm, 400, "request target has the wrong form for the method")},
	{name: "CONNECT to no host", send: ask("CONNECT :80"), h: sayHello, unlike: refused(unlike.TargetForm, 400, "request target has the wrong form for the method")},
	{name: "CONNECT with a path after it", send: ask("CONNECT other:80/a"), h: sayHello, unlike: refused(unlike.TargetForm, 400, "request target has the wrong form for the method")},
	{name: "CONNECT with userinfo", send: ask("CONNECT u@other:80"), h: sayHello, unlike: refused(unlike.TargetForm, 400, "request target has the wrong form for the method")},
	{name: "CONNECT of a URL", send: ask("CONNECT http://other/"), h: sayHello, unlike: refused(unlike.TargetForm, 400, "request target has the wrong form for the method")},
	{name: "CONNECT of the asterisk", send: ask("CONNECT *"), h: sayHello, unlike: refused(unlike.TargetForm, 400, "request target has the wrong form for the method")},
	{name: "CONNECT to a word for a port", send: ask("CONNECT other:http"), h: sayHello, unlike: otherWords(400, "request target has the wrong form for the method")},
}
