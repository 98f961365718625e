package chert

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/buf"
)

// TestMain fails the package if its tests leave goroutines, descriptors or
// pooled buffers behind.
func TestMain(m *testing.M) {
	// The runtime's poller opens descriptors at its first use and keeps them.
	if l, err := net.Listen("tcp", "127.0.0.1:0"); err == nil {
		l.Close()
	}
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
		runtime.Gosched()
		time.Sleep(10 * time.Millisecond) // polling for an end, not synchronising
	}
}

func leakedNow(files []string) string {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	var mine []string
	for g := range strings.SplitSeq(string(stacks), "\n\n") {
		if strings.Contains(g, "chert/internal/") || strings.Contains(g, "chert.(*Server)") {
			mine = append(mine, g)
		}
	}
	if len(mine) > 0 {
		return fmt.Sprintf("%d goroutines were left behind:\n%s", len(mine), strings.Join(mine, "\n\n"))
	}
	if n := buf.Live(); n != 0 {
		return fmt.Sprintf("%d buffers were left behind", n)
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
