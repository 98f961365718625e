//go:build !386 && !arm && !mips && !mipsle

package sys

import "golang.org/x/sys/unix"

const sysSendfile = unix.SYS_SENDFILE
