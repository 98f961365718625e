//go:build 386 || arm || mips || mipsle

package sys

import "golang.org/x/sys/unix"

// The other call's offset has 32 bits here: it would use only the lower half of
// a larger one, and send something else.
const sysSendfile = unix.SYS_SENDFILE64
