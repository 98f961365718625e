package admin

import (
	"io"
	"net/http"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"time"
)

// This file replaces net/http/pprof, whose import registers handlers on
// http.DefaultServeMux: a program that serves that mux would publish its profiles.

// How long a profile may take, and takes by default, in seconds.
const (
	maxSeconds      = 60
	cpuSeconds      = 30
	maxTraceSeconds = 10 // a busy program writes megabytes in each
	traceSeconds    = 1
)

// profiles lists them.
func (h *handler) profiles(w http.ResponseWriter, _ *http.Request) {
	t := table{Title: "Profiles", Root: "../../", Links: true, Columns: []string{"Path", "What it shows"},
		Rows: [][]string{
			{"profile?seconds=5", "where processor time is spent"},
			{"mutex?seconds=5", "which mutexes goroutines wait for; recorded for these seconds only"},
			{"block?seconds=5", "where goroutines wait for channels, mutexes and conditions; recorded for these " +
				"seconds only"},
			{"heap", "what holds memory; with ?gc=1 after a collection"},
			{"allocs", "what has allocated memory since the start"},
			{"goroutine?debug=1", "what goroutines do, as text"},
			{"threadcreate", "what has created threads of the system"},
			{"trace?seconds=1", "each event of the scheduler, for go tool trace"},
		}}
	t.send(w, maxRows)
}

// profile sends one. Those that take time, or stop the program for a moment, are taken
// one after another.
func (h *handler) profile(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	taken := name == "profile" || name == "trace"
	if !taken && pprof.Lookup(name) == nil {
		plain(w, http.StatusNotFound, "no such profile; see debug/pprof/")
		return
	}
	if r.Method == http.MethodHead {
		return
	}
	select {
	case h.costly <- struct{}{}:
		defer func() { <-h.costly }()
	default:
		w.Header().Set("Retry-After", strconv.Itoa(maxSeconds))
		plain(w, http.StatusServiceUnavailable, "another profile is being taken")
		return
	}
	out := &steady{w, http.NewResponseController(w)}
	defer out.end()
	w = out
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
	if debugLevel(r) > 0 && !taken {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Del("Content-Disposition")
	}
	var err error
	switch name {
	case "profile":
		if err = pprof.StartCPUProfile(w); err == nil {
			wait(r, seconds(r, cpuSeconds, maxSeconds))
			pprof.StopCPUProfile()
		}
	case "trace":
		if err = trace.Start(w); err == nil {
			wait(r, seconds(r, traceSeconds, maxTraceSeconds))
			trace.Stop()
		}
	default:
		lookup(w, name, r) // fails with w only
	}
	if err != nil { // the program takes one itself
		w.Header().Del("Content-Disposition")
		plain(w, http.StatusConflict, err.Error())
	}
}

// steady ends a response whose client accepts nothing for a while: until it is written
// no other profile can be taken, and the runtime keeps what is traced.
type steady struct {
	http.ResponseWriter
	c *http.ResponseController
}

func (s *steady) Write(p []byte) (int, error) {
	// Not supported by all servers; they have limits of their own.
	s.c.SetWriteDeadline(time.Now().Add(stuck))
	return s.ResponseWriter.Write(p)
}

// end sends the rest. net/http's server keeps the deadline for the next request.
func (s *steady) end() {
	s.c.SetWriteDeadline(time.Now().Add(stuck))
	s.c.Flush()
	s.c.SetWriteDeadline(time.Time{})
}

// lookup writes a profile that the runtime keeps. Those of mutexes and blocking are
// empty unless the program has switched them on; with ?seconds they are, for that time.
func lookup(w io.Writer, name string, r *http.Request) {
	long := seconds(r, 0, maxSeconds)
	switch {
	case name == "heap" && r.FormValue("gc") == "1":
		runtime.GC()
	case name == "mutex" && long > 0:
		rate := runtime.SetMutexProfileFraction(1)
		wait(r, long)
		runtime.SetMutexProfileFraction(rate)
	case name == "block" && long > 0:
		// The program's own rate cannot be read; the documented default is 0.
		runtime.SetBlockProfileRate(int(100 * time.Microsecond))
		wait(r, long)
		runtime.SetBlockProfileRate(0)
	}
	pprof.Lookup(name).WriteTo(w, debugLevel(r))
}

// debugLevel returns the value of ?debug. Level 2 of goroutines has the arguments of
// their functions, which say nothing without the program.
func debugLevel(r *http.Request) int {
	n, err := strconv.Atoi(r.FormValue("debug"))
	if err != nil || n < 0 || n > 2 {
		return 0
	}
	return n
}

func seconds(r *http.Request, otherwise, most int) time.Duration {
	n, err := strconv.Atoi(r.FormValue("seconds"))
	if err != nil || n < 1 {
		n = otherwise
	}
	return time.Duration(min(n, most)) * time.Second
}

// wait waits until the time is over or the client has gone.
func wait(r *http.Request, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-r.Context().Done():
	}
}
