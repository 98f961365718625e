package measure

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Cores is what /proc/stat says of some cores, in ticks: in all, idle, and given to others by a hypervisor.
type Cores struct {
	all, idle, stolen int64
}

// ReadCores sums the counters of the given cores.
func ReadCores(cores ...int) (Cores, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return Cores{}, err
	}
	return parseCores(string(text), cores)
}

// StealSince is the percentage of the cores' time that was stolen since an earlier reading.
func (c Cores) StealSince(before Cores) float64 {
	return percent(c.stolen-before.stolen, c.all-before.all)
}

// OthersSince is the percentage of the cores' time that was used on this machine since an earlier reading, less the
// part that is accounted for. The kernel counts it in ticks: over a second, a percent or two is nothing.
func (c Cores) OthersSince(before Cores, own time.Duration) float64 {
	all := c.all - before.all
	busy := all - (c.idle - before.idle) - (c.stolen - before.stolen)
	return max(0, percent(busy-int64(own/tick), all))
}

func percent(part, all int64) float64 {
	if all <= 0 {
		return 0
	}
	return 100 * float64(part) / float64(all)
}

func parseCores(text string, cores []int) (Cores, error) {
	var sum Cores
	for _, core := range cores {
		found := false
		for line := range strings.Lines(text) {
			fields := strings.Fields(line)
			if len(fields) == 0 || fields[0] != "cpu"+strconv.Itoa(core) {
				continue
			}
			// user nice system idle iowait irq softirq steal; guest time, which follows, is part of user already.
			const (
				counters     = 8
				idle, iowait = 3, 4
				steal        = 7
			)
			if len(fields) < 1+counters {
				return Cores{}, errors.New("unknown form of /proc/stat")
			}
			for i, field := range fields[1 : 1+counters] {
				n, err := strconv.ParseInt(field, 10, 64)
				if err != nil {
					return Cores{}, fmt.Errorf("/proc/stat: %w", err)
				}
				sum.all += n
				switch i {
				case idle, iowait:
					sum.idle += n
				case steal:
					sum.stolen += n
				}
			}
			found = true
		}
		if !found {
			return Cores{}, fmt.Errorf("/proc/stat has no core %d", core)
		}
	}
	return sum, nil
}
