package faults

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/chert-http/chert/internal/testing/servertest"
)

// TestMain fails if the tests leave goroutines, descriptors or pooled buffers.
func TestMain(m *testing.M) { servertest.Main(m, servertest.UseTCP) }

type hf = http.HandlerFunc

var (
	ask        = servertest.Ask
	post       = servertest.Post
	postChunks = servertest.PostChunks
	put        = servertest.Put
	flush      = servertest.Flush
)

// faultOK is the handler for tests in which the handler does not matter.
var faultOK = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") })

// noise returns n bytes that differ from place to place.
func noise(n int, seed byte) []byte {
	b := make([]byte, n)
	x := uint32(seed) + 1
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

// countLines counts the lines of s that contain sub.
func countLines(s, sub string) (n int) {
	for l := range strings.SplitSeq(s, "\n") {
		if strings.Contains(l, sub) {
			n++
		}
	}
	return n
}
