package experiment

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/chert-http/chert/lab/chart"
	"github.com/chert-http/chert/lab/perf"
	"github.com/chert-http/chert/lab/profile"
	"github.com/chert-http/chert/lab/report"
	"github.com/chert-http/chert/lab/rival"
)

func stages() Experiment {
	return Experiment{
		Name:  "stages",
		Title: "Four stages of a server, and what holds each up",
		Asks: "A C++ server was measured in four stages: one thread with blocking calls, a pool of such threads, one event loop, several event loops. " +
			"[lab/stages](../../stages/README.md) has the same four, each a program of under 200 lines with a page that explains it. They run beside chert and nginx with 50 to 1,200 connections; " +
			"the first two close each connection after an answer, as they must, the others keep them.",
		Needs: []string{"wrk"},
		Helps: []string{"perf", "nginx"},
		Claims: []Claim{
			{
				Text: "With one thread and blocking calls throughput is flat from 50 to 800 connections.",
				Rule: "the lowest rate is at least 0.8 of the highest; in part from 0.6",
				Here: "{stage1/flat} of the highest",
				Judge: needing(func(v Values) Verdict { return within(v["stage1/flat"], 0.8, 1, 1.34) },
					"stage1/flat"),
				Why: map[Verdict]string{Held: "One worker serves one request at a time, however many wait."},
			},
			{
				Text: "There, latency doubles when connections double.",
				Rule: "from 50 to 800 connections mean latency grows 12 to 20 times; in part 8 to 30 times",
				Here: "{stage1/grows} times",
				Judge: needing(func(v Values) Verdict { return within(v["stage1/grows"], 12, 20, 1.5) },
					"stage1/grows"),
				Why: map[Verdict]string{Held: "Latency is the length of the queue by the rate."},
			},
			{
				Text:  "Each stage serves more than the one before.",
				Rule:  "of three steps, at 800 connections (1,200 for the last), all are above 1.05; in part if some are",
				Here:  "{stage2/800/rate:stage1/800/rate}, {stage3/800/rate:stage2/800/rate} and {stage4/1200/rate:stage3/1200/rate} times the one before, servers with {cores} core(s)",
				Judge: needing(steps, "stage1/800/rate", "stage2/800/rate", "stage3/800/rate", "stage3/1200/rate", "stage4/1200/rate"),
				Why: map[Verdict]string{
					Held:       "Threads use processors, a loop keeps connections, several loops use processors again.",
					HeldInPart: "On one core there is no other processor for threads and loops to use: only keeping connections gains.",
				},
			},
			{
				Text:  "Each stage moves the bottleneck towards the kernel.",
				Rule:  "in stages 3 and 4 more than half of the time is in system calls, and writing has the largest share of them; in part if one is true",
				Here:  "{stage3/syscalls} and {stage4/syscalls} % in system calls, {stage3/write} and {stage4/write} % in write",
				Judge: needing(kernelBound, "stage3/syscalls", "stage4/syscalls", "stage3/write", "stage4/write"),
				Why:   map[Verdict]string{Held: "On loopback a write includes the receiver's half of TCP."},
			},
		},
		Run: runStages,
	}
}

func steps(v Values) Verdict {
	return count(v.ratio("stage2/800/rate", "stage1/800/rate") > 1.05, v.ratio("stage3/800/rate", "stage2/800/rate") > 1.05,
		v.ratio("stage4/1200/rate", "stage3/1200/rate") > 1.05)
}

func kernelBound(v Values) Verdict {
	return count(v["stage3/syscalls"] > 50 && v["stage4/syscalls"] > 50,
		v["stage3/write"] == v["stage3/largest"] && v["stage4/write"] == v["stage4/largest"])
}

// stageEntrants are the four stages; the first two close connections.
func stageEntrants(ctx context.Context, b *Bench, stages ...int) ([]profile.Entrant, error) {
	var specs []rival.Spec
	for _, n := range stages {
		spec := rival.Program("stage"+strconv.Itoa(n), "stages/"+strconv.Itoa(n))
		spec.Closes = n <= 2
		specs = append(specs, spec)
	}
	specs, err := b.ready(ctx, specs...)
	if err != nil {
		return nil, err
	}
	all := entrants(specs)
	for i, spec := range specs {
		if spec.Closes {
			check := closing()
			all[i].Check = &check
		}
	}
	return all, nil
}

func runStages(ctx context.Context, b *Bench, r *Result) error {
	all, err := stageEntrants(ctx, b, 1, 2, 3, 4)
	if err != nil {
		return err
	}
	others, err := b.servers(ctx, r, "chert", "nginx")
	if err != nil {
		return err
	}
	all = append(all, entrants(others)...)
	wide := b.wide()
	r.Values["cores"] = float64(len(wide))
	counts := list(b.Scale, 2, 50, 100, 200, 400, 800, 1200)
	rates := chart.Lines{Title: "Four stages of a server: requests per second", XAxis: "connections", YAxis: "requests per second"}
	tails := chart.Lines{Title: "Four stages of a server: latency of the slowest request in a hundred", XAxis: "connections", YAxis: "99th percentile, ms"}
	table := Table{Title: "Rates and latencies", Columns: []string{"server", "connections", "req/s", "mean ms", "p99 ms", "CPU µs", "user %"}}
	for i, n := range counts {
		fmt.Fprintf(b.Log, "%d connections, %d of %d\n", n, i+1, len(counts))
		series, err := b.contest(ctx, r, contest{check: hello(), connections: n, rounds: b.Scale.rounds(3), cores: wide}, all)
		if err != nil {
			return err
		}
		for k, s := range series {
			name := s.Server + "/" + strconv.Itoa(n)
			r.Values.series(name, s)
			v := r.Values
			table.Rows = append(table.Rows, []string{s.Server, strconv.Itoa(n), number(v[name+rate]), number(v[name+mean]), number(v[name+p99]),
				number(v[name+cpu]), number(100 * v.ratio(name+user, name+cpu))})
			extend(&rates, k, n, s, func(r report.Round) float64 { return r.PerSecond })
			extend(&tails, k, n, s, func(r report.Round) float64 { return r.P99 / 1000 })
		}
	}
	slices.SortStableFunc(table.Rows, func(a, c []string) int { return order(all, a[0]) - order(all, c[0]) })
	r.Tables = append(r.Tables, table)
	queue(r.Values, counts)
	r.plot("rate", "Stage 1 and 2 are flat: each connection serves one request. The others keep theirs.", rates)
	r.plot("p99", "Where one worker serves all, a hundred times the clients wait a hundred times as long.", tails)
	return stageProfiles(ctx, b, r, all)
}

// queue sets what the claims about the queue of stage 1 need.
func queue(v Values, counts []int) {
	low, high := math.Inf(1), 0.0
	first, last := 0.0, 0.0
	for _, n := range counts {
		name := "stage1/" + strconv.Itoa(n)
		if n > 800 {
			continue
		}
		low, high = min(low, v[name+rate]), max(high, v[name+rate])
		if first == 0 {
			first = v[name+mean]
		}
		last = v[name+mean]
	}
	if high > 0 && slices.Contains(counts, 800) {
		v["stage1/flat"], v["stage1/grows"] = low/high, last/first
	}
}

// stageProfiles samples each server under load: what part of its time each system call has.
func stageProfiles(ctx context.Context, b *Bench, r *Result, all []profile.Entrant) error {
	if !b.helped("perf") {
		return nil
	}
	stacks := chart.Stacks{Title: "Where the time of each server goes", Axis: "% of its processor time"}
	parts := []string{"write", "read", "epoll_wait", "accept, close", "other calls", "kernel besides", "user code"}
	for _, part := range parts {
		stacks.Parts = append(stacks.Parts, chart.Kind{Name: part})
	}
	table := Table{Title: "Shares of processor time, percent", Columns: append([]string{"server"}, parts...)}
	for _, e := range all {
		p, err := b.sampled(ctx, e, contest{check: hello(), connections: b.Scale.of(800, 50), cores: b.wide()})
		if err != nil {
			return r.unsampled(err)
		}
		shares := callShares(p)
		r.Values[e.Name+"/syscalls"] = 100 - shares["user code"] - shares["kernel besides"]
		r.Values[e.Name+"/write"] = shares["write"]
		r.Values[e.Name+"/largest"] = max(shares["write"], shares["read"], shares["epoll_wait"], shares["accept, close"])
		stacks.Names = append(stacks.Names, e.Name)
		cells := []string{e.Name}
		for i, part := range parts {
			stacks.Parts[i].Values = append(stacks.Parts[i].Values, shares[part])
			cells = append(cells, number(shares[part]))
		}
		table.Rows = append(table.Rows, cells)
	}
	r.Tables = append(r.Tables, table)
	r.plot("calls", "Most of the time of a server that does nothing else is the kernel's.", stacks)
	return nil
}

// kinds groups system calls by what they are for.
var kinds = map[string]string{
	"write": "write", "writev": "write", "sendto": "write", "sendmsg": "write",
	"read": "read", "readv": "read", "recvfrom": "read", "recvmsg": "read",
	"epoll_wait": "epoll_wait", "epoll_pwait": "epoll_wait", "epoll_pwait2": "epoll_wait",
	"accept": "accept, close", "accept4": "accept, close", "close": "accept, close", "shutdown": "accept, close",
}

// callShares is the percentage of each kind of system call, of other parts of the kernel and of the program's own code.
func callShares(p perf.Profile) map[string]float64 {
	shares := map[string]float64{}
	each := 100 / float64(len(p.Samples))
	for _, s := range p.Samples {
		switch name := s.Syscall(); {
		case name == "" && s.InKernel():
			shares["kernel besides"] += each
		case name == "":
			shares["user code"] += each
		case kinds[name] == "":
			shares["other calls"] += each
		default:
			shares[kinds[name]] += each
		}
	}
	return shares
}

// extend adds a point to the line of the k-th server.
func extend(lines *chart.Lines, k, x int, s report.Series, f func(report.Round) float64) {
	if k == len(lines.Lines) {
		lines.Lines = append(lines.Lines, chart.Line{Name: s.Server})
	}
	low, high := s.Quartiles(f)
	if middle := s.Median(f); low > 0 { // logarithmic axes have no 0
		lines.Lines[k].X = append(lines.Lines[k].X, x)
		lines.Lines[k].Values = append(lines.Lines[k].Values, chart.Value{Middle: middle, Low: low, High: high})
	}
}

// order is the place of a server among the entrants.
func order(all []profile.Entrant, name string) int {
	return slices.IndexFunc(all, func(e profile.Entrant) bool { return e.Name == name })
}
