package main

import "strings"

// difference is a test that passes on net/http, does not pass on chert, and
// need not.
type difference struct {
	suite string
	test  string // with its subtests
	why   string
	// omit leaves the test function out: it does not compile, or what it does
	// when it fails would disturb others.
	omit bool
}

// insideHTTP is a reason that several share.
const insideHTTP = "tests a part of net/http's server, not what it does"

// Reasons of the suites of HTTP/2.
const (
	shortBody = "a response that is shorter than its Content-Length ends with " +
		"RST_STREAM, so that a client that does not count notices too; net/http ends it as if it were whole"
	insideXnet = "looks into x/net's server or configures it"
	noPush     = "there is no server push, which browsers have removed: Push returns http.ErrNotSupported"
)

// Reasons of the suite of HTTP/3.
const (
	ownSocket   = "serves a connection or a listener of quic-go's; chert's sockets are its own"
	noHijack    = "takes a request's QUIC stream from the server (http3.HTTPStreamer), which chert keeps"
	noDatagrams = "there are no HTTP datagrams (RFC 9297)"
	noTracer    = "looks into quic-go's server: its qlog, its context keys, its connections"
	quicEntry   = "tests functions and fields of http3.Server that chert.Server does not have; its own are tested by chert"
	cutResponse = "a response whose length is not what its Content-Length says is reset, so that a client that does not count notices too"
)

const proxyFields = "compares all fields: the proxy adds X-Forwarded-* and Via"

const rawQuery = "the query is forwarded as it was received, so that no two parsers have to agree: what Rewrite parses it may also replace"

var differences = []difference{
	{suite: "go", test: "TestAutomaticHTTP2_Serve_H2TLSConfig", why: insideHTTP},
	{suite: "go", test: "TestAutomaticHTTP2_Serve_NoTLSConfig", why: insideHTTP},
	{suite: "go", test: "TestAutomaticHTTP2_Serve_WithTLSConfig", why: insideHTTP},
	{suite: "go", test: "TestH12_HandlerWritesTooLittle", why: shortBody},
	{suite: "go", test: "TestLinuxSendfile", why: "its file has 1 KiB; chert sends files below 16 KiB together with the head"},
	{suite: "go", test: "TestCloseWrite", why: insideHTTP, omit: true},
	{suite: "httputil", test: "TestReverseProxyGetPutBuffer", why: "BufferPool: chert's proxy has buffers of its own"},
	{suite: "httputil", test: "TestReverseProxyResponseControllerFlushInterval", why: "with the last byte of a body the handler returns, " +
		"which sends it, instead of a Flush"},
	{suite: "httputil", test: "TestReverseProxy_CopyBuffer", why: "the head of a response has been sent when its body ends early: the client " +
		"learns of it from the body; ReverseProxy still holds the head of a short one"},
	{suite: "httputil", test: "TestModifyResponseClosesBody", why: "looks at the body of a Transport's response; chert's proxy has connections " +
		"of its own, which may be closed a moment later", omit: true},
	{suite: "httputil", test: "TestReverseProxyQueryParameterSmugglingDirectorParsesForm", why: rawQuery},
	{suite: "httputil", test: "TestReverseProxyQueryParameterSmugglingRewrite", why: rawQuery},
	{suite: "httputil", test: "TestUnannouncedTrailer", why: "trailers are for clients that accept them by TE: trailers, RFC 9110 6.5.1; " +
		"this one does not send it"},
	{suite: "connect-proxy", test: "TestHTTPCallGetBody", why: "a handler's Connection: close is for the proxy's connection, RFC 9110 7.6.1, not for the client's", omit: true},
	{suite: "connect-proxy", test: "TestWithRecover", why: "a handler that ends its stream without a response is answered 502 by the proxy, which Connect calls unavailable"},
	{suite: "grpc-proxy", test: "Test/MetadataUnaryRPC", why: proxyFields},
	{suite: "grpc-proxy", test: "Test/MetadataOrderUnaryRPC", why: proxyFields},
	{suite: "grpc-proxy", test: "Test/MetadataStreamingRPC", why: proxyFields},
	{suite: "grpc-proxy", test: "Test/ClientRequestBodyErrorCancelStreamingInput", why: "a request that its client cancels with its first bytes is not forwarded"},
	{suite: "quic", test: "TestHTTPRawConn", why: ownSocket, omit: true},
	{suite: "quic", test: "TestHTTP3StreamPriority", why: ownSocket, omit: true},
	{suite: "quic", test: "TestHTTPServeQUICConn", why: ownSocket, omit: true},
	{suite: "quic", test: "TestHTTPContextFromQUIC", why: ownSocket, omit: true},
	{suite: "quic", test: "TestHTTP3ServerHotswap", why: ownSocket, omit: true},
	{suite: "quic", test: "TestHTTPRequestAfterGracefulShutdown", why: ownSocket, omit: true},
	{suite: "quic", test: "TestHTTP3ListenerClosing/application_listener", why: ownSocket},
	{suite: "quic", test: "TestHTTP3ListenerGracefulShutdown/application_listener", why: ownSocket},
	{suite: "quic", test: "TestHTTPStreamErrors", why: noHijack, omit: true},
	{suite: "quic", test: "TestHTTPStreamer", why: noHijack, omit: true},
	{suite: "quic", test: "TestHTTPDatagrams", why: noDatagrams, omit: true},
	{suite: "quic", test: "TestHTTPDatagramClose", why: noDatagrams, omit: true},
	{suite: "quic", test: "TestHTTPDatagramStreamReset", why: noDatagrams, omit: true},
	{suite: "quic", test: "TestHTTPSettings", why: noDatagrams + "; and a handler does not see the client's SETTINGS", omit: true},
	{suite: "quic", test: "TestHTTP3Qlog", why: noTracer, omit: true},
	{suite: "quic", test: "TestHTTP3QlogHeaderRedaction", why: noTracer, omit: true},
	{suite: "quic", test: "TestHTTPConnContext", why: noTracer, omit: true},
	{suite: "quic", test: "TestHTTPRemoteAddrContextKey", why: noTracer, omit: true},
	{suite: "quic", test: "TestHTTP0RTTWithChangedServerSettings", why: "early data is for the process that has issued the session ticket, so that nothing is replayed; " +
		"this is of another server", omit: true},
	{suite: "quic", test: "TestHTTPResponseContentLength/response_shorter_than_Content-Length", why: cutResponse},
	{suite: "quic", test: "TestHTTPResponseContentLength/response_longer_than_Content-Length", why: cutResponse},
	{suite: "quic", test: "TestHTTPServerRequestParsing", why: "a GET whose stream has ended has a ContentLength of 0, as over HTTP/2, which quic-go gives as -1; and no handler is started for " +
		"a request whose body, by then, is known to be malformed, RFC 9114 4.1.2, for which the test waits", omit: true},
	{suite: "quic", test: "TestHTTPRequestTrailers", why: "a trailer that was not announced is left out, as by net/http over HTTP/2"},
	{suite: "quic", test: "TestHTTPClientRequestContextCancellation/after_response", why: "compares with an error of quic-go's http3; chert has its transport's"},
	{suite: "quic", test: "TestHTTPDeadlines/write_deadline", why: "a response that its handler cuts short is reset with H3_INTERNAL_ERROR"},
	{suite: "quic", test: "TestHTTP1xxTerminalResponse", why: "101 is not for HTTP/3, RFC 9114 4.5: the response is 500"},
	{suite: "quic", test: "TestGracefulShutdownLongLivedRequest", why: "when the time for Shutdown is over, requests go on until Close, as with net/http; http3.Server ends them", omit: true},
	{suite: "quic", test: "TestGracefulShutdownPendingStreams", why: "for a round trip after GOAWAY requests that were on their way are served, RFC 9114 5.2; http3.Server rejects them at once"},
	{suite: "quic", test: "TestServerSettings", why: noDatagrams + "; settings are chert's own", omit: true},
	{suite: "quic", test: "TestServerRequestHandling/POST_request_with_fewer_body_bytes_than_announced", why: "no handler is started for a request whose body, " +
		"by then, is known to be malformed, RFC 9114 4.1.2"},
	{suite: "quic", test: "TestServerHandlerReturnsMidFrame", why: "a response that its handler cuts short is reset with H3_INTERNAL_ERROR"},
	{suite: "quic", test: "TestServerQlogClosedAfterHandlerReturns", why: noTracer, omit: true},
	{suite: "quic", test: "TestServerHTTPStreamHijacking", why: noHijack, omit: true},
	{suite: "quic", test: "TestServerHTTPStreamHijackingWithoutResponse", why: noHijack, omit: true},
	{suite: "quic", test: "TestServerAltSvcFromListenersAndConns", why: ownSocket, omit: true},
	{suite: "quic", test: "TestServerAltSvcFromPort", why: ownSocket, omit: true},
	{suite: "quic", test: "TestServerAltSvcFromUnixSocket", why: ownSocket, omit: true},
	{suite: "quic", test: "TestServerListenAndServeErrors", why: quicEntry, omit: true},
	{suite: "quic", test: "TestServerClosing", why: quicEntry, omit: true},
	{suite: "quic", test: "TestServerGracefulShutdown", why: "for a round trip after GOAWAY requests that were on their way are served, RFC 9114 5.2; http3.Server rejects them at once", omit: true},
	{suite: "xnet", test: "TestConfigureServer", why: insideXnet, omit: true},
	{suite: "xnet", test: "TestConfigureServerIdleTimeout_Go18", why: insideXnet, omit: true},
	{suite: "xnet", test: "TestServerHandleCustomConn", why: insideXnet, omit: true},
	{suite: "xnet", test: "TestServer_StateTransitions", why: insideXnet, omit: true},
	{suite: "xnet", test: "TestServer_Headers_HalfCloseRemote", why: insideXnet, omit: true},
	{suite: "xnet", test: "TestServerWindowUpdateOnBodyClose", why: insideXnet, omit: true},
	{suite: "xnet", test: "TestServer_MaxEncoderHeaderTableSize", why: insideXnet, omit: true},
	{suite: "xnet", test: "TestCompressionErrorOnWrite", why: insideXnet, omit: true},
	{suite: "xnet", test: "TestServer_Push_Success", why: noPush},
	{suite: "xnet", test: "TestServer_Push_SuccessNoRace", why: noPush},
	{suite: "xnet", test: "TestServer_Push_RejectWhenNoConcurrentStreams", why: noPush},
	{suite: "xnet", test: "TestServer_Push_Underflow", why: noPush},
	{suite: "xnet", test: "TestServer_Push_RejectRecursivePush", why: noPush, omit: true},
	{suite: "xnet", test: "TestServer_Push_StateTransitions", why: noPush, omit: true},
	{suite: "xnet", test: "TestServer_Push_RejectAfterGoAway", why: noPush, omit: true},
	{suite: "xnet", test: "TestServer_RSTStream_Unblocks_Read", why: "compares with an error of x/net's; chert has its own for a stream that was reset"},
	{suite: "xnet", test: "TestTransportAllocationsAfterResponseBodyClose", why: "compares with an error of x/net's; chert has its own for a stream that was reset"},
	{suite: "xnet", test: "TestServer_Request_Post_Body_ContentLength_TooLarge", why: "a handler is not started for a request whose body, by then, is known to be malformed, RFC 9113 8.1.1", omit: true},
	{suite: "xnet", test: "TestServer_Request_Post_Body_ContentLength_TooSmall", why: "a handler is not started for a request whose body, by then, is known to be malformed, RFC 9113 8.1.1", omit: true},
	{suite: "xnet", test: "TestServerRejectsContentLengthWithSignNewRequests", why: "a Content-Length that is no number makes a request malformed, RFC 9113 8.1.1: it is answered 400", omit: true},
	{suite: "xnet", test: "TestServer_Request_Get_Host", why: "an empty :authority beside a Host is refused: it must not be empty, and Host must not differ from it, RFC 9113 8.3.1", omit: true},
	{suite: "xnet", test: "TestServer_MaxQueuedControlFrames", why: "a client that does not read the answers to its PINGs is not read either; it is disconnected by WriteStall, half a minute later", omit: true},
	{suite: "xnet", test: "TestServerMaxHandlerGoroutines", why: "a stream counts until its handler has returned, so that one more is refused with REFUSED_STREAM; x/net queues it", omit: true},
	{suite: "xnet", test: "TestServerDoS_MaxHeaderListSize", why: "a header block that is much larger than SETTINGS_MAX_HEADER_LIST_SIZE ends the connection, RFC 9113 10.5.1; one that is a little larger is answered 431"},
	{suite: "xnet", test: "TestServerContinuationFlood", why: "GOAWAY names the last stream that was processed, which that of the flood was not, RFC 9113 6.8"},
	{suite: "xnet", test: "TestServerContinuationAfterInvalidHeader", why: malformed400},
	{suite: "xnet", test: "TestServer_Rejects_PrioritySelfDependence", why: "a PRIORITY on an idle stream that depends on itself ends the connection: RST_STREAM must not be sent for an idle stream, RFC 9113 6.4"},
	{suite: "xnet", test: "TestServer_NoCrash_HandlerClose_Then_ClientClose", why: "DATA on a stream that the server has reset is ignored, RFC 9113 5.1; x/net resets it again"},
	{suite: "xnet", test: "TestServerGracefulShutdown", why: "a connection ends with two GOAWAYs, of which the first promises all streams, RFC 9113 6.8"},
	{suite: "xnet", test: "TestServerHandlerConnectionClose", why: "a handler's Connection: close ends the connection when it has returned, with two GOAWAYs; x/net's tells it with the head"},
	{suite: "xnet", test: "TestServer_Response_Stream_With_Missing_Trailer", why: "a trailer that is announced and not set leaves the response to end with its head"},
	{suite: "xnet", test: "TestTransportContentLengthWithoutBody", why: shortBody},
}

func (d difference) String() string { return d.test }

// omitted has the tests of a suite that are left out, and why.
func omitted(suite string) map[string]string {
	m := make(map[string]string)
	for _, d := range differences {
		if d.suite == suite && d.omit {
			m[d.test] = d.why
		}
	}
	return m
}

// explain returns the line of the table that a test falls under.
func explain(suite, test string) (difference, bool) {
	for _, d := range differences {
		if d.suite == suite && (test == d.test || strings.HasPrefix(test, d.test+"/")) {
			return d, true
		}
	}
	return difference{}, false
}
