package middleware

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/chert-http/chert/ratelimit"
)

// reused is a response writer that costs nothing.
type reused struct{ h http.Header }

func (r reused) Header() http.Header               { return r.h }
func (reused) WriteHeader(int)                     {}
func (reused) Write(p []byte) (int, error)         { return len(p), nil }
func (reused) WriteString(s string) (int, error)   { return len(s), nil }
func (reused) ReadFrom(r io.Reader) (int64, error) { return io.Copy(io.Discard, r) }

// BenchmarkPlainChain measures a request that a plain chain admits, without a
// server: the middleware alone.
func BenchmarkPlainChain(b *testing.B) {
	l := NewAccessLog(&AccessLogOptions{Format: LogCommon, Output: discard{}})
	defer l.Close()
	auth := Must(Bearer(&BearerOptions{Tokens: map[string]string{"a": "0123456789abcdef0123456789abcdef"}}))
	limit := ratelimit.Must(ratelimit.New(&ratelimit.Options{NoFields: true, Rules: []ratelimit.Rule{{Name: "all", Rate: ratelimit.Rate{Count: 1e7, Per: 1e9, Burst: 1e9}}}}))
	h := Chain(plainHello, l.Wrap, Recover(nil), RequestID(nil), limit, auth, BodyLimit(&BodyLimitOptions{MaxSize: 1 << 20}), Must(Compress(nil)))
	r := httptest.NewRequest("GET", "/users/17", nil)
	r.Header.Set("Authorization", "Bearer 0123456789abcdef0123456789abcdef")
	w := reused{http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		clear(w.h)
		h.ServeHTTP(w, r)
	}
}
