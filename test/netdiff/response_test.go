package netdiff

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/chert-http/chert/test/internal/unlike"

	"github.com/chert-http/chert/internal/testing/servertest"
)

func TestDiffResponse(t *testing.T) { diffRun(t, diffResponses) }

type rw = http.ResponseWriter

// wrote writes s and records the result of Write.
func (s *scene) wrote(w io.Writer, b string) {
	n, err := w.Write([]byte(b))
	s.note("Write %d: %d %s", len(b), n, errNote(err))
}

func (s *scene) wroteString(w io.Writer, b string) {
	n, err := io.WriteString(w, b)
	s.note("WriteString %d: %d %s", len(b), n, errNote(err))
}

func (s *scene) flushed(w rw) { s.note("Flush: %s", errNote(http.NewResponseController(w).Flush())) }

// tempFile is a file of n bytes, read from its start, until f returns.
func (s *scene) tempFile(n int, f func(*os.File)) {
	file, err := os.Create(filepath.Join(s.t.TempDir(), "file"))
	if err != nil {
		s.t.Error(err)
		return
	}
	defer file.Close()
	file.Write(servertest.Pattern(n))
	file.Seek(0, io.SeekStart)
	f(file)
}

// copied copies from r and records the result.
func (s *scene) copied(w io.Writer, r io.Reader) {
	n, err := io.Copy(w, r)
	s.note("Copy: %d %s", n, errNote(err))
}

var (
	long    = string(servertest.Pattern(10_000))
	getHead = ask("HEAD /")
)

var diffResponses = []diffCase{
	// Status
	{name: "nothing at all", h: func(s *scene, w rw, r *http.Request) {}},
	{name: "implicit 200", h: func(s *scene, w rw, r *http.Request) { put(w, "a") }},
	{name: "explicit status", h: func(s *scene, w rw, r *http.Request) { w.WriteHeader(404) }},
	{name: "status and body", h: func(s *scene, w rw, r *http.Request) { w.WriteHeader(201); put(w, "a") }},
	{name: "the first status counts", h: func(s *scene, w rw, r *http.Request) { w.WriteHeader(202); w.WriteHeader(500); put(w, "a") }},
	{name: "status after the body", h: func(s *scene, w rw, r *http.Request) { put(w, "a"); w.WriteHeader(500) }},
	{name: "status after a flush", h: func(s *scene, w rw, r *http.Request) { s.flushed(w); w.WriteHeader(500) }},
	{name: "a status without a phrase", h: func(s *scene, w rw, r *http.Request) { w.WriteHeader(299) }},
	{name: "an unassigned status", h: func(s *scene, w rw, r *http.Request) { w.WriteHeader(306) }},
	{name: "the last status", h: func(s *scene, w rw, r *http.Request) { w.WriteHeader(999) }},
	{name: "a status with an apostrophe", h: func(s *scene, w rw, r *http.Request) { w.WriteHeader(418) }},
	{name: "phrases that RFC 9110 has renamed", h: func(s *scene, w rw, r *http.Request) { w.WriteHeader(413) }},
	{name: "an empty write", h: func(s *scene, w rw, r *http.Request) { s.wrote(w, "") }},
	{name: "an empty write fixes the status", h: func(s *scene, w rw, r *http.Request) { s.wrote(w, ""); w.WriteHeader(404) }},

	// Statuses without a body
	{name: "204", h: func(s *scene, w rw, r *http.Request) { w.WriteHeader(204) }},
	{name: "204 with a body", h: func(s *scene, w rw, r *http.Request) { w.WriteHeader(204); s.wrote(w, "a"); s.wroteString(w, "") }},
	{name: "204 with fields of a body", h: func(s *scene, w rw, r *http.Request) {
		set(w, "Content-Length", "5")
		set(w, "Transfer-Encoding", "chunked")
		set(w, "Content-Type", "a/b")
		w.WriteHeader(204)
	}},
	{name: "204 with a length of 0", h: func(s *scene, w rw, r *http.Request) { set(w, "Content-Length", "0"); w.WriteHeader(204) }},
	{name: "204 flushed", h: func(s *scene, w rw, r *http.Request) { w.WriteHeader(204); s.flushed(w); s.wrote(w, "a") }},
	{name: "304", h: func(s *scene, w rw, r *http.Request) { set(w, "Etag", `"e"`); w.WriteHeader(304) }},
	{name: "304 with fields of a body", h: func(s *scene, w rw, r *http.Request) {
		set(w, "Content-Length", "5")
		set(w, "Content-Type", "a/b")
		set(w, "Transfer-Encoding", "chunked")
		w.WriteHeader(304)
		s.wrote(w, "hello")
	}},
	{name: "205 may have a body", h: func(s *scene, w rw, r *http.Request) { w.WriteHeader(205); s.wrote(w, "a") }},
	{name: "a body copied to a 204", h: func(s *scene, w rw, r *http.Request) {
		w.WriteHeader(204)
		s.copied(w, bytes.NewReader(servertest.Pattern(5000)))
	}},

	// Lengths
	{name: "the right length", h: func(s *scene, w rw, r *http.Request) {
		set(w, "Content-Length", "3")
		s.wrote(w, "a")
		s.wrote(w, "bc")
	}},
	{name: "a declared 0", h: func(s *scene, w rw, r *http.Request) { set(w, "Content-Length", "0") }},
	{name: "a declared 0 and a byte", h: func(s *scene, w rw, r *http.Request) { set(w, "Content-Length", "0"); s.wrote(w, "a") }},
	{name: "more promised than written", h: func(s *scene, w rw, r *http.Request) { set(w, "Content-Length", "3"); s.wrote(w, "a") }},
	{name: "promised and nothing written", h: func(s *scene, w rw, r *http.Request) { set(w, "Content-Length", "3") }},
	{name: "one write too many", h: func(s *scene, w rw, r *http.Request) {
		set(w, "Content-Length", "2")
		s.wrote(w, "ab")
		s.wrote(w, "c")
		s.wrote(w, "")
		s.wrote(w, "d")
	}},
	{name: "a write too long", h: func(s *scene, w rw, r *http.Request) {
		set(w, "Content-Length", "2")
		s.wrote(w, "abc")
		s.wrote(w, "a")
	}},
	{name: "a long body of the right length", h: func(s *scene, w rw, r *http.Request) {
		set(w, "Content-Length", "10000")
		s.wrote(w, long[:4000])
		s.wroteString(w, long[4000:])
	}},
	{name: "a length after the first write", h: func(s *scene, w rw, r *http.Request) { put(w, "a"); set(w, "Content-Length", "5"); put(w, "b") }},
	{name: "a length with leading zeros", h: func(s *scene, w rw, r *http.Request) { set(w, "Content-Length", "01"); put(w, "a") }},
	{name: "a length with a sign", h: func(s *scene, w rw, r *http.Request) { set(w, "Content-Length", "+1"); put(w, "a") }},
	{name: "an empty length", h: func(s *scene, w rw, r *http.Request) { set(w, "Content-Length", ""); put(w, "a") }},
	{name: "two lengths", h: func(s *scene, w rw, r *http.Request) { set(w, "Content-Length", "1", "2"); put(w, "a") }},
	{name: "a length that is none", h: func(s *scene, w rw, r *http.Request) { set(w, "Content-Length", "x"); put(w, "a") }, unlike: like(unlike.ResponseLength, sight{wire: plainAnswer("a")})},
	{name: "a negative length", h: func(s *scene, w rw, r *http.Request) { set(w, "Content-Length", "-1"); put(w, "a") }, unlike: like(unlike.ResponseLength, sight{wire: plainAnswer("a")})},
	{name: "a length with a space", h: func(s *scene, w rw, r *http.Request) { set(w, "Content-Length", " 1"); put(w, "a") }, unlike: like(unlike.ResponseLength, sight{wire: plainAnswer("a")})},
	{name: "a length that is none, flushed", h: func(s *scene, w rw, r *http.Request) { set(w, "Content-Length", "x"); put(w, "a"); s.flushed(w) }},
	{name: "a length that is none and no body", h: func(s *scene, w rw, r *http.Request) { set(w, "Content-Length", "x") }, unlike: like(unlike.ResponseLength, sight{wire: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"})},

	{name: "no length wanted", h: func(s *scene, w rw, r *http.Request) { set(w, "Content-Length"); put(w, "a") }},
	{name: "no length wanted and no body", h: func(s *scene, w rw, r *http.Request) { set(w, "Content-Length") }},
	{name: "no length wanted, flushed", h: func(s *scene, w rw, r *http.Request) { set(w, "Content-Length"); s.flushed(w); put(w, "a") }},
	{name: "no length wanted, to 1.0", send: ask10("GET /", keepAlive), h: func(s *scene, w rw, r *http.Request) { set(w, "Content-Length"); put(w, "a") }},
	{name: "no length wanted, and a 204", h: func(s *scene, w rw, r *http.Request) { set(w, "Content-Length"); w.WriteHeader(204) }},
	{name: "a flush when the length is reached", h: func(s *scene, w rw, r *http.Request) {
		set(w, "Content-Length", "2")
		s.wrote(w, "ab")
		s.flushed(w)
		s.wrote(w, "c")
		s.flushed(w)
	}},

	// HEAD
	{name: "HEAD of a body", send: getHead, h: func(s *scene, w rw, r *http.Request) { s.wrote(w, "hello") }},
	{name: "HEAD of nothing", send: getHead, h: func(s *scene, w rw, r *http.Request) {}},
	{name: "HEAD of a declared length", send: getHead, h: func(s *scene, w rw, r *http.Request) { set(w, "Content-Length", "5") }},
	{name: "HEAD of less than declared", send: getHead, h: func(s *scene, w rw, r *http.Request) { set(w, "Content-Length", "5"); s.wrote(w, "a") }},
	{name: "HEAD of a long body", send: getHead, h: func(s *scene, w rw, r *http.Request) { s.wrote(w, long) }},
	{name: "HEAD of a flushed body", send: getHead, h: func(s *scene, w rw, r *http.Request) { s.wrote(w, "a"); s.flushed(w); s.wrote(w, "b") }},
	{name: "HEAD of a file", send: getHead, h: func(s *scene, w rw, r *http.Request) { s.tempFile(5000, func(f *os.File) { s.copied(w, f) }) }},
	{name: "HEAD of a 204", send: getHead, h: func(s *scene, w rw, r *http.Request) { w.WriteHeader(204) }},
	{name: "HEAD of a coding", send: getHead, h: func(s *scene, w rw, r *http.Request) { set(w, "Transfer-Encoding", "chunked"); put(w, "a") }},
	{name: "HEAD of trailers", send: getHead, h: func(s *scene, w rw, r *http.Request) { set(w, "Trailer", "A"); put(w, "a"); set(w, "A", "1") }},

	// Date
	{name: "a date of its own", h: func(s *scene, w rw, r *http.Request) { set(w, "Date", "tomorrow") }},
	{name: "no date", h: func(s *scene, w rw, r *http.Request) { set(w, "Date") }},

	// Type
	{name: "HTML is recognised", h: func(s *scene, w rw, r *http.Request) { put(w, "<!DOCTYPE html><p>") }},
	{name: "a picture is recognised", h: func(s *scene, w rw, r *http.Request) { put(w, "\x89PNG\x0D\x0A\x1A\x0A") }},
	{name: "bytes are recognised", h: func(s *scene, w rw, r *http.Request) { put(w, "\x00\x01\x02") }},
	{name: "a type is not overridden", h: func(s *scene, w rw, r *http.Request) { set(w, "Content-Type", "a/b"); put(w, "<html>") }},
	{name: "two types are kept", h: func(s *scene, w rw, r *http.Request) { set(w, "Content-Type", "a/b", "c/d"); put(w, "<html>") }},
	{name: "an empty type", h: func(s *scene, w rw, r *http.Request) { set(w, "Content-Type", ""); put(w, "<html>") }},
	{name: "no type wanted", h: func(s *scene, w rw, r *http.Request) { set(w, "Content-Type"); put(w, "<html>") }},
	{name: "encoded content is not inspected", h: func(s *scene, w rw, r *http.Request) { set(w, "Content-Encoding", "gzip"); put(w, "<html>") }},
	{name: "an empty encoding", h: func(s *scene, w rw, r *http.Request) { set(w, "Content-Encoding", ""); put(w, "<html>") }},
	{name: "two encodings, the first empty", h: func(s *scene, w rw, r *http.Request) { set(w, "Content-Encoding", "", "gzip"); put(w, "<html>") }},
	{name: "the first piece decides", h: func(s *scene, w rw, r *http.Request) { put(w, "a"); flush(w); put(w, "<html>") }},
	{name: "small writes are inspected together", h: func(s *scene, w rw, r *http.Request) { put(w, "<ht"); put(w, "ml>") }},
	{name: "no type without a body", h: func(s *scene, w rw, r *http.Request) { flush(w); put(w, "<html>") }},
	{name: "type after 512 bytes", h: func(s *scene, w rw, r *http.Request) { put(w, strings.Repeat(" ", 600)+"<html>") }},

	// Transfer-Encoding
	{name: "the handler says identity", h: func(s *scene, w rw, r *http.Request) { set(w, "Transfer-Encoding", "identity"); put(w, "a") }},
	{name: "identity, flushed", h: func(s *scene, w rw, r *http.Request) {
		set(w, "Transfer-Encoding", "identity")
		put(w, "a")
		s.flushed(w)
		put(w, "b")
	}},
	{name: "identity and a length", h: func(s *scene, w rw, r *http.Request) {
		set(w, "Transfer-Encoding", "identity")
		set(w, "Content-Length", "1")
		put(w, "a")
	}},
	{name: "the handler says chunked", h: func(s *scene, w rw, r *http.Request) { set(w, "Transfer-Encoding", "chunked"); put(w, "a") }},
	{name: "chunked and a length too", h: func(s *scene, w rw, r *http.Request) {
		set(w, "Transfer-Encoding", "chunked")
		set(w, "Content-Length", "1")
		put(w, "a")
	}},
	{name: "the handler's own coding", h: func(s *scene, w rw, r *http.Request) { set(w, "Transfer-Encoding", "gzip"); put(w, "a") }},
	{name: "an empty coding of the handler", h: func(s *scene, w rw, r *http.Request) { set(w, "Transfer-Encoding", ""); put(w, "a") }},
	{name: "chunked to 1.0", send: ask10("GET /"), h: func(s *scene, w rw, r *http.Request) { set(w, "Transfer-Encoding", "chunked"); put(w, "a") }},

	{name: "two codings of the handler", h: func(s *scene, w rw, r *http.Request) { set(w, "Transfer-Encoding", "chunked", "gzip"); put(w, "a") }},
	{name: "a coding without values", h: func(s *scene, w rw, r *http.Request) { set(w, "Transfer-Encoding"); put(w, "a") }},
	{name: "a coding in capitals", h: func(s *scene, w rw, r *http.Request) { set(w, "Transfer-Encoding", "Chunked"); put(w, "a") }},
	{name: "a coding of the handler to 1.0", send: ask10("GET /"), h: func(s *scene, w rw, r *http.Request) { set(w, "Transfer-Encoding", "gzip"); put(w, "a") }},
	{name: "a coding of the handler and nothing written", h: func(s *scene, w rw, r *http.Request) { set(w, "Transfer-Encoding", "chunked") }},

	// Trailers
	{name: "an empty Trailer", h: func(s *scene, w rw, r *http.Request) { set(w, "Trailer", ""); put(w, "a") }},
	{name: "a Trailer without values", h: func(s *scene, w rw, r *http.Request) { set(w, "Trailer"); put(w, "a") }},
	{name: "a Trailer of commas", h: func(s *scene, w rw, r *http.Request) { set(w, "Trailer", ", ,A,"); put(w, "a"); set(w, "A", "1") }},
	{name: "a Trailer that is declared twice", h: func(s *scene, w rw, r *http.Request) { set(w, "Trailer", "A, a"); put(w, "a"); set(w, "A", "1") }},
	{name: "a Trailer declared too late", h: func(s *scene, w rw, r *http.Request) { put(w, "a"); flush(w); set(w, "Trailer", "A"); set(w, "A", "1") }},
	{name: "a Trailer that is no token", h: func(s *scene, w rw, r *http.Request) {
		set(w, "Trailer", "a b")
		put(w, "a")
		set(w, "A b", "1")
		set(w, "a b", "2")
	}},
	{name: "a trailer declared and without values", h: func(s *scene, w rw, r *http.Request) { set(w, "Trailer", "A"); put(w, "a"); set(w, "A") }},
	{name: "a long trailer of the handler", h: func(s *scene, w rw, r *http.Request) {
		set(w, "Trailer", "A")
		put(w, "a")
		set(w, "A", strings.Repeat("v", 10_000))
	}},
	{name: "declared trailers", h: func(s *scene, w rw, r *http.Request) {
		set(w, "Trailer", "X-B, x-a")
		put(w, "a")
		set(w, "X-A", "1", "2")
		set(w, "X-B", "3")
		set(w, "X-C", "not declared")
	}},
	{name: "declared and never set", h: func(s *scene, w rw, r *http.Request) { set(w, "Trailer", "X-A"); put(w, "a") }},
	{name: "declared and set too early", h: func(s *scene, w rw, r *http.Request) {
		set(w, "Trailer", "X-A")
		set(w, "X-A", "head")
		put(w, "a")
		set(w, "X-A", "tail")
	}},
	{name: "declared without a body", h: func(s *scene, w rw, r *http.Request) {
		set(w, "Trailer", "X-A")
		w.WriteHeader(200)
		set(w, "X-A", "1")
	}},
	{name: "declared beside a length", h: func(s *scene, w rw, r *http.Request) {
		set(w, "Trailer", "X-A")
		set(w, "Content-Length", "1")
		put(w, "a")
		set(w, "X-A", "1")
	}},
	{name: "declared in two lines", h: func(s *scene, w rw, r *http.Request) {
		set(w, "Trailer", "A", "B")
		put(w, "a")
		set(w, "B", "2")
		set(w, "A", "1")
	}},
	{name: "a trailer that may not be one", h: func(s *scene, w rw, r *http.Request) {
		set(w, "Trailer", "Content-Length, X-A, Host")
		put(w, "a")
		set(w, "Content-Length", "7")
		set(w, "X-A", "1")
		set(w, "Host", "h")
	}},
	{name: "all trailers that may not be ones", h: func(s *scene, w rw, r *http.Request) {
		names := []string{
			"Authorization", "Cache-Control", "Connection", "Content-Encoding", "Content-Length", "Content-Range", "Content-Type",
			"Cookie", "Date", "Etag", "Expect", "Expires", "Host", "If-Match", "If-None-Match", "Keep-Alive", "Location", "Max-Forwards",
			"Pragma", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Range", "Realm", "Retry-After", "Server",
			"Set-Cookie", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Vary", "Via", "Warning", "Www-Authenticate",
		}
		set(w, "Trailer", strings.Join(names, ","))
		put(w, "a")
		flush(w)
		for _, name := range names {
			set(w, name, "1")
		}
	}},
	{name: "a prefixed trailer, late", h: func(s *scene, w rw, r *http.Request) {
		put(w, "a")
		flush(w)
		set(w, http.TrailerPrefix+"X-A", "1", "2")
	}},
	{name: "a prefixed trailer, early", h: func(s *scene, w rw, r *http.Request) {
		set(w, http.TrailerPrefix+"X-A", "1")
		put(w, "a")
	}},
	{name: "a prefixed trailer, too late", h: func(s *scene, w rw, r *http.Request) {
		put(w, "a")
		set(w, http.TrailerPrefix+"X-A", "1")
	}},
	{name: "a prefixed and a declared trailer", h: func(s *scene, w rw, r *http.Request) {
		set(w, "Trailer", "B")
		put(w, "a")
		set(w, http.TrailerPrefix+"A", "1")
		set(w, "B", "2")
	}},
	{name: "a prefixed trailer in lower case", h: func(s *scene, w rw, r *http.Request) {
		put(w, "a")
		flush(w)
		set(w, http.TrailerPrefix+"x-a", "1")
	}},
	{name: "a prefixed trailer of framing", h: func(s *scene, w rw, r *http.Request) {
		put(w, "a")
		flush(w)
		set(w, http.TrailerPrefix+"Content-Length", "1")
	}},
	{name: "a trailer with CR and LF", h: func(s *scene, w rw, r *http.Request) {
		put(w, "a")
		flush(w)
		set(w, http.TrailerPrefix+"X-A", "1\r\nB: 2")
	}},
	{name: "trailers to 1.0", send: ask10("GET /"), h: func(s *scene, w rw, r *http.Request) {
		set(w, "Trailer", "X-A")
		put(w, "a")
		set(w, "X-A", "1")
	}},
	{name: "trailers of a 204", h: func(s *scene, w rw, r *http.Request) {
		set(w, "Trailer", "X-A")
		w.WriteHeader(204)
		set(w, "X-A", "1")
	}},

	// Fields
	{name: "CR and LF in a value", h: func(s *scene, w rw, r *http.Request) { set(w, "X", "a\r\nSet-Cookie: b\n\nc\r") }},
	{name: "space around the value", h: func(s *scene, w rw, r *http.Request) { set(w, "X", " \ta b\t ") }},
	{name: "any other byte in a value", h: func(s *scene, w rw, r *http.Request) { set(w, "X", "\x00\x7f\xff\u00e9") }},
	{name: "names that are none", h: func(s *scene, w rw, r *http.Request) {
		for _, k := range []string{"", "a b", "a:b", "a\r\nb", "\u00e9", "a(", "good"} {
			set(w, k, "v")
		}
	}},
	{name: "names that are not canonical", h: func(s *scene, w rw, r *http.Request) { set(w, "x-lower", "1"); set(w, "X-lOWER", "2") }},
	{name: "Content-Length not canonical", h: func(s *scene, w rw, r *http.Request) { set(w, "content-length", "1"); put(w, "a") }},
	{name: "Content-Type not canonical", h: func(s *scene, w rw, r *http.Request) { set(w, "content-type", "a/b"); put(w, "a") }},
	{name: "Connection not canonical", h: func(s *scene, w rw, r *http.Request) { set(w, "connection", "close"); put(w, "a") }},
	{name: "Date not canonical", h: func(s *scene, w rw, r *http.Request) { set(w, "date", "today"); put(w, "a") }},
	{name: "sorted names, values in order", h: func(s *scene, w rw, r *http.Request) { set(w, "B", "2", "1", "2"); set(w, "A"); set(w, "C", "") }},
	{name: "cookies of the handler", h: func(s *scene, w rw, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "b", Value: "1"})
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "2"})
	}},
	{name: "many fields", h: func(s *scene, w rw, r *http.Request) {
		for c := 'A'; c <= 'Z'; c++ {
			set(w, "X-"+string(c), strings.Repeat(string(c), 300))
		}
		put(w, "a")
	}},
	{name: "one very long field", h: func(s *scene, w rw, r *http.Request) { set(w, "X", strings.Repeat("v", 20_000)); put(w, "a") }},
	{name: "changed after WriteHeader", h: func(s *scene, w rw, r *http.Request) {
		h := w.Header()
		h.Set("A", "1")
		w.WriteHeader(200)
		h.Set("A", "2")
		w.Header().Set("B", "2")
	}},
	{name: "values changed in place after WriteHeader", h: func(s *scene, w rw, r *http.Request) {
		vv := []string{"1"}
		w.Header()["A"] = vv
		w.WriteHeader(200)
		vv[0] = "2"
	}},
	{name: "changed after Write", h: func(s *scene, w rw, r *http.Request) {
		h := w.Header()
		h.Set("A", "1")
		put(w, "a")
		h.Set("A", "2")
		delete(h, "B")
	}},
	{name: "deleted after Write", h: func(s *scene, w rw, r *http.Request) {
		w.Header().Set("A", "1")
		put(w, "a")
		w.Header().Del("A")
	}},
	{name: "set after Write for the first time", h: func(s *scene, w rw, r *http.Request) { put(w, "a"); w.Header().Set("A", "1") }},
	{name: "Header shows what was set", h: func(s *scene, w rw, r *http.Request) {
		set(w, "A", "1")
		put(w, "a")
		s.note("%v", w.Header())
		flush(w)
		s.note("%v", w.Header())
	}},
	{name: "Header is nil", h: func(s *scene, w rw, r *http.Request) {
		s.note("%v %d", w.Header() == nil, len(w.Header()))
	}},
	{name: "names in odd cases that mean something", h: func(s *scene, w rw, r *http.Request) {
		set(w, "transfer-encoding", "identity")
		set(w, "CONTENT-LENGTH", "7")
		put(w, "a")
	}},
	{name: "the same name in two cases", h: func(s *scene, w rw, r *http.Request) {
		set(w, "Content-Length", "1")
		set(w, "content-length", "2")
		put(w, "a")
	}},
	{name: "HTML in a value", h: func(s *scene, w rw, r *http.Request) { set(w, "Location", "/<b>\"&'"); w.WriteHeader(302) }},
	{name: "the handler closes in a list", h: func(s *scene, w rw, r *http.Request) { set(w, "Connection", "x, close"); put(w, "a") }},
	{name: "the handler closes in capitals", h: func(s *scene, w rw, r *http.Request) { set(w, "Connection", "Close"); put(w, "a") }},
	{name: "the handler sets Keep-Alive", h: func(s *scene, w rw, r *http.Request) { set(w, "Keep-Alive", "timeout=1"); put(w, "a") }},

	// Writing
	{name: "flush first", h: func(s *scene, w rw, r *http.Request) { s.flushed(w); put(w, "a") }},
	{name: "flush only", h: func(s *scene, w rw, r *http.Request) { s.flushed(w) }},
	{name: "flush between", h: func(s *scene, w rw, r *http.Request) {
		put(w, "a")
		s.flushed(w)
		put(w, "bc")
		s.flushed(w)
		s.flushed(w)
	}},
	{name: "flush with a length", h: func(s *scene, w rw, r *http.Request) {
		set(w, "Content-Length", "2")
		put(w, "a")
		s.flushed(w)
		put(w, "b")
	}},
	{name: "flush to 1.0", send: ask10("GET /"), h: func(s *scene, w rw, r *http.Request) { put(w, "a"); s.flushed(w); put(w, "b") }},
	{name: "small pieces", h: func(s *scene, w rw, r *http.Request) {
		for range 100 {
			put(w, "0123456789")
		}
	}},
	{name: "pieces of 700", h: diffWrites(700, 5)},
	{name: "pieces of 2047", h: diffWrites(2047, 3)},
	{name: "pieces of 2048", h: diffWrites(2048, 3)},
	{name: "pieces of 2049", h: diffWrites(2049, 3)},
	{name: "pieces of 5000", h: diffWrites(5000, 3)},
	{name: "2048 bytes", h: diffWrites(2048, 1)},
	{name: "2049 bytes", h: diffWrites(2049, 1)},
	{name: "100000 bytes", h: diffWrites(100_000, 1)},
	{name: "a small and a large piece", h: func(s *scene, w rw, r *http.Request) { s.wrote(w, "abc"); s.wrote(w, long) }},
	{name: "a large and a small piece", h: func(s *scene, w rw, r *http.Request) { s.wrote(w, long); s.wrote(w, "abc") }},
	{name: "a large string", h: func(s *scene, w rw, r *http.Request) { s.wroteString(w, long) }, unlike: like(unlike.ChunkSizes, sight{wire: chunkedText + servertest.Chunks(long, len(long))})},
	{name: "a string of 2049 bytes", h: func(s *scene, w rw, r *http.Request) { s.wroteString(w, long[:2049]) }, unlike: like(unlike.ChunkSizes, sight{wire: chunkedText + servertest.Chunks(long[:2049], 2049)})},
	{name: "a small string and a large one", h: func(s *scene, w rw, r *http.Request) { s.wroteString(w, "abc"); s.wroteString(w, long) }, unlike: like(unlike.ChunkSizes, sight{wire: chunkedText + "800\r\nabc" + long[:2045] + "\r\n" + servertest.Chunks(long[2045:], len(long))})},
	{name: "a large string of a declared length", h: func(s *scene, w rw, r *http.Request) {
		set(w, "Content-Length", "10000")
		s.wroteString(w, long)
	}},

	// Copying
	{name: "copied from a string", h: func(s *scene, w rw, r *http.Request) { s.copied(w, strings.NewReader("<html>")) }},
	{name: "copied in one byte pieces", h: func(s *scene, w rw, r *http.Request) {
		s.copied(w, iotest.OneByteReader(strings.NewReader("<html>")))
	}},
	{name: "copied from nothing", h: func(s *scene, w rw, r *http.Request) { s.copied(w, bytes.NewReader(nil)) }},
	{name: "copied from what fails", h: func(s *scene, w rw, r *http.Request) {
		s.copied(w, iotest.ErrReader(errors.New("broken")))
		w.WriteHeader(500)
	}},
	{name: "copied from what fails late", h: func(s *scene, w rw, r *http.Request) {
		s.copied(w, io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(errors.New("broken"))))
	}},
	{name: "copied from a long reader", h: func(s *scene, w rw, r *http.Request) {
		s.copied(w, onlyReader{bytes.NewReader(servertest.Pattern(10_000))})
	}, unlike: like(unlike.CopiedHead, sight{wire: chunkedText + "800\r\n" + long[:2048] + "\r\n" + servertest.Chunks(long[2048:], len(long))})},
	{name: "copied from a long reader, with a length", h: func(s *scene, w rw, r *http.Request) {
		set(w, "Content-Length", "10000")
		s.copied(w, onlyReader{bytes.NewReader(servertest.Pattern(10_000))})
	}},
	{name: "copied from the body", send: post("/", "hello"), h: func(s *scene, w rw, r *http.Request) { s.copied(w, r.Body) }},
	{name: "a long body copied in full duplex", send: post("/", long), h: func(s *scene, w rw, r *http.Request) {
		http.NewResponseController(w).EnableFullDuplex()
		set(w, "Content-Length", "10000")
		s.copied(w, r.Body)
	}},
	{name: "copied from a pipe", h: func(s *scene, w rw, r *http.Request) {
		pr, pw := io.Pipe()
		s.spawn(func() { put(pw, "hello"); pw.Close() })
		s.copied(w, pr)
	}},
	{name: "a small file", h: diffFile(300, "", 0)},
	{name: "a file of what is sniffed", h: diffFile(512, "", 0)},
	{name: "a file of a byte more", h: diffFile(513, "", 0)},
	{name: "a file of 3000 bytes", h: diffFile(3000, "", 0)},
	{name: "a large file", h: diffFile(70_000, "", 0)},
	{name: "a file with its length", h: diffFile(70_000, "70000", 0)},
	{name: "a small file with its length", h: diffFile(300, "300", 0)},
	{name: "a file longer than its length", h: diffFile(5000, "1000", 0), unlike: like(unlike.ReadFromLength, sight{
		wire: "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n" + long[:1000], end: "kept",
		handler: getNote + "\nCopy: 1000 ok\nthe file is at 1000", states: "new active idle active closed"})},
	{name: "a small file longer than its length", h: diffFile(300, "100", 0)},
	{name: "a file shorter than its length", h: diffFile(5000, "9000", 0)},
	{name: "part of a file", h: diffFile(70_000, "1000", 1000)},
	{name: "more than all of a file", h: diffFile(5000, "5000", 9000)},
	{name: "a file to 1.0", send: ask10("GET /"), h: diffFile(70_000, "", 0)},
	{name: "a file after a write", h: func(s *scene, w rw, r *http.Request) {
		set(w, "Content-Length", "5003")
		put(w, "abc")
		s.tempFile(5000, func(f *os.File) { s.copied(w, f) })
	}},
	{name: "a file after a flush", h: func(s *scene, w rw, r *http.Request) {
		set(w, "Content-Length", "5003")
		put(w, "abc")
		flush(w)
		s.tempFile(5000, func(f *os.File) { s.copied(w, f) })
	}},
	{name: "a write after a file", h: func(s *scene, w rw, r *http.Request) {
		set(w, "Content-Length", "5003")
		s.tempFile(5000, func(f *os.File) { s.copied(w, f) })
		s.wrote(w, "abc")
	}},
	{name: "a write too many after a file", h: func(s *scene, w rw, r *http.Request) {
		set(w, "Content-Length", "5000")
		s.tempFile(5000, func(f *os.File) { s.copied(w, f) })
		s.wrote(w, "abc")
	}},

	// Helpers of net/http
	{name: "http.Error", h: func(s *scene, w rw, r *http.Request) {
		set(w, "Etag", `"e"`)
		set(w, "Content-Length", "100")
		http.Error(w, "no", 500)
	}},
	{name: "http.Redirect", h: func(s *scene, w rw, r *http.Request) { http.Redirect(w, r, "/x y", http.StatusFound) }},
	{name: "http.Redirect of a POST", send: post("/", "a"), h: func(s *scene, w rw, r *http.Request) { http.Redirect(w, r, "b", http.StatusSeeOther) }},
	{name: "http.NotFound", h: func(s *scene, w rw, r *http.Request) { http.NotFound(w, r) }},
	{name: "ServeContent", h: diffContent},
	{name: "ServeContent, a range", send: ask("GET /", "Range: bytes=10-19"), h: diffContent},
	{name: "ServeContent, two ranges of the same", send: ask("GET /", "Range: bytes=-5"), h: diffContent},
	{name: "ServeContent, no such range", send: ask("GET /", "Range: bytes=5000-"), h: diffContent},
	{name: "ServeContent, not modified", send: ask("GET /", `If-None-Match: "e"`), h: diffContent},
	{name: "ServeContent, precondition failed", send: ask("GET /", `If-Match: "f"`), h: diffContent},
	{name: "ServeContent, HEAD", send: getHead, h: diffContent},
	{name: "ServeFile", h: func(s *scene, w rw, r *http.Request) {
		s.tempFile(5000, func(f *os.File) {
			os.Chtimes(f.Name(), time.Unix(1e9, 0), time.Unix(1e9, 0))
			http.ServeFile(w, r, f.Name())
		})
	}},
	{name: "MaxBytesHandler", send: post("/", "hello"), h: func(s *scene, w rw, r *http.Request) {
		http.MaxBytesHandler(http.HandlerFunc(func(w rw, r *http.Request) { s.readBody(r) }), 3).ServeHTTP(w, r)
	}, unlike: like(unlike.MaxBytes, sight{wire: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", end: "kept", states: "new active idle active closed"})},
	{name: "TimeoutHandler", h: func(s *scene, w rw, r *http.Request) {
		http.TimeoutHandler(http.HandlerFunc(func(w rw, r *http.Request) { put(w, "in time") }), time.Hour, "").ServeHTTP(w, r)
	}},
	{name: "ServeMux redirects", send: ask("GET /a/../b"), h: func(s *scene, w rw, r *http.Request) {
		mux := http.NewServeMux()
		mux.HandleFunc("GET /b", func(w rw, r *http.Request) { put(w, "b") })
		mux.ServeHTTP(w, r)
	}},
	{name: "ServeMux knows the method", send: ask("DELETE /b"), h: func(s *scene, w rw, r *http.Request) {
		mux := http.NewServeMux()
		mux.HandleFunc("GET /b", func(w rw, r *http.Request) { put(w, "b") })
		mux.ServeHTTP(w, r)
	}},
}

// onlyReader hides the other methods of a reader.
type onlyReader struct{ io.Reader }

func diffWrites(size, n int) diffHandler {
	return func(s *scene, w rw, r *http.Request) {
		for range n {
			s.wrote(w, string(servertest.Pattern(size)))
		}
	}
}

// diffFile copies from a file, with a declared length if it is not empty and
// up to limit bytes if that is not 0.
func diffFile(size int, length string, limit int64) diffHandler {
	return func(s *scene, w rw, r *http.Request) {
		s.tempFile(size, func(f *os.File) {
			if length != "" {
				set(w, "Content-Length", length)
			}
			if limit == 0 {
				s.copied(w, f)
			} else {
				lim := &io.LimitedReader{R: f, N: limit}
				s.copied(w, lim)
				s.note("%d are left of the limit", lim.N)
			}
			at, _ := f.Seek(0, io.SeekCurrent)
			s.note("the file is at %d", at)
		})
	}
}

func diffContent(s *scene, w rw, r *http.Request) {
	set(w, "Etag", `"e"`)
	http.ServeContent(w, r, "a.txt", time.Unix(1e9, 0), bytes.NewReader(servertest.Pattern(3000)))
}

// chunkedText is the head of a text in chunks.
const chunkedText = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
