package listing

import (
	"strconv"
	"time"
)

// appendSize appends a number of bytes for people: "532 B", "1.2 KiB", "38 MiB".
func appendSize(b []byte, n int64) []byte {
	if n < 1024 {
		b = strconv.AppendInt(b, n, 10)
		return append(b, " B"...)
	}
	// The truncation here shifts the rounding by at most a thousandth of a unit.
	unit := 0
	for n >= 1024*1024 {
		n >>= 10
		unit++
	}
	tenths := (n*10 + 512) >> 10
	if tenths >= 100 {
		whole := (n + 512) >> 10
		if whole < 1024 {
			b = strconv.AppendInt(b, whole, 10)
			return appendUnit(b, unit)
		}
		tenths, unit = 10, unit+1
	}
	b = strconv.AppendInt(b, tenths/10, 10)
	b = append(b, '.', byte('0'+tenths%10))
	return appendUnit(b, unit)
}

func appendUnit(b []byte, unit int) []byte {
	return append(b, ' ', "KMGTPE"[unit], 'i', 'B')
}

// appendBytes appends the exact number: "1,234,567 bytes".
func appendBytes(b []byte, n int64) []byte {
	b = appendGrouped(b, n)
	if n == 1 {
		return append(b, " byte"...)
	}
	return append(b, " bytes"...)
}

// appendGrouped appends n, which is not negative, with commas for thousands.
func appendGrouped(b []byte, n int64) []byte {
	var digits [20]byte
	s := strconv.AppendInt(digits[:0], n, 10)
	for i, c := range s {
		if i > 0 && (len(s)-i)%3 == 0 {
			b = append(b, ',')
		}
		b = append(b, c)
	}
	return b
}

// dated reports whether the entry has a date that RFC 3339 can write: it has
// four digits for the year, and some file systems have more.
func dated(e *Entry) bool {
	if e.Modified.IsZero() {
		return false
	}
	year := e.Modified.UTC().Year()
	return 0 <= year && year <= 9999
}

// appendTime appends when a dated entry was modified, in 20 bytes.
func appendTime(b []byte, e *Entry) []byte {
	return e.Modified.UTC().AppendFormat(b, time.RFC3339)
}
