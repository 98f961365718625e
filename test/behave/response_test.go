package behave

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// answerCase is a handler and, where it is worth spelling out, its response to
// GET over HTTP/1.1 without the Date line.
type answerCase struct {
	why  string
	f    func(w http.ResponseWriter, r *http.Request)
	want string
}

const ok = "HTTP/1.1 200 OK\r\n"

var answers = []answerCase{
	{"nothing at all", func(w http.ResponseWriter, r *http.Request) {}, ok + "Content-Length: 0\r\n\r\n"},
	{"implicit 200", func(w http.ResponseWriter, r *http.Request) { put(w, "a") }, ok + "Content-Length: 1\r\nContent-Type: text/plain; charset=utf-8\r\n\r\na"},
	{"explicit status", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(404) }, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"},
	{"status and body", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(201); put(w, "a") }, "HTTP/1.1 201 Created\r\nContent-Length: 1\r\nContent-Type: text/plain; charset=utf-8\r\n\r\na"},
	{"the first status counts", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(202); w.WriteHeader(500); put(w, "a") }, "HTTP/1.1 202 Accepted\r\nContent-Length: 1\r\nContent-Type: text/plain; charset=utf-8\r\n\r\na"},
	{"status behind the body", func(w http.ResponseWriter, r *http.Request) { put(w, "a"); w.WriteHeader(500) }, ok + "Content-Length: 1\r\nContent-Type: text/plain; charset=utf-8\r\n\r\na"},
	{"a status without a phrase", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(299) }, "HTTP/1.1 299 status code 299\r\nContent-Length: 0\r\n\r\n"},
	{"the last status", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(999) }, "HTTP/1.1 999 status code 999\r\nContent-Length: 0\r\n\r\n"},
	{"an empty write", func(w http.ResponseWriter, r *http.Request) { w.Write(nil) }, ok + "Content-Length: 0\r\n\r\n"},
	{"an empty write fixes the status", func(w http.ResponseWriter, r *http.Request) { w.Write(nil); w.WriteHeader(404) }, ok + "Content-Length: 0\r\n\r\n"},

	{"204 has no length", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(204) }, "HTTP/1.1 204 No Content\r\n\r\n"},
	{"204 whatever is set", func(w http.ResponseWriter, r *http.Request) {
		set(w, "Content-Length", "5")
		set(w, "Transfer-Encoding", "chunked")
		set(w, "Content-Type", "a/b")
		w.WriteHeader(204)
		put(w, "hello")
	}, "HTTP/1.1 204 No Content\r\nContent-Type: a/b\r\n\r\n"},
	{"304 has no length", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(304) }, "HTTP/1.1 304 Not Modified\r\n\r\n"},
	{"304 whatever is set", func(w http.ResponseWriter, r *http.Request) {
		set(w, "Content-Length", "5")
		set(w, "Content-Type", "a/b")
		set(w, "Etag", `"e"`)
		w.WriteHeader(304)
		put(w, "hello")
	}, "HTTP/1.1 304 Not Modified\r\nEtag: \"e\"\r\n\r\n"},
	{"205 may have a body", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(205); put(w, "a") }, ""},

	{"the right length", func(w http.ResponseWriter, r *http.Request) { set(w, "Content-Length", "1"); put(w, "a") }, ok + "Content-Length: 1\r\nContent-Type: text/plain; charset=utf-8\r\n\r\na"},
	{"a length of none", func(w http.ResponseWriter, r *http.Request) { set(w, "Content-Length", "0") }, ok + "Content-Length: 0\r\n\r\n"},
	{"more promised than written", func(w http.ResponseWriter, r *http.Request) { set(w, "Content-Length", "3"); put(w, "a") }, ok + "Content-Length: 3\r\nContent-Type: text/plain; charset=utf-8\r\n\r\na"},
	{"promised and nothing written", func(w http.ResponseWriter, r *http.Request) { set(w, "Content-Length", "3") }, ok + "Content-Length: 3\r\n\r\n"},
	{"more written than promised", func(w http.ResponseWriter, r *http.Request) { set(w, "Content-Length", "2"); put(w, "ab"); put(w, "c") }, ok + "Content-Length: 2\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nab"},
	{"too much at once", func(w http.ResponseWriter, r *http.Request) { set(w, "Content-Length", "2"); put(w, "abc") }, ok + "Content-Length: 2\r\n\r\n"},
	{unlike + "a length that is none is left out", func(w http.ResponseWriter, r *http.Request) { set(w, "Content-Length", "x"); put(w, "a") }, ok + "Content-Length: 1\r\nContent-Type: text/plain; charset=utf-8\r\n\r\na"},
	{unlike + "a negative length is left out", func(w http.ResponseWriter, r *http.Request) { set(w, "Content-Length", "-1"); put(w, "a") }, ok + "Content-Length: 1\r\nContent-Type: text/plain; charset=utf-8\r\n\r\na"},
	{"a length too late", func(w http.ResponseWriter, r *http.Request) { put(w, "a"); set(w, "Content-Length", "5") }, ""},

	{"a date of its own", func(w http.ResponseWriter, r *http.Request) { set(w, "Date", "tomorrow") }, ok + "Date: tomorrow\r\nContent-Length: 0\r\n\r\n"},
	{"no date", func(w http.ResponseWriter, r *http.Request) { set(w, "Date") }, ok + "Content-Length: 0\r\n\r\n"},

	{"HTML is recognised", func(w http.ResponseWriter, r *http.Request) { put(w, "<html>") }, ok + "Content-Length: 6\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<html>"},
	{"a type is not overridden", func(w http.ResponseWriter, r *http.Request) { set(w, "Content-Type", "a/b"); put(w, "<html>") }, ok + "Content-Type: a/b\r\nContent-Length: 6\r\n\r\n<html>"},
	{"an empty type neither", func(w http.ResponseWriter, r *http.Request) { set(w, "Content-Type", ""); put(w, "<html>") }, ""},
	{"no type wanted", func(w http.ResponseWriter, r *http.Request) { set(w, "Content-Type"); put(w, "<html>") }, ok + "Content-Length: 6\r\n\r\n<html>"},
	{"encoded content is not looked at", func(w http.ResponseWriter, r *http.Request) { set(w, "Content-Encoding", "gzip"); put(w, "<html>") }, ok + "Content-Encoding: gzip\r\nContent-Length: 6\r\n\r\n<html>"},
	{"unless the encoding is empty", func(w http.ResponseWriter, r *http.Request) { set(w, "Content-Encoding", ""); put(w, "<html>") }, ""},
	{"the first piece decides", func(w http.ResponseWriter, r *http.Request) { put(w, "a"); flush(w); put(w, "<html>") }, ""},
	{"small writes are looked at together", func(w http.ResponseWriter, r *http.Request) { put(w, "<ht"); put(w, "ml>") }, ok + "Content-Length: 6\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<html>"},

	{"identity closes", func(w http.ResponseWriter, r *http.Request) { set(w, "Transfer-Encoding", "identity"); put(w, "a") }, ok + "Connection: close\r\n\r\na"},
	{"identity with a length", func(w http.ResponseWriter, r *http.Request) {
		set(w, "Transfer-Encoding", "identity")
		set(w, "Content-Length", "1")
		put(w, "a")
	}, ""},
	{"chunked by hand", func(w http.ResponseWriter, r *http.Request) { set(w, "Transfer-Encoding", "chunked"); put(w, "a") }, ok + "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"},
	{"chunked and a length", func(w http.ResponseWriter, r *http.Request) {
		set(w, "Transfer-Encoding", "chunked")
		set(w, "Content-Length", "1")
		put(w, "a")
	}, ok + "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"},
	{"another coding", func(w http.ResponseWriter, r *http.Request) { set(w, "Transfer-Encoding", "gzip"); put(w, "a") }, ""},

	{"a declared trailer", func(w http.ResponseWriter, r *http.Request) {
		set(w, "Trailer", "X-B, x-a")
		put(w, "a")
		set(w, "X-A", "1", "2")
		set(w, "X-B", "3")
		set(w, "X-C", "not declared")
	}, ok + "Trailer: X-B, x-a\r\nContent-Type: text/plain; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-A: 1\r\nX-A: 2\r\nX-B: 3\r\n\r\n"},
	{"declared and never set", func(w http.ResponseWriter, r *http.Request) { set(w, "Trailer", "X-A"); put(w, "a") }, ok + "Trailer: X-A\r\nContent-Type: text/plain; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"},
	{"declared and set too early", func(w http.ResponseWriter, r *http.Request) {
		set(w, "Trailer", "X-A")
		set(w, "X-A", "head")
		put(w, "a")
		set(w, "X-A", "tail")
	}, ""},
	{"declared without a body", func(w http.ResponseWriter, r *http.Request) {
		set(w, "Trailer", "X-A")
		w.WriteHeader(200)
		set(w, "X-A", "1")
	}, ok + "Trailer: X-A\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-A: 1\r\n\r\n"},
	{"a trailer that may not be one", func(w http.ResponseWriter, r *http.Request) {
		set(w, "Trailer", "Content-Length, X-A")
		put(w, "a")
		set(w, "Content-Length", "7")
		set(w, "X-A", "1")
	}, ok + "Trailer: Content-Length, X-A\r\nContent-Type: text/plain; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-A: 1\r\n\r\n"},
	{"a trailer with a prefix, late", func(w http.ResponseWriter, r *http.Request) {
		put(w, "a")
		flush(w)
		set(w, http.TrailerPrefix+"X-A", "1")
	}, ok + "Content-Type: text/plain; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-A: 1\r\n\r\n"},
	{"a trailer with a prefix, early", func(w http.ResponseWriter, r *http.Request) {
		set(w, http.TrailerPrefix+"X-A", "1")
		put(w, "a")
	}, ok + "Content-Type: text/plain; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-A: 1\r\n\r\n"},
	{"a trailer with a prefix, too late", func(w http.ResponseWriter, r *http.Request) {
		put(w, "a")
		set(w, http.TrailerPrefix+"X-A", "1")
	}, ""},

	{"CR and LF in a value", func(w http.ResponseWriter, r *http.Request) { set(w, "X", "a\r\nSet-Cookie: b\n\nc\r") }, ok + "X: a  Set-Cookie: b  c\r\nContent-Length: 0\r\n\r\n"},
	{"space around a value", func(w http.ResponseWriter, r *http.Request) { set(w, "X", " \ta b\t ") }, ok + "X: a b\r\nContent-Length: 0\r\n\r\n"},
	{"any other byte in a value", func(w http.ResponseWriter, r *http.Request) { set(w, "X", "\x00\x7f\xff\u00e9") }, ok + "X: \x00\x7f\xff\u00e9\r\nContent-Length: 0\r\n\r\n"},
	{"names that are none", func(w http.ResponseWriter, r *http.Request) {
		for _, k := range []string{"", "a b", "a:b", "a\r\nb", "\u00e9", "a(", "good"} {
			set(w, k, "v")
		}
	}, ok + "good: v\r\nContent-Length: 0\r\n\r\n"},
	{"names that are not canonical", func(w http.ResponseWriter, r *http.Request) { set(w, "x-lower", "1"); set(w, "X-lOWER", "2") }, ok + "X-lOWER: 2\r\nx-lower: 1\r\nContent-Length: 0\r\n\r\n"},
	{"sorted names, values in order", func(w http.ResponseWriter, r *http.Request) { set(w, "B", "2", "1", "2"); set(w, "A"); set(w, "C", "") }, ok + "B: 2\r\nB: 1\r\nB: 2\r\nC: \r\nContent-Length: 0\r\n\r\n"},
	{"cookies", func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "b", Value: "1"})
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "2"})
	}, ok + "Set-Cookie: b=1\r\nSet-Cookie: a=2\r\nContent-Length: 0\r\n\r\n"},
	{"many fields", func(w http.ResponseWriter, r *http.Request) {
		for c := 'A'; c <= 'Z'; c++ {
			set(w, "X-"+string(c), strings.Repeat(string(c), 300))
		}
		put(w, "a")
	}, ""},
	{"changed behind WriteHeader", func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("A", "1")
		w.WriteHeader(200)
		h.Set("A", "2")
		w.Header().Set("B", "2")
	}, ok + "A: 1\r\nContent-Length: 0\r\n\r\n"},
	{"changed behind Write", func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("A", "1")
		put(w, "a")
		h.Set("A", "2")
		delete(h, "A")
	}, ok + "A: 1\r\nContent-Length: 1\r\nContent-Type: text/plain; charset=utf-8\r\n\r\na"},
	{"set behind Write for the first time", func(w http.ResponseWriter, r *http.Request) { put(w, "a"); w.Header().Set("A", "1") }, ok + "Content-Length: 1\r\nContent-Type: text/plain; charset=utf-8\r\n\r\na"},

	{"the handler closes", func(w http.ResponseWriter, r *http.Request) { set(w, "Connection", "close"); put(w, "a") }, ok + "Connection: close\r\nContent-Length: 1\r\nContent-Type: text/plain; charset=utf-8\r\n\r\na"},
	{"the handler closes in a list", func(w http.ResponseWriter, r *http.Request) { set(w, "Connection", "x, close"); put(w, "a") }, ""},
	{"an upgrade without a hijack", func(w http.ResponseWriter, r *http.Request) {
		set(w, "Connection", "Upgrade")
		set(w, "Upgrade", "x")
		w.WriteHeader(101)
	}, ""},

	{"early hints", func(w http.ResponseWriter, r *http.Request) {
		set(w, "Link", "</a>")
		w.WriteHeader(103)
		set(w, "Link", "</b>")
		set(w, "Content-Length", "1")
		w.WriteHeader(103)
		w.Header().Del("Link")
		put(w, "a")
	}, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </b>\r\n\r\n" + ok + "Content-Length: 1\r\nContent-Type: text/plain; charset=utf-8\r\n\r\na"},
	{"processing", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(102); w.WriteHeader(204) }, "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"},
	{"continue by hand", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(100); put(w, "a") }, "HTTP/1.1 100 Continue\r\n\r\n" + ok + "Content-Length: 1\r\nContent-Type: text/plain; charset=utf-8\r\n\r\na"},
	{"a hint too late", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(200); w.WriteHeader(103); put(w, "a") }, ""},

	{"flush first", func(w http.ResponseWriter, r *http.Request) { flush(w); put(w, "a") }, ok + "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"},
	{"flush only", func(w http.ResponseWriter, r *http.Request) { flush(w) }, ok + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
	{"flush between", func(w http.ResponseWriter, r *http.Request) { put(w, "a"); flush(w); put(w, "bc"); flush(w); flush(w) }, ok + "Content-Type: text/plain; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n"},
	{"flush with a length", func(w http.ResponseWriter, r *http.Request) {
		set(w, "Content-Length", "2")
		put(w, "a")
		flush(w)
		put(w, "b")
	}, ok + "Content-Length: 2\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nab"},
	{"pieces of 700", writes(700, 5), ""},
	{"pieces of 2048", writes(2048, 3), ""},
	{"pieces of 5000", writes(5000, 3), ""},
	{"2047 bytes", writes(2047, 1), ""},
	{"2048 bytes", writes(2048, 1), ""},
	{"2049 bytes", writes(2049, 1), ""},
	{"4096 bytes", writes(4096, 1), ""},
	{"100000 bytes", writes(100000, 1), ""},

	{"http.Error", func(w http.ResponseWriter, r *http.Request) { set(w, "Etag", `"e"`); http.Error(w, "no", 500) }, ""},
	{"http.Redirect", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/x y", http.StatusFound) }, ""},
	{"http.NotFound", http.NotFound, ""},
	{"copied from a string", func(w http.ResponseWriter, r *http.Request) { io.Copy(w, strings.NewReader("<html>")) }, ok + "Content-Length: 6\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<html>"},
	{"copied in one byte pieces", func(w http.ResponseWriter, r *http.Request) {
		io.Copy(w, iotest.OneByteReader(strings.NewReader("<html>")))
	}, ok + "Content-Length: 6\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<html>"},
	{"copied from nothing", func(w http.ResponseWriter, r *http.Request) { io.Copy(w, bytes.NewReader(nil)) }, ""},
	{"copied from what fails", func(w http.ResponseWriter, r *http.Request) { io.Copy(w, iotest.ErrReader(io.ErrNoProgress)) }, ""},
	{"copied to the 204", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(204)
		io.Copy(w, bytes.NewReader(servertest.Pattern(5000)))
	}, ""},
	{"served content", func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "a.txt", time.Unix(1e9, 0), bytes.NewReader(servertest.Pattern(3000)))
	}, ""},
	{"a small file", fileOfSize(300), ""},
	{unlike + "a file of what is sniffed has a length", fileOfSize(512), ""},
	{unlike + "so has a byte more", fileOfSize(513), ""},
	{unlike + "a larger file is cut into larger chunks", fileOfSize(70000), ""},
}

// writes writes n times size bytes.
func writes(size, n int) func(w http.ResponseWriter, r *http.Request) {
	p := servertest.Pattern(size)
	return func(w http.ResponseWriter, r *http.Request) {
		for range n {
			w.Write(p)
		}
	}
}

// fileOfSize copies from a file without a Content-Length.
func fileOfSize(n int) func(w http.ResponseWriter, r *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		f, err := os.CreateTemp("", "chert")
		if err != nil {
			panic(err)
		}
		defer os.Remove(f.Name())
		defer f.Close()
		f.Write(servertest.Pattern(n))
		f.Seek(0, io.SeekStart)
		io.Copy(w, f)
	}
}

// answerer serves answers[i] at "/i".
func answerer(t *testing.T, e chert.Engine) *engines.Server {
	mux := http.NewServeMux()
	for i, tt := range answers {
		mux.HandleFunc(pathOf(i), tt.f)
	}
	mux.HandleFunc("/tail", func(w http.ResponseWriter, r *http.Request) { put(w, "tail") })
	return engines.Start(t, &chert.Server{Engine: e, Handler: mux})
}

func pathOf(i int) string {
	return filepath.Join("/case", string(rune('a'+i/26)), string(rune('a'+i%26)))
}
