//go:build !windows

package servertest

import "syscall"

// SetBuffer is a Control of net.Dialer and net.ListenConfig: it sets a size in bytes,
// opt being SO_SNDBUF or SO_RCVBUF.
func SetBuffer(opt, size int) func(string, string, syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) (err error) {
		if ctl := c.Control(func(fd uintptr) {
			err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, opt, size)
		}); ctl != nil {
			return ctl
		}
		return err
	}
}
