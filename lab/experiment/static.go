package experiment

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/chert-http/chert/lab/chart"
	"github.com/chert-http/chert/lab/exchange"
	"github.com/chert-http/chert/lab/files"
	"github.com/chert-http/chert/lab/perf"
	"github.com/chert-http/chert/lab/profile"
	"github.com/chert-http/chert/lab/rival"
)

func static() Experiment {
	return Experiment{
		Name:  "static",
		Title: "A file of 100 KiB, and what each optimisation is worth",
		Asks: "A C server with edge-triggered epoll and sendfile served a file of 100 KiB as fast as nginx, and its author listed what it gained by. " +
			"[lab/sendfile](../../sendfile/worker_linux.go) is built the same way, and each item of the list is a flag that takes it back: " +
			"SO_REUSEPORT for each worker or one acceptor with an eventfd, a dup for each sendfile or none, TCP_CORK always, above 16 KiB or never. nginx, chert and net/http serve the same file in the same rounds.",
		Needs: []string{"wrk"},
		Helps: []string{"nginx", "perf"},
		Claims: []Claim{
			{
				Text:  "The C server is as fast as nginx with a file of 100 KiB (248,280 by 251,822: 0.986).",
				Rule:  "a response costs 0.9 to 1.1 of nginx's CPU; in part 0.7 to 1.4. The rate is limited by the client, which copies",
				Here:  "{small/cpu:nginx/cpu} of nginx's CPU, {small/rate:nginx/rate} of its rate; chert {chertfiles/cpu:nginx/cpu} and {chertfiles/rate:nginx/rate}",
				Judge: func(v Values) Verdict { return within(v.ratio("small/cpu", "nginx/cpu"), 0.9, 1.1, 1.28) },
				Why:   map[Verdict]string{Held: "Nearly all of it is sendfile, which is the same for all."},
			},
			{
				Text:  "SO_REUSEPORT for each worker instead of one acceptor with an eventfd gains about 20 % of latency.",
				Rule:  "with a connection for each request, an acceptor costs at least 1.15 times the CPU; in part 1.05 times",
				Here:  "{acceptor-closing/cpu:small-closing/cpu} times the CPU with a connection per request, {acceptor/cpu:small/cpu} times with kept ones",
				Judge: closerTo("acceptor-closing/cpu", "small-closing/cpu", 1.15, 1.05),
				Why:   map[Verdict]string{Held: "Kept connections are accepted once: there it makes no difference."},
			},
			{
				Text:  "Leaving out the dup for each sendfile gains.",
				Rule:  "with dup a response costs at least 1.02 times the CPU; in part more than 1",
				Here:  "{dup/cpu:small/cpu} times with 100 KiB, {dup-1k/cpu:small-1k/cpu} with 1 KiB",
				Judge: closerTo("dup-1k/cpu", "small-1k/cpu", 1.02, 1),
				Why:   map[Verdict]string{Held: "Two system calls more. They disappear beside 100 KiB."},
			},
			{
				Text:  "TCP_CORK only above 16 KiB gains.",
				Rule:  "with a file of 1 KiB, TCP_CORK costs at least 1.02 times the CPU of two packets without it; in part more than 1",
				Here:  "{corked-1k/cpu:small-1k/cpu} times with 1 KiB; never by above 16 KiB, with 100 KiB: {uncorked/cpu:small/cpu}",
				Judge: closerTo("corked-1k/cpu", "small-1k/cpu", 1.02, 1),
				Why: map[Verdict]string{
					Refuted: "On loopback a packet costs more than the two system calls that save it. Head and a small file in one write would save both.",
				},
			},
		},
		Run: runStatic,
	}
}

// closerTo is "a costs more than b": held from one factor on, in part from another.
func closerTo(a, b string, held, part float64) func(v Values) Verdict {
	return func(v Values) Verdict {
		x := v.ratio(a, b)
		switch {
		case x >= held:
			return Held
		case x > part:
			return HeldInPart
		case x <= part:
			return Refuted
		}
		return NotMeasured
	}
}

// staticRun is a file, a way to ask for it, and who serves it.
type staticRun struct {
	title, suffix string // of the names of values
	file          int
	connections   int
	closes        bool
	servers       []string
}

func runStatic(ctx context.Context, b *Bench, r *Result) error {
	served := []files.File{{Name: "/file1k.css", Size: 1 << 10}, {Name: "/file100k.js", Size: 100 << 10}}
	folder, err := files.Write("", served)
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	ready := map[string]rival.Spec{}
	own, err := b.ready(ctx, rival.Program("small", "sendfile"), rival.Program("acceptor", "sendfile", "--handoff"), rival.Program("dup", "sendfile", "--dup"),
		rival.Program("corked", "sendfile", "--cork", "always"), rival.Program("uncorked", "sendfile", "--cork", "never"))
	if err != nil {
		return err
	}
	others, err := b.servers(ctx, r, "nginx", "chertfiles", "nethttpfiles")
	if err != nil {
		return err
	}
	for _, spec := range append(own, others...) {
		ready[spec.Name] = spec
	}
	if control, err := os.ReadFile("/proc/sys/net/ipv4/tcp_congestion_control"); err == nil {
		r.note("The congestion control is " + strings.TrimSpace(string(control)) + ". With BBR, what TCP_CORK costs with 100 KiB on loopback is " +
			"BBR's pacing; with CUBIC it saves: [ADR 48](../../../docs/adr/0048-how-files-are-sent.md).")
	}
	runs := list(b.Scale, 2,
		staticRun{"100 KiB, connections kept", "", 1, b.Scale.of(400, 16), false, []string{"small", "acceptor", "dup", "uncorked", "nginx", "chertfiles", "nethttpfiles"}},
		staticRun{"1 KiB, connections kept", "-1k", 0, b.Scale.of(100, 16), false, []string{"small", "dup", "corked", "nginx", "chertfiles", "nethttpfiles"}},
		staticRun{"1 KiB, a connection for each request", "-closing", 0, 100, true, []string{"small", "acceptor", "nginx", "chertfiles"}})
	for _, run := range runs {
		if err := b.static(ctx, r, run, ready, folder, served[run.file]); err != nil {
			return err
		}
	}
	return staticProfile(ctx, b, r, ready["small"], folder, served[1])
}

// static makes one run and its table.
func (b *Bench) static(ctx context.Context, r *Result, run staticRun, ready map[string]rival.Spec, folder string, file files.File) error {
	content, err := file.Content()
	if err != nil {
		return err
	}
	check := profile.Check{Request: exchange.Get(file.Name), Want: exchange.OK("", content)}
	check.Request.Close = run.closes
	var specs []rival.Spec
	for _, name := range run.servers {
		if spec, ok := ready[name]; ok {
			specs = append(specs, spec)
		}
	}
	fmt.Fprintln(b.Log, run.title)
	series, err := b.contest(ctx, r, contest{check: check, connections: run.connections, rounds: b.Scale.rounds(5), folder: folder}, entrants(specs))
	if err != nil {
		return err
	}
	table := Table{Title: run.title, Columns: []string{"server", "req/s", "GB/s", "mean ms", "p99 ms", "CPU µs", "quartiles", "CPU by small"}}
	bars := chart.Bars{Title: run.title, Axis: "CPU microseconds per response"}
	for _, s := range series {
		name, v := s.Server+run.suffix, r.Values
		v.series(name, s)
		v[name+"/gbytes"] = v[name+rate] * float64(s.ResponseBytes) / 1e9
		low, high := s.CPUQuartiles()
		table.Rows = append(table.Rows, []string{s.Server, number(v[name+rate]), number(v[name+"/gbytes"]), number(v[name+mean]), number(v[name+p99]), number(v[name+cpu]),
			number(low) + "–" + number(high), number(v.ratio(name+cpu, "small"+run.suffix+cpu))})
		bars.Bars = append(bars.Bars, chart.Bar{Name: s.Server, Value: chart.Value{Middle: v[name+cpu], Low: low, High: high}})
	}
	r.Tables = append(r.Tables, table)
	says := map[string]string{
		"":         "With 100 KiB the file is nearly all of it, and what is left out around it hardly shows.",
		"-1k":      "With 1 KiB each system call shows.",
		"-closing": "An acceptor's lock and wake-up are paid once for each connection.",
	}[run.suffix]
	r.plot("cpu"+run.suffix, says, bars)
	return nil
}

// staticProfile is where the small server's time goes.
func staticProfile(ctx context.Context, b *Bench, r *Result, spec rival.Spec, folder string, file files.File) error {
	if !b.helped("perf") {
		return nil
	}
	p, err := b.sampled(ctx, profile.Entrant{Spec: spec, Name: spec.Name},
		contest{check: profile.Check{Request: exchange.Get(file.Name)}, connections: b.Scale.of(400, 16), folder: folder})
	if err != nil {
		return r.unsampled(err)
	}
	calls := p.Syscalls()
	v := r.Values
	v["small/usershare"] = 100 * (1 - p.Share(perf.Sample.InKernel))
	for value, names := range map[string][]string{"sendfile": {"sendfile64", "sendfile"}, "read": {"read"}, "write": {"write"}, "epoll_ctl": {"epoll_ctl"}, "setsockopt": {"setsockopt"}, "epoll_wait": {"epoll_wait", "epoll_pwait"}} {
		for _, name := range names {
			v["small/"+value] += 100 * calls[name]
		}
	}
	table := Table{Title: "Where the small server's time goes, percent", Columns: []string{"part", "share"}}
	for _, part := range []string{"usershare", "read", "write", "sendfile", "setsockopt", "epoll_wait", "epoll_ctl"} {
		table.Rows = append(table.Rows, []string{map[bool]string{true: "user code", false: part}[part == "usershare"], number(v["small/"+part])})
	}
	r.Tables = append(r.Tables, table)
	return nil
}
