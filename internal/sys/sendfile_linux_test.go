package sys

import (
	"os"
	"runtime"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// Offsets that 32 bits do not hold.
func TestSendfileOffset(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/sparse")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, tt := range []struct {
		offset int64
		mark   string
	}{{0, "begin"}, {1<<31 - 2, "2 GiB"}, {1 << 32, "4 GiB"}, {1<<33 + 5, "8 GiB"}} {
		if _, err := file.WriteAt([]byte(tt.mark), tt.offset); err != nil {
			t.Skip("no sparse files here: ", err)
		}
		to, client := pair(t)
		n, e := Sendfile(to, int(file.Fd()), tt.offset, len(tt.mark))
		got := make([]byte, 100)
		m, _ := Read(client, got)
		if n != len(tt.mark) || e != 0 || string(got[:m]) != tt.mark {
			t.Errorf("from %d: got %d, %v, %q, want %q", tt.offset, n, e, got[:m], tt.mark)
		}
	}
}

// Other goroutines run while a call waits, even if there is one processor for
// all of them. A blocking socket without room stands for a slow disk. Also in a
// file whose pages are in memory, where the wait could be ruled out if pages stayed.
func TestSendfileReleasesProcessor(t *testing.T) {
	const size = 1 << 20 // more than the socket holds
	file, err := os.Create(t.TempDir() + "/cached")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	// A signal of the runtime may end a call early: one call that others ran in is enough.
	for range 10 {
		if ranMeanwhile(t, int(file.Fd()), size) {
			return
		}
	}
	t.Error("no other goroutine ran while sendfile waited")
}

// ranMeanwhile makes one call that waits until another goroutine reads, and
// reports whether that goroutine has run when the call returns.
func ranMeanwhile(t *testing.T, file, size int) bool {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fds[1])
	// So that the test fails, rather than hangs, if the reader cannot run.
	if err := unix.SetsockoptTimeval(fds[0], unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: 10}); err != nil {
		t.Fatal(err)
	}
	var ran atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		ran.Store(true)
		for p := make([]byte, 64<<10); ; {
			if n, err := unix.Read(fds[1], p); n == 0 || err != nil && err != unix.EINTR {
				return
			}
		}
	}()
	_, e := Sendfile(fds[0], file, 0, size)
	meanwhile := ran.Load()
	unix.Close(fds[0])
	<-done
	if e != 0 && e != unix.EAGAIN {
		t.Fatal(e)
	}
	return meanwhile
}
