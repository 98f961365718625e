package profile

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chert-http/chert/lab/child"
	"github.com/chert-http/chert/lab/link"
	"github.com/chert-http/chert/lab/load"
	"github.com/chert-http/chert/lab/report"
	"github.com/chert-http/chert/lab/rival"
)

// run is the Run of a scene's Profile.
func (s scene) run(ctx context.Context, args []string, out, log io.Writer) error {
	c := common{needs: s.needs, server: s.server}
	if s.folder != nil && c.server == "" {
		c.server = fileServer
	}
	var p Pace
	f := flag.NewFlagSet(s.name, flag.ContinueOnError)
	c.register(f, s.rivals)
	p.register(f)
	connections := f.String("connections", s.connections, "numbers of connections; a table for each")
	loadCore := f.Int("load-core", -1, "the core the load comes from (-1: the first no server has)")
	var veth link.Options
	f.IntVar(&veth.MTU, "veth", 0, "servers run in a network namespace, over a veth pair with this `MTU`; 0 for loopback")
	f.StringVar(&veth.Congestion, "congestion", "", "their TCP congestion `control`, with --veth; empty for the default")
	if s.held > 0 {
		f.IntVar(&s.held, "idle", s.held, "how many idle connections")
	}
	if s.folder != nil && s.folder.count > 0 {
		f.IntVar(&s.folder.count, "files", s.folder.count, "how many files")
	}
	if err := parse(f, args); err != nil {
		return err
	}
	counts, err := numbers(*connections)
	if err != nil {
		return err
	}
	if err := p.check(); err != nil {
		return err
	}
	if err := s.check(); err != nil {
		return err
	}
	if err := installed(s.programs()...); err != nil {
		return err
	}
	cmp := Compare{Checks: []Check{{s.request, s.want}}, Pace: p, TLS: s.tls, Streams: s.streams, H3: s.h3, Log: log}
	if cmp.Seats, err = c.seats(*loadCore); err != nil {
		return err
	}
	if s.request.Close && !load.PortsReused() {
		fmt.Fprintln(log, "net.ipv4.tcp_tw_reuse is 0: there may be no ports left, which counts as errors; 2 allows their reuse on loopback")
	}
	if veth != (link.Options{}) {
		if cmp.Link, err = link.Open(ctx, veth); err != nil {
			return err
		}
		defer cmp.Link.Close()
		s.title += ", " + strings.ReplaceAll(veth.Describe(), "%", "%%")
	}
	specs, dir, err := c.open(ctx, log)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if s.folder != nil {
		err = s.folder.open(&cmp, dir)
		defer os.RemoveAll(cmp.Folder)
		if err != nil {
			return err
		}
	}
	if s.burst > 0 {
		cmp.Sockets = &load.Sockets{Burst: s.burst, Size: messageSize}
	}
	if s.burst > 0 || s.h3 {
		cmp.pace = filepath.Join(dir, "pace")
		if err := child.Build(ctx, cmp.pace, load.PaceFolder); err != nil {
			return err
		}
	}
	file, err := s.tables(ctx, &cmp, specs, counts, out)
	if err != nil {
		return err
	}
	return c.finish(file, cmp.Faults, out)
}

// generator is the program that makes the load.
func (s scene) generator() string {
	switch {
	case s.burst > 0 || s.h3:
		return "load"
	case s.streams > 0:
		return "h2load"
	}
	return "wrk"
}

// programs are those that must be installed. The lab brings the load of WebSockets and of HTTP/3.
func (s scene) programs() []string {
	if s.generator() == "load" {
		return []string{"taskset"}
	}
	return []string{s.generator(), "taskset"}
}

// check validates the numbers that flags have changed.
func (s scene) check() error {
	if s.held < 0 {
		return fmt.Errorf("%d idle connections: may not be less than 0", s.held)
	}
	if s.folder != nil && s.folder.count < 1 && s.folder.files == nil {
		return fmt.Errorf("%d files: may not be less than 1", s.folder.count)
	}
	return nil
}

// tables makes a table for each number of connections.
func (s scene) tables(ctx context.Context, cmp *Compare, specs []rival.Spec, counts []int, out io.Writer) (report.File, error) {
	var file report.File
	together, largest := [][]rival.Spec{specs}, 1
	if s.held > 0 {
		// What is compared is one server with itself, and there may not be files enough for the connections of all.
		together = families(specs)
		for _, family := range together {
			largest = max(largest, len(family))
		}
	}
	limit, err := load.RaiseFiles(spareFiles + slices.Max(counts) + largest*s.held)
	if err != nil {
		return file, err
	}
	held, message := clamp(s.held, largest, limit)
	if message != "" {
		fmt.Fprintln(cmp.Log, message)
	}
	for i, n := range counts {
		turns := len(entrants(specs, held)) * (cmp.warmUp() + cmp.Rounds*cmp.Seconds)
		fmt.Fprintf(cmp.Log, "table %d of %d: about %v\n", i+1, len(counts), time.Duration(turns)*time.Second)
		table := report.Comparison{Connections: n, Title: fmt.Sprintf("%s, %s: %d rounds of %d s, %s",
			strings.TrimRight(s.name, "0123456789"), fmt.Sprintf(s.title, n), cmp.Rounds, cmp.Seconds, cmp.Seats.Describe(s.generator()))}
		for _, some := range together {
			series, err := cmp.Run(ctx, entrants(some, held), n)
			if err != nil {
				return file, err
			}
			table.Series = append(table.Series, series...)
		}
		table.Text(out)
		fmt.Fprintln(out)
		file.Comparisons = append(file.Comparisons, table)
	}
	return file, nil
}

// entrants makes one of each server; or two, of which the second holds idle connections.
func entrants(specs []rival.Spec, held int) []Entrant {
	var all []Entrant
	for _, spec := range specs {
		all = append(all, Entrant{Spec: spec, Name: spec.Name, present: spec.Present})
		if held > 0 {
			all = append(all, holding(spec, held))
		}
	}
	return all
}

// holding is a server that holds idle connections. It is compared with the same one without, and of other revisions
// with one that holds as many.
func holding(spec rival.Spec, held int) Entrant {
	named := func(server string) string { return fmt.Sprintf("%s+%d", server, held) }
	e := Entrant{Spec: spec, Name: named(spec.Name), base: spec.Name, Idle: held}
	if spec.Present != "" {
		e.present = named(spec.Present)
	}
	return e
}
