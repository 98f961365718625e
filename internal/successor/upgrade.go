package successor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"time"

	"github.com/chert-http/chert/internal/systemd"
)

// What Upgrade returns if this process cannot be replaced now.
var (
	ErrBusy     = errors.New("an upgrade is under way already")
	ErrReplaced = errors.New("another process has replaced this one already")
	ErrStarting = errors.New("this process does not serve yet")
)

// Options bound an upgrade. Zero is no time, and for Timeout no bound.
type Options struct {
	// Timeout bounds the time until the successor is ready.
	Timeout time.Duration
	// Confirm is how long it must have been ready without ending: half of it without accepting,
	// half of it beside this process.
	Confirm time.Duration
}

// The defaults, for users of this package. A process that fails with its first requests, or with
// something that it does after its start, has failed after DefaultConfirm.
const (
	DefaultTimeout = time.Minute
	DefaultConfirm = 2 * time.Second
)

// exitWait is how long a process that has closed its end, or was asked to end, may take to end.
const exitWait = 2 * time.Second

// Upgrade starts a successor and returns its process number when it has taken over, after which
// Replaced is closed. After an error nothing has changed, and this process goes on serving. The
// end of ctx ends an upgrade.
func (p *Process) Upgrade(ctx context.Context, o Options) (pid int, err error) {
	if err := p.begin(); err != nil {
		return 0, err
	}
	p.Notify(systemd.Reloading(), systemd.Status("Starting a new process."))
	pid, err = p.upgrade(ctx, o)
	if err != nil {
		for _, k := range p.inherits() {
			if k.Failed != nil {
				k.Failed()
			}
		}
		p.mu.Lock()
		p.upgrading = false
		p.mu.Unlock()
		p.Notify(systemd.Ready, systemd.Status("The upgrade failed: "+err.Error()))
	}
	return pid, err
}

func (p *Process) begin() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.replaced:
		return ErrReplaced
	default:
	}
	switch {
	case !p.ready || p.before != nil:
		return ErrStarting
	case p.upgrading:
		return ErrBusy
	case os.Getpid() == 1:
		return errors.New("this is the process 1 of a container, which ends with it: replace the container")
	case p.program.err != nil:
		return fmt.Errorf("the path of the program is not known: %w", p.program.err)
	}
	p.upgrading = true
	return nil
}

func (p *Process) upgrade(ctx context.Context, o Options) (pid int, err error) {
	message, fds, err := p.gather()
	if err != nil {
		return 0, err
	}
	c, err := start(p.program, fds)
	closeAll(fds)
	if err != nil {
		return 0, fmt.Errorf("cannot start %s: %w", p.program.path, err)
	}
	defer c.control.Close()
	if err := c.introduce(ctx, o.Timeout, message); err != nil {
		c.stop()
		return 0, err
	}
	// First it only lives, and a failure costs nothing. Then it accepts too, and one costs what it
	// has accepted: there are failures that only come with requests.
	c.control.SetDeadline(time.Now().Add(exitWait + o.Confirm))
	if err := c.lives(ctx, o.Confirm/2); err != nil {
		return 0, err
	}
	send(c.control, step{Accept: true})
	if err := c.lives(ctx, o.Confirm-o.Confirm/2); err != nil {
		return 0, err
	}
	p.Notify(systemd.MainPID(c.pid), systemd.Ready, systemd.Status(""))
	p.replace(c.pid)
	send(c.control, step{Confirmed: true})
	return c.pid, nil
}

// gather duplicates the sockets of all listeners.
func (p *Process) gather() (m handover, fds []int, err error) {
	p.mu.Lock()
	kept := slices.Clone(p.kept)
	p.passed = nil
	p.mu.Unlock()
	for _, k := range kept {
		p.mu.Lock()
		p.passed = append(p.passed, k)
		p.mu.Unlock()
		some, err := k.Sockets()
		if errors.Is(err, net.ErrClosed) {
			continue
		}
		if err != nil {
			closeAll(fds)
			return m, nil, fmt.Errorf("cannot pass the socket of %s: %w", k.Address, err)
		}
		fds = append(fds, some...)
		one := passed{Network: k.Network, Address: k.Address, Number: k.Number, Count: len(some)}
		if k.Note != nil {
			one.Note = k.Note()
		}
		m.Sockets = append(m.Sockets, one)
	}
	return m, fds, nil
}

// child is a successor that was started.
type child struct {
	pid     int
	process *os.Process
	control net.Conn
	exited  chan struct{} // closed when it has ended
	state   string        // how, then
}

// introduce tells the successor what it has, and waits until it is ready.
func (c *child) introduce(ctx context.Context, timeout time.Duration, message handover) error {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, errTimeout)
		defer cancel()
	}
	defer context.AfterFunc(ctx, func() { c.control.SetDeadline(time.Unix(1, 0)) })()
	err := send(c.control, message)
	var r report
	if err == nil {
		err = receive(bufio.NewReader(c.control), &r)
	}
	switch {
	case err == nil && r.Ready:
		return nil
	case err == nil:
		return fmt.Errorf("the new process %d failed: %s", c.pid, r.Error)
	case ctx.Err() != nil:
		if err = context.Cause(ctx); err == errTimeout {
			err = fmt.Errorf("the new process %d was not ready within %v", c.pid, timeout)
		}
		return err
	case !errors.Is(err, io.EOF) && !isGone(err):
		return fmt.Errorf("the new process %d does not report as it should: %w", c.pid, err)
	}
	select {
	case <-c.exited:
		return fmt.Errorf("the new process %d ended before it was ready: %s", c.pid, c.state)
	case <-time.After(exitWait):
		return fmt.Errorf("the new process %d does not report: it may be another program, or a version that "+
			"cannot follow this one", c.pid)
	}
}

var errTimeout = errors.New("timeout")

// lives fails if the process ends within a time.
func (c *child) lives(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c.exited:
		return fmt.Errorf("the new process %d was ready, and then ended: %s", c.pid, c.state)
	case <-ctx.Done():
		c.stop()
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// stop ends the process: gracefully, as it may have connections already, and otherwise hard.
func (c *child) stop() {
	terminate(c.process)
	select {
	case <-c.exited:
	case <-time.After(exitWait):
		c.process.Kill()
		<-c.exited
	}
}

// await notes the end of the process.
func (c *child) await() {
	state, err := c.process.Wait()
	if c.state = "unknown"; err == nil {
		c.state = state.String()
	}
	close(c.exited)
}
