package static_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/chertest"
)

// TestMain fails the package if its tests leave goroutines or descriptors
// behind.
func TestMain(m *testing.M) {
	chertest.NewServer(nil).Close() // the runtime's poller keeps what it opens first
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

// leaks waits a while for what ends by itself and describes what does not.
func leaks(files []string) (left string) {
	for deadline := time.Now().Add(15 * time.Second); ; {
		left = leakedNow(files)
		if left == "" || time.Now().After(deadline) {
			return left
		}
		time.Sleep(10 * time.Millisecond) // polling for an end, not synchronising
	}
}

func leakedNow(files []string) string {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for g := range strings.SplitSeq(string(stacks), "\n\n") {
		if strings.Contains(g, "chert-http/chert") && !strings.Contains(g, "static_test.TestMain") {
			return "a goroutine was left behind:\n" + g
		}
	}
	if now := openFiles(); len(now) > len(files) {
		return fmt.Sprintf("descriptors were left behind:\nbefore %v\nafter  %v", files, now)
	}
	return ""
}

// openFiles lists the process's descriptors; nothing where there is no /proc.
func openFiles() (open []string) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		to, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil || strings.Contains(to, "/proc/") {
			continue
		}
		open = append(open, e.Name()+"="+to)
	}
	return open
}
