package interval

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// A Finding is something that stands out in an interval, with where to look next.
type Finding struct {
	// Kind is "route", "clients", "slots", "lock", "collector" or "loop".
	Kind string `json:"kind"`
	Text string `json:"text"`
	// Look is a path of the admin handler, without the initial slash; "" for none.
	Look string `json:"look"`
}

// From when something stands out. Each value is one that clients notice: below it,
// a server with an unusual load would be reported all the time.
const (
	slowRoute   = 100 * time.Millisecond // the 99th percentile of a route
	routeShare  = 0.5                    // of the time in all handlers
	slowWrite   = time.Second            // the 90th percentile of the wait for clients
	slowSlot    = 5 * time.Millisecond   // the median wait for a slot or goroutine
	muchLocking = 0.5                    // seconds that goroutines wait for mutexes, in a second
	muchGC      = 0.15                   // of all processors' time
	slowLoop    = 50 * time.Millisecond  // until a loop answers
)

// findings returns what stands out, one for each kind.
func findings(r *Report) []Finding {
	list := []Finding{}
	add := func(kind, look, format string, args ...any) {
		list = append(list, Finding{kind, fmt.Sprintf(format, args...), look})
	}
	stage := func(name string) Latency {
		for _, s := range r.Stages {
			if s.Name == name {
				return s.Latency
			}
		}
		return Latency{}
	}
	// Several requests wait for slots when many come at once; that is no trouble.
	if w := stage("wait"); r.Waiting > 0 && w.P50 >= slowSlot {
		add("slots", "debug/requests", "%d requests wait for a slot or a goroutine, half of them longer than %s", r.Waiting, Short(w.P50))
	}
	if u := &r.Runtime; u.Locks >= muchLocking {
		add("lock", "debug/pprof/mutex?seconds=5", "goroutines wait for mutexes: %s in each second, all together", Short(time.Duration(u.Locks*float64(time.Second))))
	}
	if w := stage("write"); w.P90 >= slowWrite {
		add("clients", "debug/requests", "clients accept responses slowly: one in ten of those that do not at once needs %s or more", Short(w.P90))
	} else if i := slices.IndexFunc(r.Longest, func(q Running) bool { return q.Stage == "write" && q.Age >= slowWrite }); i >= 0 {
		// The handler waits with the client if the response is too large to be kept.
		q := &r.Longest[i]
		add("clients", "debug/requests", "clients accept responses slowly: %s %s has been in progress for %s", q.Method, q.Target, Short(q.Age))
	}
	if u := &r.Runtime; u.GC >= muchGC {
		add("collector", "debug/pprof/allocs", "the garbage collector takes %.0f %% of the processors' time; the program allocates %s per second", u.GC*100, Bytes(u.Allocated))
	}
	for i := range r.Routes {
		if t := &r.Routes[i]; t.Handler >= slowRoute && t.Share >= routeShare && len(r.Routes) > 1 {
			add("route", "debug/pprof/profile?seconds=5", "%s takes %.0f %% of the time in handlers; one in a hundred needs %s or more", RouteName(t.Pattern), t.Share*100, Short(t.Handler))
			break
		}
	}
	for i := range r.Loops {
		if l := &r.Loops[i]; l.Stale || l.Lag >= slowLoop {
			lag := Short(l.Lag)
			if l.Stale {
				lag = "more than 100 ms"
			}
			add("loop", "debug/pprof/goroutine?debug=1", "loop %d took %s to answer: a handler or a lock holds it, or the processors are busy", l.Index, lag)
			break
		}
	}
	return list
}

// RouteName returns a pattern for people.
func RouteName(pattern string) string {
	if pattern == "" {
		return "(no route)"
	}
	return pattern
}

// Printable returns text that clients have sent with an escape for everything that is
// not visible, such as the characters that change the direction of a line.
func Printable(s string) string {
	for _, c := range s {
		if !unicode.IsPrint(c) || c == utf8.RuneError {
			q := strconv.Quote(s)
			return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
		}
	}
	return s
}

// WithoutQuery returns the target of a request with "?..." for its query, which may
// contain secrets, such as tokens.
func WithoutQuery(target string) string {
	if path, _, ok := strings.Cut(target, "?"); ok {
		return path + "?..."
	}
	return target
}

// Short returns a duration with two or three digits.
func Short(d time.Duration) string {
	unit, name := time.Second, "s"
	switch {
	case d < time.Microsecond:
		return strconv.FormatInt(int64(d), 10) + " ns"
	case d < time.Millisecond:
		unit, name = time.Microsecond, "µs"
	case d < time.Second:
		unit, name = time.Millisecond, "ms"
	}
	return digits(float64(d)/float64(unit)) + " " + name
}

// Bytes returns a number of bytes with a binary unit.
func Bytes(n float64) string {
	for _, unit := range []string{"B", "KiB", "MiB", "GiB"} {
		if n < 1024 {
			if unit == "B" {
				return strconv.Itoa(int(n)) + " B"
			}
			return digits(n) + " " + unit
		}
		n /= 1024
	}
	return digits(n) + " TiB"
}

// Number returns a number with a suffix for thousands and millions.
func Number(n float64) string {
	switch {
	case n >= 1e6:
		return digits(n/1e6) + "M"
	case n >= 10e3:
		return digits(n/1e3) + "k"
	}
	return digits(n)
}

func digits(x float64) string {
	if x < 9.95 && x != math.Trunc(x) {
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return strconv.FormatFloat(x, 'f', 0, 64)
}
