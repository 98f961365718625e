package leak

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// module is part of every frame of the module's functions.
const module = "github.com/chert-http/chert"

// A Check looks for further leaks: it describes them, or returns "". It is
// called repeatedly.
type Check func() string

// Main runs the tests and exits, with 1 if they leak something. Descriptors
// that were open before, and the goroutine of TestMain, do not count.
//
// The runtime's poller opens descriptors at its first use and keeps them: warm,
// if not nil, uses it.
func Main(m *testing.M, warm func(), checks ...Check) {
	if warm != nil {
		warm()
	}
	files := OpenFiles()
	code := m.Run()
	if code == 0 {
		if left := wait(files, checks); left != "" {
			fmt.Fprintln(os.Stderr, left)
			code = 1
		}
	}
	os.Exit(code)
}

// wait waits for goroutines and descriptors to end, and describes those that do not.
func wait(files []string, checks []Check) (left string) {
	for deadline := time.Now().Add(time.Minute); ; {
		left = now(files, checks)
		if left == "" || time.Now().After(deadline) {
			return left
		}
		time.Sleep(10 * time.Millisecond) // polling for an end, not synchronising
	}
}

func now(files []string, checks []Check) string {
	if left := goroutines(); len(left) > 0 {
		return fmt.Sprintf("%d goroutines were left behind:\n%s", len(left), strings.Join(left, "\n\n"))
	}
	for _, check := range checks {
		if left := check(); left != "" {
			return left
		}
	}
	if open := OpenFiles(); len(open) > len(files) {
		return fmt.Sprintf("descriptors were left behind:\nbefore %v\nafter  %v", files, open)
	}
	return ""
}

// goroutines returns the stacks of the goroutines that run code of the module,
// except the caller's.
func goroutines() (left []string) {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for i, g := range strings.Split(string(stacks), "\n\n") {
		if i > 0 && strings.Contains(g, module) { // the first is the caller's
			left = append(left, g)
		}
	}
	return left
}

// OpenFiles lists the process's descriptors. It returns none on systems without
// /proc.
func OpenFiles() (open []string) {
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
