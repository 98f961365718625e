package child

import (
	"os/exec"
	"syscall"
)

// ownGroup makes cmd the leader of a process group, and mortal with the lab. SIGTERM rather than SIGKILL: nginx's
// workers outlive a master that had no time to end them.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}

func terminateGroup(pgid int) { syscall.Kill(-pgid, syscall.SIGTERM) }

func killGroup(pgid int) { syscall.Kill(-pgid, syscall.SIGKILL) }
