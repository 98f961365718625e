package files

import "syscall"

// flush returns when what was written is on the disk.
func flush() { syscall.Sync() }
