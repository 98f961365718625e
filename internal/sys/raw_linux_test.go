package sys

import (
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// BenchmarkCall is what the scheduler's part of a system call costs: the same call with RawSyscall and with Syscall, a read
// from a socket that has nothing, and a send and the read of what it has sent.
func BenchmarkCall(b *testing.B) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	var p [64]byte
	at := uintptr(unsafe.Pointer(&p[0]))
	type call = func(trap, a1, a2, a3 uintptr) (uintptr, uintptr, syscall.Errno)
	for _, c := range []struct {
		name string
		call call
	}{{"raw", syscall.RawSyscall}, {"scheduler", syscall.Syscall}} {
		b.Run("nothing/"+c.name, func(b *testing.B) {
			defer reportCPU(b)()
			for b.Loop() {
				if _, _, e := c.call(unix.SYS_READ, uintptr(fds[0]), at, uintptr(len(p))); e != unix.EAGAIN {
					b.Fatal(e)
				}
			}
		})
		b.Run("message/"+c.name, func(b *testing.B) {
			defer reportCPU(b)()
			for b.Loop() {
				if _, _, e := c.call(unix.SYS_WRITE, uintptr(fds[1]), at, uintptr(len(p))); e != 0 {
					b.Fatal(e)
				}
				if _, _, e := c.call(unix.SYS_READ, uintptr(fds[0]), at, uintptr(len(p))); e != 0 {
					b.Fatal(e)
				}
			}
		})
	}
}

// reportCPU returns a function that reports the processor time since.
func reportCPU(b *testing.B) func() {
	used := func() int64 {
		var u syscall.Rusage
		syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		return u.Utime.Nano() + u.Stime.Nano()
	}
	before := used()
	return func() { b.ReportMetric(float64(used()-before)/float64(b.N), "cpu-ns/op") }
}
