package main

// Reasons that several share.
const (
	vtcCommand  = "tests a part of HAProxy's own configuration or log"
	vtcH2Server = "a server that speaks HTTP/2 gets no upgrades: docs/proxy.md says that it must be one of HTTP/1"
	vtcSafe     = "chert uses a connection that was idle for requests that may be sent again, as http-reuse aggressive and always do"
	vtcPrivate  = "HAProxy keeps a connection for one client; chert's connections are for all clients, or, with max_idle = 0, for one request"
	vtcFraming  = "a message with both Content-Length and Transfer-Encoding, or with Transfer-Encoding in HTTP/1.0, is refused, RFC 9112 6.1 and 6.3; HAProxy repairs it"
	vtcCoding   = "a transfer coding that is not known is answered 501, RFC 9112 6.1"
	vtcConnect  = "CONNECT is answered 501: chert is no forward proxy"
	vtcTarget   = "a Host that differs from an absolute target is ignored, RFC 9112 3.2.2"
	vtcEmpty    = "a URI of http without a host is refused, RFC 9110 4.2.1"
	vtcKeys     = "the handshake of a WebSocket is forwarded as it is: client and server check its key"
	vtcWindow   = "a small body needs no WINDOW_UPDATE"
	vtcCase1    = "names of options of Connection have no case, RFC 9110 7.6.1: chert writes Upgrade"
)

// vtcCases are HAProxy's tests that chert is run with, and those that it is not, with the
// reason.
var vtcCases = []vtcCase{
	{file: "http-messaging/h1_to_h1.vtc"},
	{file: "http-messaging/h2_to_h1.vtc", goroutines: true, edits: []vtcEdit{
		{"rxwinup\n\t\trxhdrs", "rxhdrs", vtcWindow},
		{"\"0,\" \\\n\t\t  -nostrend\n\t\trxrst", "\"0,\" \\\n\t\t  -nostrend\n\t\trxhdrs\n\t\texpect resp.status == 400", malformed400},
		{"\"\" \\\n\t\t  -nostrend\n\t\trxrst", "\"\" \\\n\t\t  -nostrend\n\t\trxhdrs\n\t\texpect resp.status == 400", malformed400},
	}},
	{file: "http-messaging/http_transfer_encoding.vtc", edits: []vtcEdit{
		{"server s1 {\n    rxreq\n    expect req.http.content-length == <undef>\n    expect req.http.transfer-encoding == \"chunked\"\n" +
			"    expect req.bodylen == 0\n    expect req.body == \"\"\n    txresp -status 200\n\n    accept\n    rxreq\n" +
			"    expect req.http.content-length == <undef>\n    expect req.http.transfer-encoding == \"chunked\"\n" +
			"    expect req.bodylen == 0\n    expect req.body == \"\"\n    txresp -status 200\n\n    accept\n", "server s1 {\n", "see c1 and c2"},
		{"    expect resp.status == 200\n    expect resp.http.connection == \"close\"\n", "    expect resp.status == 400\n", vtcFraming},
		{"    send \"0\\r\\n\\r\\n\"\n    rxresp\n    expect resp.status == 200\n", "    send \"0\\r\\n\\r\\n\"\n    rxresp\n    expect resp.status == 400\n", vtcFraming},
		{"    expect resp.status == 200\n    expect resp.http.content-length == <undef>\n    expect resp.http.transfer-encoding == \"chunked\"\n" +
			"    expect resp.bodylen == 0\n    expect resp.body == \"\"\n", "    expect resp.status == 502\n", vtcFraming},
		{"    expect_close\n} -run\n\nclient c4", "} -run\n\nclient c4", ""},
		// What is sent after the connection was closed.
		{"    send \"0\\r\\n\\r\\nResponse splitting attach\"\n", "", ""},
		{"    send \"HTTP/1.0 200 Ok\\r\\n\"\n    send \"Transfer-Encoding: chunked\\r\\n\\r\\n\"\n    send \"0\\r\\n\\r\\n\"\n",
			"    send \"HTTP/1.0 200 Ok\\r\\n\"\n    send \"Transfer-Encoding: chunked\\r\\n\\r\\n\"\n", ""},
		{"\"Transfer-Encoding: gzip\"\n    rxresp\n    expect resp.status == 400", "\"Transfer-Encoding: gzip\"\n    rxresp\n    expect resp.status == 501", vtcCoding},
		{"resp.status == 422", "resp.status == 501", vtcCoding},
	}},
	{file: "http-messaging/truncated.vtc"},
	{file: "http-messaging/protocol_upgrade.vtc", drop: map[string]string{
		"c1_h1_h2": vtcH2Server, "c3_h2_h1": vtcH2Server, "c4_h1": vtcH2Server, "c5": vtcH2Server, "c6": vtcH2Server,
		"c7": vtcH2Server, "c9_h2c": vtcH2Server,
		"c10_h1_post":         "the Upgrade of a request with a body is not passed on",
		"c10_h1_partial_post": "the body of a request is read up to 64 KiB before a server is asked",
	}, edits: []vtcEdit{
		{"req.http.connection == \"upgrade\"", "req.http.connection == \"Upgrade\"", vtcCase1},
		{"resp.http.connection == \"upgrade\"", "resp.http.connection == \"Upgrade\"", vtcCase1},
		{"} -repeat 2 -start", "} -start", "each server has one client"},
		{"rxwinup\n\t\trxhdrs", "rxhdrs", vtcWindow},
	}},
	{file: "http-messaging/websocket.vtc", each: true, drop: map[string]string{"c2_1": vtcKeys, "c2_2": vtcKeys, "c3": vtcKeys}, edits: []vtcEdit{
		{"rxwinup\n\t\trxhdrs", "rxhdrs", vtcWindow},
		{"req.http.connection == \"upgrade\"", "req.http.connection == \"Upgrade\"", vtcCase1},
		{"resp.http.connection == \"upgrade\"", "resp.http.connection == \"Upgrade\"", vtcCase1},
	}},
	{file: "http-messaging/h2_desync_attacks.vtc", each: true, edits: []vtcEdit{
		{"rxrst", "rxhdrs\n\t\texpect resp.status == 400", malformed400}, {"rxresp\n\t\texpect resp.status == 400", "rxhdrs\n\t\texpect resp.status == 400", ""},
		{"\nserver s1 -wait\n", "", ""}}, drop: map[string]string{"c6-host-authority": "a Host that differs from :authority is refused, RFC 9113 8.3.1"}},
	{file: "http-messaging/h1_to_h2_upgrade.vtc", edits: []vtcEdit{{"resp.status == 405", "resp.status == 400", "a preface where there is no HTTP/2 is a malformed request"}}},
	{file: "http-messaging/h1_request_target_validation.vtc", before: []string{"li1"}, each: true, drop: map[string]string{"c6": vtcConnect, "c8": vtcConnect}},
	{file: "http-messaging/h1_authority_fragment_char.vtc", before: []string{"fe"}, edits: []vtcEdit{
		{"barrier b1 sync\n", "", ""}, {"\t\toption accept-unsafe-violations-in-http-request\n", "", ""}, {"resp.status == 200", "resp.status == 400", "# in a target is refused"}}},
	{file: "http-messaging/h1_host_normalization.vtc", before: []string{"fe"}, each: true, drop: map[string]string{
		"c1": "a URI of http with a user is refused, RFC 9110 4.2.4", "c5": vtcConnect, "c6": vtcConnect, "c7": vtcConnect,
		"c8": vtcTarget, "c9": vtcTarget, "c10": vtcTarget, "c11": vtcTarget, "c15": vtcConnect, "c16": vtcConnect, "c17": vtcConnect,
		"c18": vtcConnect, "c32": vtcEmpty, "c33": vtcEmpty, "c34": vtcEmpty, "c35": vtcEmpty}, edits: []vtcEdit{{"barrier b1 sync\n", "", ""}}},
	{file: "http-messaging/http_splicing.vtc"},
	{file: "http-messaging/http_splicing_chunk.vtc"},
	{file: "http-messaging/http-ntlm.vtc"},
	{file: "http-messaging/http_request_buffer.vtc", edits: []vtcEdit{{"barrier b1 sync\n", "", ""},
		{"  HTTP/1.1\\r\\n", " HTTP/1.1\\r\\nHost: a\\r\\n", "one space, RFC 9112 3, and a Host, 3.2"}},
		drop: map[string]string{"c1": "HAProxy's timeout of 100 ms for a client"}},
	{file: "http-messaging/http_wait_for_body.vtc", drop: map[string]string{"c1": "HAProxy's wait-for-body", "c3": "HAProxy's wait-for-body",
		"c4": "HAProxy's wait-for-body"}, edits: []vtcEdit{{" HTTP/1.1\\r\\n", " HTTP/1.1\\r\\nHost: a\\r\\n", "a Host, RFC 9112 3.2"}}},
	{file: "http-messaging/srv_ws.vtc", keep: []string{"li", "lih2", "lisslh2", "lissl", "lisslauto", "liauto2", "lisslauto2"},
		edits: []vtcEdit{{"\t\tbind \"fd@${fessl}\" ssl crt ${testdir}/certs/common.pem alpn h2,http/1.1\n", "", ""}},
		drop:  map[string]string{"c1": vtcH2Server, "c1.2": vtcH2Server, "c1.4": vtcH2Server, "c2": vtcH2Server, "c2.2": vtcH2Server, "c2.3": vtcH2Server}},
	{file: "http-messaging/http_abortonclose.vtc", why: vtcCommand},
	{file: "http-messaging/http_bodyless_response.vtc", why: "HAProxy turns HEAD into GET for the server, which chert does not"},
	{file: "http-messaging/http_bodyless_spliced_response.vtc", why: "HAProxy turns HEAD into GET for the server, which chert does not"},
	{file: "http-messaging/scheme_based_normalize.vtc", why: vtcCommand},
	{file: "connection/http_reuse_always.vtc", single: true, keep: []string{"receiver"}},
	{file: "connection/http_reuse_aggressive.vtc", why: vtcSafe},
	{file: "connection/http_reuse_safe.vtc", single: true, keep: []string{"receiver"}, drop: map[string]string{"c2": vtcSafe, "c3": vtcSafe}},
	{file: "connection/http_reuse_never.vtc", why: vtcPrivate},
	{file: "connection/http_reuse_dispatch.vtc", single: true, keep: []string{"receiver", "sender1"}, drop: map[string]string{"c1": vtcPrivate, "c2": vtcPrivate,
		"c3": vtcPrivate}},
	{file: "balance/balance-rr.vtc", as: map[string]string{"": "balance = \"round-robin\"\n"}},
	{file: "balance/balance-uri.vtc", why: "which server a path has follows from HAProxy's hash; test/proxy has the properties of chert's"},
	{file: "balance/balance-hash-maxconn.vtc", as: map[string]string{"": "balance = \"hash uri\"\nmax_requests = 1\n"}},
	{file: "http-cookies/h2_cookie_concat.vtc"},
	{file: "stream/set-retries.vtc", why: vtcCommand},
}
