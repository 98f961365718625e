//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// detach keeps Ctrl-C, which the terminal sends to a whole group of processes, from ending the browser as well.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
