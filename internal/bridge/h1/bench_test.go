package h1

import (
	"io"
	"net/http"
	"testing"

	"github.com/chert-http/chert/direct"
)

func hello(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain")
	io.WriteString(w, "Hello, World!")
}

// BenchmarkExchange is a request and its answer without system calls.
func BenchmarkExchange(b *testing.B) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", hello)
	fixed := direct.NewResponse(200, http.Header{"Content-Type": {"text/plain"}}, []byte("Hello, World!"))
	for _, h := range []struct {
		name string
		h    http.Handler
	}{{"func", http.HandlerFunc(hello)}, {"mux", mux}, {"direct", fixed}} {
		for _, r := range []struct{ name, head string }{{"wrk", wrkGET}, {"browser", browserGET}} {
			b.Run(h.name+"/"+r.name, func(b *testing.B) {
				run, _ := exchangeOf(h.h, r.head)
				b.ReportAllocs()
				for b.Loop() {
					run()
				}
			})
		}
	}
}
