package lossy

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// OpenTUN makes a TUN device, which may be moved into another network namespace and ends when it is closed. It needs
// root, or CAP_NET_ADMIN.
func OpenTUN(name string) (*os.File, error) {
	const path = "/dev/net/tun"
	request, err := unix.NewIfreq(name)
	if err != nil {
		return nil, fmt.Errorf("a TUN device %q: %w", name, err)
	}
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("make the TUN device %s: %w", name, err)
	}
	// Only now: a file without a device has nothing to wait for.
	return os.NewFile(uintptr(fd), path), nil
}
