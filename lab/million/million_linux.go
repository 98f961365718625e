package million

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/chert-http/chert/lab/child"
	"github.com/chert-http/chert/lab/load"
	"github.com/chert-http/chert/lab/measure"
	"github.com/chert-http/chert/lab/million/wire"
)

// Run is the profile "million": very many connections in memory, then as many real ones as the machine allows.
func Run(ctx context.Context, args []string, out, log io.Writer) error {
	f := flag.NewFlagSet("million", flag.ContinueOnError)
	inMemory := f.Int("memory", 1_000_000, "how many connections on pollers in memory; 0: none")
	real := f.Int("real", 1_000_000, "how many real ones, on loopback addresses; 0: none")
	most := f.Int("most", 6, "how many GiB of memory the real ones may take, both ends and the kernel together")
	idle := f.Duration("idle", 10*time.Second, "how long the processor's time of idle servers is measured")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *inMemory > 0 {
		if err := memory(ctx, *inMemory, out, log); err != nil {
			return err
		}
	}
	if *real > 0 {
		return sockets(ctx, *real, int64(*most)<<30, *idle, out, log)
	}
	return nil
}

// memory runs TestMillion, and prints its figures.
func memory(ctx context.Context, n int, out, log io.Writer) error {
	lab, err := child.Lab(ctx)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "test", "./test/sim", "-run", "^TestMillion$", "-v", "-count=1", "-timeout", "0",
		"-sim.crowd", strconv.Itoa(n))
	child.Group(cmd)
	cmd.Dir, cmd.Stderr = filepath.Dir(lab), log
	fmt.Fprintln(log, strings.Join(cmd.Args, " "))
	b, err := cmd.Output()
	for line := range strings.Lines(string(b)) {
		if !strings.HasPrefix(line, "=== RUN") {
			fmt.Fprint(out, line)
		}
	}
	if err != nil {
		return errors.New("TestMillion has failed: see above")
	}
	return nil
}

// A process is one end of some of the connections.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(ctx context.Context, binary, role, addr string) (*process, error) {
	p := &process{cmd: exec.CommandContext(ctx, binary, role, addr)}
	p.cmd.Stderr = os.Stderr
	// The clients' calls block: a signal of the runtime would interrupt them.
	if role == "clients" {
		p.cmd.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1")
	}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	o, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.out = in, bufio.NewReader(o)
	return p, p.cmd.Start()
}

// ask sends a line, and reads the answer into v, which may be nil.
func (p *process) ask(v any, format string, args ...any) error {
	if format != "" {
		if _, err := fmt.Fprintf(p.in, format+"\n", args...); err != nil {
			return err
		}
	}
	if v == nil {
		return nil
	}
	b, err := p.out.ReadBytes('\n')
	if err != nil {
		return err
	}
	var failed wire.Failed
	if json.Unmarshal(b, &failed); failed.Error != "" {
		return errors.New(failed.Error)
	}
	return json.Unmarshal(b, v)
}

// stop ends the process. The kernel closes a client's sockets with a reset.
func (p *process) stop() {
	p.in.Close()
	p.cmd.Wait()
}

// pair is a server and its clients.
type pair struct{ server, clients *process }

// sockets opens up to n connections, with a server and a process of clients for as many as the limit of open files
// allows, until one of the limits is met.
func sockets(ctx context.Context, n int, most int64, idle time.Duration, out, log io.Writer) error {
	limit, err := load.RaiseFiles(1 << 20)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "million")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "million")
	if err := child.Build(ctx, binary, "cmd/million"); err != nil {
		return err
	}
	// A pair of addresses has 28,000 ports.
	each := min(limit-100, 20_000, n)
	var pairs []pair
	defer func() {
		for _, p := range pairs {
			p.clients.stop()
			p.server.stop()
		}
	}()
	before := slab()
	used := func() int64 {
		s, c := resident(pairs)
		return slab() - before + s + c
	}
	open, took, ended := 0, time.Duration(0), "it is the number that was asked for"
	var alone []time.Duration
	for open < n {
		if used() > most-int64(each)*16<<10 {
			ended = fmt.Sprintf("the memory that it may take, %d GiB (--most)", most>>30)
			break
		}
		// Of this process alone, in case another one runs.
		addr := fmt.Sprintf("127.%d.%d.%d:8000", 1+os.Getpid()%250, 1+os.Getpid()/250%250, 1+len(pairs))
		var p pair
		if p.server, err = start(ctx, binary, "server", addr); err != nil {
			return err
		}
		if p.clients, err = start(ctx, binary, "clients", addr); err != nil {
			p.server.stop()
			return err
		}
		pairs = append(pairs, p)
		var s wire.Server
		if err := p.server.ask(&s, "state"); err != nil {
			return err
		}
		var c wire.Clients
		for range 100 { // until the server listens
			if err := p.clients.ask(&c, "open 2"); err != nil {
				return err
			}
			if c.Limit == "" {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		if len(pairs) == 1 {
			if alone, err = latency(p); err != nil {
				return err
			}
		}
		if err := p.clients.ask(&c, "open %d", min(each, n-open)-2); err != nil {
			return err
		}
		open += c.Open
		took += c.Took
		fmt.Fprintf(log, "%d connections, %d MiB of memory\n", open, used()>>20)
		if c.Limit != "" {
			ended = c.Limit
			break
		}
	}
	fmt.Fprintf(out, "\n%d real connections, half of them event streams, of %d servers and %d processes of clients\n", open, len(pairs), len(pairs))
	fmt.Fprintf(out, "what ended it: %s; a process may have %d descriptors, file-nr %s\n", ended, limit, strings.Join(strings.Fields(read("/proc/sys/fs/file-nr")), " "))
	kernel, total := slab()-before, used()
	fmt.Fprintf(out, "memory: %d MiB, %d bytes a connection with both ends; %d of them are the kernel's (slab, of the whole machine)\n", total>>20, total/int64(open), kernel/int64(open))
	fmt.Fprintf(out, "opened in %v: %.1f us each, with a request\n", took.Round(time.Millisecond), float64(took.Microseconds())/float64(open))
	return figures(pairs, open, alone, idle, out)
}

// figures prints what the connections cost.
func figures(pairs []pair, open int, alone []time.Duration, idle time.Duration, out io.Writer) error {
	beside, err := latency(pairs[0])
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "an active client alone: p50 %v, p99 %v; beside them: p50 %v, p99 %v\n", of(alone, 50), of(alone, 99), of(beside, 50), of(beside, 99))
	busy := func() (sum time.Duration, err error) {
		for _, p := range pairs {
			var s wire.Server
			if err := p.server.ask(&s, "state"); err != nil {
				return 0, err
			}
			sum += s.CPU
		}
		return sum, nil
	}
	from, err := busy()
	if err != nil {
		return err
	}
	time.Sleep(idle)
	to, err := busy()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "idle for %v: all servers used %v of the processor\n", idle, (to - from).Round(time.Millisecond))
	var heap, objects uint64
	var longest wire.Server
	for _, p := range pairs {
		var s wire.Server
		if err := p.server.ask(&s, "collect"); err != nil {
			return err
		}
		heap, objects = heap+s.Heap, objects+s.Objects
		if s.Collection > longest.Collection {
			longest = s
		}
	}
	inMemory, _ := resident(pairs)
	fmt.Fprintf(out, "heap: %d bytes and %.2f objects a connection, the servers' own included; resident %d bytes; longest collection %v, %v of the processor\n",
		heap/uint64(open), float64(objects)/float64(open), inMemory/int64(open), longest.Collection.Round(time.Millisecond), longest.CollectionCPU)
	return ends(pairs[0], out)
}

// ends measures an event and the end of one server.
func ends(p pair, out io.Writer) error {
	var before, s, after wire.Server
	var c wire.Clients
	if err := p.server.ask(&before, "state"); err != nil {
		return err
	}
	if err := p.clients.ask(nil, "events"); err != nil { // they wait
		return err
	}
	if err := p.server.ask(&s, "publish"); err != nil {
		return err
	}
	if err := p.clients.ask(&c, ""); err != nil {
		return err
	}
	if err := p.server.ask(&after, "state"); err != nil {
		return err
	}
	fmt.Fprintf(out, "an event to the %d streams of a server: %v until the last has it, %.1f us of the server's processor time each\n",
		c.Streams, c.Took.Round(time.Millisecond), us(after.CPU-before.CPU, c.Streams))
	if err := p.server.ask(&s, "shutdown"); err != nil {
		return err
	}
	fmt.Fprintf(out, "Shutdown of a server with %d: %v, %.1f us of its processor time each\n", s.Open, s.Took.Round(time.Millisecond), us(s.CPU, int(s.Open)))
	return nil
}

func us(d time.Duration, n int) float64 { return float64(d.Nanoseconds()) / 1e3 / float64(max(n, 1)) }

func latency(p pair) ([]time.Duration, error) {
	var c wire.Clients
	err := p.clients.ask(&c, "ask 5000")
	slices.Sort(c.Latencies)
	return c.Latencies, err
}

// of returns a percentile of what is sorted.
func of(all []time.Duration, percent int) time.Duration { return all[(len(all)-1)*percent/100] }

func read(file string) string {
	b, _ := os.ReadFile(file)
	return string(b)
}

// slab is the kernel's memory for its objects, of all processes, in bytes.
func slab() int64 {
	for line := range strings.Lines(read("/proc/meminfo")) {
		if rest, ok := strings.CutPrefix(line, "Slab:"); ok {
			n, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return n << 10
		}
	}
	return 0
}

// resident sums what the processes have in memory.
func resident(pairs []pair) (servers, clients int64) {
	for _, p := range pairs {
		s, _ := measure.Resident(p.server.cmd.Process.Pid)
		c, _ := measure.Resident(p.clients.cmd.Process.Pid)
		servers, clients = servers+s, clients+c
	}
	return servers, clients
}
