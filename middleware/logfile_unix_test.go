//go:build unix

package middleware

import (
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
)

// A file that becomes a pipe while it is opened is not waited for, whatever the moment, and is
// not written to if there is a reader.
func TestOpenLogPipe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, pipe, file := filepath.Join(dir, "log"), filepath.Join(dir, "pipe"), filepath.Join(dir, "file")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenLog(pipe, nil); err == nil {
		t.Error("opened a pipe")
	}
	done := make(chan struct{})
	var swaps sync.WaitGroup
	swaps.Go(func() { // path is one or the other, and is always there
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			next := filepath.Join(dir, "next")
			if err := os.Link([]string{file, pipe}[i%2], next); err != nil {
				t.Error(err)
				return
			}
			if err := os.Rename(next, path); err != nil {
				t.Error(err)
				return
			}
			os.Remove(next) // a rename to the same file does nothing
			runtime.Gosched()
		}
	})
	for range 3000 {
		if w, err := OpenLog(path, nil); err == nil {
			w.Close()
		}
	}
	close(done)
	swaps.Wait()
}
