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
	// Kind is "errors", "refusals", "route", "clients", "slots", "lock", "collector" or "loop".
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
	fewEvents   = 3                      // errors or refusals are reported from here on, if their part is largePart,
	manyEvents  = 10                     // and from here on if it is smallPart
	smallPart   = 0.01
	largePart   = 0.05
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
	errorsOf(r, add)
	refusalsOf(r, add)
	// Several requests wait for slots when many come at once; that is no trouble.
	if w := stage("wait"); r.Waiting > 0 && w.P50 >= slowSlot {
		add("slots", "debug/requests", "%d requests wait for a slot or a goroutine, half of them longer than %s",
			r.Waiting, Short(w.P50))
	}
	if u := &r.Runtime; u.Locks >= muchLocking {
		add("lock", "debug/pprof/mutex?seconds=5", "goroutines wait for mutexes: %s in each second, all together",
			Short(time.Duration(u.Locks*float64(time.Second))))
	}
	if w := stage("write"); w.P90 >= slowWrite {
		add("clients", "debug/requests", "clients accept responses slowly: one in ten of those that do not at once "+
			"needs %s or more", Short(w.P90))
	} else if i := slices.IndexFunc(r.Longest,
		func(q Running) bool { return q.Stage == "write" && q.Age >= slowWrite }); i >= 0 {
		// The handler waits with the client if the response is too large to be kept.
		q := &r.Longest[i]
		add("clients", "debug/requests", "clients accept responses slowly: %s %s has been in progress for %s", q.Method,
			q.Target, Short(q.Age))
	}
	if u := &r.Runtime; u.GC >= muchGC {
		add("collector", "debug/pprof/allocs", "the garbage collector takes %.0f %% of the processors' time; the "+
			"program allocates %s per second", u.GC*100, Bytes(u.Allocated))
	}
	for i := range r.Routes {
		if t := &r.Routes[i]; t.Handler >= slowRoute && t.Share >= routeShare && len(r.Routes) > 1 {
			add("route", "debug/pprof/profile?seconds=5",
				"%s takes %.0f %% of the time in handlers; one in a hundred needs %s or more", RouteName(t.Pattern),
				t.Share*100, Short(t.Handler))
			break
		}
	}
	for i := range r.Loops {
		if l := &r.Loops[i]; l.Stale || l.Lag >= slowLoop {
			lag := Short(l.Lag)
			if l.Stale {
				lag = "more than 100 ms"
			}
			add("loop", "debug/pprof/goroutine?debug=1",
				"loop %d took %s to answer: a handler or a lock holds it, or the processors are busy", l.Index, lag)
			break
		}
	}
	return list
}

// notable reports whether n of all events are enough to be reported.
func notable(n, all float64) bool {
	return n >= manyEvents && n >= smallPart*all || n >= fewEvents && n >= largePart*all
}

// noSlot is the name among Troubles of the requests beyond Server.MaxHandlers, the only ones that the server
// answers 503 by itself.
const noSlot = "refused request: too many requests wait for a handler"

// errorsOf reports responses of 5xx, of handlers and of the server itself, and the route that most of them come from.
func errorsOf(r *Report, add func(kind, look, format string, args ...any)) {
	failed, all := r.Classes[5], 0.0
	for _, n := range r.Classes {
		all += n
	}
	if !notable(failed*r.Seconds, all*r.Seconds) {
		return
	}
	if i := slices.IndexFunc(r.Troubles, func(t Rate) bool { return t.Name == noSlot }); i >= 0 &&
		r.Troubles[i].N > failed*r.Seconds/2 {
		add("errors", "debug/requests", "%s of requests are answered with 5xx, mostly by the server, because all "+
			"slots for handlers are taken", percent(failed/all))
		return
	}
	from := ""
	for i := range r.Routes {
		// A route's number includes requests without a response.
		if t := &r.Routes[i]; t.Errors > failed/2 {
			from = fmt.Sprintf(", mostly by %s, %s of whose requests fail", RouteName(t.Pattern),
				percent(t.Errors/max(t.Rate, t.Errors)))
			break
		}
	}
	add("errors", "", "%s of requests are answered with 5xx%s: see the program's log", percent(failed/all), from)
}

// percent returns a part of 1 for people.
func percent(part float64) string {
	if part < 0.1 {
		return strconv.FormatFloat(100*part, 'f', 1, 64) + " %"
	}
	return strconv.FormatFloat(100*part, 'f', 0, 64) + " %"
}

// refusalsOf reports requests and connections that the server refuses by itself: limits that are reached, clients that
// send what is no request.
func refusalsOf(r *Report, add func(kind, look, format string, args ...any)) {
	n, most := 0.0, ""
	for _, t := range r.Troubles { // the most frequent first
		if what, ok := strings.CutPrefix(t.Name, "refused "); ok {
			if n += t.N; most == "" {
				most = what
			}
		}
	}
	if notable(n, r.Requests*r.Seconds+n) {
		add("refusals", "", "%s requests or connections were refused in %s, mostly: %s", Number(n),
			Short(time.Duration(r.Seconds*float64(time.Second))), most)
	}
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
