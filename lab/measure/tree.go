package measure

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// CPU is processor time used up to a moment.
type CPU struct {
	Total time.Duration // user + system, nanosecond resolution for living processes
	// User and System say how Total divides. The kernel may estimate the division by sampling, and rounds it to 10 ms.
	User, System time.Duration
}

// Sub is the time used since an earlier moment.
func (c CPU) Sub(before CPU) CPU {
	return CPU{c.Total - before.Total, c.User - before.User, c.System - before.System}
}

// Tree returns the processor time of a process and all its descendants.
//
// Each living process counts by its own CPU clock: nanoseconds over all threads, ended threads included, which a sum
// over /proc/PID/task/*/schedstat would lose. Descendants that have ended count by what their parent inherited from
// them when it waited, in ticks of 10 ms.
func Tree(pid int) (CPU, error) {
	pids, err := descendants(pid)
	if err != nil {
		return CPU{}, err
	}
	var sum CPU
	for _, p := range pids {
		c, err := process(p)
		if p != pid && isGone(err) {
			continue // ended since it was listed: its parent has its time, or will
		}
		if err != nil {
			return CPU{}, fmt.Errorf("processor time of process %d: %w", p, err)
		}
		sum.Total += c.Total
		sum.User += c.User
		sum.System += c.System
	}
	return sum, nil
}

func process(pid int) (CPU, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return CPU{}, err
	}
	s, err := parseStat(string(text))
	if err != nil {
		return CPU{}, err
	}
	own, err := processClock(pid)
	if err != nil {
		return CPU{}, err
	}
	return CPU{Total: own + s.waited, User: s.user, System: s.system}, nil
}

// Own returns the processor time of this process so far, without its children.
func Own() (CPU, error) { return process(os.Getpid()) }

// Processes lists a process and all its descendants.
func Processes(pid int) ([]int, error) { return descendants(pid) }

// descendants lists pid and everything below it.
func descendants(pid int) ([]int, error) {
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		children, err := childrenOf(all[i])
		if err != nil && !(i > 0 && isGone(err)) {
			return nil, fmt.Errorf("children of process %d: %w", all[i], err)
		}
		all = append(all, children...)
	}
	return all, nil
}

// childrenOf asks every thread: a child belongs to the thread that forked it.
func childrenOf(pid int) ([]int, error) {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil, err
	}
	var all []int
	for _, task := range tasks {
		text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "task", task.Name(), "children"))
		if err != nil {
			if _, gone := os.Stat(filepath.Join("/proc", strconv.Itoa(pid), "task", task.Name())); gone != nil {
				continue // the thread ended; another has inherited its children
			}
			return nil, err // a kernel without CONFIG_PROC_CHILDREN: better no figure than one too small
		}
		for _, field := range strings.Fields(string(text)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				return nil, err
			}
			all = append(all, child)
		}
	}
	return all, nil
}

// isGone reports whether an error means that the process has ended.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) || errors.Is(err, syscall.EINVAL)
}
