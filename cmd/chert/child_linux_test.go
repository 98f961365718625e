package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/chert-http/chert/internal/testing/redistest"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// A demo that is killed takes its redis-server with it.
func TestDemoClusterKilled(t *testing.T) {
	t.Parallel()
	redistest.Need(t)
	p := &proc{t: t, cmd: command(t, "demo", "--cluster", "--listen", "127.0.0.1:0", "--log", "off")}
	p.cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir()) // for what it leaves behind
	p.launch()
	p.line() // it has started
	program := func(pid int) string {
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		return strings.TrimSpace(string(name))
	}
	redis := 0
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks { // a child is its thread's
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", p.cmd.Process.Pid, task.Name()))
		for _, child := range strings.Fields(string(children)) {
			if pid, _ := strconv.Atoi(child); program(pid) == "redis-server" {
				redis = pid
			}
		}
	}
	if redis == 0 {
		t.Fatal("there is no redis-server")
	}
	p.signal(syscall.SIGKILL)
	servertest.Eventually(t, "redis-server to end", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", redis))
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
}
