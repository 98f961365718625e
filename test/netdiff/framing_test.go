package netdiff

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chert-http/chert/test/internal/unlike"

	"github.com/chert-http/chert/internal/testing/servertest"
)

func TestDiffFraming(t *testing.T) { diffRun(t, diffFramings) }

const (
	lastChunk = "0\r\n\r\n"
	// smuggled must not be served when it hides in a body, and must be when it
	// follows one.
	smuggled = servertest.Smuggled
)

// te is a POST with Transfer-Encoding lines of any kind.
func te(wire string, fields ...string) string { return ask("POST /read", fields...) + wire }

var diffFramings = []diffCase{
	// Content-Length
	{name: "a length", send: post("/read", "hello")},
	{name: "a length of 0", send: post("/read", "")},
	{name: "no length is none", send: ask("POST /read")},
	{name: "leading zeros", send: te("abc", "Content-Length: 0003")},
	{name: "spaces around the length", send: te("abc", "Content-Length: \t 3 \t")},
	{name: "a request after a body", send: post("/read", smuggled) + smuggled, n: 2},
	{name: "a length in 1.0", send: ask10("POST /read", "Content-Length: 3") + "abc"},
	{name: "a body longer than its length", do: say(te("abcdef", "Content-Length: 3")).halfClose(), unlike: like(unlike.CutHead, sight{wire: plainAnswer("read 3 true") + refusalOf(400, "the request ends before its head does"), states: activeAgain})},
	{name: "a long body", send: post("/read", string(servertest.Pattern(100_000)))},
	{name: "a GET with a body", send: ask("GET /read", "Content-Length: 3") + "abc"},
	{name: "a HEAD with a body", send: ask("HEAD /read", "Content-Length: 3") + "abc"},
	{name: "a DELETE with a body", send: ask("DELETE /read", "Content-Length: 3") + "abc"},
	{name: "the largest length", do: say(te("abc", "Content-Length: 9223372036854775807")).halfClose(), unlike: cutLength("9223372036854775807", "abc")},
	{name: "a length too large", send: te("abc", "Content-Length: 9223372036854775808"), unlike: otherWords(400, "malformed Content-Length")},
	{name: "a length of many digits", send: te("abc", "Content-Length: 99999999999999999999999"), unlike: otherWords(400, "malformed Content-Length")},
	{name: "an empty length", send: te("abc", "Content-Length:"), unlike: otherWords(400, "malformed Content-Length")},
	{name: "a negative length", send: te("abc", "Content-Length: -3"), unlike: otherWords(400, "malformed Content-Length")},
	{name: "a signed length", send: te("abc", "Content-Length: +3"), unlike: otherWords(400, "malformed Content-Length")},
	{name: "a hexadecimal length", send: te("abc", "Content-Length: 0x3"), unlike: otherWords(400, "malformed Content-Length")},
	{name: "a length with an underscore", send: te("abc", "Content-Length: 1_0"), unlike: otherWords(400, "malformed Content-Length")},
	{name: "a length with a fraction", send: te("abc", "Content-Length: 3.0"), unlike: otherWords(400, "malformed Content-Length")},
	{name: "a length of other digits", send: te("abc", "Content-Length: \u0663"), unlike: otherWords(400, "malformed Content-Length")},
	{name: "a list of lengths", send: te("abc", "Content-Length: 3, 3"), unlike: otherWords(400, "malformed Content-Length")},
	{name: "a length with a word", send: te("abc", "Content-Length: 3 bytes"), unlike: otherWords(400, "malformed Content-Length")},
	{name: "different lengths", send: te("abc", "Content-Length: 3", "Content-Length: 4"), unlike: otherWords(400, "more than one Content-Length")},
	{name: "equal lengths", send: te("abc", "Content-Length: 3", "Content-Length: 3"), unlike: refused(unlike.Framing, 400, "more than one Content-Length")},
	{name: "a space before the length's colon", send: te("abc", "Content-Length : 3"), unlike: otherWords(400, "whitespace before the colon")},

	// Transfer-Encoding
	{name: "chunked", send: postChunks("/read", "5\r\nhello\r\n0\r\n\r\n")},
	{name: "chunked in any case", send: te("5\r\nhello\r\n0\r\n\r\n", "transfer-encoding: CHUNKED")},
	{name: "chunked and a request after it", send: postChunks("/read", servertest.Chunks("hello", 2)) + smuggled, n: 2},
	{name: "chunked GET", send: ask("GET /read", "Transfer-Encoding: chunked") + servertest.Chunks("hello", 2)},
	{name: "an unknown coding", send: te("abc", "Transfer-Encoding: gzip")},
	{name: "a coding that contains chunked", send: te(lastChunk, "Transfer-Encoding: xchunked")},
	{name: "identity", send: te("", "Transfer-Encoding: identity")},
	{name: "another coding and chunked", send: te(lastChunk, "Transfer-Encoding: gzip, chunked")},
	{name: "another coding and chunked in two lines", send: te(lastChunk, "Transfer-Encoding: gzip", "Transfer-Encoding: chunked")},
	{name: "chunked and another coding", send: te(lastChunk, "Transfer-Encoding: chunked, gzip"), unlike: refusedOtherwise(400, "chunked is not the final transfer coding")},
	{name: "chunked twice", send: te(lastChunk, "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"), unlike: refusedOtherwise(400, "chunked is not the final transfer coding")},
	{name: "chunked twice in a list", send: te(lastChunk, "Transfer-Encoding: chunked, chunked"), unlike: refusedOtherwise(400, "chunked is not the final transfer coding")},
	{name: "chunked with a parameter", send: te(lastChunk, "Transfer-Encoding: chunked;a=b"), unlike: refusedOtherwise(400, "chunked with a parameter")},
	{name: "chunked in quotes", send: te(lastChunk, `Transfer-Encoding: "chunked"`)},
	{name: "an empty coding", send: te(lastChunk, "Transfer-Encoding:"), unlike: refusedOtherwise(400, "chunked is not the final transfer coding")},
	{name: "a comma and chunked", send: te(lastChunk, "Transfer-Encoding: ,chunked"), unlike: like(unlike.EmptyListElements, bodyServed(nil, "", "").sight)},
	{name: "chunked and a comma", send: te(lastChunk, "Transfer-Encoding: chunked,"), unlike: like(unlike.EmptyListElements, bodyServed(nil, "", "").sight)},
	{name: "commas alone", send: te(lastChunk, "Transfer-Encoding: ,,"), unlike: refusedOtherwise(400, "chunked is not the final transfer coding")},
	{name: "chunked and an empty line of the same", send: te(lastChunk, "Transfer-Encoding: chunked", "Transfer-Encoding:"), unlike: like(unlike.EmptyListElements, bodyServed(nil, "", "").sight)},
	{name: "VT before chunked", send: te(lastChunk, "Transfer-Encoding: \vchunked"), unlike: refusedOtherwise(400, "control byte in a field value")},
	{name: "a length and chunked", send: te(lastChunk, "Content-Length: 5", "Transfer-Encoding: chunked"), unlike: refused(unlike.Framing, 400, "Content-Length with Transfer-Encoding")},
	{name: "chunked and a length", send: te(lastChunk, "Transfer-Encoding: chunked", "Content-Length: 0"), unlike: refused(unlike.Framing, 400, "Content-Length with Transfer-Encoding")},
	{name: "a bad length and chunked", send: te(lastChunk, "Content-Length: x", "Transfer-Encoding: chunked"), unlike: otherWords(400, "malformed Content-Length")},
	{name: "chunked in 1.0", send: ask10("POST /read", "Transfer-Encoding: chunked") + lastChunk, unlike: refused(unlike.Framing, 400, "Transfer-Encoding in HTTP/1.0")},
	{name: "chunked in 1.0, kept", send: ask10("POST /read", "Transfer-Encoding: chunked", "Connection: keep-alive") + lastChunk, unlike: refused(unlike.Framing, 400, "Transfer-Encoding in HTTP/1.0")},

	// Chunks
	{name: "no chunk", send: postChunks("/read", lastChunk)},
	{name: "chunks of one byte", send: postChunks("/read", servertest.Chunks("hello", 1))},
	{name: "long chunks", send: postChunks("/read", servertest.Chunks(string(servertest.Pattern(100_000)), 30_000))},
	{name: "sizes in any notation", send: postChunks("/read", "0005\r\nhello\r\nA\r\n0123456789\r\na\r\n0123456789\r\n000\r\n\r\n")},
	{name: "a size of sixteen digits", send: postChunks("/read", "0000000000000005\r\nhello\r\n"+lastChunk)},
	{name: "extensions", send: postChunks("/read", "5;a\r\nhello\r\n3;a=b;c=\"d;\\\"e\"\r\nabc\r\n0;last\r\n\r\n")},
	{name: "space before an extension", send: postChunks("/read", "5 ;a\r\nhello\r\n0\t;b\r\n\r\n"), unlike: bodyServed(unlike.ChunkExtensions, "hello", "")},
	{name: "space in an extension", send: postChunks("/read", "5; a = b\r\nhello\r\n"+lastChunk)},
	{name: "a long extension", send: postChunks("/read", "5;a="+strings.Repeat("x", 4000)+"\r\nhello\r\n"+lastChunk)},
	{name: "extensions with nothing in them", send: postChunks("/read", "5;\r\nhello\r\n0;\r\n\r\n"), unlike: bodyRefused(unlike.ChunkExtensions, "", errChunkNote)},
	{name: "an extension that is no token", send: postChunks("/read", "5;a(b)\r\nhello\r\n"+lastChunk), unlike: bodyRefused(unlike.ChunkExtensions, "", errChunkNote)},
	{name: "an extension with an open quote", send: postChunks("/read", "5;a=\"b\r\nhello\r\n"+lastChunk), unlike: bodyRefused(unlike.ChunkExtensions, "", errChunkNote)},
	{name: "an extension with NUL", send: postChunks("/read", "5;a=\x00\r\nhello\r\n"+lastChunk), unlike: bodyRefused(unlike.ChunkExtensions, "", errChunkNote)},
	{name: "an extension with CRLF in quotes", send: postChunks("/read", "5;a=\"\r\n\"\r\nhello\r\n"+lastChunk), unlike: bodyRefused(unlike.ChunkExtensions, "", errChunkNote)},
	{name: "space after a size", send: postChunks("/read", "5 \r\nhello\r\n"+lastChunk), unlike: bodyRefused(unlike.ChunkExtensions, "", errChunkNote)},
	{name: "space after an extension", send: postChunks("/read", "5;a \r\nhello\r\n"+lastChunk), unlike: bodyRefused(unlike.ChunkExtensions, "", errChunkNote)},
	{name: "an extension beyond what is read", send: postChunks("/read", "5;a="+strings.Repeat("x", 5000)+"\r\nhello\r\n"+lastChunk)},
	{name: "little data in many extensions", send: postChunks("/read", strings.Repeat("1;a="+strings.Repeat("x", 1000)+"\r\na\r\n", 20)+lastChunk), unlike: bodyFails(unlike.ChunkErrors, "aaaaaaaaaaaaaaaa", errChunkNote)},
	{name: "no size", send: postChunks("/read", "\r\nhello\r\n"+lastChunk), unlike: bodyFails(unlike.ChunkErrors, "", errChunkNote)},
	{name: "a size that is none", send: postChunks("/read", "x\r\nhello\r\n"+lastChunk), unlike: bodyFails(unlike.ChunkErrors, "", errChunkNote)},
	{name: "a size with a sign", send: postChunks("/read", "+5\r\nhello\r\n"+lastChunk), unlike: bodyFails(unlike.ChunkErrors, "", errChunkNote)},
	{name: "a negative size", send: postChunks("/read", "-5\r\nhello\r\n"+lastChunk), unlike: bodyFails(unlike.ChunkErrors, "", errChunkNote)},
	{name: "a size with a prefix", send: postChunks("/read", "0x5\r\nhello\r\n"+lastChunk), unlike: bodyFails(unlike.ChunkErrors, "", errChunkNote)},
	{name: "a size after a space", send: postChunks("/read", " 5\r\nhello\r\n"+lastChunk), unlike: bodyFails(unlike.ChunkErrors, "", errChunkNote)},
	{name: "a size of seventeen digits", send: postChunks("/read", "00000000000000005\r\nhello\r\n"+lastChunk), unlike: bodyFails(unlike.ChunkErrors, "", errChunkNote)},
	{name: "a size beyond 64 bits", send: postChunks("/read", "fffffffffffffffff\r\nhello\r\n"+lastChunk), unlike: bodyFails(unlike.ChunkErrors, "", errChunkNote)},
	{name: "a size beyond 63 bits", do: say(postChunks("/read", "8000000000000005\r\nhello\r\n"+lastChunk)).halfClose(), unlike: bodyRefused(unlike.ChunkSize, "", errChunkNote)},
	{name: "a size with junk", send: postChunks("/read", "5 5\r\nhello\r\n"+lastChunk), unlike: bodyFails(unlike.ChunkErrors, "", errChunkNote)},
	{name: "a bare LF after a size", send: postChunks("/read", "5\nhello\r\n"+lastChunk), unlike: bodyFails(unlike.ChunkErrors, "", errChunkNote)},
	{name: "a CR in an extension", send: postChunks("/read", "5;a\rb\r\nhello\r\n"+lastChunk), unlike: bodyFails(unlike.ChunkErrors, "", errChunkNote)},
	{name: "a bare LF after the data", send: postChunks("/read", "5\r\nhello\n"+lastChunk), unlike: bodyFails(unlike.ChunkErrors, "hello", errChunkNote)},
	{name: "no CRLF after the data", send: postChunks("/read", "5\r\nhello"+lastChunk), unlike: bodyFails(unlike.ChunkErrors, "hello", errChunkNote)},
	{name: "more data than the size", send: postChunks("/read", "3\r\nhello\r\n"+lastChunk), unlike: bodyFails(unlike.ChunkErrors, "hel", errChunkNote)},
	{name: "less data than the size", do: say(postChunks("/read", "9\r\nhello\r\n"+lastChunk)).halfClose(), unlike: bodyFails(unlike.ChunkErrors, "hello\r\n0\r", errChunkNote)},
	{name: "the second chunk is bad", send: postChunks("/read", "5\r\nhello\r\nx\r\n"+lastChunk), unlike: bodyFails(unlike.ChunkErrors, "hello", errChunkNote)},
	{name: "nothing of a bad body is a request", send: postChunks("/read", "x\r\n"+smuggled), unlike: bodyFails(unlike.ChunkErrors, "", errChunkNote)},
	{name: "cut before the body", do: say(postChunks("/read", "")).halfClose()},
	{name: "cut in a size", do: say(postChunks("/read", "5\r\nhello\r\n1")).halfClose()},
	{name: "cut in the data", do: say(postChunks("/read", "a\r\nhello")).halfClose()},
	{name: "cut after the data", do: say(postChunks("/read", "5\r\nhello")).halfClose()},
	{name: "cut between chunks", do: say(postChunks("/read", "5\r\nhello\r\n")).halfClose()},
	{name: "cut after the last chunk", do: say(postChunks("/read", "5\r\nhello\r\n0\r\n")).halfClose(), unlike: bodyFails(unlike.CutBody, "hello", errCutNote)},
	{name: "cut in the last CRLF", do: say(postChunks("/read", "5\r\nhello\r\n0\r\n\r")).halfClose(), unlike: bodyFails(unlike.CutBody, "hello", errCutNote)},
	{name: "cut in a length", do: say(ask("POST /read", "Content-Length: 9") + "hello").halfClose(), unlike: cutLength("9", "hello")},
	{name: "cut before a length's first byte", do: say(ask("POST /read", "Content-Length: 9")).halfClose(), unlike: cutLength("9", "")},

	// Trailers
	{name: "a declared trailer", send: postChunks("/read", "5\r\nhello\r\n0\r\nX-SUM: 1\r\n\r\n", "Trailer: x-sum")},
	{name: "several declared trailers", send: postChunks("/read", "0\r\nB: 2\r\nA: 1\r\n\r\n", "Trailer: a, b", "Trailer: c")},
	{name: "a trailer declared and not sent", send: postChunks("/read", lastChunk, "Trailer: A")},
	{name: "a trailer not declared", send: postChunks("/read", "0\r\nA: 1\r\nB: 2\r\nA: 3\r\n\r\n")},
	{name: "some trailers not declared", send: postChunks("/read", "0\r\nA: 1\r\nB: 2\r\n\r\n", "Trailer: A")},
	{name: "an empty declaration", send: postChunks("/read", "0\r\nA: 1\r\n\r\n", "Trailer: ,")},
	{name: "trailers and a request after it", send: postChunks("/read", "0\r\nA: 1\r\n\r\n") + smuggled, n: 2},
	{name: "trailers that is not read", send: postChunks("/unread", "0\r\nA: 1\r\n\r\n") + smuggled, n: 2},
	{name: "a trailer with an empty value", send: postChunks("/read", "0\r\nA:\r\n\r\n")},
	{name: "a trailer with a control in its value", send: postChunks("/read", "0\r\nA: \x01\r\n\r\n"), unlike: bodyFails(unlike.Trailers, "", errTrailerNote)},
	{name: "a long trailer", send: postChunks("/read", "0\r\nA: "+strings.Repeat("v", 3000)+"\r\n\r\n")},
	{name: "a very long trailer", send: postChunks("/read", "0\r\nA: "+strings.Repeat("v", 5000)+"\r\n\r\n"), unlike: bodyServed(unlike.HeadLimits, "", fmt.Sprintf(" trailer %q", http.Header{"A": {strings.Repeat("v", 5000)}}))},
	{name: "a trailer in any case of name", send: postChunks("/read", "0\r\nx-REQUEST-id: 1\r\n\r\n")},
	{name: "framing announced for the trailer", send: postChunks("/read", lastChunk, "Trailer: Content-Length"), unlike: otherWords(400, "field not allowed in a trailer section")},
	{name: "a coding announced for the trailer", send: postChunks("/read", lastChunk, "Trailer: A, transfer-encoding"), unlike: otherWords(400, "field not allowed in a trailer section")},
	{name: "Trailer announced for the trailer", send: postChunks("/read", lastChunk, "Trailer: Trailer"), unlike: otherWords(400, "field not allowed in a trailer section")},
	{name: "Host announced for the trailer", send: postChunks("/read", lastChunk, "Trailer: Host"), unlike: refused(unlike.Trailers, 400, "field not allowed in a trailer section")},
	{name: "a length in the trailer", send: postChunks("/read", "0\r\nContent-Length: 5\r\n\r\n"), unlike: bodyRefused(unlike.Trailers, "", errTrailerNote)},
	{name: "a coding in the trailer", send: postChunks("/read", "0\r\nTransfer-Encoding: chunked\r\n\r\n"), unlike: bodyRefused(unlike.Trailers, "", errTrailerNote)},
	{name: "Host in the trailer", send: postChunks("/read", "0\r\nHost: i\r\n\r\n"), unlike: bodyRefused(unlike.Trailers, "", errTrailerNote)},
	{name: "credentials in the trailer", send: postChunks("/read", "0\r\nAuthorization: a\r\nCookie: b\r\n\r\n")},
	{name: "a folded trailer", send: postChunks("/read", "0\r\nA: b\r\n c\r\n\r\n"), unlike: bodyRefused(unlike.Trailers, "", errTrailerNote)},
	{name: "a trailer without a colon", send: postChunks("/read", "0\r\nA\r\n\r\n"), unlike: bodyFails(unlike.Trailers, "", errTrailerNote)},
	{name: "a trailer with a space before the colon", send: postChunks("/read", "0\r\nA : b\r\n\r\n"), unlike: bodyRefused(unlike.Trailers, "", errTrailerNote)},
	{name: "a trailer that begins with a space", send: postChunks("/read", "0\r\n A: b\r\n\r\n"), unlike: bodyFails(unlike.Trailers, "", errTrailerNote)},
	{name: "a trailer with bare LFs", do: say(postChunks("/read", "0\r\nA: b\n\n")).halfClose(), unlike: bodyFails(unlike.Trailers, "", errTrailerNote)},
	{name: "a bare LF for the trailer", do: say(postChunks("/read", "0\r\n\n")).halfClose(), unlike: bodyFails(unlike.Trailers, "", errTrailerNote)},
	{name: "cut in the trailer", do: say(postChunks("/read", "0\r\nA: b\r\n")).halfClose(), unlike: bodyFails(unlike.CutBody, "", errCutNote)},
	{name: "a bad trailer that is not read", send: postChunks("/unread", "0\r\nA\r\n\r\n") + smuggled},
	{name: "bad chunks that is not read", send: postChunks("/unread", "x\r\n\r\n") + smuggled},
	{name: "data that looks like framing", send: postChunks("/read", "7\r\n0\r\n\r\nGE\r\n"+lastChunk)},
}

// refusedOtherwise is for requests that both refuse, with different statuses.
func refusedOtherwise(status int, reason string) *unlikeness {
	return &unlikeness{id: unlike.RefusalStatus, sight: sight{wire: refusalOf(status, reason)}}
}
