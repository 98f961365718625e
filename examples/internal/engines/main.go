package engines

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Main is for TestMain. It fails the package if chert's goroutines, or
// handlers that they run, outlive the tests.
func Main(m *testing.M) {
	if m.Run() != 0 {
		return // the process exits with that
	}
	if left := leaks(); left != "" {
		fmt.Fprintf(os.Stderr, "a goroutine was left behind:\n%s\n", left)
		os.Exit(1)
	}
}

func leaks() (left string) {
	for deadline := time.Now().Add(15 * time.Second); ; {
		left = ""
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		for g := range strings.SplitSeq(string(stacks), "\n\n") {
			if strings.Contains(g, "chert/internal/") || strings.Contains(g, "chert.(*") || strings.Contains(g, ".ServeHTTP") {
				left = g
			}
		}
		if left == "" || time.Now().After(deadline) {
			return left
		}
		time.Sleep(10 * time.Millisecond) // polling for an end, not synchronising
	}
}
