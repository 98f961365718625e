//go:build race && (linux || darwin)

package sys

import "syscall"

// The race detector must know that what is done before a write is done before
// what follows the read of it, as it knows of package syscall's calls: tests
// have client and server in one process and rely on that order. The variable
// by which syscall tells is its own, so these call syscall for the sake of it.

// sends comes before whatever sends bytes.
func sends() { syscall.Write(-1, nil) }

// received comes after whatever has received bytes, or their end, from fd.
// Reading nothing always succeeds.
func received(fd int) { syscall.Read(fd, nil) }
