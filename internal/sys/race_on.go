//go:build race && (linux || darwin)

package sys

import "syscall"

// The race detector must know that what happens before a write happens before
// what follows the corresponding read, as it knows of package syscall's calls:
// tests have client and server in one process and rely on that order. The
// variable that syscall uses for that is unexported, so these call syscall only
// for that effect.

// sends is called before each call that sends bytes.
func sends() { syscall.Write(-1, nil) }

// received is called after each call that has received bytes, or the end of the
// stream, from fd. Reading nothing always succeeds.
func received(fd int) { syscall.Read(fd, nil) }
