package perf

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chert-http/chert/lab/child"
)

// Sample is where a thread was, innermost function first.
type Sample struct {
	Frames []Frame
}

// Frame is one function of a stack.
type Frame struct {
	Symbol string // "[unknown]" where the program has none
	Kernel bool
}

// Profile is the samples of a process and its descendants.
type Profile struct {
	Samples []Sample
}

// ErrKernel means that perf may sample only the program itself, not the kernel on its behalf.
var ErrKernel = errors.New("perf sees no kernel functions: it needs root, or kernel.perf_event_paranoid at 1 and kernel.kptr_restrict at 0")

// ErrNone means that the processes were not seen at work.
var ErrNone = errors.New("no samples")

// frequency is a prime number, so that no timer of the kernel keeps its pace.
const frequency = 1499

// Record samples processes for a time. The clock that drives it needs no counters of the processor, which virtual
// machines often do not have; it cannot fire while interrupts are off, and counts that time where they are on again.
func Record(ctx context.Context, pids []int, during time.Duration) (Profile, error) {
	dir, err := os.MkdirTemp("", "chert-lab-perf-")
	if err != nil {
		return Profile{}, err
	}
	defer os.RemoveAll(dir)
	data := filepath.Join(dir, "perf.data")
	list := make([]string, len(pids))
	for i, pid := range pids {
		list[i] = strconv.Itoa(pid)
	}
	seconds := strconv.FormatFloat(during.Seconds(), 'f', 3, 64)
	record := []string{"perf", "record", "-q", "-e", "cpu-clock", "-F", strconv.Itoa(frequency), "--call-graph", "fp",
		"-p", strings.Join(list, ","), "-o", data, "--", "sleep", seconds}
	if _, err := child.Run(ctx, child.Command{Args: record}); err != nil {
		return Profile{}, err
	}
	script, err := child.Run(ctx, child.Command{Args: []string{"perf", "script", "-i", data, "-F", "ip,sym", "--no-inline"}})
	if err != nil {
		return Profile{}, err
	}
	p := parse(script.Stdout)
	if len(p.Samples) == 0 {
		return p, fmt.Errorf("perf: %w of processes %v in %v", ErrNone, pids, during)
	}
	if p.Share(Sample.InKernel) == 0 {
		return p, ErrKernel
	}
	return p, nil
}

// parse reads what perf script prints: the frames of a sample, one a line, and an empty line after each sample.
func parse(text string) Profile {
	var p Profile
	var s Sample
	end := func() {
		if len(s.Frames) > 0 {
			p.Samples = append(p.Samples, s)
		}
		s = Sample{}
	}
	for line := range strings.Lines(text) {
		ip, symbol, found := strings.Cut(strings.TrimSpace(line), " ")
		if !found {
			end()
			continue
		}
		address, err := strconv.ParseUint(ip, 16, 64)
		if err != nil {
			end()
			continue
		}
		// The kernel has the upper half of the addresses.
		s.Frames = append(s.Frames, Frame{Symbol: strings.TrimSpace(symbol), Kernel: address>>63 == 1})
	}
	end()
	return p
}

// Share is the part of the samples for which f is true, 0 to 1.
func (p Profile) Share(f func(Sample) bool) float64 {
	if len(p.Samples) == 0 {
		return 0
	}
	n := 0
	for _, s := range p.Samples {
		if f(s) {
			n++
		}
	}
	return float64(n) / float64(len(p.Samples))
}

// InKernel reports whether the kernel was running.
func (s Sample) InKernel() bool { return len(s.Frames) > 0 && s.Frames[0].Kernel }

// Has reports whether a function of the stack, in the program or the kernel, satisfies f.
func (s Sample) Has(f func(symbol string) bool) bool {
	for _, frame := range s.Frames {
		if f(frame.Symbol) {
			return true
		}
	}
	return false
}

// entries are the functions through which every system call enters the kernel.
var entries = []string{"do_syscall_64", "x64_sys_call", "el0_svc_common", "invoke_syscall"}

// Syscall is the name of the system call that was running, or "".
//
// The function that entries call has its name, with a prefix; or, since compilers turn a last call into a jump, the
// function that it ends in, with another one.
func (s Sample) Syscall() string {
	for i, frame := range s.Frames {
		if i == 0 || !frame.Kernel || !slices.ContainsFunc(entries, func(e string) bool { return strings.HasPrefix(frame.Symbol, e) }) {
			continue
		}
		name := s.Frames[i-1].Symbol
		for _, prefix := range []string{"__x64_sys_", "__arm64_sys_", "__se_sys_", "__do_sys_", "ksys_", "__sys_", "do_", "vfs_"} {
			if call, ok := strings.CutPrefix(name, prefix); ok {
				return call
			}
		}
		return ""
	}
	return ""
}

// Syscalls is the share of each system call.
func (p Profile) Syscalls() map[string]float64 {
	shares := map[string]float64{}
	for _, s := range p.Samples {
		if name := s.Syscall(); name != "" {
			shares[name] += 1 / float64(len(p.Samples))
		}
	}
	return shares
}
