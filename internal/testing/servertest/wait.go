package servertest

import (
	"fmt"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/testing/leak"
)

// Patience bounds the waits for what must happen; no test passes by waiting it
// out.
const Patience = 30 * time.Second

// Await receives from ch.
func Await[T any](t testing.TB, ch <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-ch:
	case <-time.After(Patience):
		t.Fatalf("waited too long for %s", what)
	}
	return v
}

// Eventually polls f until it reports true.
func Eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Patience); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long until %s", what)
		}
	}
}

// Main is leak.Main, and fails if a test leaks buffers.
func Main(m *testing.M, warm func()) { leak.Main(m, warm, Buffers) }

// Buffers is a leak.Check.
func Buffers() string {
	if n := buf.Live(); n != 0 {
		return fmt.Sprintf("%d buffers were left behind", n)
	}
	return ""
}
