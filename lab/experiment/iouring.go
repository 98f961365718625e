package experiment

import (
	"context"
	"fmt"
	"strconv"

	"github.com/chert-http/chert/lab/chart"
	"github.com/chert-http/chert/lab/profile"
	"github.com/chert-http/chert/lab/rival"
	"github.com/chert-http/chert/lab/uring"
)

// ringWays are the variants of the small loop.
var ringWays = []struct {
	name  string
	flags []string
	ring  bool
	says  string
}{
	{"epoll", []string{"--io", "epoll"}, false, "epoll_wait, read, write"},
	{"epoll-held", []string{"--io", "epoll", "--held"}, false, "the same, and the wait keeps the processor for a millisecond at most"},
	{"ring", []string{"--io", "ring"}, true, "multishot accept and receive, COOP_TASKRUN, no thread of its own"},
	{"ring-defer", []string{"--io", "defer"}, true, "SINGLE_ISSUER and DEFER_TASKRUN on a locked thread"},
	{"ring-defer-held", []string{"--io", "defer", "--held"}, true, "the same, and the wait keeps the processor"},
	{"ring-single", []string{"--io", "single"}, true, "as ring-defer, but a submission for each receive instead of multishot"},
}

func iouring() Experiment {
	return Experiment{
		Name:  "iouring",
		Title: "What io_uring is worth to a loop",
		Asks: "The C server's author wants io_uring next, since about 35 % of its cycles are the four calls it would save. " +
			"[lab/uring/server](../../uring/server/main_linux.go) is one small loop, in Go and without a scheduler in between where that helps, on epoll and on rings with different flags; " +
			"nginx and chert run beside it. The processor time of a request is compared with 1, 64 and 512 connections and with a connection for each request, and system calls are counted with strace. " +
			"[ADR 39](../../../docs/adr/0039-no-ring.md) says what follows for chert.",
		Needs: []string{"wrk"},
		Helps: []string{"nginx", "strace"},
		Claims: []Claim{
			{
				Text:  "A ring needs a fraction of the system calls.",
				Rule:  "with 64 connections at most 0.5 of epoll's calls for each request; in part 0.8",
				Here:  "{ring-defer/calls} by {epoll/calls} calls for each request",
				Judge: func(v Values) Verdict { return within(v.ratio("ring-defer/calls", "epoll/calls"), 0, 0.5, 1.6) },
				Why:   map[Verdict]string{Held: "One io_uring_enter submits and collects everything of a turn."},
			},
			{
				Text: "The four calls are 35 % of the cycles, to be saved.",
				Rule: "with 64 connections the ring costs at most 0.75 of epoll's CPU; in part at most 0.97",
				Here: "{ring-defer/64/cpu:epoll/64/cpu} with 64 connections, {ring-defer/1/cpu:epoll/1/cpu} with 1, {ring-defer/512/cpu:epoll/512/cpu} with 512, {ring-defer/close/cpu:epoll/close/cpu} with a connection per request",
				Judge: func(v Values) Verdict {
					return within(v.ratio("ring-defer/64/cpu", "epoll/64/cpu"), 0, 0.75, 0.97/0.75)
				},
				Why: map[Verdict]string{
					HeldInPart: "Entering the kernel is a small part of a call. What read and write do there, TCP, is done on a ring too.",
					Refuted:    "Entering the kernel is a small part of a call. What read and write do there, TCP, is done on a ring too.",
				},
			},
			{
				Text:  "How the loop waits counts for as much as the ring does.",
				Rule:  "with 1 connection, holding the processor saves epoll at least 5 % of CPU; in part anything",
				Here:  "{epoll-held/1/cpu:epoll/1/cpu} with 1 connection, {epoll-held/64/cpu:epoll/64/cpu} with 64",
				Judge: func(v Values) Verdict { return within(v.ratio("epoll-held/1/cpu", "epoll/1/cpu"), 0, 0.95, 1/0.95) },
			},
			{
				Text:  "A ring beats epoll when both wait as well as they can.",
				Rule:  "both held, at most 0.95 of the CPU with 1, 64, 512 connections and with a connection per request; in part in some of them",
				Here:  "{ring-defer-held/1/cpu:epoll-held/1/cpu}, {ring-defer-held/64/cpu:epoll-held/64/cpu}, {ring-defer-held/512/cpu:epoll-held/512/cpu} and {ring-defer-held/close/cpu:epoll-held/close/cpu}",
				Judge: needing(ringBeatsEpoll, "ring-defer-held/64/cpu", "epoll-held/64/cpu"),
			},
		},
		Run: runIouring,
	}
}

func ringBeatsEpoll(v Values) Verdict {
	var won []bool
	for _, load := range []string{"1", "64", "512", "close"} {
		won = append(won, v.ratio("ring-defer-held/"+load+cpu, "epoll-held/"+load+cpu) <= 0.95)
	}
	return count(won...)
}

func runIouring(ctx context.Context, b *Bench, r *Result) error {
	unavailable := uring.Available()
	if unavailable != nil {
		r.note("This system has no io_uring for this process, so only epoll was measured: " + unavailable.Error() +
			". Containers forbid it by default, and so may kernel.io_uring_disabled.")
	}
	var specs []rival.Spec
	ways := Table{Title: "The variants", Columns: []string{"name", "what it does"}}
	for _, way := range ringWays {
		if way.ring && unavailable != nil {
			continue
		}
		specs = append(specs, rival.Program(way.name, "uring/server", way.flags...))
		ways.Rows = append(ways.Rows, []string{way.name, way.says})
	}
	specs, err := b.ready(ctx, specs...)
	if err != nil {
		return err
	}
	others, err := b.servers(ctx, r, "nginx", "chert", "chertdirect")
	if err != nil {
		return err
	}
	r.Tables = append(r.Tables, ways)
	all := entrants(append(specs, others...))
	groups := chart.Groups{Title: "CPU per request by epoll's, one loop on one core", Axis: "ratio of medians; below 1 is cheaper"}
	table := Table{Title: "CPU of a request, microseconds: median and quartiles", Columns: []string{"server"}}
	for _, e := range all {
		table.Rows = append(table.Rows, []string{e.Name})
		groups.Kinds = append(groups.Kinds, chart.Kind{Name: e.Name})
	}
	for _, load := range list(b.Scale, 2, "64", "close", "1", "512") {
		c := contest{check: hello(), connections: 64, rounds: b.Scale.rounds(5)}
		if load == "close" {
			c.check = closing()
		} else if c.connections, err = strconv.Atoi(load); err != nil {
			return err
		}
		fmt.Fprintln(b.Log, "connections:", load)
		series, err := b.contest(ctx, r, c, all)
		if err != nil {
			return err
		}
		table.Columns = append(table.Columns, load, "by epoll")
		groups.Names = append(groups.Names, map[bool]string{true: "one per request", false: load}[load == "close"])
		for i, s := range series {
			name := s.Server + "/" + load
			r.Values.series(name, s)
			low, high := s.CPUQuartiles()
			ratio := r.Values.ratio(name+cpu, "epoll/"+load+cpu)
			table.Rows[i] = append(table.Rows[i], fmt.Sprintf("%s (%s–%s)", number(r.Values[name+cpu]), number(low), number(high)), number(ratio))
			groups.Kinds[i].Values = append(groups.Kinds[i].Values, ratio)
		}
	}
	r.Tables = append(r.Tables, table)
	r.plot("cpu", "The ring saves most where connections come and go; how a loop waits counts most where it waits often.", groups)
	return ringCalls(ctx, b, r, all)
}

// ringCalls counts the system calls of a request.
func ringCalls(ctx context.Context, b *Bench, r *Result, all []profile.Entrant) error {
	if !b.helped("strace") {
		return nil
	}
	table := Table{Title: "System calls for each request, 64 connections", Columns: []string{"server", "all", "the largest"}}
	for _, e := range all {
		calls, err := b.counted(ctx, e, contest{check: hello(), connections: 64})
		if err != nil {
			return fmt.Errorf("strace, %s: %w", e.Name, err)
		}
		var sum, most float64
		largest := ""
		for name, n := range calls {
			sum += n
			if n > most {
				largest, most = name, n
			}
		}
		r.Values[e.Name+"/calls"] = sum
		table.Rows = append(table.Rows, []string{e.Name, number(sum), largest + " " + number(most)})
	}
	r.Tables = append(r.Tables, table)
	return nil
}
