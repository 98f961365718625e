//go:build !race

// With the race detector a sync.Pool drops some of what it is given, so that
// allocations cannot be counted there.

package h1

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/direct"
)

// TestExchangeAllocations is what a request costs with its answer.
func TestExchangeAllocations(t *testing.T) {
	contentType := []string{"text/plain"}
	body := []byte("Hello, World!")
	frugal := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Content-Type"] = contentType
		w.Write(body)
	})
	ready := direct.NewResponse(200, http.Header{"Content-Type": contentType}, body)
	file := direct.File{Offset: 10, Len: 12345678, Check: func() error { return nil }, Done: func() {}}
	var err error
	if file.File, err = os.Open("link_test.go"); err != nil {
		t.Fatal(err)
	}
	defer file.File.Close()
	for _, tt := range []struct {
		name   string
		h      http.Handler
		head   string
		opts   []func(*Config)
		allocs float64
	}{
		{"plain", frugal, wrkGET, nil, 5}, // three of the request, two of the answer's header
		{"direct", ready, wrkGET, nil, 0},
		{"direct, browser", ready, browserGET, nil, 0},
		{"direct, health", direct.Health(func() error { return nil }), browserGET, nil, 0},
		{"direct, written", direct.HandlerFunc(func(x *direct.Exchange) {
			x.SetHeader("Content-Type", "text/plain")
			x.Write(x.RequestHeader("User-Agent"))
		}), browserGET, nil, 0},
		{"direct, a file", direct.HandlerFunc(func(x *direct.Exchange) {
			x.SetHeader("Content-Type", "text/plain")
			x.SendFile(file)
		}), browserGET, nil, 0},
		{"direct, stalled", direct.HandlerFunc(func(x *direct.Exchange) {
			x.SetHeader("Content-Type", "text/plain")
			x.SendFile(file)
		}), browserGET, []func(*Config){func(cfg *Config) { cfg.WriteTimeout = time.Hour }}, 0},
	} {
		run, l := exchangeOf(tt.h, tt.head, tt.opts...)
		if strings.HasSuffix(tt.name, "stalled") {
			l.most = 1 << 20
		}
		for range 100 {
			run() // until the pools and the maps have their size
		}
		if got := testing.AllocsPerRun(200, run); got > tt.allocs {
			t.Errorf("%s: %v allocations, want at most %v", tt.name, got, tt.allocs)
		}
	}
}
