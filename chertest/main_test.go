package chertest

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// patience bounds every wait for something that must happen; nothing passes by
// waiting it out.
const patience = 30 * time.Second

// TestMain fails the package if its tests leave goroutines or descriptors
// behind.
func TestMain(m *testing.M) {
	NewServer(nil).Close() // the runtime's poller keeps what it opens first
	files := openFiles()
	code := m.Run()
	if code == 0 {
		if left := leaks(files); left != "" {
			fmt.Fprintln(os.Stderr, left)
			code = 1
		}
	}
	os.Exit(code)
}

// leaks describes what does not end by itself.
func leaks(files int) (left string) {
	for deadline := time.Now().Add(15 * time.Second); ; {
		left = leakedNow(files)
		if left == "" || time.Now().After(deadline) {
			return left
		}
		time.Sleep(10 * time.Millisecond) // polling for an end, not synchronising
	}
}

func leakedNow(files int) string {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for g := range strings.SplitSeq(string(stacks), "\n\n") {
		if strings.Contains(g, "chert-http/chert") && !strings.Contains(g, "chertest.TestMain") {
			return "a goroutine was left behind:\n" + g
		}
	}
	if now := openFiles(); now > files {
		return fmt.Sprintf("descriptors were left behind: %d before, %d after", files, now)
	}
	return ""
}

// openFiles counts the process's descriptors; none where there is no /proc.
func openFiles() int {
	entries, _ := os.ReadDir("/proc/self/fd")
	return len(entries)
}

// await waits until done is closed or sent to.
func await[T any](t *testing.T, done <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-done:
	case <-time.After(patience):
		t.Fatalf("waited too long for %s", what)
	}
	return v
}
