//go:build !linux

package park

import (
	"sync/atomic"
	"syscall"
)

// Busy is nil: there is a goroutine for each parked socket.
func Busy() *atomic.Bool { return nil }

// Park calls ready, on a goroutine of its own, when the socket is readable, its read
// deadline has passed, or it has been closed; immediately if now. An error means that
// ready will not be called. Safe for concurrent use.
func Park(raw syscall.RawConn, now bool, ready func()) error { return onGoroutine(raw, now, ready) }
