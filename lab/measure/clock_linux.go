package measure

import (
	"syscall"
	"time"
	"unsafe"
)

// processClock reads the CPU clock of a process, as clock_getcpuclockid(3) and clock_gettime(2) do. The kernel answers
// EINVAL when there is no such process.
func processClock(pid int) (time.Duration, error) {
	const schedClock = 2 // CPUCLOCK_SCHED: user + system of the whole process
	id := int32(^pid<<3 | schedClock)
	var ts syscall.Timespec
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, uintptr(id), uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		return 0, errno
	}
	return time.Duration(ts.Nano()), nil
}
