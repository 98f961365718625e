//go:build unix

package main

import (
	"io/fs"
	"syscall"
)

// groupOf is the number of a file's group.
func groupOf(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Gid)
	}
	return -1
}
