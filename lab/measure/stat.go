package measure

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of times in /proc: USER_HZ is 100 on every system Go's Linux ports run on.
const tick = 10 * time.Millisecond

// processStat is what the lab needs of /proc/PID/stat.
type processStat struct {
	parent       int
	user, system time.Duration // of its threads, ended ones included
	waited       time.Duration // user + system of children that ended and were waited for
}

var errStat = errors.New("unknown form of /proc/PID/stat")

// parseStat reads the text of /proc/PID/stat. The second field is the command's name in parentheses; it may hold
// spaces and parentheses itself, so fields are counted from the last closing one.
func parseStat(text string) (processStat, error) {
	end := strings.LastIndexByte(text, ')')
	if end < 0 {
		return processStat{}, errStat
	}
	const first = 3 // the number of the field after the name, as proc(5) counts
	fields := strings.Fields(text[end+1:])
	if len(fields) < 17-first+1 {
		return processStat{}, errStat
	}
	var bad error
	number := func(field int) int64 {
		n, err := strconv.ParseInt(fields[field-first], 10, 64)
		if err != nil {
			bad = fmt.Errorf("%w: field %d: %w", errStat, field, err)
		}
		return n
	}
	s := processStat{
		parent: int(number(4)),
		user:   time.Duration(number(14)) * tick,
		system: time.Duration(number(15)) * tick,
		waited: time.Duration(number(16)+number(17)) * tick,
	}
	return s, bad
}
