package attack

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/lab/child"
	"github.com/chert-http/chert/lab/measure"
)

// Main is the command "attack" of the lab.
func Main(ctx context.Context, args []string, out, log io.Writer) error {
	o := options{servers: "chert,chertgoroutines,nethttp", seconds: 3, rounds: 3}
	flags := flag.NewFlagSet("attack", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&o.servers, "servers", o.servers, "chert, chertgoroutines, nethttp")
	flags.StringVar(&o.against, "against", "", "chert as it is at this `folder`, a checkout of another revision, too")
	flags.IntVar(&o.attackers, "attackers", 0, "how many do it at a time; 0: as many as each attack says")
	flags.Float64Var(&o.seconds, "seconds", o.seconds, "of each attack in each round")
	flags.IntVar(&o.rounds, "rounds", o.rounds, "in which the servers take turns")
	flags.Usage = func() {
		fmt.Fprint(out, "usage: go run . attack [flags] [NAME...]\n\n")
		flags.PrintDefaults()
		fmt.Fprintln(out)
		for _, a := range attacks {
			fmt.Fprintf(out, "  %-18s %4d  %s\n", a.name, a.attackers, a.about)
		}
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := choose(flags.Args())
	if err != nil {
		return err
	}
	if err := o.check(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "attack")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	targets, err := o.build(ctx, dir, log)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Innocent clients beside an attack from another address, %g s and %d rounds each, server on one core: p50 / p99 / max in ms, each the "+
		"least of the rounds; CPU in seconds a second; heap and resident in MB after a collection, while the attack lasts, the "+
		"most of the rounds; shutdown in ms, with the attack going on, the most.\n\nyes: p50 and p99 of both are at most 1.25 "+
		"of net/http's, or of quic-go's http3.Server's under the same name, and 2 ms, no larger share of the requests failed, and the heap is within the bound, where there is one.\n\n", o.seconds, o.rounds)
	fmt.Fprintln(out, "| attack | server | sent a second | kept | new | CPU | heap | resident | shutdown | |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for _, a := range chosen {
		if err := o.measure(ctx, a, targets, out, log); err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
	}
	return nil
}

type options struct {
	servers, against string
	attackers        int
	seconds          float64
	rounds           int
	stops            bool // shutting down is not measured
}

// kinds are the servers that command target has.
var kinds = []string{"chert", "chertgoroutines", "nethttp"}

// check reports what cannot be measured, before anything is built.
func (o *options) check() error {
	for _, kind := range strings.Split(o.servers, ",") {
		if !slices.Contains(kinds, kind) {
			return fmt.Errorf("--servers: no server %q; want some of %s", kind, strings.Join(kinds, ","))
		}
	}
	switch {
	case o.rounds < 1:
		return fmt.Errorf("--rounds %d: want 1 at least", o.rounds)
	case !(o.seconds > 0):
		return fmt.Errorf("--seconds %g: want more than 0", o.seconds)
	case o.attackers < 0:
		return fmt.Errorf("--attackers %d: want 0, as many as each attack says, or more", o.attackers)
	}
	return nil
}

func choose(names []string) ([]attack, error) {
	if len(names) == 0 {
		return attacks, nil
	}
	var chosen []attack
	for _, name := range names {
		i := slices.IndexFunc(attacks, func(a attack) bool { return a.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no attack %q; -h lists them", name)
		}
		chosen = append(chosen, attacks[i])
	}
	return chosen, nil
}

// target is a program to attack.
type target struct {
	name, binary, kind string
}

// build compiles the servers.
func (o *options) build(ctx context.Context, dir string, log io.Writer) ([]target, error) {
	lab, err := child.Lab(ctx)
	if err != nil {
		return nil, err
	}
	source := filepath.Join(lab, "cmd", "target")
	now := filepath.Join(dir, "target")
	fmt.Fprintln(log, "building the servers")
	if err := child.BuildAt(ctx, now, source); err != nil {
		return nil, err
	}
	then := ""
	if o.against != "" {
		if then, err = o.buildAgainst(ctx, dir, lab, source); err != nil {
			return nil, err
		}
	}
	var all []target
	for _, kind := range strings.Split(o.servers, ",") {
		all = append(all, target{kind, now, kind})
		if then != "" && kind != "nethttp" {
			all = append(all, target{kind + "@" + filepath.Base(o.against), then, kind})
		}
	}
	return all, nil
}

// buildAgainst compiles the present target with another checkout of chert.
func (o *options) buildAgainst(ctx context.Context, dir, lab, source string) (string, error) {
	old, err := filepath.Abs(o.against)
	if err != nil {
		return "", err
	}
	mod := filepath.Join(dir, "go.mod")
	for from, to := range map[string]string{"go.mod": mod, "go.sum": filepath.Join(dir, "go.sum")} {
		b, err := os.ReadFile(filepath.Join(lab, from))
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(to, b, 0o600); err != nil {
			return "", err
		}
	}
	edit := []string{"go", "mod", "edit", "-replace=github.com/chert-http/chert=" + old, mod}
	if _, err := child.Run(ctx, child.Command{Args: edit}); err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "target@")
	return binary, child.BuildAt(ctx, binary, source, "-modfile="+mod, "-mod=mod")
}

// result is what one server has shown, over the rounds.
type result struct {
	kept, fresh    [3]time.Duration // p50, p99, max
	sent, good     float64
	cpu            float64
	heap, resident float64
	shutdown       time.Duration
	failed, asked  int
	unmeasured     bool // of heap and resident: the server had no time to answer
	fault          string
}

func (o *options) measure(ctx context.Context, a attack, targets []target, out, log io.Writer) error {
	if o.attackers > 0 {
		a.attackers = o.attackers
	}
	results := make(map[string]*result)
	for round := range o.rounds {
		for i := range targets {
			t := targets[(i+round)%len(targets)]
			if t.kind == "nethttp" && a.chertOnly {
				continue
			}
			fmt.Fprintf(log, "%s, round %d, %s\n", a.name, round+1, t.name)
			r, err := o.once(ctx, &a, t)
			if err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
			if old := results[t.name]; old != nil {
				r.merge(old)
			}
			results[t.name] = r
		}
	}
	base := results["nethttp"]
	for _, t := range targets {
		if r := results[t.name]; r != nil {
			fmt.Fprintln(out, r.row(&a, t, base))
		}
	}
	return nil
}

// merge keeps the least of latencies and the most of memory.
func (r *result) merge(o *result) {
	for i := range r.kept {
		r.kept[i], r.fresh[i] = min(r.kept[i], o.kept[i]), min(r.fresh[i], o.fresh[i])
	}
	r.sent, r.good = max(r.sent, o.sent), max(r.good, o.good)
	r.cpu = min(r.cpu, o.cpu)
	r.heap, r.resident, r.shutdown = max(r.heap, o.heap), max(r.resident, o.resident), max(r.shutdown, o.shutdown)
	r.asked += o.asked
	r.unmeasured = r.unmeasured || o.unmeasured
	if r.failed += o.failed; r.fault == "" {
		r.fault = o.fault
	}
}

func (r *result) row(a *attack, t target, base *result) string {
	ms := func(d [3]time.Duration) string {
		return fmt.Sprintf("%.1f / %.1f / %.0f", d[0].Seconds()*1e3, d[1].Seconds()*1e3, d[2].Seconds()*1e3)
	}
	sent := fmt.Sprintf("%.3g", r.sent)
	if r.good > 0 {
		sent += fmt.Sprintf(" (%.0f %% answered)", 100*r.good)
	}
	verdict := ""
	if t.kind != "nethttp" {
		verdict = r.verdict(a, base)
	}
	if r.failed > 0 || r.unmeasured {
		verdict += fmt.Sprintf(" (%d of %d failed: %s)", r.failed, r.asked, r.fault)
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %.2f | %.1f | %.0f | %.0f | %s |", a.name, t.name, sent, ms(r.kept), ms(r.fresh),
		r.cpu, r.heap, r.resident, r.shutdown.Seconds()*1e3, verdict)
}

// verdict reports whether the server did as well as the rule at the head of the table wants. What was not measured is
// no "yes".
func (r *result) verdict(a *attack, base *result) string {
	switch {
	case a.heap > 0 && r.unmeasured:
		return "no: heap not measured"
	case a.heap > 0 && r.heap > a.heap:
		return fmt.Sprintf("no: heap above %.0f", a.heap)
	case base == nil: // alone, or net/http has no such feature
		if a.heap > 0 {
			return "yes"
		}
		return ""
	case r.failed*base.asked > base.failed*r.asked:
		return "no: more failed"
	case worse(r.kept, base.kept) || worse(r.fresh, base.fresh):
		return "no: slower"
	}
	return "yes"
}

// worse reports whether p50 or p99 is too far above net/http's.
func worse(a, base [3]time.Duration) bool {
	for i := range 2 { // p50 and p99
		if a[i] > base[i]+base[i]/4+2*time.Millisecond {
			return true
		}
	}
	return false
}

// once runs an attack on a fresh server.
func (o *options) once(ctx context.Context, a *attack, t target) (*result, error) {
	proc, addr, release, err := start(ctx, t)
	if err != nil {
		return nil, err
	}
	defer release()
	defer proc.Stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var sent, good atomic.Int64
	var attackers sync.WaitGroup
	defer attackers.Wait()
	defer cancel()
	for i := range a.attackers {
		me := &attacker{number: i, addr: addr, sent: &sent, good: &good}
		attackers.Go(func() { a.again(ctx, me) })
	}
	for limit := time.Now().Add(patience); sent.Load() == 0 && time.Now().Before(limit) && ctx.Err() == nil; {
		sleep(ctx, 5*time.Millisecond) // a handshake may take its time
	}
	begin := time.Duration(o.seconds * float64(time.Second))
	sleep(ctx, begin/4)
	before, err := measure.Tree(proc.PID())
	if err != nil {
		return nil, err
	}
	began, had, fine := time.Now(), sent.Load(), good.Load()
	during, end := context.WithTimeout(ctx, begin)
	defer end()
	kept, fresh, wait := innocents(during, addr[a.front], a.front)
	wait()
	took := time.Since(began).Seconds()
	after, err := measure.Tree(proc.PID())
	if err != nil {
		return nil, errors.Join(err, proc.Ended())
	}
	cpu := after.Sub(before)
	r := &result{sent: float64(sent.Load()-had) / took, cpu: (cpu.User + cpu.System).Seconds() / took}
	if n := sent.Load() - had; n > 0 {
		r.good = float64(good.Load()-fine) / float64(n)
	}
	if sent.Load() == 0 {
		return nil, errors.New("the attack could send nothing")
	}
	for i, q := range []float64{0.5, 0.99, 1} {
		r.kept[i], r.fresh[i] = kept.quantile(q), fresh.quantile(q)
	}
	r.failed, r.fault = kept.failed+fresh.failed, kept.fault+fresh.fault
	r.asked = len(kept.all) + len(fresh.all)
	if r.heap, r.resident, err = memory(addr[plain]); err != nil {
		r.unmeasured = true
		r.fault += "; " + err.Error()
	}
	if o.stops {
		return r, nil
	}
	return r, o.shutdown(proc, r)
}
