package main

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel end cmd when this process has ended, however that was.
func dieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
