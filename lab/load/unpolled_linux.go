package load

import (
	"net"
	"os"
	"syscall"
)

// unpolled takes TCP connections away from the runtime's poller and returns their non-blocking descriptors, those of all
// before an error. What arrives for them then wakes nothing up but who waits for it, which on loopback would cost the
// sender's processor time. The connections are closed, with a reset when closeAll has closed the descriptors.
func unpolled(conns []net.Conn) (fds []int, err error) {
	for _, c := range conns {
		conn := c.(*net.TCPConn)
		raw, err := conn.SyscallConn()
		if err != nil {
			return fds, err
		}
		var fd uintptr
		var errno syscall.Errno
		err = raw.Control(func(of uintptr) {
			fd, _, errno = syscall.RawSyscall(syscall.SYS_FCNTL, of, syscall.F_DUPFD_CLOEXEC, 0)
		})
		if err == nil && errno != 0 {
			err = os.NewSyscallError("fcntl", errno)
		}
		if err != nil {
			return fds, err
		}
		fds = append(fds, int(fd))
		conn.SetLinger(0)
		conn.Close()
	}
	return fds, nil
}

func closeAll(fds []int) {
	for _, fd := range fds {
		syscall.Close(fd)
	}
}
