package servertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/testing/leak"
)

// Patience bounds the waits for what must happen; no test passes by reaching
// it. With the race detector, beside other tests on two processors, some take a
// minute.
const Patience = 90 * time.Second

// Soon is a time after which a client that has just connected is late. It is
// long enough for a loaded machine: a test's client must not be late by
// accident.
const Soon = time.Second

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

// WaitDone fails if ctx is not done in time.
func WaitDone(t testing.TB, ctx context.Context, what string) {
	t.Helper()
	select {
	case <-ctx.Done():
	case <-time.After(Patience):
		t.Errorf("waited too long until %s", what)
	}
}

// IsTimeout reports whether err is a timeout, in every way in which callers
// test for it.
func IsTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout() && errors.Is(err, os.ErrDeadlineExceeded)
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
