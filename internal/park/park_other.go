//go:build !linux

package park

import "syscall"

// Park calls ready, on a goroutine of its own, when the socket is readable, its read
// deadline has passed, or it has been closed; immediately if now. An error means that
// ready will not be called. Safe for concurrent use.
func Park(raw syscall.RawConn, now bool, ready func()) error { return onGoroutine(raw, now, ready) }
