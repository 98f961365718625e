package successor

import (
	"bufio"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/systemd"
)

// A Process is this process, as one of those that follow each other. Its methods are safe for
// concurrent use.
type Process struct {
	program   program
	accepting chan struct{} // closed when this process may accept
	confirmed chan struct{} // closed when this process is the one that serves
	replaced  chan struct{} // closed when another one is

	mu        sync.Mutex
	before    net.Conn // to the process before, until it has heard of this one; nil without one
	answers   *bufio.Reader
	err       error     // of what was inherited
	inherited []*Socket // not taken yet
	left      []*Socket // were not taken until Ready; closed
	kept      []*Kept
	passed    []*Kept // those that the latest successor inherits
	ready     bool
	serves    bool // confirmed is closed, or about to be
	upgrading bool
	successor int // the number of the process that has replaced this one
}

// program is what is started as successor.
type program struct {
	path, dir string
	args      []string
	err       error
}

// A Socket was passed by the process before or by systemd.
type Socket struct {
	Network, Address string
	// FDs are the descriptors of all sockets that listen on the address, which whoever has taken
	// the Socket owns. They do not block.
	FDs []int
	// Note is what the process before has noted for this one.
	Note []byte
	// Number is that of the descriptor that systemd had passed; 0 for other sockets.
	Number int
}

// A Kept is a listener that the successor is to inherit.
type Kept struct {
	Network, Address string
	Number           int
	// Note returns what the successor is to know of it; nil for nothing.
	Note func() []byte
	// Sockets duplicates the sockets, which the caller then owns. net.ErrClosed: there are none
	// any more.
	Sockets func() ([]int, error)
	// Confirmed and Replaced, if not nil, are called before the channels of Process of these names
	// are closed. That waits for them; Replaced of all is called at the same time, if Sockets was.
	// Keep calls Confirmed if it comes later.
	Confirmed, Replaced func()
	// Failed, if not nil, is called when a process for which Sockets was called does not serve after
	// all, and before Upgrade returns.
	Failed func()
}

// Current is this process. The first call takes what was inherited, and the variables that tell
// of it out of the environment. It should come before the working directory changes: paths of
// arguments are relative to that.
var Current = sync.OnceValue(func() *Process {
	p := &Process{program: thisProgram(), accepting: make(chan struct{}),
		confirmed: make(chan struct{}), replaced: make(chan struct{})}
	if v, ok := os.LookupEnv(controlVar); ok {
		os.Unsetenv(controlVar)
		p.err = p.inherit(v)
	}
	if p.before == nil {
		close(p.accepting)
	}
	for _, s := range systemd.Sockets() {
		sys.CloseOnExec(s.FD)
		if !sys.IsListening(s.FD) {
			sys.Close(s.FD)
			p.err = errors.New("the service manager has passed a descriptor, " + strconv.Quote(s.Name) +
				", that is no listening stream socket")
			continue
		}
		if err := sys.SetNonblock(s.FD); err != nil {
			p.err = err
		}
		p.inherited = append(p.inherited, &Socket{Network: "fd", Address: s.Name, Number: s.FD, FDs: []int{s.FD}})
	}
	return p
})

// thisProgram finds the path under which the program was started, so that a link to a new version
// is followed, or else its own.
func thisProgram() (p program) {
	p.args = os.Args
	if p.dir, p.err = os.Getwd(); p.err != nil {
		return p
	}
	own, err := os.Executable()
	if path, e := exec.LookPath(os.Args[0]); e == nil {
		if path, e = filepath.Abs(path); e == nil && sameFile(path, own) {
			p.path = path
			return p
		}
	}
	p.path, p.err = own, err
	return p
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// Err returns why what was passed to this process cannot be used, nil if it can.
func (p *Process) Err() error { return p.err }

// Follows reports whether a process before this one still serves.
func (p *Process) Follows() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.before != nil
}

// Take returns the socket that was passed for an address, if there is one that was not taken. The
// network "fd" is for what systemd has passed, by name or by the descriptor's number.
func (p *Process) Take(network, address string) (*Socket, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.inherited, func(s *Socket) bool { return s.Network == network && s.Address == address })
	if i < 0 && network == "fd" {
		i = slices.IndexFunc(p.inherited, func(s *Socket) bool {
			return s.Network == "fd" && strconv.Itoa(s.Number) == address
		})
	}
	if i < 0 {
		i = slices.IndexFunc(p.inherited, func(s *Socket) bool { return s.listensOn(network, address) })
	}
	if i < 0 {
		return nil, false
	}
	s := p.inherited[i]
	p.inherited = slices.Delete(p.inherited, i, i+1)
	return s, true
}

// listensOn reports whether a TCP address, which may be written in another way, is the socket's.
func (s *Socket) listensOn(network, address string) bool {
	if s.Network != network || len(network) < 3 || network[:3] != "tcp" || len(s.FDs) == 0 {
		return false
	}
	want, err := net.ResolveTCPAddr(network, address)
	have, ok := sys.LocalAddr(s.FDs[0]).(*net.TCPAddr)
	return err == nil && ok && want.Port != 0 && want.IP != nil && want.String() == have.String()
}

// Passed returns the sockets that were not taken.
func (p *Process) Passed() []*Socket {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.inherited)
}

// Keep has a successor inherit a listener, until drop is called.
func (p *Process) Keep(k *Kept) (drop func()) {
	p.mu.Lock()
	p.kept = append(p.kept, k)
	late := p.serves
	if p.mu.Unlock(); late && k.Confirmed != nil {
		k.Confirmed()
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.kept = slices.DeleteFunc(p.kept, func(o *Kept) bool { return o == k })
	}
}

// inherits returns what the latest successor inherits, but for what has been dropped meanwhile. What was kept after
// it had been started is not its own.
func (p *Process) inherits() []*Kept {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.passed), func(k *Kept) bool { return !slices.Contains(p.kept, k) })
}

// Ready reports that this process serves: to the process before, which then ends if nothing
// happens for a while, or to the service manager. It closes sockets that were passed and not
// taken. Later calls do nothing.
func (p *Process) Ready() {
	p.mu.Lock()
	if p.ready {
		p.mu.Unlock()
		return
	}
	p.ready = true
	p.left, p.inherited = p.inherited, nil
	for _, s := range p.left {
		closeAll(s.FDs)
		s.FDs = nil
	}
	before := p.before
	p.mu.Unlock()
	if before == nil {
		systemd.Notify(systemd.Ready) // first: what waits for confirm may tell of a reload
		p.confirm()
		return
	}
	// If the process before has ended there is nothing to wait for: this one serves.
	send(before, report{Ready: true})
	go func() {
		var s step
		for err := error(nil); err == nil && !s.Accept; {
			err = receive(p.answers, &s)
		}
		close(p.accepting)
		for err := error(nil); err == nil && !s.Confirmed; {
			err = receive(p.answers, &s)
		}
		before.Close()
		p.confirm()
	}()
}

// confirm makes this process the one that serves.
func (p *Process) confirm() {
	p.mu.Lock()
	p.before, p.serves = nil, true
	kept := slices.Clone(p.kept)
	p.mu.Unlock()
	for _, k := range kept {
		if k.Confirmed != nil {
			k.Confirmed()
		}
	}
	close(p.confirmed)
}

// replace makes the successor that.
func (p *Process) replace(pid int) {
	p.mu.Lock()
	p.successor = pid
	p.mu.Unlock()
	var wait sync.WaitGroup
	for _, k := range p.inherits() {
		if k.Replaced != nil {
			wait.Go(k.Replaced)
		}
	}
	wait.Wait()
	close(p.replaced)
}

// Fail reports to the process before why this one cannot serve.
func (p *Process) Fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.before != nil && !p.ready {
		send(p.before, report{Error: err.Error()})
	}
}

// Left returns the sockets that no listener of this process wanted, without their descriptors.
func (p *Process) Left() []*Socket {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left
}

// Accepting is closed when this process may accept connections: at once or, after a process before
// it, when that has found that this one lives. Until then a failure costs no connection.
func (p *Process) Accepting() <-chan struct{} { return p.accepting }

// Confirmed is closed when this process is ready and the one that serves: at once or, after a
// process before it, when that has stopped accepting.
func (p *Process) Confirmed() <-chan struct{} { return p.confirmed }

// Replaced is closed when a successor serves. This process should stop accepting and end its
// connections.
func (p *Process) Replaced() <-chan struct{} { return p.replaced }

// Successor returns the number of the process that serves when Replaced is closed.
func (p *Process) Successor() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.successor
}

// Owns reports whether something outside of processes, such as the file of a socket, is this
// process's to remove: it was inherited, or made by this process. Of what two processes share it
// is that of the one that serves.
func (p *Process) Owns(inherited bool) bool {
	select {
	case <-p.replaced:
		return false
	default:
		return !inherited || !p.Follows()
	}
}

// Notify sends states to the service manager, if this process is its service.
func (p *Process) Notify(states ...string) error {
	select {
	case <-p.confirmed:
	default:
		return nil
	}
	select {
	case <-p.replaced:
		return nil
	default:
		return systemd.Notify(states...)
	}
}

func closeAll(fds []int) {
	for _, fd := range fds {
		sys.Close(fd)
	}
}
