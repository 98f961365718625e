package http2

import (
	"bytes"
	"strings"
	"testing"
)

// AppendType makes what AppendField does, also for values that share a place.
func TestAppendType(t *testing.T) {
	t.Parallel()
	values := []string{"text/plain", "text/plain", "a", "q", "a", "", " a ", "a\nb", "a\nb", strings.Repeat("x", 200)}
	for _, v := range values {
		if got, want := AppendType([]byte("-"), v), AppendField([]byte("-"), "Content-Type", v); !bytes.Equal(got, want) {
			t.Errorf("%q: % x, want % x", v, got, want)
		}
	}
}
