package load

import "syscall"

// asFromAfar makes a connection on loopback more like one from elsewhere: segments of Ethernet's size, and a small buffer
// here, so that the server's does not grow to megabytes. Else the server writes once, and then has nothing to do for
// longer than the measurement lasts.
func asFromAfar(_, _ string, c syscall.RawConn) error {
	var failed error
	err := c.Control(func(fd uintptr) {
		failed = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_MAXSEG, 1448)
		if failed == nil {
			failed = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 32<<10)
		}
	})
	if err != nil {
		return err
	}
	return failed
}
