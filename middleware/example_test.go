package middleware_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/chert-http/chert/middleware"
)

var hello = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello") })

// show sends a request through h and prints the status and some fields.
func show(h http.Handler, r *http.Request, fields ...string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	fmt.Print(w.Code)
	for _, name := range fields {
		fmt.Printf(" %s=%q", name, w.Header().Get(name))
	}
	fmt.Println()
}

// The first is the outermost: the access log sees what all others do.
func Example() {
	access := middleware.NewAccessLog(&middleware.AccessLogOptions{Output: io.Discard})
	defer access.Close()
	h := middleware.Chain(hello,
		access.Wrap, middleware.Recover(nil), middleware.RequestID(nil), middleware.SecurityHeaders(nil), middleware.BodyLimit(&middleware.BodyLimitOptions{MaxSize: 1 << 20}))
	show(h, httptest.NewRequest("GET", "/", nil), "X-Content-Type-Options")
	show(h, httptest.NewRequest("POST", "/", strings.NewReader(strings.Repeat("x", 2<<20))))
	// Output:
	// 200 X-Content-Type-Options="nosniff"
	// 413
}

func ExampleNewAccessLog() {
	access := middleware.NewAccessLog(&middleware.AccessLogOptions{Format: middleware.LogText, Output: os.Stdout})
	defer access.Close()
	http.Handle("/", access.Wrap(hello))
	// A chert.Server logs there too what it refuses without its handler:
	//	srv.Refused = access.Refused
}

// Several logs share a buffer and an order.
func ExampleLineWriter() {
	out := middleware.NewLineWriter(os.Stdout, nil)
	access := middleware.NewAccessLog(&middleware.AccessLogOptions{Output: out})
	errs := log.New(out, "error: ", 0) // as ErrorLog of the server

	access.Wrap(hello)
	errs.Print("the first")
	errs.Print("the second")
	fmt.Println("nothing is written yet")
	out.Close()
	// Output:
	// nothing is written yet
	// error: the first
	// error: the second
}

// A panic gets 500, and is reported here instead of in the log.
func ExampleRecover() {
	h := middleware.Recover(&middleware.RecoverOptions{
		Handle: func(v any, stack []byte) { fmt.Println("panic:", v, len(stack) > 0) },
	})(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a mistake") }))
	show(h, httptest.NewRequest("GET", "/", nil))
	// Output:
	// panic: a mistake true
	// 500
}

// The address that a trusted proxy reports becomes the request's.
func ExampleRealIP() {
	h := middleware.Must(middleware.RealIP(&middleware.RealIPOptions{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}))(
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { fmt.Println(r.RemoteAddr) }))
	for _, peer := range []string{"10.0.0.1:4711", "192.0.2.1:4711"} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = peer
		r.Header.Set("X-Forwarded-For", "203.0.113.7, 198.51.100.2")
		show(h, r)
	}
	// Output:
	// 198.51.100.2:0
	// 200
	// 192.0.2.1:4711
	// 200
}

func ExampleBearer() {
	h := middleware.Must(middleware.Bearer(&middleware.BearerOptions{Tokens: map[string]string{"ops": "0123456789abcdef"}}))(
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { fmt.Println("user", middleware.UserOf(r.Context())) }))
	r := httptest.NewRequest("GET", "/", nil)
	show(h, r, "Www-Authenticate")
	r.Header.Set("Authorization", "Bearer 0123456789abcdef")
	show(h, r)
	// Output:
	// 401 Www-Authenticate="Bearer realm=\"restricted\""
	// user ops
	// 200
}

func ExampleCORS() {
	h := middleware.Must(middleware.CORS(&middleware.CORSOptions{Origins: []string{"https://app.example"}, Methods: []string{"PUT"}}))(hello)
	r := httptest.NewRequest("OPTIONS", "/", nil)
	r.Header.Set("Origin", "https://app.example")
	r.Header.Set("Access-Control-Request-Method", "PUT")
	show(h, r, "Access-Control-Allow-Origin", "Access-Control-Allow-Methods")
	// Output: 204 Access-Control-Allow-Origin="https://app.example" Access-Control-Allow-Methods="PUT"
}

// What is large enough is compressed for clients that accept it.
func ExampleCompress() {
	h := middleware.Must(middleware.Compress(nil))(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		io.WriteString(w, strings.Repeat("hello ", 1000))
	}))
	r := httptest.NewRequest("GET", "/", nil)
	show(h, r, "Content-Encoding")
	r.Header.Set("Accept-Encoding", "gzip")
	show(h, r, "Content-Encoding")
	// Output:
	// 200 Content-Encoding=""
	// 200 Content-Encoding="gzip"
}

// A client that has the response already gets no second copy.
func ExampleETag() {
	h := middleware.ETag(nil)(hello)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("If-None-Match", w.Header().Get("ETag"))
	show(h, r)
	// Output: 304
}

// For a handler that takes too long 504 is sent at once, and its context ends.
func ExampleTimeout() {
	h := middleware.Timeout(&middleware.TimeoutOptions{Limit: time.Millisecond})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done() // as a query of a database would
	}))
	show(h, httptest.NewRequest("GET", "/", nil))
	// Output: 504
}

func ExampleBandwidth() {
	files := http.FileServer(http.Dir("/srv/iso"))
	// Two downloads for each client, each of 2 MB a second after the first 20 MB.
	h := middleware.Chain(files,
		middleware.InFlight(&middleware.InFlightOptions{Max: -1, PerClient: 2}),
		middleware.Bandwidth(&middleware.BandwidthOptions{Rate: 2e6, After: 20e6}))
	http.Handle("/iso/", http.StripPrefix("/iso", h))
}
