package sys

import (
	"os"
	"strconv"
	"strings"
)

// sysctl returns a number below /proc/sys; 0 if it is unknown.
func sysctl(name string) int {
	b, err := os.ReadFile("/proc/sys/" + name)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		return 0
	}
	return int(min(n, noLimit))
}
