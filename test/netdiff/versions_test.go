package netdiff

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go/http3"

	"github.com/chert-http/chert"
	chert3 "github.com/chert-http/chert/http3"
	"github.com/chert-http/chert/internal/testing/freeport"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// This file compares what handlers see and clients get over HTTP/3 with the same over HTTP/2, of
// net/http's server and of chert's. The clients are net/http's and quic-go's.

// versionCase is a request and the handler that answers it.
type versionCase struct {
	name    string
	method  string // default GET
	path    string // default /
	header  http.Header
	body    string
	unsized bool // the body's length is not announced
	trailer http.Header
	serve   http.HandlerFunc // default: nothing
	// fails says that the client must get an error, which differs between clients.
	fails bool
}

var versionCases = []versionCase{
	{name: "nothing is written", serve: func(http.ResponseWriter, *http.Request) {}},
	{name: "a query", path: "/a%2Fb/c;d?x=1&y=%20;&z"},
	{name: "a path that is not clean", path: "//a/../b/./c"},
	{name: "fields of several values", header: http.Header{"X-A": {"1", "2"}, "X-B": {""}, "Te": {"trailers"}}},
	{name: "cookies", header: http.Header{"Cookie": {"a=1; b=2; c=3"}}},
	{name: "HEAD", method: "HEAD", serve: func(w http.ResponseWriter, _ *http.Request) { put(w, "hello") }},
	{name: "HEAD with a length", method: "HEAD",
		serve: func(w http.ResponseWriter, _ *http.Request) { set(w, "Content-Length", "5") }},
	{name: "OPTIONS", method: "OPTIONS", path: "/x"},
	{name: "another method", method: "PURGE"},
	{name: "a body", method: "POST", body: "hello"},
	{name: "a body without a length", method: "POST", body: "hello", unsized: true},
	{name: "a large body", method: "PUT", body: strings.Repeat("0123456789", 100_000)},
	{name: "trailers of a request", method: "POST", body: "hello", unsized: true,
		trailer: http.Header{"X-End": {"a"}, "X-Other": {"b", "c"}}},
	{name: "a body that is not read", method: "POST", body: strings.Repeat("x", 10_000),
		serve: func(w http.ResponseWriter, _ *http.Request) { put(w, "unread") }},
	{name: "a body that is not read, with an error", method: "POST", body: strings.Repeat("x", 10_000),
		serve: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) }},
	{name: "a body that is read in part", method: "POST", body: strings.Repeat("x", 100_000),
		serve: func(w http.ResponseWriter, r *http.Request) {
			n, err := r.Body.Read(make([]byte, 1))
			put(w, fmt.Sprint(n, err))
		}},
	{name: "a body beyond http.MaxBytesReader", method: "POST", body: strings.Repeat("x", 100_000),
		serve: func(w http.ResponseWriter, r *http.Request) {
			n, err := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, 10))
			put(w, fmt.Sprint(n, err))
		}},
	{name: "a form", method: "POST", path: "/?b=3", body: "a=1&b=2", header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}},
		serve: func(w http.ResponseWriter, r *http.Request) { put(w, fmt.Sprint(r.ParseForm(), r.Form)) }},
	{name: "a body that is expected", method: "POST", body: "hello", header: http.Header{"Expect": {"100-continue"}}},
	{name: "a range", header: http.Header{"Range": {"bytes=2-4"}}, serve: content},
	{name: "a range that is not there", method: "HEAD", header: http.Header{"Range": {"bytes=20-"}}, serve: content},
	{name: "a condition", header: http.Header{"If-None-Match": {"*"}}, serve: content},
	{name: "http.Hijacker", serve: func(w http.ResponseWriter, _ *http.Request) {
		_, _, err := http.NewResponseController(w).Hijack()
		put(w, fmt.Sprint(errors.Is(err, http.ErrNotSupported)))
	}},
	{name: "http.Pusher to a client without push", serve: func(w http.ResponseWriter, _ *http.Request) {
		p, ok := w.(http.Pusher)
		put(w, fmt.Sprint(ok && p.Push("/a", nil) == nil))
	}},
	{name: "a body of 204", serve: func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(204)
		n, err := w.Write([]byte("x"))
		if n != 0 || err != http.ErrBodyNotAllowed {
			panic(err)
		}
	}},
	{name: "Connection: close",
		serve: func(w http.ResponseWriter, _ *http.Request) { set(w, "Connection", "close"); put(w, "hello") }},
	{name: "fields that are none", serve: func(w http.ResponseWriter, _ *http.Request) {
		set(w, "A B", "x")
		set(w, "X-A", "a\nb")
		put(w, "hello")
	}},
	{name: "204", serve: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204); put(w, "x") }},
	{name: "304", serve: func(w http.ResponseWriter, _ *http.Request) { set(w, "Etag", `"a"`); w.WriteHeader(304) }},
	{name: "404", serve: http.NotFound},
	{name: "an unknown status", serve: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(799); put(w, "x") }},
	{name: "the status twice",
		serve: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(201); w.WriteHeader(500) }},
	{name: "a redirect",
		serve: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/b", http.StatusFound) }},
	{name: "a sniffed type", serve: func(w http.ResponseWriter, _ *http.Request) { put(w, "<html><body>") }},
	{name: "no type",
		serve: func(w http.ResponseWriter, _ *http.Request) { w.Header()["Content-Type"] = nil; put(w, "<html>") }},
	{name: "a large answer",
		serve: func(w http.ResponseWriter, _ *http.Request) { w.Write(servertest.Pattern(1_000_000)) }},
	{name: "flushed", serve: func(w http.ResponseWriter, _ *http.Request) { put(w, "hel"); flush(w); put(w, "lo") }},
	{name: "flushed before anything", serve: func(w http.ResponseWriter, _ *http.Request) { flush(w); put(w, "hello") }},
	{name: "a length",
		serve: func(w http.ResponseWriter, _ *http.Request) { set(w, "Content-Length", "5"); put(w, "hello") }},
	{name: "more than the length", fails: true, serve: func(w http.ResponseWriter, _ *http.Request) {
		set(w, "Content-Length", "2")
		put(w, "hello")
	}},
	{name: "less than the length", fails: true, serve: func(w http.ResponseWriter, _ *http.Request) {
		set(w, "Content-Length", "9")
		put(w, "hello")
	}},
	{name: "announced trailers", serve: func(w http.ResponseWriter, _ *http.Request) {
		set(w, "Trailer", "X-End, X-None")
		put(w, "hello")
		set(w, "X-End", "a")
	}},
	{name: "trailers by prefix", serve: func(w http.ResponseWriter, _ *http.Request) {
		put(w, "hello")
		flush(w)
		set(w, http.TrailerPrefix+"X-End", "a")
	}},
	{name: "a transfer coding", serve: func(w http.ResponseWriter, _ *http.Request) {
		set(w, "Transfer-Encoding", "chunked")
		put(w, "hello")
	}},
	{name: "hints", serve: func(w http.ResponseWriter, _ *http.Request) {
		set(w, "Link", "</a>")
		w.WriteHeader(103)
		w.WriteHeader(200)
		put(w, "hello")
	}},
	{name: "a panic", fails: true, serve: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
	{name: "a panic after a part", fails: true, serve: func(w http.ResponseWriter, _ *http.Request) {
		put(w, "hel")
		flush(w)
		panic(http.ErrAbortHandler)
	}},
}

// content answers with a part of ten bytes.
func content(w http.ResponseWriter, r *http.Request) {
	set(w, "Etag", `"a"`)
	http.ServeContent(w, r, "a.txt", time.Unix(1e9, 0), strings.NewReader("0123456789"))
}

// side is a server, and a client of one version.
type side struct {
	name, url string
	client    http.RoundTripper
}

func TestVersions(t *testing.T) {
	t.Parallel()
	serves, seen := make(chan http.HandlerFunc, 1), make(chan string, 1)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serve, note := <-serves, saw(r)
		if serve == nil {
			body, err := io.ReadAll(r.Body)
			seen <- note + fmt.Sprintf("\nbody %s, %v, trailer %s", servertest.Brief(string(body)), err, sorted(r.Trailer))
			return
		}
		seen <- note
		serve(w, r)
	})
	sides := append([]side{netHTTPSide(t, h)}, chertSides(t, h)...)
	for _, c := range versionCases {
		t.Run(c.name, func(t *testing.T) {
			var want string
			for i, s := range sides {
				serves <- c.serve
				answer := c.ask(t, s)
				select {
				case note := <-seen:
					answer = note + "\n" + answer
				case <-serves: // it has not come to the handler
				}
				if i == 0 {
					want = answer
				} else if answer != want {
					t.Errorf("%s:\n%s\nwant\n%s", s.name, answer, want)
				}
			}
		})
	}
}

// netHTTPSide is net/http's server over HTTP/2.
func netHTTPSide(t *testing.T, h http.Handler) side {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return side{"net/http", s.URL, h2Client(t)}
}

func h2Client(t *testing.T) http.RoundTripper {
	insecure := &tls.Config{InsecureSkipVerify: true}
	tr := &http.Transport{ForceAttemptHTTP2: true, DisableCompression: true, TLSClientConfig: insecure}
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

// chertSides are chert's server over HTTP/2 and HTTP/3.
func chertSides(t *testing.T, h http.Handler) []side {
	t.Helper()
	cert, _ := servertest.Certificate(t)
	srv := &chert.Server{
		Handler: h, HTTP3: chert3.New(nil), ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}},
	}
	l, err := srv.Listen("tcp", freeport.Both(t))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- srv.ServeTLS(l, "", "") }()
	tr := &http3.Transport{DisableCompression: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t.Cleanup(func() {
		tr.Close()
		srv.Close()
		if err := <-done; err != chert.ErrServerClosed {
			t.Error(err)
		}
	})
	url := "https://" + l.Addr().String()
	return []side{{"chert, HTTP/2", url, h2Client(t)}, {"chert, HTTP/3", url, tr}}
}

// ask makes the request, and describes what came back.
func (c *versionCase) ask(t *testing.T, s side) string {
	t.Helper()
	var interim []string
	ctx, cancel := context.WithTimeout(t.Context(), servertest.Patience)
	defer cancel()
	heard := func(code int, h textproto.MIMEHeader) error {
		interim = append(interim, fmt.Sprint(code, sorted(http.Header(h))))
		return nil
	}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{Got1xxResponse: heard})
	var body io.Reader
	if c.body != "" {
		body = strings.NewReader(c.body)
	}
	if c.unsized {
		body = struct{ io.Reader }{body}
	}
	r, err := http.NewRequestWithContext(ctx, cmp.Or(c.method, "GET"), s.url+cmp.Or(c.path, "/"), body)
	if err != nil {
		t.Fatal(err)
	}
	r.Host, r.Trailer = "example.test", c.trailer.Clone()
	if r.Header = c.header.Clone(); r.Header == nil {
		r.Header = make(http.Header)
	}
	r.Header.Set("User-Agent", "versions") // that of the clients differs
	res, err := s.client.RoundTrip(r)
	var got []byte
	if err == nil {
		defer res.Body.Close()
		got, err = io.ReadAll(res.Body)
	}
	if c.fails {
		if err == nil {
			return fmt.Sprintf("no error: %d, %q", res.StatusCode, got)
		}
		return "an error"
	}
	if err != nil {
		return err.Error()
	}
	for _, own := range []string{"Date", "Alt-Svc"} {
		res.Header.Del(own)
	}
	// The clients differ in the length of what has no body, and in trailers that were announced and did not come.
	if res.StatusCode == http.StatusNotModified {
		res.ContentLength = 0
	}
	maps.DeleteFunc(res.Trailer, func(_ string, values []string) bool { return values == nil })
	return fmt.Sprintf("%v %d, length %d, %s\n%s\ntrailer %s", interim, res.StatusCode, res.ContentLength,
		sorted(res.Header), servertest.Brief(string(got)), sorted(res.Trailer))
}

// saw describes a request but for its version. Over QUIC the end of a request without a body may come
// after its head, so that its length is not known: -1 is not told from 0.
func saw(r *http.Request) string {
	return fmt.Sprintf("%s %q host %q length %d coding %q %s, announced %s",
		r.Method, r.RequestURI, r.Host, max(r.ContentLength, 0), r.TransferEncoding, sorted(r.Header), sorted(r.Trailer))
}

func sorted(h http.Header) string {
	var all []string
	for name, values := range h {
		all = append(all, fmt.Sprintf("%s: %q", name, values))
	}
	slices.Sort(all)
	return "{" + strings.Join(all, ", ") + "}"
}

// The length of a request whose end comes after its head, without one being announced, is not known over
// any version, whatever its method.
func TestLateEnd(t *testing.T) {
	t.Parallel()
	lengths := make(chan int64, 1)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lengths <- r.ContentLength
		body, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%q, %v", body, err)
	})
	for _, s := range append([]side{netHTTPSide(t, h)}, chertSides(t, h)...) {
		for _, method := range []string{"GET", "POST"} {
			body, end := io.Pipe()
			r, err := http.NewRequestWithContext(t.Context(), method, s.url, body)
			if err != nil {
				t.Fatal(err)
			}
			answered := make(chan string, 1)
			go func() {
				res, err := s.client.RoundTrip(r)
				if err != nil {
					answered <- err.Error()
					return
				}
				defer res.Body.Close()
				got, err := io.ReadAll(res.Body)
				answered <- fmt.Sprintf("%s %v", got, err)
			}()
			if n := servertest.Await(t, lengths, "the handler"); n != -1 {
				t.Errorf("%s, %s: length %d, want -1", s.name, method, n)
			}
			end.Close()
			if got := servertest.Await(t, answered, "the answer"); got != `"", <nil> <nil>` {
				t.Errorf("%s, %s: %s", s.name, method, got)
			}
		}
	}
}
