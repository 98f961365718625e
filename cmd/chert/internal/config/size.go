package config

import (
	"errors"
	"strconv"
	"strings"
)

// MaxSize is the largest size, in bytes: a pebibyte.
const MaxSize = 1 << 50

var errSize = errors.New(`wants a size such as 64MiB, 500kB or 4096`)

// units of sizes, in lower case. A lone letter is a power of 1024, as in
// nginx's files.
var units = map[string]float64{
	"": 1, "b": 1,
	"k": 1 << 10, "kib": 1 << 10, "kb": 1e3,
	"m": 1 << 20, "mib": 1 << 20, "mb": 1e6,
	"g": 1 << 30, "gib": 1 << 30, "gb": 1e9,
	"t": 1 << 40, "tib": 1 << 40, "tb": 1e12,
}

// ParseSize parses a number of bytes: "64MiB", "1.5 GB", "512k", "4096".
func ParseSize(s string) (int64, error) {
	i := strings.IndexFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if i < 0 {
		i = len(s)
	}
	unit, ok := units[strings.ToLower(strings.TrimSpace(s[i:]))]
	n, err := strconv.ParseFloat(s[:i], 64)
	if n *= unit; !ok || err != nil || n > MaxSize {
		return 0, errSize
	}
	return int64(n), nil
}

// ShowSize returns the short form of a number of bytes: "64MiB", "1.5GiB",
// "17B".
func ShowSize(n int64) string {
	if n < 1<<10 {
		return strconv.FormatInt(n, 10) + "B"
	}
	f, unit := float64(n)/(1<<10), 0
	for f >= 1000 && unit < 3 { // "0.98MiB" rather than "1001KiB"
		f /= 1 << 10
		unit++
	}
	digits := 1
	if f >= 100 {
		digits = 0
	}
	text := strings.TrimSuffix(strconv.FormatFloat(f, 'f', digits, 64), ".0")
	return text + [...]string{"KiB", "MiB", "GiB", "TiB"}[unit]
}
