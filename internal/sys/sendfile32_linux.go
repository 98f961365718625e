//go:build 386 || arm || mips || mipsle

package sys

import "golang.org/x/sys/unix"

// The other call's offset has 32 bits here: of a larger one it would look at
// the lower half, and send something else.
const sysSendfile = unix.SYS_SENDFILE64
