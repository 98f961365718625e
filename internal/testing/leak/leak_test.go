package leak

import (
	"os"
	"strings"
	"testing"
)

// Leaks are found, and goroutines and files that have ended are not reported.
func TestNow(t *testing.T) {
	files := OpenFiles()
	if left := now(files, nil); left != "" {
		t.Fatalf("nothing is there yet: %s", left)
	}
	stop, running := make(chan struct{}), make(chan struct{})
	go func() {
		close(running)
		<-stop
	}()
	<-running
	if left := now(files, nil); !strings.Contains(left, "1 goroutines were left behind") || !strings.Contains(left, "leak.TestNow.func") {
		t.Errorf("a goroutine: %q", left)
	}
	close(stop)
	if left := wait(files, nil); left != "" {
		t.Errorf("it has ended: %s", left)
	}
	if left := now(files, []Check{func() string { return "" }, func() string { return "a cup" }}); left != "a cup" {
		t.Errorf("another check: %q", left)
	}
	if files == nil {
		return // there is no /proc
	}
	f, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if left := now(files, nil); !strings.Contains(left, "descriptors were left behind") || !strings.Contains(left, f.Name()) {
		t.Errorf("a descriptor: %q", left)
	}
	f.Close()
	if left := now(files, nil); left != "" {
		t.Errorf("it is closed: %s", left)
	}
}
