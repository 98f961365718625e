package retry

import (
	"strings"
	"time"
)

// maxAnnounced is above what a server can mean; it bounds the multiplication.
const maxAnnounced = 24 * 60 * 60 // seconds

// ParseKeepAlive returns the parameter timeout, whole seconds, of a field Keep-Alive, whose syntax is that of
// draft-thomson-hybi-http-timeout-03 section 2: "timeout=5, max=1000". Names are case-insensitive, the value may be
// quoted. Anything else reports false, and is no error: the field is a hint. The first timeout holds. It allocates
// nothing.
func ParseKeepAlive(field string) (timeout time.Duration, ok bool) {
	for field != "" {
		var one string
		one, field, _ = strings.Cut(field, ",")
		name, value, _ := strings.Cut(one, "=")
		if !strings.EqualFold(trim(name), "timeout") {
			continue
		}
		value = trim(value)
		if n := len(value); n >= 2 && value[0] == '"' && value[n-1] == '"' {
			value = value[1 : n-1]
		}
		return seconds(value)
	}
	return 0, false
}

func trim(s string) string { return strings.Trim(s, " \t") }

func seconds(digits string) (time.Duration, bool) {
	n := 0
	for i := range len(digits) {
		c := digits[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		n = min(n*10+int(c-'0'), maxAnnounced)
	}
	return time.Duration(n) * time.Second, digits != ""
}
