package measure

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Allowed lists the cores this process may run on: in a container not always 0, 1, and so on.
func Allowed() ([]int, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		if list, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
			return parseCoreList(strings.TrimSpace(list))
		}
	}
	return nil, errors.New("/proc/self/status has no Cpus_allowed_list")
}

// parseCoreList reads "0-2,5".
func parseCoreList(list string) ([]int, error) {
	var cores []int
	for part := range strings.SplitSeq(list, ",") {
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		from, err := strconv.Atoi(low)
		to, err2 := strconv.Atoi(high)
		if err != nil || err2 != nil || to < from {
			return nil, fmt.Errorf("list of cores %q", list)
		}
		for c := from; c <= to; c++ {
			cores = append(cores, c)
		}
	}
	return cores, nil
}
