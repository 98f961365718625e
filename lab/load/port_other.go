//go:build !linux

package load

import "syscall"

// portAtConnect is for Linux only.
func portAtConnect(string, string, syscall.RawConn) error { return nil }
