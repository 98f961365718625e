package experiment

import (
	"context"
	"fmt"
	"strings"

	"github.com/chert-http/chert/lab/chart"
	"github.com/chert-http/chert/lab/perf"
)

func profiles() Experiment {
	return Experiment{
		Name:  "profile",
		Title: "Where the microseconds of a request go",
		Asks: "The C and the C++ server were profiled when they were done: most of their time was the kernel's. Here the processor time of a request is measured for chert, with a plain and with a direct handler, " +
			"net/http, fasthttp and nginx, and divided by the stages that perf finds in its samples. 64 connections that are kept, one core.",
		Needs: []string{"wrk", "perf"},
		Helps: []string{"nginx"},
		Claims: []Claim{
			{
				Text:  "Reading and writing take most of a request in a server that is done (the C server: read, write and sendfile 27 %, epoll_ctl 10 %; the C++ server: 53 % in system calls).",
				Rule:  "chert spends at least 50 % in system calls; in part at least 40 %",
				Here:  "chert {chert/kernel} %, with a direct handler {chertdirect/kernel} %, nginx {nginx/kernel} %, net/http {nethttp/kernel} %",
				Judge: needing(func(v Values) Verdict { return within(v["chert/kernel"], 50, 100, 1.25) }, "chert/kernel"),
			},
			{
				Text:  "Parsing is 11 % of the C server's time.",
				Rule:  "parsing is at most 11 % of chert's; in part at most 15 %",
				Here:  "{chert/parsing} % of chert's, {nethttp/parsing} % of net/http's, {fasthttp/parsing} % of fasthttp's; nginx has no names for its functions",
				Judge: needing(func(v Values) Verdict { return within(v["chert/parsing"], 0, 11, 1.37) }, "chert/parsing"),
			},
			{
				Text:  "What a Go server costs more than nginx is its scheduler and its memory, not its loop.",
				Rule:  "net/http spends more on both together than chert does, and chert with a direct handler at most 10 %; in part if one is true",
				Here:  "scheduler and memory: net/http {nethttp/runtime} µs, fasthttp {fasthttp/runtime} µs, chert {chert/runtime} µs, direct {chertdirect/runtime} µs",
				Judge: needing(runtimeCosts, "nethttp/runtime", "chert/runtime", "chertdirect/runtime", "chertdirect/cpu"),
			},
		},
		Run: runProfiles,
	}
}

func runtimeCosts(v Values) Verdict {
	return count(v["nethttp/runtime"] > v["chert/runtime"], v["chertdirect/runtime"] <= 0.1*v["chertdirect/cpu"])
}

// profileParts are the stages of a request, in the order in which they are stacked.
var profileParts = []string{"write", "read", "waiting", "other kernel", "parsing", "scheduler", "memory", "other user code"}

func runProfiles(ctx context.Context, b *Bench, r *Result) error {
	specs, err := b.servers(ctx, r, "chert", "chertdirect", "nethttp", "fasthttp", "nginx")
	if err != nil {
		return err
	}
	if b.Scale.Short {
		specs = specs[:2]
	}
	c := contest{check: hello(), connections: 64, rounds: b.Scale.rounds(5)}
	series, err := b.contest(ctx, r, c, entrants(specs))
	if err != nil {
		return err
	}
	stacks := chart.Stacks{Title: "The processor time of a request, by stage", Axis: "microseconds, one core, 64 connections"}
	for _, part := range profileParts {
		stacks.Parts = append(stacks.Parts, chart.Kind{Name: part})
	}
	table := Table{Title: "Microseconds of a request", Columns: append([]string{"server", "CPU"}, profileParts...)}
	for i, e := range entrants(specs) {
		fmt.Fprintln(b.Log, "sampling", e.Name)
		p, err := b.sampled(ctx, e, c)
		if err != nil {
			return r.unsampled(err)
		}
		v := r.Values
		v.series(e.Name, series[i])
		total := v[e.Name+cpu]
		shares := stageShares(p)
		cells := []string{e.Name, number(total)}
		stacks.Names = append(stacks.Names, e.Name)
		for k, part := range profileParts {
			stacks.Parts[k].Values = append(stacks.Parts[k].Values, shares[part]*total)
			cells = append(cells, number(shares[part]*total))
		}
		table.Rows = append(table.Rows, cells)
		v[e.Name+"/parsing"] = 100 * shares["parsing"]
		v[e.Name+"/kernel"] = 100 * p.Share(perf.Sample.InKernel)
		v[e.Name+"/runtime"] = (shares["scheduler"] + shares["memory"]) * total
	}
	r.Tables = append(r.Tables, table)
	r.note("A sample counts for the first stage that matches; nginx's functions have no names in Debian's package, so that its user code is not divided.")
	r.plot("stages", "What the kernel does is the same for all; the rest is the server.", stacks)
	return nil
}

// stageShares divides samples among profileParts.
func stageShares(p perf.Profile) map[string]float64 {
	shares := map[string]float64{}
	for _, s := range p.Samples {
		shares[stageOf(s)] += 1 / float64(len(p.Samples))
	}
	return shares
}

// Functions by which the user code of Go servers is recognised, by their packages and beginnings.
var (
	parsingNames   = []string{"internal/http1.", "net/http.readRequest", "net/textproto.", "net/http.ReadRequest", "fasthttp.(*RequestHeader)", "net/url."}
	memoryNames    = []string{"runtime.mallocgc", "runtime.gcBgMarkWorker", "runtime.bgsweep", "runtime.gcAssistAlloc", "runtime.newobject", "runtime.growslice", "runtime.makeslice"}
	schedulerNames = []string{"runtime.schedule", "runtime.findRunnable", "runtime.mcall", "runtime.park_m", "runtime.gopark", "runtime.goready", "runtime.ready", "runtime.entersyscall",
		"runtime.exitsyscall", "runtime.netpoll", "internal/poll.runtime_poll", "runtime.futex", "runtime.mstart", "runtime.systemstack"}
)

func stageOf(s perf.Sample) string {
	switch call := s.Syscall(); {
	case kinds[call] == "write", kinds[call] == "read":
		return kinds[call]
	case kinds[call] == "epoll_wait", call == "futex", call == "nanosleep", call == "sched_yield":
		return "waiting"
	case s.InKernel():
		return "other kernel"
	}
	for _, stage := range []struct {
		name  string
		names []string
	}{{"memory", memoryNames}, {"parsing", parsingNames}, {"scheduler", schedulerNames}} {
		if s.Has(func(symbol string) bool { return named(symbol, stage.names) }) {
			return stage.name
		}
	}
	return "other user code"
}

// named reports whether a symbol, without the path of its package, begins with one of the names.
func named(symbol string, names []string) bool {
	for _, name := range names {
		if strings.HasPrefix(symbol, name) || strings.Contains(symbol, "/"+name) {
			return true
		}
	}
	return false
}
