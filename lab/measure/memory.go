package measure

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Process is what a Go server under test says of itself, as JSON, at /debug/stats.
type Process struct {
	Goroutines int   `json:"goroutines"`
	HeapInUse  int64 `json:"heap_in_use"`
	StackInUse int64 `json:"stack_in_use"`
	Resident   int64 `json:"resident"`
	// Allocated and Collections count since the start: objects on the heap, and garbage collections.
	Allocated   int64 `json:"allocated"`
	Collections int64 `json:"collections"`
}

// Resident returns the bytes of a process that are in memory. It prefers smaps_rollup, which walks the pages; VmRSS in
// status is a sum of per-core counters and may be off by some hundred KiB.
func Resident(pid int) (int64, error) {
	if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid)); err == nil {
		return parseKiB(string(text), "Rss:")
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	return parseKiB(string(text), "VmRSS:")
}

// ResidentTree sums Resident over a process and its descendants. Pages that several of them share count for each.
func ResidentTree(pid int) (int64, error) {
	pids, err := descendants(pid)
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, p := range pids {
		n, err := Resident(p)
		if p != pid && isGone(err) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("memory of process %d: %w", p, err)
		}
		sum += n
	}
	return sum, nil
}

// parseKiB finds a line "Key:  123 kB" and returns its value in bytes.
func parseKiB(text, key string) (int64, error) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[0] == key && fields[2] == "kB" {
			n, err := strconv.ParseInt(fields[1], 10, 64)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("no line %q", key)
}
