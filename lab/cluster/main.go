package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch {
	case len(os.Args) > 1 && os.Args[1] == "instance":
		err = instance(ctx, os.Args[2:])
	case len(os.Args) > 1 && os.Args[1] == "nats":
		err = natsMain(ctx, os.Args[2:])
	case len(os.Args) > 1 && os.Args[1] == "clients":
		err = clients(os.Args[2:])
	default:
		err = run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A plan is what is run.
type plan struct {
	long, quiet           time.Duration
	clients, topics, rate int
	instances, perProcess int
	store                 string
	dir                   string
	ctx                   context.Context
	out, log              io.Writer
	addrs                 []string
	self                  string
	failed, acked         atomic.Int64
	everywhere            bool // each event is published on each instance
	nobody                int  // added to the numbers of topics, to publish where no client is
}

func run(ctx context.Context, args []string, out, log io.Writer) error {
	p := &plan{ctx: ctx, out: out, log: log}
	f := flag.NewFlagSet("cluster", flag.ContinueOnError)
	f.SetOutput(log)
	f.DurationVar(&p.long, "time", 10*time.Minute, "how long things fail")
	f.DurationVar(&p.quiet, "quiet", 20*time.Second, "how long nothing fails, before; and of topics in memory")
	f.IntVar(&p.clients, "clients", 30000, "how many clients, on all instances together")
	f.StringVar(&p.store, "store", "redis", "redis or nats")
	f.IntVar(&p.topics, "topics", 1000, "how many topics")
	f.IntVar(&p.rate, "rate", 200, "how many events a second")
	f.IntVar(&p.instances, "instances", 3, "how many instances")
	f.IntVar(&p.perProcess, "per-process", 10000, "how many clients a process has at most")
	rounds := f.Int("rounds", 0, "compare with memory in so many turns of -quiet each, and let nothing fail")
	also := f.String("also", "", "with -rounds: another build of this command, to compare with too")
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	var err error
	if p.self, err = os.Executable(); err != nil {
		return err
	}
	if p.dir, err = os.MkdirTemp("", "cluster"); err != nil {
		return err
	}
	defer os.RemoveAll(p.dir)
	fmt.Fprintf(out, "%d clients, %d topics, %d events/s, %d instances\n\n", p.clients, p.topics, p.rate, p.instances)
	if *rounds > 0 {
		return p.compare(*rounds, *also)
	}
	fmt.Fprintln(out, "| | events/s | deliveries | CPU to publish | CPU of an instance for a delivery, besides | "+
		"the store's CPU | p50 | p99 | commands that read, for an event |")
	fmt.Fprintln(out, "| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	if p.quiet > 0 {
		if err := p.memory(); err != nil {
			return err
		}
	}
	return p.shared()
}

// memory is as many instances, clients and deliveries with topics in memory. Each event is published
// on each instance, with an ID that is the same on all.
func (p *plan) memory() error {
	own := p.inMemory()
	servers, err := own.startServers("")
	if err != nil {
		return err
	}
	defer servers.kill()
	g, c, err := own.measure("memory", servers, nil)
	if err != nil {
		return err
	}
	defer g.kill()
	time.Sleep(time.Second)
	all, err := g.end()
	if err != nil {
		return err
	}
	all.row(p.out, fmt.Sprint(p.instances, " instances, topics in memory"), c)
	return nil
}

// inMemory is the plan of instances with topics in memory.
func (p *plan) inMemory() *plan {
	own := p.copy()
	own.everywhere = true
	return own
}

// copy is the same plan for other instances.
func (p *plan) copy() *plan {
	return &plan{ctx: p.ctx, log: p.log, out: p.out, dir: p.dir, self: p.self, topics: p.topics, clients: p.clients,
		rate: p.rate, instances: p.instances, perProcess: p.perProcess, quiet: p.quiet, store: p.store}
}

// cost is what the instances and the store have used while nothing failed.
type cost struct {
	from, to  time.Time
	publish   time.Duration // the processor's time of an instance for a request that publishes
	requests  int           // that were in the time
	used      time.Duration // by all instances
	storeUsed time.Duration
	commands  int // that read
}

// measure starts the clients and publishes for a while, before and after that. s may be nil.
func (p *plan) measure(name string, servers servers, s store) (*clientGroup, *cost, error) {
	c := &cost{}
	p.publishFor(time.Second)
	if p.quiet > 0 {
		before := servers.cpu()
		if n := p.publishFor(p.quiet / 2); n > 0 {
			c.publish = (servers.cpu() - before) / time.Duration(n)
		}
	}
	g, err := p.startClients(name)
	if err != nil {
		return nil, nil, err
	}
	p.publishFor(3 * time.Second)
	c.used, c.from = servers.cpu(), time.Now()
	if s != nil {
		c.storeUsed, c.commands = s.cpu(), s.reads()
	}
	if p.quiet > 0 {
		c.requests = p.publishFor(p.quiet)
	}
	c.used, c.to = servers.cpu()-c.used, time.Now()
	if s != nil {
		c.storeUsed, c.commands = s.cpu()-c.storeUsed, s.reads()-c.commands
	}
	return g, c, nil
}

// shared is what this command is for.
func (p *plan) shared() error {
	st, err := startStore(p)
	if err != nil {
		return err
	}
	defer st.kill()
	servers, err := p.startServers(st.url())
	if err != nil {
		return err
	}
	defer servers.kill()
	g, quiet, err := p.measure("shared", servers, st)
	if err != nil {
		return err
	}
	defer g.kill()

	p.failed.Store(0)
	p.acked.Store(0)
	fmt.Fprintf(p.log, "%s: things fail for %v\n", time.Now().Format(time.TimeOnly), p.long)
	c := &chaos{p: p, store: st, servers: servers}
	done := make(chan struct{})
	go func() {
		c.run(p.long)
		close(done)
	}()
	start := time.Now()
	p.publishUntil(done)
	end := time.Now()
	if err := p.ctx.Err(); err != nil {
		return err
	}
	fmt.Fprintf(p.log, "%s: all is to be well\n", time.Now().Format(time.TimeOnly))
	if err := st.heal(); err != nil {
		return err
	}
	if err := p.last(); err != nil {
		return err
	}
	time.Sleep(8 * time.Second) // clients that are waiting connect again within 2 s
	all, err := g.end()
	if err != nil {
		return err
	}
	if p.quiet > 0 {
		all.row(p.out, fmt.Sprint(p.instances, " instances, ", st.name()), quiet)
	}
	all.row(p.out, "the same while things fail", &cost{from: start, to: end})
	fmt.Fprintf(p.out, "\n%s\nevents published: %d, refused: %d\n", c, p.acked.Load(), p.failed.Load())
	return all.verify(p.out, st)
}

// freeAddr returns an address that nothing listens on.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// publishFor publishes for a while. It returns how many requests were answered.
func (p *plan) publishFor(d time.Duration) int {
	before := p.acked.Load()
	done := make(chan struct{})
	t := time.AfterFunc(d, func() { close(done) })
	defer t.Stop()
	p.publishUntil(done)
	return int(p.acked.Load() - before)
}

// publishUntil publishes, to random topics by random instances.
func (p *plan) publishUntil(done <-chan struct{}) {
	const workers = 8
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			tick := time.NewTicker(time.Second * workers / time.Duration(p.rate))
			defer tick.Stop()
			for {
				select {
				case <-done:
					return
				case <-p.ctx.Done():
					return
				case <-tick.C:
				}
				topic, first, n := p.nobody+rand.N(p.topics), rand.N(len(p.addrs)), 1
				if p.everywhere {
					n = len(p.addrs)
				}
				body := strconv.FormatInt(time.Now().UnixNano(), 10)
				for i := range n {
					if err := p.publish(topic, (first+i)%len(p.addrs), body); err != nil {
						p.failed.Add(1)
					} else {
						p.acked.Add(1)
					}
				}
			}
		})
	}
	all.Wait()
}

var publisher = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 16}}

func (p *plan) publish(topic, instance int, body string) error {
	res, err := publisher.Post("http://"+p.addrs[instance]+"/"+strconv.Itoa(topic), "text/plain", strings.NewReader(body))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", res.Status, strings.TrimSpace(string(b)))
	}
	return nil
}

// last publishes an event in each topic, after which nothing follows.
func (p *plan) last() error {
	for topic := range p.topics {
		var err error
		for range 100 {
			if err = p.publish(topic, topic%len(p.addrs), "0"); err == nil {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		if err != nil {
			return fmt.Errorf("the last event of a topic: %w", err)
		}
	}
	return nil
}

// clientGroup is the processes of clients.
type clientGroup struct {
	p     *plan
	cmds  []*exec.Cmd
	stdin []io.Closer
	files []string
}

func (p *plan) startClients(name string) (*clientGroup, error) {
	g := &clientGroup{p: p}
	var ready []io.Reader
	for first := 0; first < p.clients; first += p.perProcess {
		file := filepath.Join(p.dir, fmt.Sprint(name, first))
		cmd := exec.CommandContext(p.ctx, p.self, "clients", "-first", strconv.Itoa(first), "-topics", strconv.Itoa(p.topics),
			"-n", strconv.Itoa(min(p.perProcess, p.clients-first)), "-addrs", strings.Join(p.addrs, ","), "-file", file)
		cmd.Stderr = p.log
		in, err := cmd.StdinPipe()
		if err != nil {
			return nil, err
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		g.cmds, g.stdin, g.files = append(g.cmds, cmd), append(g.stdin, in), append(g.files, file)
		ready = append(ready, out)
	}
	for _, r := range ready {
		var line [6]byte
		if _, err := io.ReadFull(r, line[:]); err != nil {
			g.kill()
			return nil, fmt.Errorf("clients do not connect: %w", err)
		}
	}
	return g, nil
}

func (g *clientGroup) kill() {
	for _, cmd := range g.cmds {
		cmd.Process.Kill()
		cmd.Wait()
	}
}

// end ends the clients, and returns what they have got.
func (g *clientGroup) end() (*results, error) {
	for _, in := range g.stdin {
		in.Close()
	}
	for _, cmd := range g.cmds {
		if err := cmd.Wait(); err != nil {
			return nil, fmt.Errorf("clients: %w", err)
		}
	}
	g.cmds = nil
	return readResults(g.p, g.files)
}
