//go:build unix

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"syscall"
)

func isAddrInUse(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }

func isAddrUnknown(err error) bool { return errors.Is(err, syscall.EADDRNOTAVAIL) }

func isRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// isBadName reports whether err means that no file can have such a name. An error without a number is not the
// system's: the name was refused before the system call.
func isBadName(err error) bool {
	errno, ok := errors.AsType[syscall.Errno](err)
	if !ok {
		return true
	}
	switch errno {
	case syscall.ENAMETOOLONG, syscall.EINVAL, syscall.ELOOP, syscall.ENOTDIR:
		return true
	}
	return false
}

// groupOf returns the number of a file's group.
func groupOf(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Gid)
	}
	return -1
}

// identityOf tells a file from others that had or will have its name.
func identityOf(info fs.FileInfo) string {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprint(st.Dev, " ", st.Ino, " ", info.ModTime().UnixNano())
	}
	return ""
}

// detach keeps Ctrl-C, which the terminal sends to a whole process group, from ending the browser as well.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
