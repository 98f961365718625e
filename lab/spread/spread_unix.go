//go:build unix

package spread

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/chert-http/chert/lab/child"
)

// The limit of each instance for an address: burst at once, and then so few that none come while this runs.
const (
	burst = 5
	limit = "5/h burst 5"
)

// Main runs the processes, and prints a line for each step.
func Main(ctx context.Context, args []string, out, log io.Writer) error {
	flags := flag.NewFlagSet("spread", flag.ContinueOnError)
	flags.SetOutput(log)
	clients := flags.Int("clients", 2000, "how many `addresses` send requests, of 127.0.0.0/8")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("spread takes no argument %q", flags.Arg(0))
	}
	if *clients < 1 {
		return fmt.Errorf("%d clients: there must be one", *clients)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "%d clients, each may send %d requests\tclients moved\tby chert check\tadmitted\tof these beyond the limit\n", *clients, burst)
	err := measure(ctx, *clients, log, func(r row) {
		moved := "-"
		if r.expected != "" {
			moved = fmt.Sprintf("%d (%.1f %%)", r.moved, 100*float64(r.moved)/float64(*clients))
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%d\n", r.name, moved, cmp.Or(r.expected, "-"), r.admitted, r.beyond)
	})
	return errors.Join(err, table.Flush())
}

// A row is what a step has shown.
type row struct {
	name                    string
	moved, admitted, beyond int
	expected                string // what chert check says of the share that moves; "" if there was nothing before
}

// measure takes all steps.
func measure(ctx context.Context, clients int, log io.Writer, each func(row)) error {
	dir, err := os.MkdirTemp("", "chert-spread-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r := &run{dir: dir, chert: filepath.Join(dir, "chert"), clients: clients, at: map[int]string{}}
	lab, err := child.Lab(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(log, "building chert")
	if err := child.BuildAt(ctx, r.chert, filepath.Join(lab, "..", "cmd", "chert")); err != nil {
		return err
	}
	defer r.stop()
	for _, step := range steps {
		fmt.Fprintln(log, step.name)
		row, err := r.step(ctx, step)
		if err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		each(row)
	}
	return nil
}

// A step is a set of instances, after which each client sends twice as many requests as it may.
type step struct {
	name      string
	balance   string
	instances []int
	fresh     bool // the instances are started anew, with full buckets
}

var steps = []step{
	{"round-robin, 3 instances", "round-robin", []int{1, 2, 3}, true},
	{"hash client, 3 instances", "hash client", []int{1, 2, 3}, true},
	{"the same again", "hash client", []int{1, 2, 3}, false},
	{"a fourth comes", "hash client", []int{1, 2, 3, 4}, false},
	{"the second goes", "hash client", []int{1, 3, 4}, false},
}

type run struct {
	dir, chert string
	clients    int
	at         map[int]string // which instance the client's latest request got to
	had        map[int]int    // what was admitted of a client since the instances were started
	instances  map[int]*child.Child
	front      *child.Child
	address    string // of the front
	loaded     int    // how many files the front has loaded
}

func (r *run) file(name string) string { return filepath.Join(r.dir, name) }

func (r *run) step(ctx context.Context, s step) (row, error) {
	if s.fresh {
		r.stop()
		r.had, r.instances = map[int]int{}, map[int]*child.Child{}
	}
	for _, n := range s.instances {
		if r.instances[n] == nil {
			if err := r.instance(ctx, n); err != nil {
				return row{}, err
			}
		}
	}
	now := row{name: s.name}
	var err error
	if now.expected, err = r.balance(ctx, s); err != nil {
		return now, err
	}
	for n, c := range r.instances {
		if !slices.Contains(s.instances, n) {
			c.Stop() // the front sends it nothing any more
			delete(r.instances, n)
		}
	}
	for c := range r.clients {
		before := r.at[c]
		ok, err := r.ask(ctx, c, 2*burst*len(s.instances))
		if err != nil {
			return now, err
		}
		if before != "" && r.at[c] != before {
			now.moved++
		}
		now.admitted += ok
		now.beyond += max(r.had[c]+ok-burst, 0) - max(r.had[c]-burst, 0)
		r.had[c] += ok
	}
	return now, nil
}

// stop ends all processes.
func (r *run) stop() {
	for _, c := range r.instances {
		c.Stop()
	}
	if r.front != nil {
		r.front.Stop()
		r.front = nil
	}
	clear(r.at)
}

// instance starts one of the servers, at a unix socket: it trusts what the front says about clients.
func (r *run) instance(ctx context.Context, n int) error {
	name := r.file(fmt.Sprint(n))
	text := fmt.Sprintf("listen = [%q]\ntrusted_proxies = [\"unix\"]\n[rate_limit]\nlimit = %q\n[[site]]\nhosts = [\"*\"]\n"+
		"[[site.route]]\npath = \"/\"\nrespond = 200\nbody = \"%d\"\n", "unix:"+name+".sock", limit, n)
	if err := os.WriteFile(name+".toml", []byte(text), 0o600); err != nil {
		return err
	}
	c, err := r.start(ctx, name+".toml")
	if err != nil {
		return err
	}
	r.instances[n] = c
	return r.await(ctx, c, "/", "--at", "unix:"+name+".sock")
}

func (r *run) start(ctx context.Context, file string) (*child.Child, error) {
	return child.Start(ctx, child.Command{Args: []string{r.chert, "serve", "--config", file, "--quiet", "--shutdown-timeout", "0s"}})
}

// await waits until a process responds with 2xx.
func (r *run) await(ctx context.Context, c *child.Child, path string, flags ...string) error {
	for {
		args := append([]string{r.chert, "health", "http://localhost" + path}, flags...)
		_, err := child.Run(ctx, child.Command{Args: args})
		if err == nil {
			return nil
		}
		if ended := c.Ended(); ended != nil {
			return ended
		}
		if ctx.Err() != nil {
			return err
		}
	}
}

// balance starts the front, or has it load another file, and returns what chert check expects of that.
func (r *run) balance(ctx context.Context, s step) (expected string, err error) {
	if r.front == nil {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		r.address = l.Addr().String()
		l.Close()
	}
	r.loaded++
	ready := fmt.Sprintf("/loaded/%d", r.loaded)
	var servers []string
	for _, n := range s.instances {
		servers = append(servers, fmt.Sprintf("%q", "unix:"+r.file(fmt.Sprint(n))+".sock"))
	}
	text := fmt.Sprintf("listen = [%q]\n[upstream.app]\nservers = [%s]\nbalance = %q\n[[site]]\nhosts = [\"*\"]\nproxy = \"app\"\n"+
		"[[site.route]]\npath = %q\nrespond = 204\n", r.address, strings.Join(servers, ", "), s.balance, ready)
	file, next := r.file("front.toml"), r.file("next.toml")
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		return "", err
	}
	if r.front != nil {
		out, err := child.Run(ctx, child.Command{Args: []string{r.chert, "check", next, "--against", file}})
		if err != nil {
			return "", err
		}
		expected = shareOf(out.Stdout)
	}
	if err := os.Rename(next, file); err != nil {
		return "", err
	}
	if r.front == nil {
		if r.front, err = r.start(ctx, file); err != nil {
			return "", err
		}
	} else if err := syscall.Kill(r.front.PID(), syscall.SIGHUP); err != nil {
		return "", err
	}
	return expected, r.await(ctx, r.front, ready, "--at", r.address)
}

// shareOf finds the share in what chert check says of an upstream.
func shareOf(said string) string {
	for line := range strings.Lines(said) {
		if before, _, ok := strings.Cut(line, " %"); ok && strings.Contains(line, "upstream app") {
			return before[strings.LastIndexByte(before, ' ')+1:] + " %"
		}
	}
	return "0 %"
}
