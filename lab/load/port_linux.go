package load

import "syscall"

// portAtConnect leaves the choice of the port to connect. When bind chooses it, no two connections from one address
// have the same, not even to different servers.
func portAtConnect(_, _ string, c syscall.RawConn) error {
	const bindAddressNoPort = 24 // IP_BIND_ADDRESS_NO_PORT, which package syscall does not have
	var failed error
	err := c.Control(func(fd uintptr) {
		failed = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IP, bindAddressNoPort, 1)
	})
	if err != nil {
		return err
	}
	return failed
}
