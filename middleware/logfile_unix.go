//go:build unix

package middleware

import "syscall"

// logFlags keep open from waiting for a reader, if the path has become a pipe, and from
// making a terminal the controlling one.
const logFlags = syscall.O_NONBLOCK | syscall.O_NOCTTY
