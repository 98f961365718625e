package child

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// grace is how long a child may take to end by itself after SIGTERM.
const grace = 3 * time.Second

// Command says what to run.
type Command struct {
	Args  []string // Args[0] is a path, or a name for Find
	Env   []string // added to the lab's own environment
	Cores []int    // those it may use; none leaves it to the kernel
}

// Child is a running program. All methods may be called concurrently.
type Child struct {
	name string
	cmd  *exec.Cmd
	out  tail
	done chan struct{} // closed when the program was waited for; err is set before
	err  error
	stop sync.Once
}

// Start starts a program. It ends at the latest when ctx does.
func Start(ctx context.Context, c Command) (*Child, error) {
	return start(ctx, c, nil)
}

func start(ctx context.Context, c Command, stdout *bytes.Buffer) (*Child, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	args, err := pin(c)
	if err != nil {
		return nil, err
	}
	p := &Child{name: c.Args[0], cmd: exec.Command(args[0], args[1:]...), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), c.Env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	if stdout != nil {
		p.cmd.Stdout = stdout
	}
	// Without it a grandchild that keeps the pipe open would hold up Wait.
	p.cmd.WaitDelay = time.Second
	ownGroup(p.cmd)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	unhook := context.AfterFunc(ctx, p.Stop)
	go func() {
		p.err = p.cmd.Wait()
		killGroup(p.PID()) // processes that outlived the leader
		unhook()
		close(p.done)
	}()
	return p, nil
}

// Group lets a command that was made with a context end what it has started too when the context ends: of "go test" the
// test, which would run on.
func Group(cmd *exec.Cmd) {
	ownGroup(cmd)
	cmd.Cancel = func() error {
		terminateGroup(cmd.Process.Pid)
		return cmd.Process.Kill()
	}
}

// Finished is a program that ran to its end without error.
type Finished struct {
	Stdout string
	CPU    time.Duration // user + system
}

// Run runs a program to its end.
func Run(ctx context.Context, c Command) (Finished, error) {
	var stdout bytes.Buffer
	p, err := start(ctx, c, &stdout)
	if err != nil {
		return Finished{}, err
	}
	<-p.done
	if ctx.Err() != nil {
		return Finished{}, ctx.Err()
	}
	if p.err != nil {
		return Finished{}, fmt.Errorf("%s: %w\n%s", p.name, p.err, strings.TrimSpace(stdout.String()+"\n"+p.out.String()))
	}
	state := p.cmd.ProcessState
	return Finished{stdout.String(), state.UserTime() + state.SystemTime()}, nil
}

// pin puts taskset before the command: the affinity is then set before the program has any thread that could miss it.
// taskset becomes the program by exec, so the process keeps its number.
func pin(c Command) ([]string, error) {
	program, err := Find(c.Args[0])
	if err != nil {
		return nil, err
	}
	args := append([]string{program}, c.Args[1:]...)
	if len(c.Cores) == 0 {
		return args, nil
	}
	taskset, err := Find("taskset")
	if err != nil {
		return nil, err
	}
	list := make([]string, len(c.Cores))
	for i, core := range c.Cores {
		list[i] = strconv.Itoa(core)
	}
	return append([]string{taskset, "-c", strings.Join(list, ",")}, args...), nil
}

// PID is the process number, and that of the process group.
func (p *Child) PID() int { return p.cmd.Process.Pid }

// Done is closed when the program has ended.
func (p *Child) Done() <-chan struct{} { return p.done }

// Ended is nil while the program runs; afterwards it says how it ended and what it last wrote.
func (p *Child) Ended() error {
	select {
	case <-p.done:
	default:
		return nil
	}
	how := "ended"
	if p.err != nil {
		how = p.err.Error()
	}
	return fmt.Errorf("%s: %s\n%s", p.name, how, strings.TrimSpace(p.out.String()))
}

// Stop ends the program and everything it started. It returns when that is done.
func (p *Child) Stop() {
	p.stop.Do(func() {
		select {
		case <-p.done:
			return // its number may already have been reused
		default:
		}
		terminateGroup(p.PID())
		select {
		case <-p.done:
		case <-time.After(grace):
			killGroup(p.PID())
		}
	})
	<-p.done
}

// tailSize is how much of a child's last output is kept for an error message.
const tailSize = 4096

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - tailSize; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}
